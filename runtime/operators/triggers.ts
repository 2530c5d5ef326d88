// The triggers that come with Millrace.

import { z } from 'zod'
import type { TimeDomain } from '../state/contract.ts'
import { operatorError } from './errors.ts'
import type { Trigger, TriggerContext, TriggerResult } from './trigger.ts'
import { checkTime, isDuration, lastWindowStart } from './window-assigner.ts'

/** Fires with every `count`th record of a window. What is left at the window's end does not fire. */
export function countTrigger(count: number): Trigger<unknown, number> {
  if (!Number.isSafeInteger(count) || count < 1) throw operatorError('MR-J54', `Given: a trigger's count ${count}.`)
  return {
    name: 'count',
    state: z.int(),
    onRecord(_value, { state }) {
      const seen = (state.get() ?? 0) + 1
      // More than asked for after sessions were merged.
      if (seen < count) state.update(seen)
      else state.clear()
      return seen < count ? 'continue' : 'fire'
    },
    onMerge(merged, { state }) {
      if (merged.length > 0) state.update(merged.reduce((sum, seen) => sum + seen))
    },
  }
}

/** The same, and each firing empties the window. */
export function purging<In, State>(trigger: Trigger<In, State>): Trigger<In, State> {
  return {
    name: `purging ${trigger.name}`,
    ...(trigger.state !== undefined && { state: trigger.state }),
    ...(trigger.endOf !== undefined && { endOf: trigger.endOf }),
    onRecord: (value, context) => thenPurge(trigger.onRecord(value, context)),
    ...(trigger.onEnd !== undefined && { onEnd: (context) => thenPurge(trigger.onEnd!(context)) }),
    ...(trigger.onEventTime !== undefined && {
      onEventTime: (time, context) => thenPurge(trigger.onEventTime!(time, context)),
    }),
    ...(trigger.onProcessingTime !== undefined && {
      onProcessingTime: (time, context) => thenPurge(trigger.onProcessingTime!(time, context)),
    }),
    ...(trigger.onMerge !== undefined && { onMerge: (merged, context) => trigger.onMerge!(merged, context) }),
    ...(trigger.clear !== undefined && { clear: (context) => trigger.clear!(context) }),
  }
}

function thenPurge(result: TriggerResult): TriggerResult {
  return result === 'fire' ? 'fire and purge' : result
}

/** Fires when event time reaches the window's end, and then with each late record: what event-time windows do without a trigger. A global window ends with its input. */
export function eventTimeTrigger(): Trigger {
  return { name: 'event time', endOf: 'event', ...atEnd }
}

/** Fires when the wall clock reaches the window's end: what windows of processing time do without a trigger. */
export function processingTimeTrigger(): Trigger {
  return { name: 'processing time', endOf: 'processing', ...atEnd }
}

const atEnd: Pick<Trigger, 'onRecord' | 'onEnd' | 'onMerge'> = {
  onRecord: (_value, { ended }) => (ended ? 'fire' : 'continue'),
  onEnd: () => 'fire',
  onMerge: () => undefined,
}

/**
 * Fires at every multiple of `everyMs` since the epoch before which the window got a record, and at the window's end (a global
 * window's with its input). `time` is that of the interval, 'event' by default: the wall clock gives early results of
 * event-time windows.
 */
export function continuousTrigger(options: {
  readonly everyMs: number
  readonly time?: TimeDomain
}): Trigger<unknown, number> {
  const { everyMs, time = 'event' } = options
  if (!isDuration(everyMs)) throw operatorError('MR-J54', `Given: a trigger every ${everyMs} ms.`)
  checkTime(time)
  const onTimer = (timestampMs: number, { state }: TriggerContext<number>): TriggerResult => {
    if (state.get() !== timestampMs) return 'continue'
    state.clear()
    return 'fire'
  }
  const forgetNext = ({ state, timers }: TriggerContext<number>): void => {
    const next = state.get()
    if (next !== undefined) timers.delete(time, next)
    state.clear()
  }
  return {
    name: `continuous ${time} time`,
    // The timer that it waits for, ms.
    state: z.number(),
    onRecord(_value, context) {
      const { ended, state, timers } = context
      if (ended) return 'fire'
      if (state.get() !== undefined) return 'continue'
      const nowMs = time === 'event' ? eventTimeOf(context) : context.processingTimeMs
      const next = lastWindowStart({ slideMs: everyMs, offsetMs: 0 }, nowMs) + everyMs
      state.update(next)
      timers.register(time, next)
      return 'continue'
    },
    onEnd(context) {
      forgetNext(context)
      return 'fire'
    },
    onEventTime: onTimer,
    onProcessingTime: onTimer,
    onMerge(merged, { state, timers }) {
      if (merged.length === 0) return
      const next = Math.min(...merged)
      state.update(next)
      timers.register(time, next)
    },
    clear: forgetNext,
  }
}

/** The record may be older than the watermark: then the next interval counts from that. */
function eventTimeOf(context: TriggerContext): number {
  if (context.timestamp === undefined) throw operatorError('MR-J53', 'The trigger fires by event time.')
  return Math.max(context.timestamp, context.currentWatermark)
}
