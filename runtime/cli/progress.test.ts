import { describe, expect, it } from 'vitest'
import { taskKey, subtaskIndex, vertexId } from '../base/ids.ts'
import type { JobGraph } from '../job/contract.ts'
import { MAX_WATERMARK } from '../record/element.ts'
import { Progress, formatDuration, grouped, progressLine, recordsText } from './progress.ts'
import type { SubtaskFigures } from './progress.ts'

const graph = {
  vertices: [
    { id: 'source', inputs: [], outputs: [0] },
    { id: 'sink', inputs: [0], outputs: [] },
  ],
} as unknown as JobGraph

function subtask(
  vertex: 'source' | 'sink',
  subtask: number,
  metrics: Readonly<Record<string, number>>,
  finished = false,
): SubtaskFigures {
  const id = vertexId(vertex)
  return { key: taskKey({ vertex: id, subtask: subtaskIndex(subtask) }), vertex: id, finished, metrics }
}

describe('progress', () => {
  it('counts what sources read and the rate since the last look', () => {
    const progress = new Progress(graph, 0)
    const at = (records: number) => [
      subtask('source', 0, { records_in_total: records }),
      subtask('source', 1, { records_in_total: 10 }),
    ]
    expect(progress.update(at(90), 1_000)).toMatchObject({ records: 100, recordsPerSecond: 100 })
    expect(progress.update(at(290), 3_000)).toMatchObject({ records: 300, recordsPerSecond: 100 })
    expect(progress.update([subtask('sink', 0, { records_in_total: 50 })], 4_000)).toMatchObject({
      records: 300,
      recordsPerSecond: 0,
    })
  })

  it('is of one record, or of several', () => {
    expect([0, 1, 2, 1_234].map(recordsText)).toEqual(['0 records', '1 record', '2 records', '1,234 records'])
  })

  it('goes on counting when a subtask was restarted and counts from nothing', () => {
    const progress = new Progress(graph, 0)
    progress.update([subtask('source', 0, { records_in_total: 100 })], 1_000)
    expect(progress.update([subtask('source', 0, {})], 2_000)).toMatchObject({ records: 100, recordsPerSecond: 0 })
    expect(progress.update([subtask('source', 0, { records_in_total: 30 })], 3_000)).toMatchObject({ records: 130 })
  })

  it('takes the event time of the slowest sink that still runs', () => {
    const sinks = (first: number, second: number, finished = false) => [
      subtask('source', 0, { current_watermark_ms: 5 }),
      subtask('sink', 0, { current_watermark_ms: first }, finished),
      subtask('sink', 1, { current_watermark_ms: second }),
    ]
    expect(new Progress(graph, 0).update(sinks(20, 30), 1).watermark).toBe(20)
    expect(new Progress(graph, 0).update(sinks(20, 30, true), 1).watermark).toBe(30)
    expect(new Progress(graph, 0).update([...sinks(20, 30), subtask('sink', 2, {})], 1).watermark).toBeUndefined()
    expect(new Progress(graph, 0).update([], 1).watermark).toBeUndefined()
  })

  it('shows the subtask that waits for its consumers most', () => {
    const progress = new Progress(graph, 0)
    const figures = progress.update(
      [subtask('source', 0, { backpressured_ms_total: 250 }), subtask('source', 1, { backpressured_ms_total: 100 })],
      1_000,
    )
    expect(figures.backpressured).toBe(0.25)
  })

  it('is one line', () => {
    const figures = {
      records: 1_234_567,
      recordsPerSecond: 400_000.4,
      watermark: Date.UTC(2001, 0, 31, 12),
      backpressured: 0.126,
    }
    expect(progressLine(figures, { id: 7, durationMs: 1_250 })).toBe(
      '400,000/s | event time 2001-01-31 12:00 | checkpoint 7 in 1.3 s | backpressure 13 % | 1,234,567 records',
    )
    expect(progressLine({ ...figures, watermark: undefined }, undefined)).toContain(
      'event time unknown | no checkpoint yet',
    )
    expect(progressLine({ ...figures, watermark: MAX_WATERMARK }, undefined)).toContain('event time at its end')
  })

  it('writes numbers for people', () => {
    expect([0, 999, 1_000, 1_000_000].map(grouped)).toEqual(['0', '999', '1,000', '1,000,000'])
    expect([0.4, 999, 1_000, 61_500].map(formatDuration)).toEqual(['0 ms', '999 ms', '1.0 s', '61.5 s'])
  })
})
