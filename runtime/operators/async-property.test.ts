// Any order of answers, any moment of snapshot and crash: what a job's results come to is each record's result once.

import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { typeInfoOf } from '../record/type-info.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import type { ManualEnvironment } from '../testkit/manual-clock.ts'
import { AsyncOperator } from './async-operator.ts'
import type { AsyncWork } from './async-operator.ts'
import { asyncSettings } from './async-options.ts'
import type { AsyncOrder } from './async-options.ts'
import { openHarness } from './harness.ts'
import type { HarnessSnapshot, OperatorHarness } from './harness.ts'

const input = typeInfoOf('numbers', z.int()) as AsyncWork['input']
const retryDelayMs = 10

/** What the source gives: records with their number as value and event time, watermarks between them. */
type Item = { readonly record: number } | { readonly watermark: number }

type Step =
  | { readonly type: 'feed' | 'snapshot' | 'crash' | 'time' }
  /** Which of the open calls. */
  | { readonly type: 'answer' | 'refuse'; readonly which: number }

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof<fc.WeightedArbitrary<Step>[]>(
    { weight: 6, arbitrary: fc.constant<Step>({ type: 'feed' }) },
    { weight: 4, arbitrary: fc.record({ type: fc.constant('answer' as const), which: fc.nat(20) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('refuse' as const), which: fc.nat(20) }) },
    { weight: 1, arbitrary: fc.constantFrom<Step>({ type: 'snapshot' }, { type: 'crash' }, { type: 'time' }) },
  ),
  { maxLength: 60 },
)

interface Life {
  readonly harness: OperatorHarness
  readonly operator: AsyncOperator
  /** Not answered yet. */
  readonly open: { readonly value: number; answer(): void; refuse(): void }[]
  /** Records that came in, restored ones first. */
  readonly taken: number[]
  readonly emitted: number[]
  /** For each watermark given, how many of `taken` stood before it. */
  readonly before: Map<number, number>
  checked: number
}

interface WorldOptions {
  readonly order: AsyncOrder
  readonly items: readonly Item[]
  readonly environment: () => ManualEnvironment
}

/** A source that is rewound to its last snapshot, the operator, and a sink that keeps what was emitted before a snapshot. */
class World {
  readonly #options: WorldOptions
  readonly kept: number[] = []
  #life!: Life
  #next = 0
  #point:
    | { readonly next: number; readonly snapshot: HarnessSnapshot; readonly inFlight: readonly number[] }
    | undefined

  constructor(options: WorldOptions) {
    this.#options = options
  }

  async begin(): Promise<void> {
    const open: Life['open'] = []
    const call = (value: unknown) =>
      new Promise((resolve, reject) => {
        const entry = {
          value: value as number,
          answer: () => resolve(Number(value) * 2),
          refuse: () => reject(new Error('busy')),
        }
        open.push(entry)
      })
    const retries = { attempts: 1_000, delayMs: retryDelayMs, maxDelayMs: retryDelayMs }
    const settings = asyncSettings('the test', {
      timeoutMs: 1_000_000,
      capacity: 3,
      order: this.#options.order,
      retries,
    })
    const operator = new AsyncOperator({ kind: 'mapAsync', call, input, settings })
    const point = this.#point
    const restored = point === undefined ? [] : [point.snapshot]
    const harness = await openHarness({ operator, restored, environment: this.#options.environment() })
    this.#next = point?.next ?? 0
    const taken = [...(point?.inFlight ?? [])]
    this.#life = { harness, operator, open, taken, emitted: [], before: new Map(), checked: 0 }
    await this.#settle()
  }

  /** False at the end of the input. */
  feed(): boolean {
    const { harness, operator, taken, before } = this.#life
    const item = this.#options.items[this.#next]
    if (item === undefined) return false
    if ('record' in item && !operator.ready) return true
    this.#next++
    if ('record' in item) {
      taken.push(item.record)
      harness.process(item.record, item.record)
    } else {
      before.set(item.watermark, taken.length)
      harness.watermark(item.watermark)
    }
    this.#look()
    return true
  }

  /** One of the open calls ends; false when none is open. */
  async end(how: 'answer' | 'refuse', which: number): Promise<boolean> {
    const { open } = this.#life
    if (open.length === 0) return false
    const [call] = open.splice(which % open.length, 1)
    call![how]()
    await this.#settle()
    return true
  }

  async time(): Promise<void> {
    await this.#life.harness.advance(retryDelayMs)
    await this.#settle()
  }

  async snapshot(): Promise<void> {
    const { harness, taken, emitted } = this.#life
    const done = new Set(emitted)
    this.#point = {
      next: this.#next,
      snapshot: await harness.snapshot(),
      inFlight: taken.filter((value) => !done.has(value)),
    }
    this.kept.push(...emitted.slice(this.#life.checked))
    this.#life.checked = emitted.length
  }

  /** After the last record: all is answered, and all has gone on. */
  async finish(): Promise<void> {
    while (this.feed() || this.#life.operator.pending) if (!(await this.end('answer', 0))) await this.time()
    const { harness, taken, emitted, before } = this.#life
    expect(emitted.toSorted(byValue)).toEqual(taken.toSorted(byValue))
    expect(harness.forwarded.at(-1)).toBe([...before.keys()].at(-1))
    expect(harness.failures).toEqual([])
    await this.snapshot()
  }

  async #settle(): Promise<void> {
    await this.#life.harness.environment.executor.runAllSettled()
    this.#look()
  }

  /** Takes what came out, and holds each watermark that was let go against the records that stood before it. */
  #look(): void {
    const { harness, emitted, taken, before } = this.#life
    for (const { value, timestamp } of harness.takeOutput()) {
      expect(value).toBe(timestamp! * 2)
      emitted.push(timestamp!)
    }
    const passed = harness.forwarded.at(-1)
    if (passed !== undefined) expect(emitted).toEqual(expect.arrayContaining(taken.slice(0, before.get(passed))))
    expect(harness.forwarded).toEqual(harness.forwarded.toSorted(byValue))
  }
}

const byValue = (left: number, right: number): number => left - right

describe('an asynchronous operator, whatever the order of answers, refusals, snapshots and crashes,', () => {
  for (const order of ['ordered', 'unordered'] as const)
    it(`gives each record's result once, with no watermark before the results that it follows (${order})`, async () => {
      await fc.assert(propertyOf(order), { numRuns: 150 })
    })

  it('is seen to lose a record when that fault is planted', async () => {
    const environment = () => manualEnvironment({ planted: new Set(['async-element-lost']) })
    const { failed } = await fc.check(propertyOf('ordered', environment), { endOnFailure: true, numRuns: 1_000 })
    expect(failed).toBe(true)
  })
})

function propertyOf(order: AsyncOrder, environment: () => ManualEnvironment = manualEnvironment) {
  const cases = fc.record({ marks: fc.array(fc.boolean(), { minLength: 1, maxLength: 15 }), steps })
  return fc.asyncProperty(cases, async ({ marks, steps: story }) => {
    const items = marks.flatMap((mark, index): Item[] =>
      mark ? [{ record: index }, { watermark: index }] : [{ record: index }],
    )
    const world = new World({ order, items, environment })
    await world.begin()
    for (const step of story) {
      if ('which' in step) await world.end(step.type, step.which)
      else if (step.type === 'feed') world.feed()
      else if (step.type === 'snapshot') await world.snapshot()
      else if (step.type === 'time') await world.time()
      else await world.begin()
    }
    await world.finish()
    const all = marks.map((_, index) => index)
    expect(order === 'ordered' ? world.kept : world.kept.toSorted(byValue)).toEqual(all)
  })
}
