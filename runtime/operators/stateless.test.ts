import { describe, expect, it } from 'vitest'
import type { StreamOperator } from './contract.ts'
import { FilterOperator } from './filter.ts'
import { FlatMapOperator } from './flat-map.ts'
import { openHarness } from './harness.ts'
import { MapOperator } from './map.ts'
import { outputTag } from './output-tag.ts'
import { ProcessOperator } from './process.ts'

/** The code of the error that processing one record gives. */
async function codeOf(operator: StreamOperator, value: unknown = 1): Promise<string> {
  const harness = await openHarness({ operator })
  try {
    harness.process(value, 5)
  } catch (error) {
    return (error as { code: string }).code
  }
  throw new Error('it did not throw')
}

describe('map, filter and flatMap', () => {
  it('give their results the timestamp of the record', async () => {
    const map = await openHarness({ operator: new MapOperator((value) => Number(value) * 2) })
    map.process(4, 70)
    map.process(5)
    expect(map.takeOutput()).toEqual([
      { value: 8, timestamp: 70 },
      { value: 10, timestamp: undefined },
    ])

    const filter = await openHarness({ operator: new FilterOperator((value) => Number(value) > 4) })
    filter.process(4, 70)
    filter.process(5, 71)
    expect(filter.takeOutput()).toEqual([{ value: 5, timestamp: 71 }])

    const list = await openHarness({ operator: new FlatMapOperator((value) => [value, value]) })
    list.process('a', 1)
    const generator = await openHarness({
      operator: new FlatMapOperator(function* (value) {
        yield value
        yield value
      }),
    })
    generator.process('a', 1)
    expect(list.takeOutput()).toEqual([
      { value: 'a', timestamp: 1 },
      { value: 'a', timestamp: 1 },
    ])
    expect(generator.takeOutput()).toHaveLength(2)
  })

  it('name the operator and keep the cause when the function throws', async () => {
    const cause = new RangeError('no such airport')
    const harness = await openHarness({
      operator: new MapOperator(() => {
        throw cause
      }),
    })
    let thrown: unknown
    try {
      harness.process(1)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toMatchObject({ code: 'MR-J50', cause, retry: true })
    expect(String(thrown)).toMatch(
      /map of operator 'tested', at .*stateless\.test\.ts:\d+: RangeError: no such airport/,
    )
  })

  it('refuse a promise: taken as a record or as an answer it would go wrong quietly', async () => {
    expect(await codeOf(new MapOperator(() => Promise.resolve(1)))).toBe('MR-J51')
    expect(await codeOf(new FilterOperator(() => Promise.resolve(false)))).toBe('MR-J51')
    expect(await codeOf(new FlatMapOperator(() => Promise.resolve([])))).toBe('MR-J51')
    expect(await codeOf(new FlatMapOperator(() => [Promise.resolve(1)]))).toBe('MR-J51')
    expect(await codeOf(new ProcessOperator({ process: () => Promise.resolve() as unknown as void }))).toBe('MR-J51')
  })

  it('refuse an answer of the wrong kind', async () => {
    expect(await codeOf(new FilterOperator(() => 'yes'))).toBe('MR-J55')
    expect(await codeOf(new FlatMapOperator(() => undefined))).toBe('MR-J55')
    expect(await codeOf(new FlatMapOperator(() => 'letters'))).toBe('MR-J55')
  })

  it('say that a record was changed after it was emitted', async () => {
    const record = Object.freeze({ list: Object.freeze([3, 1]), name: 'a' })
    const changes: ((value: never) => unknown)[] = [
      (value: { name: string }) => (value.name = 'b'),
      (value: { other: string }) => (value.other = 'b'),
      (value: { list: number[] }) => value.list.push(4),
      (value: { list: number[] }) => value.list.shift(),
    ]
    for (const change of changes)
      expect(await codeOf(new MapOperator(change as (value: unknown) => unknown), record)).toBe('MR-J52')
  })
})

describe('a process function without key', () => {
  it('emits to main and side outputs, with context functions that may be taken out', async () => {
    const odd = outputTag<number>('odd')
    const harness = await openHarness({
      operator: new ProcessOperator({
        process(value, { emit, emitTo, timestamp }) {
          if (Number(value) % 2 === 0) emit([value, timestamp])
          else emitTo(odd, Number(value))
        },
      }),
    })
    harness.process(1, 10)
    harness.process(2, 20)
    harness.process(4)
    expect(harness.takeOutput().map(({ value }) => value)).toEqual([
      [2, 20],
      [4, undefined],
    ])
    expect(harness.sideOutput('odd')).toEqual([{ value: 1, timestamp: 10 }])
  })

  it('has a `this` of its own in each attempt, so subtasks of one process do not share what open sets', async () => {
    const shared = {
      seen: 0,
      open() {
        this.seen = 100
      },
      process(_value: unknown, context: { emit(value: unknown): void }) {
        context.emit(++this.seen)
      },
    }
    const one = await openHarness({ operator: new ProcessOperator(shared) })
    const two = await openHarness({ operator: new ProcessOperator(shared) })
    one.process('x')
    one.process('x')
    two.process('x')
    expect(one.takeOutput().at(-1)?.value).toBe(102)
    expect(two.takeOutput().at(-1)?.value).toBe(101)
    expect(shared.seen).toBe(0)
  })

  it('names the operator when open fails', async () => {
    const opening = openHarness({
      operator: new ProcessOperator({
        open: () => Promise.reject(new Error('no connection')),
        process: () => undefined,
      }),
    })
    await expect(opening).rejects.toMatchObject({ code: 'MR-J50' })
  })
})
