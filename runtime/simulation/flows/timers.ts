// Flows in which each record comes out when its timer fires.

import { z } from 'zod'
import { LEDGER_MAGIC, checkMagic } from '../../connectors/sequence.ts'
import type { OperatorStream } from '../../job/stream.ts'
import { mapState, valueState } from '../../state/descriptors.ts'
import { isEndless } from '../job/shape.ts'
import { entrySchema, keyOf, splitOf } from './flow.ts'
import type { Entry, Flow, FlowInputs } from './flow.ts'
import { counted } from './counters.ts'

export const eventTimers: Flow = {
  ...counted,
  endings: ['bounded', 'bounded', 'drained'],
  immediate: false,
  build: buildEventTimers,
}

/** A bounded job drops processing-time timers that its end overtakes. */
export const processingTimers: Flow = {
  ...counted,
  endings: ['quiet'],
  immediate: false,
  build: buildProcessingTimers,
}

const doomed = 'doomed'

/** Another timer is registered with each record and deleted with the next: it never fires. */
function buildEventTimers({ all, shape }: FlowInputs): OperatorStream<Entry> {
  const { stepMs, eventDelayMs } = shape
  const doomedAtMs = (n: number): number => (n + 3) * stepMs
  return all()
    .keyBy(({ split, n }) => keyOf(shape, split, n))
    .process(
      {
        state: { fired: valueState('fired', z.int()) },
        process(value, { timers }) {
          checkMagic(value)
          timers.register('event', value.n * stepMs + eventDelayMs)
          if (value.n > 0) timers.delete('event', doomedAtMs(value.n - 1), doomed)
          // The end of event time fires all that is left; in a job that has no last record, one would be.
          if (!isEndless(shape) && value.n + 1 < shape.perSplit) timers.register('event', doomedAtMs(value.n), doomed)
        },
        onTimer({ timestampMs, tag }, { key, state, emit }) {
          const count = (state.fired.get() ?? 0) + 1
          state.fired.update(count)
          const n = tag === doomed ? -1 : (timestampMs - eventDelayMs) / stepMs
          emit({ split: splitOf(key), n, magic: LEDGER_MAGIC, key, count, pad: '' })
        },
      },
      { schema: entrySchema },
    )
}

/** Each record waits in state for its timer. */
function buildProcessingTimers({ all, shape }: FlowInputs): OperatorStream<Entry> {
  return all()
    .keyBy(({ split, n }) => keyOf(shape, split, n))
    .process(
      {
        state: {
          fired: valueState('fired', z.int()),
          waiting: mapState('waiting', { key: 'number', value: z.array(z.int()) }),
        },
        process(value, { state, timers, processingTimeMs }) {
          checkMagic(value)
          const dueMs = processingTimeMs + shape.timerDelayMs
          state.waiting.put(dueMs, [...(state.waiting.get(dueMs) ?? []), value.n])
          timers.register('processing', dueMs)
        },
        onTimer({ timestampMs }, { key, state, emit }) {
          // One that fires again, or for another key, finds nothing here: it shows as a record that was never sent.
          for (const n of state.waiting.get(timestampMs) ?? [-1]) {
            const count = (state.fired.get() ?? 0) + 1
            state.fired.update(count)
            emit({ split: splitOf(key), n, magic: LEDGER_MAGIC, key, count, pad: '' })
          }
          state.waiting.delete(timestampMs)
        },
      },
      { schema: entrySchema },
    )
}
