// For property tests of operators with two inputs: two subtasks that share the key groups, and a rescale that deals these out anew.

import * as fc from 'fast-check'
import { MAX_WATERMARK } from '../record/element.ts'
import { keyGroupOf } from '../record/key-group.ts'
import type { StreamOperator } from './contract.ts'
import { openHarness } from './harness.ts'
import type { Emitted, HarnessSnapshot, OperatorHarness } from './harness.ts'

export interface Sided {
  readonly side: 'left' | 'right'
  readonly key: string
  readonly n: number
  readonly time: number
}

export type Action =
  | (Omit<Sided, 'n'> & { readonly kind: 'record' })
  | { readonly kind: 'watermark'; readonly part: 0 | 1; readonly by: number }
  | { readonly kind: 'rescale'; readonly upTo: number }

export const keys: readonly string[] = ['a', 'b', 'c', 'd']

const anyAction: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('record' as const),
      side: fc.constantFrom('left' as const, 'right' as const),
      key: fc.constantFrom(...keys),
      time: fc.integer({ min: -30, max: 40 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('watermark' as const),
      part: fc.constantFrom(0 as const, 1 as const),
      by: fc.integer({ min: 1, max: 20 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('rescale' as const), upTo: fc.integer({ min: 0, max: 126 }) }),
  },
)

/** Long ones: a rescale must meet subtasks whose event times differ, and be followed by records. */
export const anyActions: fc.Arbitrary<Action[]> = fc.array(anyAction, { maxLength: 80, size: 'max' })

/** What a test compares with: told of all that happens, with event time as each key has seen it. */
export interface Model {
  /** `watermark`: that under which the key's group is, also by what was stored with it. */
  record(record: Sided, watermark: number): void
  /** The key's event time has come from one to the other. */
  advance?(key: string, from: number, to: number): void
}

const groups = 128
const START = -60

export class TwoSubtasks {
  readonly emitted: Emitted[] = []
  readonly #create: () => StreamOperator
  readonly #model: Model
  readonly #watermarks = new Map(keys.map((key) => [key, START]))
  readonly #sideOutputs = new Map<string, Emitted[]>()
  #parts: OperatorHarness[] = []
  #upTo = 63
  #count = 0

  constructor(create: () => StreamOperator, model: Model) {
    this.#create = create
    this.#model = model
  }

  async run(actions: readonly Action[]): Promise<void> {
    await this.#open([])
    this.#advance(0, START)
    this.#advance(1, START)
    for (const action of actions) {
      if (action.kind === 'record') this.#record(action)
      else if (action.kind === 'watermark')
        this.#advance(action.part, this.#parts[action.part]!.currentWatermark + action.by)
      else {
        const snapshots = await Promise.all(this.#parts.map((part) => part.snapshot()))
        this.#take()
        this.#upTo = action.upTo
        await this.#open(snapshots)
      }
    }
    this.#advance(0, MAX_WATERMARK)
    this.#advance(1, MAX_WATERMARK)
    this.#take()
  }

  sideOutput(tag: string): readonly Emitted[] {
    return this.#sideOutputs.get(tag) ?? []
  }

  async entryCount(): Promise<number> {
    const snapshots = await Promise.all(this.#parts.map((part) => part.snapshot()))
    return snapshots.flatMap(({ keyed }) => keyed!.groups).filter(({ handle }) => handle !== undefined).length
  }

  #record({ side, key, time }: Action & { readonly kind: 'record' }): void {
    const record = { side, key, time, n: this.#count++ }
    this.#model.record(record, this.#watermarks.get(key)!)
    const part = this.#parts[this.#partOf(key)]!
    if (side === 'left') part.process(record, time)
    else part.processSecond(record, time)
  }

  #advance(part: 0 | 1, to: number): void {
    for (const key of keys) {
      const from = this.#watermarks.get(key)!
      if (this.#partOf(key) !== part || to <= from) continue
      this.#watermarks.set(key, to)
      this.#model.advance?.(key, from, to)
    }
    this.#parts[part]!.watermark(to)
  }

  #partOf(key: string): 0 | 1 {
    return keyGroupOf(key, groups) <= this.#upTo ? 0 : 1
  }

  async #open(restored: readonly HarnessSnapshot[]): Promise<void> {
    const open = (keyGroups: readonly [number, number]): Promise<OperatorHarness> => {
      const keySelector = ({ key }: Sided): string => key
      const shares = restored.map((snapshot) => shareOf(snapshot, keyGroups))
      const operator = this.#create()
      return openHarness({ operator, keySelector, secondKeySelector: keySelector, keyGroups, restored: shares })
    }
    this.#parts = [await open([0, this.#upTo]), await open([this.#upTo + 1, groups - 1])]
  }

  #take(): void {
    for (const part of this.#parts) {
      this.emitted.push(...part.takeOutput())
      for (const tag of ['late left', 'late right'])
        this.#sideOutputs.set(tag, [...this.sideOutput(tag), ...part.sideOutput(tag)])
    }
  }
}

function shareOf({ keyed, part }: HarnessSnapshot, [first, last]: readonly [number, number]): HarnessSnapshot {
  const own = keyed!.groups.filter(({ keyGroup }) => keyGroup >= first && keyGroup <= last)
  return { part, keyed: own.length === 0 ? undefined : { ...keyed!, groups: own } }
}
