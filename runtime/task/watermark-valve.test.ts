import { describe, expect, it } from 'vitest'
import { MAX_WATERMARK } from '../record/element.ts'
import { WatermarkValve } from './watermark-valve.ts'

describe('the watermark valve', () => {
  it('gives the minimum over its channels, and only when that rises', () => {
    const valve = new WatermarkValve(2)
    expect(valve.watermark(0, 10)).toEqual({})
    expect(valve.watermark(1, 5)).toEqual({ watermark: 5 })
    expect(valve.watermark(1, 20)).toEqual({ watermark: 10 })
    expect(valve.watermark(0, 9)).toEqual({})
  })

  it('does not wait for an idle channel', () => {
    const valve = new WatermarkValve(2)
    valve.watermark(0, 10)
    expect(valve.status(1, true)).toEqual({ watermark: 10 })
    expect(valve.watermark(0, 12)).toEqual({ watermark: 12 })
  })

  it('forwards idleness when all are idle, with a watermark that does not depend on the order in which they became so (FLINK-38454)', () => {
    for (const order of [
      [0, 1],
      [1, 0],
    ]) {
      const valve = new WatermarkValve(2)
      valve.watermark(0, 10)
      valve.watermark(1, 30)
      const outputs = order.map((channel) => valve.status(channel, true))
      expect(outputs.at(-1)?.idle).toBe(true)
      expect(Math.max(...outputs.map(({ watermark }) => watermark ?? 0))).toBe(30)
    }
  })

  it('holds still when a channel comes back from idleness with an older watermark', () => {
    const valve = new WatermarkValve(2)
    valve.watermark(0, 10)
    valve.status(1, true)
    expect(valve.status(1, false)).toEqual({})
    expect(valve.watermark(1, 4)).toEqual({})
    expect(valve.watermark(0, 50)).toEqual({})
    expect(valve.watermark(1, 20)).toEqual({ watermark: 20 })
  })

  it('is active again with the first channel that is', () => {
    const valve = new WatermarkValve(2)
    valve.status(0, true)
    expect(valve.status(1, true)).toEqual({ idle: true })
    expect(valve.status(0, false)).toEqual({ idle: false })
  })

  it('is held back by no channel that has ended', () => {
    const valve = new WatermarkValve(2)
    valve.watermark(0, 10)
    valve.watermark(1, MAX_WATERMARK)
    expect(valve.end(1)).toEqual({})
    expect(valve.watermark(0, 70)).toEqual({ watermark: 70 })
    expect(valve.end(0)).toEqual({ watermark: MAX_WATERMARK })
  })

  it('does not go to the end of time with a channel that ends while another is idle, whose records would be late', () => {
    const valve = new WatermarkValve(2)
    valve.watermark(0, 10)
    valve.watermark(1, 20)
    valve.status(1, true)
    expect(valve.watermark(0, MAX_WATERMARK)).toEqual({ watermark: 20, idle: true })
    expect(valve.end(0)).toEqual({})
    expect(valve.status(1, false)).toEqual({ idle: false })
    expect(valve.watermark(1, 30)).toEqual({ watermark: 30 })
    expect(valve.watermark(1, MAX_WATERMARK)).toEqual({ watermark: MAX_WATERMARK })
  })

  it('is idle when what is left beside ended channels is idle', () => {
    const valve = new WatermarkValve(2)
    valve.watermark(0, MAX_WATERMARK)
    expect(valve.watermark(1, 20)).toEqual({ watermark: 20 })
    valve.end(0)
    // The last watermark of the ended channel must not pass: the idle one may still bring records that would be late then.
    expect(valve.status(1, true)).toEqual({ idle: true })
  })
})
