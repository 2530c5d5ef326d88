// Commands of other programs, with a deadline, and an error that says which one, what it printed and what it needs.

import { spawn } from 'node:child_process'
import { createReadStream } from 'node:fs'

const usualDeadlineMs = 120_000
/** What is kept of each stream; characters. Logs and objects of a scenario fit. */
const outputMax = 64 * 1024 * 1024
/** Of a failed command's words, in its error. */
const wordsMax = 4_000

/** Ids of groups that are at work. */
const groups = new Set<number>()

/** Ends every command that is at work, with its children; for a process that ends early. */
export function endCommands(): void {
  for (const group of groups) killGroup(group)
}

export interface RunOptions {
  readonly cwd?: string
  /** Added to this process's. */
  readonly env?: Readonly<Record<string, string>>
  /** To its standard input: text, or the content of a file. */
  readonly input?: string | { readonly file: string }
  readonly deadlineMs?: number
  /** Said when the program is not there: what to install. */
  readonly needs?: string
  /** True: an exit code other than 0 is an answer, not an error. */
  readonly anyCode?: boolean
}

export interface RunResult {
  readonly stdout: string
  readonly stderr: string
  readonly code: number
}

/** Resolves when the command has ended with 0 (or with `anyCode`); its process group is killed at the deadline. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const { cwd, input, deadlineMs = usualDeadlineMs, needs, anyCode = false } = options
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...options.env },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    detached: true,
  })
  if (child.pid !== undefined) groups.add(child.pid)
  const called = [command, ...args].join(' ').slice(0, 300)
  return new Promise((resolve, reject) => {
    let stdout = ''
    let stderr = ''
    let late = false
    child.stdout!.setEncoding('utf8').on('data', (chunk: string) => (stdout = (stdout + chunk).slice(-outputMax)))
    child.stderr!.setEncoding('utf8').on('data', (chunk: string) => (stderr = (stderr + chunk).slice(-outputMax)))
    const deadline = setTimeout(() => {
      late = true
      if (child.pid !== undefined) killGroup(child.pid)
    }, deadlineMs)
    child.once('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(deadline)
      const missing =
        error.code === 'ENOENT'
          ? `${command} is not installed${needs === undefined ? '' : `; needed: ${needs}`}`
          : error.message
      reject(new Error(`\`${called}\` could not be started: ${missing}`, { cause: error }))
    })
    child.once('close', (code, signal) => {
      clearTimeout(deadline)
      if (child.pid !== undefined) groups.delete(child.pid)
      if (code !== null && (code === 0 || anyCode)) return resolve({ stdout, stderr, code })
      const how = late ? `did not end within ${deadlineMs} ms` : `ended with ${code ?? signal}`
      const words = `${stdout}\n${stderr}`.trim().slice(-wordsMax)
      reject(new Error(`\`${called}\` ${how}; it said:\n${words}${needs === undefined ? '' : `\n(needs ${needs})`}`))
    })
    if (child.stdin !== null) {
      // A command that ends without reading all of it says why by its code.
      child.stdin.on('error', () => undefined)
      if (typeof input === 'string') child.stdin.end(input)
      else if (input !== undefined) createReadStream(input.file).pipe(child.stdin)
    }
  })
}

/** A child that was started as a group of its own, and its children. */
function killGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL')
  } catch (error) {
    // All of it ended just now.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
