import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MAX_WATERMARK } from '../record/element.ts'
import { typeInfoOf } from '../record/type-info.ts'
import type { KeyedStateBackend } from '../state/contract.ts'
import type { OperatorContext, Output, StreamOperator } from './contract.ts'
import { openHarness } from './harness.ts'
import { listing, ofKey, valuesOf, WindowSubtasks } from './test-windows.ts'
import type { Event, WindowSetup } from './test-windows.ts'
import { sessionWindows } from './window-assigner.ts'
import { aggregateContents, listContents, reduceContents } from './window-contents.ts'
import { windowWork } from './window-work.ts'

/** Of both halves of the key groups, and of all three ranges. */
const keys = ['a', 'b', 'c', 'f']

const open = (setup: Partial<WindowSetup> = {}): Promise<WindowSubtasks> =>
  WindowSubtasks.open({ assigner: sessionWindows({ gapMs: 10 }), lateTag: 'late', ...setup })

describe('session windows', () => {
  it('hold records that follow each other by less than the gap, and fire once a gap after the last', async () => {
    const sessions = await open()
    sessions.process({ key: 'a', n: 1 }, 3)
    sessions.process({ key: 'a', n: 2 }, 12)
    sessions.watermark(12)
    sessions.process({ key: 'a', n: 3 }, 21)
    sessions.watermark(29)
    expect(sessions.takeOutput()).toEqual([])
    sessions.watermark(30)
    expect(sessions.takeOutput()).toEqual([{ value: ['a', 3, 31, [1, 2, 3]], timestamp: 30 }])
    sessions.watermark(MAX_WATERMARK)
    expect(sessions.takeOutput()).toEqual([])
    expect(await sessions.isEmpty()).toBe(true)
  })

  it('become one by a record between them, and neither fires at the end that it had', async () => {
    const sessions = await open()
    sessions.process({ key: 'a', n: 1 }, 0)
    sessions.process({ key: 'a', n: 2 }, 18)
    sessions.process({ key: 'b', n: 3 }, 0)
    sessions.process({ key: 'a', n: 4 }, 9)
    sessions.watermark(MAX_WATERMARK)
    expect(valuesOf(sessions.takeOutput())).toEqual([
      ['b', 0, 10, [3]],
      ['a', 0, 28, [1, 2, 4]],
    ])
  })

  it('of records exactly the gap apart are two, whether the watermark came between them or not', async () => {
    for (const between of [0, 9]) {
      const sessions = await open()
      sessions.process({ key: 'a', n: 1 }, 0)
      sessions.watermark(between)
      sessions.process({ key: 'a', n: 2 }, 10)
      sessions.watermark(MAX_WATERMARK)
      expect(valuesOf(sessions.takeOutput())).toEqual([
        ['a', 0, 10, [1]],
        ['a', 10, 20, [2]],
      ])
    }
  })

  it('take a record older than the watermark where it extends an open session, and refuse it where it would be one that is over', async () => {
    const sessions = await open()
    sessions.process({ key: 'a', n: 1 }, 20)
    sessions.watermark(25)
    sessions.process({ key: 'a', n: 2 }, 12)
    sessions.process({ key: 'a', n: 3 }, 2)
    sessions.watermark(29)
    expect(valuesOf(sessions.takeOutput())).toEqual([['a', 12, 30, [1, 2]]])
    expect(sessions.late).toEqual([{ value: { key: 'a', n: 3 }, timestamp: 2 }])
  })

  it('fire again for each record within the allowed lateness, and once more at the end of what a late record joined', async () => {
    const sessions = await open({ allowedLatenessMs: 20 })
    sessions.process({ key: 'a', n: 1 }, 0)
    sessions.process({ key: 'a', n: 2 }, 19)
    sessions.watermark(12)
    expect(valuesOf(sessions.takeOutput())).toEqual([['a', 0, 10, [1]]])
    sessions.process({ key: 'a', n: 3 }, 1)
    expect(sessions.takeOutput()).toEqual([{ value: ['a', 0, 11, [1, 3]], timestamp: 10 }])
    sessions.process({ key: 'a', n: 4 }, 10)
    expect(sessions.takeOutput()).toEqual([])
    sessions.watermark(28)
    expect(valuesOf(sessions.takeOutput())).toEqual([['a', 0, 29, [1, 2, 3, 4]]])
    sessions.watermark(48)
    sessions.process({ key: 'a', n: 5 }, 18)
    expect(valuesOf(sessions.late)).toEqual([{ key: 'a', n: 5 }])
    sessions.watermark(49)
    expect(sessions.takeOutput()).toEqual([])
    expect(await sessions.isEmpty()).toBe(true)
  })

  it('fire at the new end that a late record gave them', async () => {
    const sessions = await open({ allowedLatenessMs: 20 })
    sessions.process({ key: 'a', n: 1 }, 0)
    sessions.watermark(12)
    sessions.process({ key: 'a', n: 2 }, 9)
    expect(valuesOf(sessions.takeOutput())).toEqual([['a', 0, 10, [1]]])
    sessions.watermark(18)
    expect(valuesOf(sessions.takeOutput())).toEqual([['a', 0, 19, [1, 2]]])
    sessions.watermark(39)
    expect(await sessions.isEmpty()).toBe(true)
  })

  it('are not woken by a record that overlaps one whose lateness has just ended', async () => {
    const sessions = await open({ allowedLatenessMs: 20 })
    sessions.process({ key: 'a', n: 1 }, 0)
    sessions.process({ key: 'a', n: 2 }, 9)
    sessions.watermark(38)
    expect(valuesOf(sessions.takeOutput())).toEqual([['a', 0, 19, [1, 2]]])
    sessions.process({ key: 'a', n: 3 }, 12)
    expect(valuesOf(sessions.takeOutput())).toEqual([['a', 12, 22, [3]]])
    sessions.watermark(42)
    expect(await sessions.isEmpty()).toBe(true)
  })

  it('take late records for as long as the allowed lateness says that a restore has raised', async () => {
    const sessions = await open()
    sessions.process({ key: 'a', n: 1 }, 0)
    sessions.process({ key: 'b', n: 2 }, 0)
    sessions.watermark(9)
    await sessions.restore(2, { allowedLatenessMs: 20 })
    sessions.watermark(15)
    sessions.process({ key: 'a', n: 3 }, 5)
    expect(valuesOf(sessions.takeOutput())).toEqual([
      ['a', 0, 10, [1]],
      ['b', 0, 10, [2]],
      ['a', 0, 15, [1, 3]],
    ])
    sessions.watermark(35)
    expect(await sessions.isEmpty()).toBe(true)
  })

  it('hold one timer for each that is open, however many records have moved its end or its start', async () => {
    const settings = {
      assigner: sessionWindows({ gapMs: 10 }),
      trigger: undefined,
      contents: listing,
      allowedLatenessMs: undefined,
      lateTag: undefined,
    }
    const spied = new SpiedOn(windowWork(settings).create())
    const harness = await openHarness({ operator: spied, keySelector: ({ key }: Event) => key })
    for (let n = 0; n < 100; n++) {
      harness.process({ key: 'forwards', n }, n * 5)
      harness.process({ key: 'backwards', n }, -n * 5)
    }
    // Per key: its end, its contents and a timer; nothing is remembered by the trigger.
    expect(spied.keyed!.entryCount).toBe(6)
  })

  it('merge what aggregate, reduce and process keep, the earlier session first', async () => {
    const kept = [
      aggregateContents(
        {
          create: () => ({ numbers: [] as number[] }),
          add(accumulator, value) {
            ;(accumulator as { numbers: number[] }).numbers.push((value as Event).n)
            return accumulator
          },
          merge(earlier, later) {
            const numbers = earlier as { numbers: number[] }
            numbers.numbers.push(...(later as { numbers: number[] }).numbers)
            return numbers
          },
          result: (accumulator) => [...(accumulator as { numbers: number[] }).numbers],
        },
        typeInfoOf<unknown>('numbers'),
        undefined,
      ),
      reduceContents(
        (left, right) => [...[left].flat(), ...[right].flat()],
        typeInfoOf<unknown>('events'),
        (_key, _window, events) => (events as Event[]).map(({ n }) => n),
      ),
      listContents(typeInfoOf<unknown>('list'), (_key, _window, events) => [(events as Event[]).map(({ n }) => n)]),
    ]
    for (const contents of kept) {
      const sessions = await open({ contents })
      for (const [n, time] of [30, 0, 15, 31, 22, 8].entries()) sessions.process({ key: 'a', n }, time)
      sessions.watermark(MAX_WATERMARK)
      expect(valuesOf(sessions.takeOutput())).toEqual([[1, 2, 0, 3, 4, 5]])
    }
  })

  it('are restored as they were at the snapshot, though they were merged and fired while it was written', async () => {
    const sessions = await open()
    sessions.process({ key: 'a', n: 1 }, 0)
    sessions.process({ key: 'a', n: 2 }, 15)
    const restored = sessions.restore(2)
    sessions.process({ key: 'a', n: 9 }, 8)
    sessions.watermark(MAX_WATERMARK)
    await restored
    sessions.process({ key: 'a', n: 3 }, 8)
    sessions.watermark(MAX_WATERMARK)
    expect(valuesOf(sessions.takeOutput())).toEqual([['a', 0, 25, [1, 2, 3]]])
  })

  it.each([
    [0, 10],
    [10, 0],
    [30, 31],
    [31, 30],
  ])('leave nothing behind when an allowed lateness of %d ms becomes %d ms at a restore', async (first, second) => {
    const sessions = await open({ allowedLatenessMs: first })
    for (const time of [1, 8, 30, 45]) sessions.process({ key: 'a', n: time }, time)
    sessions.watermark(20)
    await sessions.restore(1, { allowedLatenessMs: second })
    sessions.process({ key: 'a', n: 39 }, 39)
    sessions.watermark(1_000)
    expect(valuesOf(sessions.takeOutput())).toEqual([
      ['a', 1, 18, [1, 8]],
      ['a', 30, 55, [30, 39, 45]],
    ])
    expect(await sessions.isEmpty()).toBe(true)
  })

  it('keep the ends that they have when the gap changes at a restore, until a record comes', async () => {
    const sessions = await open()
    sessions.process({ key: 'a', n: 1 }, 0)
    sessions.process({ key: 'b', n: 2 }, 0)
    await sessions.restore(1, { assigner: sessionWindows({ gapMs: 5 }) })
    sessions.process({ key: 'b', n: 3 }, 9)
    sessions.watermark(MAX_WATERMARK)
    expect(valuesOf(sessions.takeOutput())).toEqual([
      ['a', 0, 10, [1]],
      ['b', 0, 14, [2, 3]],
    ])
  })

  it('need functions that merge, and are refused at once where these do not', () => {
    const lacking = aggregateContents(
      { create: () => 0, add: (count) => count, result: (count) => count },
      typeInfoOf<unknown>('count'),
      undefined,
    )
    const settings = { assigner: sessionWindows({ gapMs: 1 }), allowedLatenessMs: undefined, lateTag: undefined }
    expect(() => windowWork({ ...settings, trigger: undefined, contents: lacking })).toThrow(/MR-J56.*no merge/)
    const trigger = { name: 'mine', onRecord: () => 'fire' as const }
    expect(() => windowWork({ ...settings, trigger, contents: listing })).toThrow(/MR-J56.*'mine' has no onMerge/)
    expect(() => sessionWindows({ gapMs: 0 })).toThrow(expect.objectContaining({ code: 'MR-J54' }))
  })
})

describe('session windows against a model in plain loops', () => {
  type Action =
    | { readonly kind: 'record'; readonly key: string; readonly ahead: number }
    | { readonly kind: 'watermark'; readonly by: number; readonly subtask: number }
    | { readonly kind: 'restore'; readonly count: number }

  const action: fc.Arbitrary<Action> = fc.oneof(
    {
      weight: 10,
      arbitrary: fc.record({
        kind: fc.constant('record' as const),
        key: fc.constantFrom(...keys),
        ahead: fc.integer({ min: -30, max: 20 }),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('watermark' as const),
        by: fc.integer({ min: 1, max: 15 }),
        subtask: fc.nat({ max: 2 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('restore' as const), count: fc.integer({ min: 1, max: 3 }) }),
    },
  )
  const shape = fc.record({ gapMs: fc.integer({ min: 1, max: 12 }), allowedLatenessMs: fc.constantFrom(0, 0, 4, 25) })

  it('emit the same for each key in any order of records and watermarks, restored anywhere at any parallelism', async () => {
    await fc.assert(
      fc.asyncProperty(shape, fc.array(action, { maxLength: 50, size: 'max' }), async (sessionShape, actions) => {
        const models = new Map(keys.map((key) => [key, new Model(key, sessionShape)]))
        const { gapMs, allowedLatenessMs } = sessionShape
        const sessions = await open({ assigner: sessionWindows({ gapMs }), allowedLatenessMs })
        sessions.watermark(-60)
        for (const [n, step] of actions.entries()) {
          if (step.kind === 'record') {
            const time = sessions.watermarkFor(step.key) + step.ahead
            sessions.process({ key: step.key, n }, time)
            models.get(step.key)!.record(n, time)
          } else if (step.kind === 'restore') await sessions.restore(step.count)
          else {
            const subtask = step.subtask % sessions.count
            const watermark = sessions.watermarkOf(subtask) + step.by
            sessions.watermark(watermark, subtask)
            for (const key of keys) if (sessions.hasKey(subtask, key)) models.get(key)!.advance(watermark)
          }
        }
        sessions.watermark(MAX_WATERMARK)
        const emitted = valuesOf(sessions.takeOutput())
        for (const [key, model] of models) {
          model.advance(MAX_WATERMARK)
          expect(ofKey(emitted, key)).toEqual(model.emitted)
          const late = valuesOf(sessions.late).filter((event) => (event as Event).key === key)
          expect(late.map((event) => (event as Event).n)).toEqual(model.late)
        }
        expect(await sessions.isEmpty()).toBe(true)
      }),
      { numRuns: 100 },
    )
  })
})

class SpiedOn implements StreamOperator {
  keyed: KeyedStateBackend | undefined
  readonly #operator: StreamOperator

  constructor(operator: StreamOperator) {
    this.#operator = operator
  }

  open(context: OperatorContext, output: Output<unknown>): void {
    this.keyed = context.keyed
    void this.#operator.open(context, output)
  }

  process(value: unknown, timestamp: number): void {
    this.#operator.process(value, timestamp)
  }
}

interface SessionShape {
  readonly gapMs: number
  readonly allowedLatenessMs: number
}

interface Recorded {
  readonly n: number
  readonly time: number
}

/** What sessions of one key mean, in loops over its records. */
class Model {
  readonly emitted: [string, number, number, number[]][] = []
  readonly late: number[] = []
  readonly #key: string
  readonly #shape: SessionShape
  #records: Recorded[] = []
  #watermark = -60

  constructor(key: string, shape: SessionShape) {
    this.#key = key
    this.#shape = shape
  }

  record(n: number, time: number): void {
    const record = { n, time }
    const records = [...this.#records, record]
    const session = this.#sessionsOf(records).find((candidate) => candidate.includes(record))!
    const last = this.#lastOf(session)
    if (last + this.#shape.allowedLatenessMs <= this.#watermark) {
      this.late.push(n)
      return
    }
    this.#records = records
    if (last <= this.#watermark) this.#emit(session)
  }

  advance(watermark: number): void {
    if (watermark <= this.#watermark) return
    for (const session of this.#sessionsOf(this.#records)) {
      const last = this.#lastOf(session)
      if (last > this.#watermark && last <= watermark) this.#emit(session)
      if (last + this.#shape.allowedLatenessMs <= watermark)
        this.#records = this.#records.filter((record) => !session.includes(record))
    }
    this.#watermark = watermark
  }

  /** In the order of time: whoever follows by less than the gap belongs to the same. */
  #sessionsOf(records: readonly Recorded[]): Recorded[][] {
    const sessions: Recorded[][] = []
    for (const record of records.toSorted((left, right) => left.time - right.time)) {
      const session = sessions.at(-1)
      if (session !== undefined && record.time - session.at(-1)!.time < this.#shape.gapMs) session.push(record)
      else sessions.push([record])
    }
    return sessions
  }

  #lastOf(session: readonly Recorded[]): number {
    return session.at(-1)!.time + this.#shape.gapMs - 1
  }

  #emit(session: readonly Recorded[]): void {
    const numbers = session.map(({ n }) => n).sort((left, right) => left - right)
    this.emitted.push([this.#key, session[0]!.time, this.#lastOf(session) + 1, numbers])
  }
}
