// A ledger server as a child of a test: started, killed, started again on the same folder and port.

import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { LedgerClient } from './ledger-client.ts'

const server = fileURLToPath(new URL('./ledger-server.ts', import.meta.url))
const startDeadlineMs = 60_000

export class LedgerProcess {
  readonly client: LedgerClient
  readonly #folder: string
  readonly #port: number
  #child: ChildProcess

  private constructor(folder: string, port: number, child: ChildProcess) {
    this.#folder = folder
    this.#port = port
    this.#child = child
    this.client = new LedgerClient(`http://127.0.0.1:${port}`)
  }

  /** On a free port of this machine. */
  static async start(folder: string): Promise<LedgerProcess> {
    const { child, port } = await spawnServer(folder, 0)
    return new LedgerProcess(folder, port, child)
  }

  get url(): string {
    return this.client.url
  }

  get pid(): number {
    return this.#child.pid!
  }

  /** SIGKILL, and until it is gone. */
  async kill(): Promise<void> {
    await ended(this.#child, 'SIGKILL')
  }

  /** Begun again after `kill`; resolves once it answers. */
  async restart(): Promise<void> {
    const { child } = await spawnServer(this.#folder, this.#port)
    this.#child = child
  }

  async stop(): Promise<void> {
    await ended(this.#child, 'SIGTERM')
  }
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  await exit
}

async function spawnServer(folder: string, port: number): Promise<{ child: ChildProcess; port: number }> {
  const child = spawn(process.execPath, [server, '--folder', folder, '--port', String(port)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let errors = ''
  child.stderr.on('data', (text: Buffer) => (errors += String(text)))
  const answered = await new Promise<number>((resolve, reject) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), startDeadlineMs)
    createInterface({ input: child.stdout }).once('line', (line) => {
      clearTimeout(timer)
      resolve((JSON.parse(line) as { port: number }).port)
    })
    child.once('exit', (code, signal) => {
      clearTimeout(timer)
      reject(new Error(`the ledger server ended with ${code ?? signal}: ${errors}`))
    })
  })
  return { child, port: answered }
}
