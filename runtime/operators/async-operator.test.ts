import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { MillraceError } from '../base/errors.ts'
import { typeInfoOf } from '../record/type-info.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { AsyncOperator } from './async-operator.ts'
import type { AsyncWork } from './async-operator.ts'
import { asyncSettings } from './async-options.ts'
import type { AsyncContext, AsyncOptions } from './async-options.ts'
import { openHarness } from './harness.ts'
import type { HarnessOptions, OperatorHarness } from './harness.ts'

/** A call that the test answers. */
interface Call {
  readonly value: unknown
  readonly context: AsyncContext
  answer(result: unknown): void
  refuse(error: unknown): void
}

type Options = Partial<AsyncOptions<never, unknown>> & {
  readonly kind?: AsyncWork['kind']
  readonly call?: AsyncWork['call']
  readonly input?: AsyncWork['input']
  readonly harness?: Partial<HarnessOptions>
}

const numbers = typeInfoOf('numbers', z.int()) as AsyncWork['input']

async function subjectOf({ kind = 'mapAsync', call, input = numbers, harness: rest, ...options }: Options = {}) {
  const calls: Call[] = []
  const byHand = (value: unknown, context: AsyncContext): Promise<unknown> => {
    const { promise, resolve: answer, reject: refuse } = Promise.withResolvers<unknown>()
    calls.push({ value, context, answer, refuse })
    return promise
  }
  const settings = asyncSettings('the test', { timeoutMs: 1_000, ...options })
  const operator = new AsyncOperator({ kind, call: call ?? byHand, input, settings })
  const harness = await openHarness({ operator, ...rest })
  const settle = () => harness.environment.executor.runAllSettled()
  return {
    operator,
    harness,
    calls,
    settle,
    called: () => calls.map(({ value }) => value),
    /** The answer to the n-th call, and all that follows from it. */
    answer: async (index: number, result: unknown) => {
      calls[index]!.answer(result)
      await settle()
    },
    refuse: async (index: number, error: unknown = new Error('busy')) => {
      calls[index]!.refuse(error)
      await settle()
    },
    /** Time passes, and what is due then happens. */
    pass: async (ms: number) => {
      await harness.advance(ms)
      await settle()
    },
    out: () => valuesOf(harness),
  }
}

const valuesOf = (harness: OperatorHarness) => harness.takeOutput().map(({ value }) => value)
const codesOf = ({ failures }: OperatorHarness) => failures.map((error) => (error as MillraceError).code)

describe('ordered results', () => {
  it('go on in the order of their records, with their timestamps, whatever the order of the answers', async () => {
    const { harness, answer } = await subjectOf()
    harness.process(1, 70)
    harness.process(2)
    harness.process(3, 60)
    await answer(2, 'three')
    await answer(1, 'two')
    expect(harness.takeOutput()).toEqual([])
    await answer(0, 'one')
    expect(harness.takeOutput()).toEqual([
      { value: 'one', timestamp: 70 },
      { value: 'two', timestamp: undefined },
      { value: 'three', timestamp: 60 },
    ])
  })

  it('hold a watermark until all records before it have gone on, and no longer', async () => {
    const { harness, answer, out } = await subjectOf()
    harness.watermark(5)
    expect(harness.forwarded).toEqual([5])
    harness.process(1, 10)
    harness.watermark(10)
    harness.watermark(11)
    harness.process(2, 20)
    harness.watermark(20)
    await answer(1, 'two')
    expect(harness.forwarded).toEqual([5])
    await answer(0, 'one')
    expect(harness.forwarded).toEqual([5, 11, 20])
    expect(out()).toEqual(['one', 'two'])
  })
})

describe('unordered results', () => {
  it('go on as they come', async () => {
    const { harness, answer, out } = await subjectOf({ order: 'unordered' })
    for (const value of [1, 2, 3]) harness.process(value)
    await answer(2, 'three')
    await answer(0, 'one')
    expect(out()).toEqual(['three', 'one'])
    await answer(1, 'two')
    expect(out()).toEqual(['two'])
  })

  it('never pass a watermark: each stays between the two that its record stood between', async () => {
    const { harness, answer, out } = await subjectOf({ order: 'unordered' })
    harness.process(1, 1)
    harness.process(2, 2)
    harness.watermark(2)
    harness.process(3, 3)
    harness.watermark(3)
    harness.watermark(4)
    harness.process(4, 5)
    await answer(3, 'four')
    await answer(2, 'three')
    await answer(1, 'two')
    expect([out(), harness.forwarded]).toEqual([['two'], []])
    await answer(0, 'one')
    expect([out(), harness.forwarded]).toEqual([
      ['one', 'three', 'four'],
      [2, 4],
    ])
  })
})

describe('an asynchronous operator', () => {
  it('says that it has no room while its capacity is in flight, waiting results included', async () => {
    const { harness, operator, answer } = await subjectOf({ capacity: 2 })
    harness.process(1)
    expect([operator.ready, operator.pending]).toEqual([true, true])
    harness.process(2)
    expect(operator.ready).toBe(false)
    await answer(1, 'two')
    expect(operator.ready).toBe(false)
    await answer(0, 'one')
    expect([operator.ready, operator.pending]).toEqual([true, false])
  })

  it('keeps what is given to it beyond its capacity, and calls no more at once than that', async () => {
    const { harness, called, answer, out } = await subjectOf({ capacity: 2 })
    for (const value of [1, 2, 3, 4]) harness.process(value)
    expect(called()).toEqual([1, 2])
    await answer(1, 'two')
    expect(called()).toEqual([1, 2, 3])
    await answer(0, 'one')
    await answer(2, 'three')
    await answer(3, 'four')
    expect(out()).toEqual(['one', 'two', 'three', 'four'])
  })

  it('takes an answer that is no promise, and what only awaits like one', async () => {
    const call = (value: unknown) =>
      // oxlint-disable-next-line unicorn/no-thenable -- database clients give such
      value === 1 ? 'at once' : { then: (resolve: (result: string) => void) => resolve('thenable') }
    const { harness, settle, out } = await subjectOf({ call })
    harness.process(1)
    expect(out()).toEqual(['at once'])
    harness.process(2)
    await settle()
    expect(out()).toEqual(['thenable'])
  })

  it('emits any number of records for each by flatMapAsync', async () => {
    const { harness, answer, out } = await subjectOf({ kind: 'flatMapAsync' })
    for (const value of [1, 2, 3]) harness.process(value)
    await answer(0, [])
    await answer(1, new Set(['a', 'b']))
    await answer(2, ['c'])
    expect(out()).toEqual(['a', 'b', 'c'])
  })

  it('fails the job for an answer of flatMapAsync that is no iterable, and for promises in it', async () => {
    for (const [wrong, code] of [
      ['letters', 'MR-J55'],
      [undefined, 'MR-J55'],
      [[Promise.resolve(1)], 'MR-J51'],
    ] as const) {
      const { harness, answer } = await subjectOf({ kind: 'flatMapAsync', retries: { attempts: 9, delayMs: 1 } })
      harness.process(1)
      await answer(0, wrong)
      expect(codesOf(harness)).toEqual([code])
    }
  })

  it('gives the function the event time of the record and metrics of the operator', async () => {
    const { harness, calls } = await subjectOf()
    harness.process(1, 70)
    harness.process(2)
    calls[1]!.context.metrics.counter('asked').increment()
    expect(calls.map(({ context }) => context.timestamp)).toEqual([70, undefined])
    expect(harness.metrics.figures()).toEqual({ 'user/tested/counter/asked': 1 })
  })
})

describe('a function that throws or refuses', () => {
  it('fails the job once, with its error, its operator and its place in the file, and nothing goes on after it', async () => {
    const { harness, calls, refuse, answer, out } = await subjectOf({ order: 'unordered' })
    const cause = new RangeError('no such airport')
    for (const value of [1, 2, 3]) harness.process(value)
    await refuse(1, cause)
    await refuse(2)
    await answer(0, 'one')
    expect(harness.failures).toHaveLength(1)
    expect(harness.failures[0]).toMatchObject({ code: 'MR-J50', cause })
    expect(String(harness.failures[0])).toMatch(
      /mapAsync of operator 'tested', at .*async-operator\.test\.ts:\d+: RangeError: no such airport/,
    )
    expect(out()).toEqual([])
    expect(calls.map(({ context }) => context.signal.aborted)).toEqual([true, true, true])
  })

  it('fails the job where it throws before its first await', async () => {
    const { harness } = await subjectOf({
      call: () => {
        throw new Error('no')
      },
    })
    expect(() => harness.process(1)).toThrow(/MR-J50.*mapAsync of operator 'tested'.*Error: no/)
  })
})

describe('retries', () => {
  it('come after delays that double up to their largest, and tell the function which try it is', async () => {
    const { harness, calls, refuse, pass, answer, out } = await subjectOf({
      retries: { attempts: 5, delayMs: 10, maxDelayMs: 30 },
    })
    harness.process(1)
    for (const [index, delayMs] of [10, 20, 30, 30].entries()) {
      await refuse(index)
      await pass(delayMs - 1)
      expect(calls).toHaveLength(index + 1)
      await pass(1)
      expect(calls).toHaveLength(index + 2)
      expect(calls[index + 1]!.context.attempt).toBe(index + 2)
    }
    await answer(4, 'at last')
    expect(out()).toEqual(['at last'])
    expect(harness.failures).toEqual([])
  })

  it('end with the last try, or with an error that `when` does not take', async () => {
    const twice = await subjectOf({ retries: { attempts: 2, delayMs: 10 } })
    twice.harness.process(1)
    await twice.refuse(0, new Error('first'))
    await twice.pass(10)
    await twice.refuse(1, new Error('second'))
    expect(String(twice.harness.failures)).toMatch(/MR-J50.*Error: second/)

    const when = (error: unknown): boolean => !(error instanceof RangeError)
    const picky = await subjectOf({ retries: { attempts: 9, delayMs: 10, when } })
    picky.harness.process(1)
    await picky.refuse(0, new RangeError('hopeless'))
    expect(codesOf(picky.harness)).toEqual(['MR-J50'])
    expect(picky.calls).toHaveLength(1)
  })

  it('also follow what is thrown before the first await, and name a `when` that throws', async () => {
    let tries = 0
    const call = (): string => {
      if (++tries < 3) throw new Error('no')
      return 'yes'
    }
    const { harness, pass, out } = await subjectOf({ call, retries: { attempts: 3, delayMs: 10 } })
    harness.process(1)
    await pass(10)
    await pass(20)
    expect(out()).toEqual(['yes'])

    const when = (): never => {
      throw new Error('which?')
    }
    const broken = await subjectOf({ retries: { attempts: 3, delayMs: 10, when } })
    broken.harness.process(1)
    await broken.refuse(0)
    expect(String(broken.harness.failures)).toMatch(/MR-J50.*retries\.when of mapAsync of operator 'tested'/)
  })

  it('takes no promise for a yes', async () => {
    const when = (async () => false) as unknown as () => boolean
    const { harness, refuse } = await subjectOf({ retries: { attempts: 3, delayMs: 10, when } })
    harness.process(1)
    await refuse(0)
    expect(String(harness.failures)).toMatch(/MR-J51.*retries\.when of mapAsync of operator 'tested'/)
  })
})

describe('a timeout', () => {
  it('fails the job by name over all tries, and aborts the signal with the same error', async () => {
    const { harness, calls, refuse, pass } = await subjectOf({ timeoutMs: 100, retries: { attempts: 9, delayMs: 60 } })
    harness.process(1)
    await refuse(0)
    await pass(60)
    const { signal } = calls[1]!.context
    await pass(39)
    expect([harness.failures.length, signal.aborted]).toEqual([0, false])
    await pass(1)
    expect(String(harness.failures)).toMatch(/MR-J70.*mapAsync of operator 'tested': 100 ms, 2 tries/)
    expect(signal.reason).toBe(harness.failures[0])
  })

  it('counts for each record from its own first try', async () => {
    const { harness, calls, pass, out } = await subjectOf({ timeoutMs: 100, capacity: 2, onTimeout: (value) => -value })
    harness.process(1)
    await pass(50)
    harness.process(2)
    harness.process(3)
    await pass(50)
    expect(out()).toEqual([-1])
    await pass(49)
    expect(calls.map(({ context }) => context.signal.aborted)).toEqual([true, false, false])
    await pass(1)
    expect(out()).toEqual([-2])
    await pass(50)
    expect(out()).toEqual([-3])
  })

  it("gives onTimeout's result in the record's place, and drops what the function answers, refuses or retries later", async () => {
    const { harness, calls, answer, refuse, pass, out } = await subjectOf({
      timeoutMs: 100,
      onTimeout: (value) => `no answer to ${String(value)}`,
      retries: { attempts: 2, delayMs: 99 },
    })
    for (const value of [1, 2, 3]) harness.process(value, value)
    await pass(50)
    await refuse(2)
    await pass(50)
    expect(out()).toEqual(['no answer to 1', 'no answer to 2', 'no answer to 3'])
    await answer(0, 'late')
    await refuse(1)
    await pass(1_000)
    expect(calls).toHaveLength(3)
    expect(out()).toEqual([])
    expect(harness.failures).toEqual([])
  })

  it('and an answer in the same moment give one result', async () => {
    const { harness, calls, settle, out, answer } = await subjectOf({
      timeoutMs: 100,
      order: 'unordered',
      onTimeout: () => 'late',
    })
    harness.process(1, 1)
    harness.environment.clock.advance(50)
    harness.process(2, 2)
    harness.watermark(2)
    harness.environment.clock.advance(50)
    calls[0]!.answer('one')
    await settle()
    expect([out(), harness.forwarded]).toEqual([['late'], []])
    await answer(1, 'two')
    expect([out(), harness.forwarded]).toEqual([['two'], [2]])
  })

  it('gives an iterable for flatMapAsync, and fails the job when onTimeout throws or gives a promise', async () => {
    const flat = await subjectOf({ kind: 'flatMapAsync', timeoutMs: 5, onTimeout: (value) => [value, value] })
    flat.harness.process(1)
    await flat.pass(5)
    expect(flat.out()).toEqual([1, 1])
    for (const [onTimeout, code] of [
      [
        () => {
          throw new Error('no')
        },
        'MR-J50',
      ],
      [() => Promise.resolve(1), 'MR-J51'],
    ] as const) {
      const { harness, pass } = await subjectOf({ timeoutMs: 5, onTimeout })
      harness.process(1)
      await pass(5)
      expect(codesOf(harness)).toEqual([code])
      expect(String(harness.failures)).toContain('onTimeout of mapAsync')
    }
  })

  it('leaves no timer behind when all have answered and the operator closes', async () => {
    const { harness, answer } = await subjectOf()
    harness.process(1)
    await answer(0, 'one')
    await harness.close()
    expect(harness.environment.clock.waiting).toBe(0)
  })
})

describe('closing', () => {
  it('aborts what is in flight, and drops what comes after', async () => {
    const { harness, calls, answer, refuse, pass, out } = await subjectOf({ retries: { attempts: 2, delayMs: 10 } })
    for (const value of [1, 2, 3]) harness.process(value)
    await refuse(2)
    const { signal } = calls[0]!.context
    await harness.close()
    expect([signal.aborted, calls[1]!.context.signal.aborted]).toEqual([true, true])
    await answer(0, 'one')
    await refuse(1)
    await pass(10_000)
    expect(calls).toHaveLength(3)
    expect([out(), harness.failures]).toEqual([[], []])
  })
})

describe('the state of an asynchronous operator', () => {
  it('is what has not gone on, as it came in: without answer, answered behind another, not yet called', async () => {
    const first = await subjectOf({ capacity: 2 })
    for (const value of [1, 2, 3, 4]) first.harness.process(value, value * 10)
    await first.answer(0, 'one')
    await first.answer(2, 'three')
    expect(first.called()).toEqual([1, 2, 3, 4])
    const second = await subjectOf({ harness: { restored: [await first.harness.snapshot()] } })
    await second.settle()
    expect(second.called()).toEqual([2, 3, 4])
    for (const [index, result] of ['two', 'three again', 'four'].entries()) await second.answer(index, result)
    expect(second.harness.takeOutput()).toEqual([
      { value: 'two', timestamp: 20 },
      { value: 'three again', timestamp: 30 },
      { value: 'four', timestamp: 40 },
    ])
  })

  it('is in the order of the records also when results are unordered, and keeps records without event time', async () => {
    const first = await subjectOf({ order: 'unordered' })
    for (const value of [1, 2, 3]) first.harness.process(value)
    first.harness.watermark(5)
    first.harness.process(4, 9)
    await first.answer(3, 'four')
    await first.answer(1, 'two')
    const second = await subjectOf({ order: 'unordered', harness: { restored: [await first.harness.snapshot()] } })
    await second.settle()
    expect(second.called()).toEqual([1, 3, 4])
    for (const index of [0, 1, 2]) await second.answer(index, index)
    expect(second.harness.takeOutput().map(({ timestamp }) => timestamp)).toEqual([undefined, undefined, 9])
  })

  it('holds no watermark: restored, none goes on until it comes again', async () => {
    const first = await subjectOf()
    first.harness.process(1, 10)
    first.harness.watermark(10)
    const second = await subjectOf({ harness: { restored: [await first.harness.snapshot()] } })
    await second.settle()
    second.harness.watermark(7)
    expect(second.harness.forwarded).toEqual([])
    await second.answer(0, 'one')
    expect([second.out(), second.harness.forwarded]).toEqual([['one'], [7]])
  })

  it('is called again before any new record, and beyond the capacity too, as room comes', async () => {
    const snapshots = []
    for (const base of [0, 10]) {
      const { harness } = await subjectOf()
      for (const value of [1, 2, 3]) harness.process(base + value)
      snapshots.push(await harness.snapshot())
    }
    const { harness, operator, called, answer, out } = await subjectOf({
      capacity: 2,
      harness: { restored: snapshots },
    })
    expect([operator.ready, operator.pending]).toEqual([false, true])
    harness.process(99)
    expect(called()).toEqual([1, 2])
    for (let index = 0; index < 7; index++) await answer(index, called()[index])
    expect(out()).toEqual([1, 2, 3, 11, 12, 13, 99])
    expect([operator.ready, operator.pending]).toEqual([true, false])
  })

  it('can be snapshotted again before any restored record was called', async () => {
    const first = await subjectOf()
    for (const value of [1, 2]) first.harness.process(value)
    const second = await subjectOf({ harness: { restored: [await first.harness.snapshot()] } })
    const third = await subjectOf({ harness: { restored: [await second.harness.snapshot()] } })
    await third.settle()
    expect(third.called()).toEqual([1, 2])
  })

  it('is none when nothing is in flight', async () => {
    const { harness, answer } = await subjectOf()
    harness.process(1)
    await answer(0, 'one')
    expect(await harness.snapshot()).toMatchObject({ part: {} })
  })

  it('is read by a schema that has a field more, and refused by name under another one', async () => {
    const typeOf = (schema: z.ZodType): AsyncWork['input'] => typeInfoOf('input', schema)
    const first = await subjectOf({ input: typeOf(z.object({ id: z.int() })) })
    first.harness.process({ id: 7 }, 1)
    const restored = [await first.harness.snapshot()]
    const wider = z.object({ id: z.number(), tag: z.string().default('none') })
    const second = await subjectOf({ input: typeOf(wider), harness: { restored } })
    await second.settle()
    expect(second.called()).toEqual([{ id: 7, tag: 'none' }])
    const other = subjectOf({ input: typeOf(z.object({ id: z.string() })), harness: { restored } })
    await expect(other).rejects.toThrow(/MR-T02.*Records in flight in operator 'tested'.*id/)
  })

  it('of bytes that are no such records is refused', async () => {
    const first = await subjectOf()
    first.harness.process(1)
    const { keyed, part } = await first.harness.snapshot()
    const state = part.operatorState!['in-flight']!
    const withItem = (bytes: Uint8Array) => [
      { keyed, part: { operatorState: { 'in-flight': { ...state, items: [bytes] } } } },
    ]
    const cut = state.items[0]!.slice(0, 5)
    await expect(subjectOf({ harness: { restored: withItem(cut) } })).rejects.toThrow(/MR-T03/)
    await expect(subjectOf({ harness: { restored: withItem(Uint8Array.of(9, ...cut.slice(1))) } })).rejects.toThrow(
      /MR-T05/,
    )
  })

  it('lacks one record when that fault is planted', async () => {
    const environment = manualEnvironment({ planted: new Set(['async-element-lost']) })
    const first = await subjectOf({ harness: { environment } })
    for (const value of [1, 2, 3]) first.harness.process(value)
    const second = await subjectOf({ harness: { restored: [await first.harness.snapshot()] } })
    await second.settle()
    expect(second.called()).toEqual([2, 3])
  })
})

describe('options', () => {
  it('that cannot be are refused by name before any record', () => {
    const wrong: [string, object][] = [
      ['timeoutMs of the test is undefined', {}],
      ['timeoutMs of the test is 0', { timeoutMs: 0 }],
      ['timeoutMs of the test is 3000000000', { timeoutMs: 3_000_000_000 }],
      ['capacity of the test is 0', { capacity: 0 }],
      ['capacity of the test is 1.5', { capacity: 1.5 }],
      ['order of the test is sorted', { order: 'sorted' }],
      ['onTimeout of the test is ignore', { onTimeout: 'ignore' }],
      ['retries.attempts of the test is 0', { retries: { attempts: 0, delayMs: 1 } }],
      ['retries.delayMs of the test is -1', { retries: { attempts: 2, delayMs: -1 } }],
      ['retries.maxDelayMs of the test is 5', { retries: { attempts: 2, delayMs: 10, maxDelayMs: 5 } }],
    ]
    for (const [message, options] of wrong) {
      const given = { ...(message.startsWith('timeoutMs') ? {} : { timeoutMs: 1 }), ...options }
      expect(() => asyncSettings('the test', given as AsyncOptions<never, unknown>)).toThrow(`MR-J71`)
      expect(() => asyncSettings('the test', given as AsyncOptions<never, unknown>)).toThrow(message)
    }
  })
})
