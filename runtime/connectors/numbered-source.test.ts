import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkpointId } from '../base/ids.ts'
import { Metrics } from '../base/metrics.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { taskOf } from './conformance-support.ts'
import { dataGenerator } from './datagen.ts'
import { fromCollection } from './memory-source.ts'
import type { NumberedSource, NumberedSplit } from './numbered-source.ts'
import { checkMagic, LEDGER_MAGIC, sequence } from './sequence.ts'

function readerOf<T>(source: NumberedSource<T>, splits: NumberedSplit[], noMore = true) {
  const environment = manualEnvironment()
  let wakes = 0
  const reader = source.createReader({
    environment,
    files: new MemoryFiles(),
    task: taskOf({ subtask: 0, parallelism: 1, attempt: 1 }),
    metrics: new Metrics(),
    wake: () => wakes++,
    requestSplit: () => undefined,
    splitFinished: () => undefined,
    fail: () => undefined,
  })
  reader.addSplits(splits)
  if (noMore) reader.noMoreSplits()
  const emitted: { value: T; timestamp: number }[] = []
  const pollAll = (): number => {
    const before = emitted.length
    while (
      reader.poll({ emit: (value, timestamp) => emitted.push({ value, timestamp }), emitTo: () => undefined }) ===
        'more' &&
      emitted.length < 10_000
    );
    return emitted.length - before
  }
  return { environment, reader, emitted, pollAll, wakes: () => wakes }
}

describe('numbered sources', () => {
  it('keep a rate on the clock they are given, and wake when the next record is due', () => {
    const { environment, pollAll, wakes, reader } = readerOf(dataGenerator({ create: (n) => n, ratePerSecond: 10 }), [
      { index: 0, of: 1, next: 0 },
    ])
    expect(pollAll()).toBe(1)
    expect(reader.hasPending('0')).toBe(false)
    const before = wakes()
    environment.clock.advance(99)
    expect(pollAll()).toBe(0)
    environment.clock.advance(1)
    expect(wakes()).toBeGreaterThan(before)
    expect(reader.hasPending('0')).toBe(true)
    expect(pollAll()).toBe(1)
    let emitted = 0
    for (let step = 0; step < 100; step++) {
      environment.clock.advance(100)
      emitted += pollAll()
    }
    expect(emitted).toBe(100)
  })

  it('share the rate among splits', () => {
    const { environment, pollAll } = readerOf(dataGenerator({ create: (n) => n, ratePerSecond: 100 }), [
      { index: 0, of: 4, next: 0 },
      { index: 1, of: 4, next: 0 },
    ])
    let emitted = 0
    for (let step = 0; step < 100; step++) {
      emitted += pollAll()
      environment.clock.advance(10)
    }
    expect(emitted).toBe(50)
  })

  it('make up for at most a second of a pause', () => {
    const { environment, pollAll } = readerOf(dataGenerator({ create: (n) => n, ratePerSecond: 100 }), [
      { index: 0, of: 1, next: 0 },
    ])
    pollAll()
    environment.clock.advance(3_600_000)
    expect(pollAll()).toBeLessThanOrEqual(102)
  })

  it('go on by number after a restore', () => {
    const source = dataGenerator({ create: (n) => n * 10, count: 7, splits: 2 })
    const first = readerOf(source, [{ index: 1, of: 2, next: 1 }])
    first.reader.poll({ emit: () => undefined, emitTo: () => undefined })
    const second = readerOf(source, [...first.reader.snapshot(checkpointId(1))])
    second.pollAll()
    expect(second.emitted.map(({ value }) => value)).toEqual([50])
  })

  it('read nothing before their whole share is there: event time must not pass a split that still waits', () => {
    const source = sequence({ splits: 2, stepMs: 500, perSplit: 9 })
    const { reader, emitted, pollAll } = readerOf(source, [{ index: 0, of: 2, next: 8 }], false)
    expect(pollAll()).toBe(0)
    reader.addSplits([{ index: 1, of: 2, next: 0 }])
    reader.noMoreSplits()
    pollAll()
    expect(emitted.length).toBe(10)
  })

  it('number the ledger per split, with event time and magic', () => {
    const { emitted, pollAll } = readerOf(sequence({ splits: 2, perSplit: 2, stepMs: 500 }), [
      { index: 0, of: 2, next: 0 },
      { index: 1, of: 2, next: 0 },
    ])
    pollAll()
    expect(emitted).toEqual([
      { value: { split: 0, n: 0, magic: LEDGER_MAGIC }, timestamp: 0 },
      { value: { split: 1, n: 0, magic: LEDGER_MAGIC }, timestamp: 0 },
      { value: { split: 0, n: 1, magic: LEDGER_MAGIC }, timestamp: 500 },
      { value: { split: 1, n: 1, magic: LEDGER_MAGIC }, timestamp: 500 },
    ])
    expect(() => checkMagic({ magic: LEDGER_MAGIC + 1 })).toThrow('MR-N18')
  })

  it('take timestamps and validate values of a collection', () => {
    const { emitted, pollAll } = readerOf(fromCollection(['a', 'b'], { timestamps: [5, 7] }), [
      { index: 0, of: 1, next: 0 },
    ])
    pollAll()
    expect(emitted).toEqual([
      { value: 'a', timestamp: 5 },
      { value: 'b', timestamp: 7 },
    ])
    expect(() =>
      fromCollection([{ n: 1 }, { n: 'x' as unknown as number }], { schema: z.object({ n: z.number() }) }),
    ).toThrow(/MR-N04.*value 1/)
  })

  it('refuse options that cannot work', () => {
    expect(() => dataGenerator({ create: (n) => n, ratePerSecond: 0 })).toThrow('MR-N06')
    expect(() => dataGenerator({ create: (n) => n, count: -1 })).toThrow('MR-N06')
    expect(() => sequence({ splits: 0 })).toThrow('MR-N06')
    expect(() => fromCollection([1], { timestamps: [] })).toThrow('MR-N06')
  })
})
