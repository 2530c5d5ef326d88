import { describe, expect, it } from 'vitest'
import { checkpointId } from '../base/ids.ts'
import type { PlantedFault } from '../base/planted.ts'
import type { CheckpointMode } from '../job/contract.ts'
import type { Barrier } from '../record/element.ts'
import { BarrierHandler } from './barrier-handler.ts'
import type { BarrierAction } from './barrier-handler.ts'

const barrier = (id: number, alignedMs = 0): Barrier => ({
  id: checkpointId(id),
  kind: 'checkpoint',
  triggeredAtMs: 0,
  alignedMs,
})

function handlerOf(
  channels: number,
  options: { newestKnown?: number; mode?: CheckpointMode; planted?: PlantedFault[] } = {},
): BarrierHandler {
  return new BarrierHandler({
    channels,
    newestKnown: checkpointId(options.newestKnown ?? 0),
    mode: options.mode ?? 'exactly-once',
    planted: new Set(options.planted),
  })
}

/** One word an action, so that a test reads like the run that it claims. */
function told(actions: readonly BarrierAction[]): string {
  const words = actions.map((action) => {
    if (action.type === 'block') return `block ${action.channel}`
    return action.type === 'snapshot' ? `snapshot ${action.barrier.id}` : 'unblock'
  })
  return words.join(', ')
}

describe('the barrier handler of at-least-once', () => {
  it('blocks no channel, and snapshots when the last barrier has arrived (rule 13)', () => {
    const handler = handlerOf(3, { mode: 'at-least-once' })
    expect(told(handler.barrier(0, barrier(1), 0))).toBe('')
    expect(told(handler.barrier(2, barrier(1), 5))).toBe('')
    expect(told(handler.barrier(1, barrier(1), 9))).toBe('snapshot 1, unblock')
  })

  it('aligns savepoints all the same (rule 15)', () => {
    const handler = handlerOf(2, { mode: 'at-least-once' })
    expect(told(handler.barrier(0, { ...barrier(1), kind: 'savepoint' }, 0))).toBe('block 0')
    expect(told(handler.barrier(1, { ...barrier(1), kind: 'savepoint' }, 0))).toBe('block 1, snapshot 1, unblock')
  })
})

describe('the aligned barrier handler', () => {
  it('blocks a channel whose barrier has arrived, and snapshots once when the last one has (R1)', () => {
    const handler = handlerOf(3)
    expect(told(handler.barrier(0, barrier(1), 0))).toBe('block 0')
    expect(told(handler.barrier(2, barrier(1), 5))).toBe('block 2')
    expect(told(handler.barrier(1, barrier(1), 9))).toBe('block 1, snapshot 1, unblock')
  })

  it('snapshots at once with one channel', () => {
    expect(told(handlerOf(1).barrier(0, barrier(4), 0))).toBe('block 0, snapshot 4, unblock')
  })

  it('passes the alignment of this task on top of what was spent upstream', () => {
    const handler = handlerOf(2)
    handler.barrier(0, barrier(1, 30), 100)
    const snapshot = handler.barrier(1, barrier(1, 70), 140).find((action) => action.type === 'snapshot')
    expect(snapshot).toMatchObject({ alignmentMs: 40, barrier: { alignedMs: 110 } })
  })

  it('counts a channel as having delivered every later barrier once its end of data was consumed (rule 19)', () => {
    const handler = handlerOf(2)
    expect(told(handler.end(0, 0))).toBe('')
    expect(told(handler.barrier(1, barrier(1), 1))).toBe('block 1, snapshot 1, unblock')
    expect(told(handler.barrier(1, barrier(2), 2))).toBe('block 1, snapshot 2, unblock')
  })

  it('completes an alignment that waits for a channel when that channel ends', () => {
    const handler = handlerOf(2)
    handler.barrier(0, barrier(1), 0)
    expect(told(handler.end(1, 3))).toBe('snapshot 1, unblock')
  })

  it('lets a trigger stand behind the end of data on every channel (rule 19)', () => {
    const handler = handlerOf(2)
    handler.end(0, 0)
    expect(told(handler.trigger(barrier(1), 1))).toBe('')
    expect(told(handler.end(1, 2))).toBe('snapshot 1, unblock')
  })

  it('snapshots at once for a trigger when all channels have ended', () => {
    const handler = handlerOf(2)
    handler.end(0, 0)
    handler.end(1, 0)
    expect(told(handler.trigger(barrier(7), 1))).toBe('snapshot 7, unblock')
  })

  it('takes barriers of some channels and the trigger for those that ended as one snapshot', () => {
    const handler = handlerOf(3)
    handler.barrier(0, barrier(1), 0)
    expect(told(handler.trigger(barrier(1), 1))).toBe('')
    expect(told(handler.end(1, 2))).toBe('')
    expect(told(handler.end(2, 3))).toBe('snapshot 1, unblock')
    expect(told(handler.trigger(barrier(1), 4))).toBe('')
  })

  it('ends an alignment when its checkpoint is aborted, and a late barrier of it aligns nothing (rule 15)', () => {
    const handler = handlerOf(2)
    handler.barrier(0, barrier(1), 0)
    expect(told(handler.abort(checkpointId(1)))).toBe('unblock')
    expect(told(handler.barrier(1, barrier(1), 1))).toBe('')
    expect(handler.pendingId).toBeUndefined()
  })

  it('remembers an id that was aborted before any of its barriers came', () => {
    const handler = handlerOf(2)
    expect(told(handler.abort(checkpointId(3)))).toBe('')
    expect(told(handler.barrier(0, barrier(3), 0))).toBe('')
    expect(told(handler.trigger(barrier(3), 0))).toBe('')
    expect(told(handler.barrier(0, barrier(4), 1))).toBe('block 0')
  })

  it('gives an older alignment up when a newer barrier comes before the abort', () => {
    const handler = handlerOf(2)
    handler.barrier(0, barrier(1), 0)
    expect(told(handler.barrier(1, barrier(2), 1))).toBe('unblock, block 1')
    expect(told(handler.barrier(1, barrier(1), 2))).toBe('')
    expect(told(handler.barrier(0, barrier(2), 3))).toBe('block 0, snapshot 2, unblock')
  })

  it('ignores what belongs to an earlier life or is done already', () => {
    const handler = handlerOf(1, { newestKnown: 5 })
    expect(told(handler.barrier(0, barrier(5), 0))).toBe('')
    expect(told(handler.barrier(0, barrier(6), 0))).toBe('block 0, snapshot 6, unblock')
    expect(told(handler.barrier(0, barrier(6), 0))).toBe('')
    expect(told(handler.abort(checkpointId(6)))).toBe('')
  })

  it('blocks nothing with the planted fault, which is why records behind the barrier get into the snapshot', () => {
    const handler = handlerOf(2, { planted: ['alignment-skipped'] })
    expect(told(handler.barrier(0, barrier(1), 0))).toBe('')
    expect(told(handler.barrier(1, barrier(1), 0))).toBe('snapshot 1, unblock')
  })
})
