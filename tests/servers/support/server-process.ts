// A real server as a process of its own on loopback: started, killed, frozen and started again by tests.

import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'

/** A server that takes longer does not start: on two busy processors the slowest takes a tenth of it. */
const readyDeadlineMs = 30_000
/** From the polite signal to kill -9. */
const stopDeadlineMs = 5_000
/** Somebody else may take a free port before the server does. */
const portTriesMax = 5
/** What is kept of the server's words, for errors; characters. */
const outputMax = 20_000

export interface ServerOptions {
  /** For errors. */
  readonly name: string
  /** The binary. */
  readonly command: string
  /** `ports` has portCount free ones; they stay the same over restarts. */
  readonly args: (ports: readonly number[]) => readonly string[]
  /** Added to this process's. */
  readonly env?: Readonly<Record<string, string>>
  /** How many ports it listens at; default 1. */
  readonly portCount?: number
  /** Given: these ports and no others. */
  readonly ports?: readonly number[]
  /** Whether it answers; asked again and again, and a rejection counts as no. */
  readonly ready: (server: ServerProcess) => Promise<boolean>
  readonly readyDeadlineMs?: number
}

/** Resolves once the server is ready. Rejects with its output when it ends before, or is not in time. */
export async function startServer(options: ServerOptions): Promise<ServerProcess> {
  for (let tries = 1; ; tries++) {
    const ports = options.ports ?? (await freePorts(options.portCount ?? 1))
    const server = new ServerProcess(options, ports)
    try {
      await server.start()
      return server
    } catch (error) {
      await server.stop()
      const taken = options.ports === undefined && /address (already )?in use|EADDRINUSE/i.test(server.output)
      if (!taken || tries === portTriesMax) throw error
    }
  }
}

/** How a process ended. */
export interface ProcessEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export class ServerProcess {
  readonly ports: readonly number[]
  readonly #options: ServerOptions
  #child: ChildProcess | undefined
  #guard: ChildProcess | undefined
  #exited: Promise<void> = Promise.resolve()
  #end: ProcessEnd | undefined
  #output = ''

  constructor(options: ServerOptions, ports: readonly number[]) {
    this.#options = options
    this.ports = ports
  }

  get name(): string {
    return this.#options.name
  }

  /** The first port. */
  get port(): number {
    return this.ports[0]!
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  get running(): boolean {
    return this.#child !== undefined
  }

  /** By SIGSTOP: frozen here, or held at a failpoint of its own. */
  get stopped(): boolean {
    if (this.pid === undefined) return false
    try {
      const status = readFileSync(`/proc/${this.pid}/stat`, 'utf8')
      // The name before the state may hold anything.
      return status.slice(status.lastIndexOf(')') + 2).startsWith('T')
    } catch {
      return false
    }
  }

  /** Of its last life; undefined while it runs, and when it could not be started. */
  get end(): ProcessEnd | undefined {
    return this.#end
  }

  /** What it said so far, over all its lives; the end of it when it is long. */
  get output(): string {
    return this.#output
  }

  /** On the same ports, with the same arguments. Resolves once it is ready. */
  async start(): Promise<void> {
    if (this.running) throw new Error(`${this.#options.name} runs already`)
    this.launch()
    await this.untilReady()
  }

  /** As `start`, without waiting: to come back during requests. */
  launch(): void {
    const { command, args, env, name } = this.#options
    const child = spawn(command, args(this.ports), {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    this.#end = undefined
    const hear = (chunk: Buffer): void => {
      this.#output = (this.#output + String(chunk)).slice(-outputMax)
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    this.#exited = new Promise((resolve) => {
      const ended = (): void => {
        if (this.#child === child) this.#child = undefined
        this.#endGuard()
        resolve()
      }
      child.once('exit', (code, signal) => {
        this.#end = { code, signal }
        ended()
      })
      child.once('error', (error) => {
        this.#output += `\n${name} cannot be started: ${error.message}`
        ended()
      })
    })
    if (child.pid !== undefined) this.#guard = guardOf(child.pid)
  }

  async untilReady(): Promise<void> {
    const { name, ready } = this.#options
    const deadlineMs = this.#options.readyDeadlineMs ?? readyDeadlineMs
    const untilMs = performance.now() + deadlineMs
    let last: unknown
    // One that could not be started says so only in a later turn.
    if (this.pid === undefined) await this.#exited
    while (performance.now() < untilMs) {
      if (!this.running) throw new Error(`${name} ended before it was ready; it said:\n${this.#output}`)
      try {
        // Whoever answers may be somebody else at its port: then it has ended.
        if ((await ready(this)) && this.running) return
      } catch (error) {
        last = error
      }
      await pause(20)
    }
    throw new Error(`${name} was not ready within ${deadlineMs} ms (${String(last)}); it said:\n${this.#output}`)
  }

  /** kill -9; resolves once it is gone. */
  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL')
    await this.#exited
  }

  /** Without waiting for what it does about it. */
  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
  }

  /** kill -9, then on the same ports again. */
  async restart(): Promise<void> {
    await this.kill()
    await this.start()
  }

  /** It keeps its connections and answers nothing, as a frozen machine does. */
  freeze(): void {
    this.#child?.kill('SIGSTOP')
  }

  thaw(): void {
    this.#child?.kill('SIGCONT')
  }

  /** Politely, then by kill -9; idempotent. */
  async stop(): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    child.kill('SIGCONT')
    child.kill('SIGTERM')
    const deadline = setTimeout(() => child.kill('SIGKILL'), stopDeadlineMs)
    await this.#exited
    clearTimeout(deadline)
  }

  #endGuard(): void {
    // A word instead of the end of input: it goes without killing.
    this.#guard?.stdin?.end('over\n')
    this.#guard = undefined
  }
}

/** Kills the server when this process is gone, in whatever way: then the end of its input is all that it hears. */
function guardOf(pid: number): ChildProcess {
  const guard = spawn('/bin/sh', ['-c', `read -r word || kill -9 ${pid}`], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  guard.stdin.on('error', () => undefined)
  guard.on('error', () => undefined)
  guard.unref()
  return guard
}

/** Loopback ports that nobody listened at just now. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  try {
    return await Promise.all(
      servers.map(
        (server) =>
          new Promise<number>((resolve, reject) => {
            server.once('error', reject)
            server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
          }),
      ),
    )
  } finally {
    await Promise.all(servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))))
  }
}

/** Resolves once `isTrue`; rejects after the deadline with `what`. For tests that wait for a condition. */
export async function until(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  deadlineMs = 30_000,
): Promise<void> {
  const untilMs = performance.now() + deadlineMs
  while (!(await isTrue())) {
    if (performance.now() >= untilMs) throw new Error(`not within ${deadlineMs} ms: ${what}`)
    await pause(10)
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
