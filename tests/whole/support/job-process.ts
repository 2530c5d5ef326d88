// Starts the driver's process and waits for what it says. Every wait has a deadline and tells what was said meanwhile.

import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { DriverEvent, DriverOptions, DriverOrder } from './driver-contract.ts'

const driver = fileURLToPath(new URL('./driver.ts', import.meta.url))
/** Spares each of the many processes half of its start: types are stripped and code is compiled once. */
const compileCache = fileURLToPath(new URL('../../../node_modules/.cache/millrace-tests', import.meta.url))
const fullDisk = new URL('./full-disk.ts', import.meta.url).href
/** One wait; the machine may be busy with other tests. */
const deadlineMs = 120_000

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

type EventOf<Type extends DriverEvent['type']> = Extract<DriverEvent, { type: Type }>

export class JobProcess {
  static readonly #running = new Set<JobProcess>()

  readonly events: DriverEvent[] = []
  readonly exit: Promise<Exit>
  readonly folder: string
  readonly #child: ChildProcess
  readonly #changed = new Set<() => void>()
  #errors = ''

  /** In the options' folder. `fullDiskMarker`: the process has a disk that is full while that file exists (full-disk.ts). */
  constructor(options: DriverOptions, fullDiskMarker?: string) {
    this.folder = options.folder
    const preload = fullDiskMarker === undefined ? [] : ['--import', fullDisk]
    const child = spawn(process.execPath, [...preload, driver, JSON.stringify(options)], {
      cwd: options.folder,
      env: {
        ...process.env,
        NODE_COMPILE_CACHE: compileCache,
        ...(fullDiskMarker === undefined ? {} : { MILLRACE_TEST_FULL_DISK: fullDiskMarker }),
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.#child = child
    JobProcess.#running.add(this)
    createInterface({ input: child.stdout }).on('line', (line) => this.#heard(line))
    child.stderr.on('data', (text: Buffer) => (this.#errors += String(text)))
    // Orders to a process that was killed meanwhile go nowhere.
    child.stdin.on('error', () => {})
    this.exit = new Promise((resolve) => {
      child.on('close', (code, signal) => {
        JobProcess.#running.delete(this)
        resolve({ code, signal })
        this.#wake()
      })
    })
  }

  /** Those of a test that failed may run on, and would write into its folder while that goes. */
  static async endAll(): Promise<void> {
    const running = [...JobProcess.#running]
    for (const each of running) each.signal('SIGKILL')
    await Promise.all(running.map(({ exit }) => exit))
  }

  all<Type extends DriverEvent['type']>(type: Type): EventOf<Type>[] {
    return this.events.filter((event): event is EventOf<Type> => event.type === type)
  }

  /** The `count`th event of the type. */
  async event<Type extends DriverEvent['type']>(type: Type, count = 1): Promise<EventOf<Type>> {
    await this.until(`${count} times ${type}`, () => this.all(type).length >= count)
    return this.all(type)[count - 1]!
  }

  async until(what: string, holds: () => boolean): Promise<void> {
    let over = false
    const timer = setTimeout(() => {
      over = true
      this.#wake()
    }, deadlineMs)
    try {
      while (!holds()) {
        const ended = this.#child.exitCode !== null || this.#child.signalCode !== null
        if (over || ended) throw new Error(`${ended ? 'it ended without' : 'no'} ${what}; ${this.story()}`)
        await new Promise<void>((resolve) => this.#changed.add(resolve))
      }
    } finally {
      clearTimeout(timer)
    }
  }

  async ended(): Promise<Exit> {
    const timer = setTimeout(() => this.signal('SIGKILL'), deadlineMs)
    const exit = await this.exit
    clearTimeout(timer)
    return exit
  }

  order(order: DriverOrder): void {
    this.#child.stdin!.write(`${JSON.stringify(order)}\n`)
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** What was said, for a failing test. */
  story(): string {
    return `${this.events
      .slice(-15)
      .map((event) => JSON.stringify(event))
      .join('\n')}\n${this.#errors.slice(-2_000)}`
  }

  #heard(line: string): void {
    try {
      this.events.push(JSON.parse(line) as DriverEvent)
    } catch {
      // Cut short by a kill.
    }
    this.#wake()
  }

  #wake(): void {
    const waiting = [...this.#changed]
    this.#changed.clear()
    for (const resolve of waiting) resolve()
  }
}
