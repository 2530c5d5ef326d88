import { describe, expect, it } from 'vitest'
import { MIN_WATERMARK } from '../record/element.ts'
import { boundedOutOfOrderness, monotonic, noWatermarks } from './watermarks.ts'

describe('watermark strategies', () => {
  it('says nothing before the first record', () => {
    for (const strategy of [monotonic(), boundedOutOfOrderness(undefined, 500)])
      expect(strategy.createGenerator!().current()).toBe(MIN_WATERMARK)
  })

  it('stays one behind the largest timestamp, since another record of the same may come', () => {
    const generator = monotonic().createGenerator!()
    for (const timestamp of [10, 30, 20]) generator.onRecord(timestamp)
    expect(generator.current()).toBe(29)
  })

  it('stays behind by the bound and one more', () => {
    const generator = boundedOutOfOrderness<number>((value) => value, 100).createGenerator!()
    generator.onRecord(1_000)
    expect(generator.current()).toBe(899)
  })

  it('never goes below the smallest watermark', () => {
    const generator = boundedOutOfOrderness(undefined, 1_000).createGenerator!()
    generator.onRecord(MIN_WATERMARK + 5)
    expect(generator.current()).toBe(MIN_WATERMARK)
  })

  it('keeps everything else when idleness is set', () => {
    const timestampOf = (value: number) => value
    const strategy = monotonic(timestampOf).withIdleness(5_000)
    expect(strategy.idleAfterMs).toBe(5_000)
    expect(strategy.timestampOf).toBe(timestampOf)
    expect(strategy.createGenerator).toBeDefined()
  })

  it('refuses bounds and timeouts that cannot work', () => {
    expect(() => boundedOutOfOrderness(undefined, -1)).toThrow('MR-N06')
    expect(() => boundedOutOfOrderness(undefined, 1.5)).toThrow('MR-N06')
    expect(() => noWatermarks().withIdleness(0)).toThrow('MR-N06')
  })
})
