// For tests of windows: events, contents that say what they hold, and the subtasks of one operator that are restored over others' key groups.

import type { Key } from '../record/contract.ts'
import { keyGroupOf } from '../record/key-group.ts'
import { typeInfoOf } from '../record/type-info.ts'
import { openHarness } from './harness.ts'
import type { Emitted, HarnessOptions, OperatorHarness } from './harness.ts'
import { listContents } from './window-contents.ts'
import { windowWork } from './window-work.ts'
import type { WindowWorkSettings } from './window-work.ts'

export interface Event {
  readonly key: string
  readonly n: number
}

/** Emits [key, start, end, numbers in order of size]. */
export const listing = listContents(typeInfoOf<unknown>('list'), (key, window, values) => [
  [key, window.startMs, window.endMs, values.map((value) => (value as Event).n).sort((left, right) => left - right)],
])

export const valuesOf = (emitted: readonly Emitted[]): unknown[] => emitted.map(({ value }) => value)

export const ofKey = (values: readonly unknown[], key: string): unknown[] =>
  values.filter((value) => (value as readonly Key[])[0] === key)

export type WindowSetup = Partial<WindowWorkSettings> & Pick<WindowWorkSettings, 'assigner'>

type Environment = NonNullable<HarnessOptions['environment']>

type Range = readonly [number, number]

interface Subtask {
  readonly range: Range
  readonly harness: OperatorHarness
}

/** One subtask, two, or three of unequal size. */
const rangesOf: Readonly<Record<number, readonly Range[]>> = {
  1: [[0, 127]],
  2: [
    [0, 63],
    [64, 127],
  ],
  3: [
    [0, 9],
    [10, 80],
    [81, 127],
  ],
}

/** Late records go to 'late'. The wall clock is one for all. */
export class WindowSubtasks {
  readonly #setup: WindowSetup
  #environment: Environment | undefined
  #subtasks: Subtask[] = []
  #emitted: Emitted[] = []
  #late: Emitted[] = []

  static async open(setup: WindowSetup, environment?: Environment): Promise<WindowSubtasks> {
    const subtasks = new WindowSubtasks(setup, environment)
    await subtasks.restore(1)
    return subtasks
  }

  private constructor(setup: WindowSetup, environment: Environment | undefined) {
    this.#setup = setup
    this.#environment = environment
  }

  get count(): number {
    return this.#subtasks.length
  }

  get wallMs(): number {
    return this.#environment!.clock.wallMs()
  }

  /** Continues on so many subtasks from a snapshot of all. `change`: of the job between two commands. */
  async restore(count: number, change: Partial<WindowWorkSettings> = {}): Promise<void> {
    this.#collect()
    const restored = await Promise.all(this.#subtasks.map(({ harness }) => harness.snapshot()))
    const settings = {
      trigger: undefined,
      contents: listing,
      allowedLatenessMs: undefined,
      lateTag: undefined,
      ...this.#setup,
      ...change,
    }
    this.#subtasks = []
    for (const range of rangesOf[count]!) {
      const operator = windowWork(settings).create()
      const keySelector = ({ key }: Event): string => key
      const options = { operator, keySelector, restored, keyGroups: range }
      const environment = this.#environment
      const harness = await openHarness(environment === undefined ? options : { ...options, environment })
      this.#environment = harness.environment
      this.#subtasks.push({ range, harness })
    }
  }

  process(event: Event, timestamp?: number): void {
    this.#of(event.key).harness.process(event, timestamp)
  }

  /** Of one subtask, or all. */
  watermark(timestamp: number, subtask?: number): void {
    for (const [index, { harness }] of this.#subtasks.entries())
      if (subtask === undefined || index === subtask) harness.watermark(timestamp)
  }

  watermarkOf(subtask: number): number {
    return this.#subtasks[subtask]!.harness.currentWatermark
  }

  /** Of the subtask that has the key. */
  watermarkFor(key: string): number {
    return this.#of(key).harness.currentWatermark
  }

  hasKey(subtask: number, key: string): boolean {
    return this.#subtasks[subtask] === this.#of(key)
  }

  async advance(ms: number): Promise<void> {
    await this.#environment!.clock.advanceSettled(ms)
    for (const { harness } of this.#subtasks) await harness.advance(0)
  }

  /** What was emitted since the last call, subtask by subtask. */
  takeOutput(): Emitted[] {
    this.#collect()
    const taken = this.#emitted
    this.#emitted = []
    return taken
  }

  get late(): Emitted[] {
    return [...this.#late, ...this.#subtasks.flatMap(({ harness }) => harness.sideOutput('late'))]
  }

  /** Whether no state and no timer is left. */
  async isEmpty(): Promise<boolean> {
    const snapshots = await Promise.all(this.#subtasks.map(({ harness }) => harness.snapshot()))
    return snapshots.every(({ keyed }) => keyed!.groups.every((group) => group.handle === undefined))
  }

  #of(key: string): Subtask {
    const group = keyGroupOf(key, 128)
    return this.#subtasks.find(({ range: [first, last] }) => first <= group && group <= last)!
  }

  #collect(): void {
    for (const { harness } of this.#subtasks) this.#emitted.push(...harness.takeOutput())
    this.#late.push(...this.#subtasks.flatMap(({ harness }) => harness.sideOutput('late').splice(0)))
  }
}
