// The real `millrace` command in a process of its own, as a user starts it.

import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const entry = fileURLToPath(new URL('../../runtime/cli/main.ts', import.meta.url))

/** A command that takes longer hangs: on two busy processors the longest one here takes about a third of it. */
const commandDeadlineMs = 120_000

export interface CommandResult {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface CommandOptions {
  /** The folder it runs in. */
  readonly folder: string
  /** MILLRACE_FAILPOINTS. */
  readonly failpoints?: string
  /** `run` checks types first, a compiler each time; default: it does not, since most tests start one job many times. */
  readonly checkTypes?: boolean
}

export class RunningCommand {
  readonly ended: Promise<CommandResult>
  readonly #child: ChildProcess
  #stdout = ''
  #stderr = ''
  #waiting: (() => void)[] = []

  constructor(words: readonly string[], { folder, failpoints = '', checkTypes = false }: CommandOptions) {
    const skipTypes = words[0] === 'run' && !checkTypes ? ['--skip-types'] : []
    const environment = { ...process.env, MILLRACE_FAILPOINTS: failpoints, MILLRACE_DEBUG: '' }
    this.#child = spawn(process.execPath, [entry, ...words, ...skipTypes], {
      cwd: folder,
      env: environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child.stdout!.on('data', (chunk: Buffer) => this.#heard(() => (this.#stdout += String(chunk))))
    this.#child.stderr!.on('data', (chunk: Buffer) => this.#heard(() => (this.#stderr += String(chunk))))
    this.ended = new Promise((resolve, reject) => {
      const deadline = setTimeout(() => {
        this.#child.kill('SIGKILL')
        reject(
          new Error(`the command did not end within ${commandDeadlineMs} ms; it said:\n${this.#stdout}${this.#stderr}`),
        )
      }, commandDeadlineMs)
      this.#child.once('error', reject)
      this.#child.once('close', (exitCode, signal) => {
        clearTimeout(deadline)
        this.#heard(() => undefined)
        resolve({ exitCode, signal, stdout: this.#stdout, stderr: this.#stderr })
      })
    })
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Resolves once `isTrue`, asked whenever the command says something and every so often; rejects when the command ends before. */
  async until(isTrue: () => Promise<boolean> | boolean): Promise<void> {
    let ended = false
    void this.ended.then(
      () => (ended = true),
      () => (ended = true),
    )
    while (!(await isTrue())) {
      if (ended) throw new Error(`the command ended before; it said:\n${this.#stdout}${this.#stderr}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 20)
        this.#waiting.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
  }

  get stderr(): string {
    return this.#stderr
  }

  #heard(take: () => unknown): void {
    take()
    for (const wake of this.#waiting.splice(0)) wake()
  }
}

export async function runCommand(words: readonly string[], options: CommandOptions): Promise<CommandResult> {
  return new RunningCommand(words, options).ended
}

/** A folder of its own for `work`, gone afterwards. */
export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-'))
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
