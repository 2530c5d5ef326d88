// The jobs that seeds run. Each process builds its own from the same shape, with its own handle of the ledgers.

import { z } from 'zod'
import { monotonic } from '../../connectors/watermarks.ts'
import { ledgerSink } from '../../connectors/ledger.ts'
import type { LedgerSystem } from '../../connectors/ledger.ts'
import { numberedSource } from '../../connectors/numbered-source.ts'
import { LEDGER_MAGIC, checkMagic, sequence, sequenceRecordSchema } from '../../connectors/sequence.ts'
import type { SequenceRecord } from '../../connectors/sequence.ts'
import { buildGraph } from '../../job/build-graph.ts'
import type { JobGraph } from '../../job/contract.ts'
import { defineJob } from '../../job/define-job.ts'
import type { JobEnvironment } from '../../job/job-environment.ts'
import type { OperatorStream, Stream } from '../../job/stream.ts'
import { tumblingWindows } from '../../operators/window-assigner.ts'
import { typeInfoOf } from '../../record/type-info.ts'
import { mapState, valueState } from '../../state/descriptors.ts'
import type { GateHandle } from './gate.ts'
import { heldSource } from './held-source.ts'
import { recordsOf } from './shape.ts'
import type { JobShape } from './shape.ts'

const numberedSchema = sequenceRecordSchema.extend({ pad: z.string() })
type Numbered = z.infer<typeof numberedSchema>

const entrySchema = z.object({
  split: z.int(),
  n: z.int(),
  magic: z.int(),
  key: z.string(),
  count: z.int(),
  pad: z.string(),
})
type Entry = z.infer<typeof entrySchema>

export interface FlowContext {
  readonly shape: JobShape
  /** One; two of a job of two regions. */
  readonly ledgers: readonly LedgerSystem[]
  readonly gate: GateHandle
}

export function graphOf(context: FlowContext): JobGraph {
  return buildGraph(
    defineJob((env) => define(env, context)),
    { name: 'simulated' },
  )
}

/** The key of a record where a count or a window is kept. */
export function keyOf(shape: JobShape, split: number, n: number): string {
  if (shape.flow === 'event timers' || shape.flow === 'processing timers') return `split ${split}`
  return `key ${(split * 5 + n) % shape.keys}`
}

function define(env: JobEnvironment, context: FlowContext): void {
  const { shape, ledgers } = context
  configure(env, shape)
  if (shape.flow === 'regions') {
    for (const [index, ledger] of ledgers.entries()) branch(env, context, `region${index}-`, ledger)
  } else branch(env, context, '', ledgers[0]!)
}

function configure(env: JobEnvironment, shape: JobShape): void {
  const { config } = env
  config.maxParallelism = shape.maxParallelism
  config.checkpointIntervalMs = shape.checkpointIntervalMs
  config.checkpointTimeoutMs = shape.checkpointTimeoutMs
  config.minPauseMs = shape.minPauseMs
  config.retained = shape.retained
  config.bufferTimeoutMs = shape.bufferTimeoutMs
  config.channelDeadlineMs = shape.channelDeadlineMs
  config.failoverStrategy = shape.failover
  config.restartStrategy = {
    type: 'exponential-delay',
    initialDelayMs: 100,
    maxDelayMs: 2_000,
    multiplier: 2,
    resetAfterMs: 60_000,
    jitter: 0.2,
  }
}

/** Source → keyed operator → ledger; `prefix` keeps two of them apart. */
function branch(env: JobEnvironment, context: FlowContext, prefix: string, ledger: LedgerSystem): void {
  const { shape } = context
  const group = (name: string): string => (shape.apart ? `${prefix}${name}` : `${prefix}all`)
  const results = keyed(numbers(env, context, prefix, group), shape)
    .uid(`${prefix}keyed`)
    .parallelism(shape.parallelism.keyed)
    .slotSharingGroup(group('keyed'))
  const sink = results.sinkTo(ledgerSink(ledger)).uid(`${prefix}ledger`).parallelism(shape.parallelism.sink)
  // Only a sink in its operator's slots can be chained to it.
  if (shape.chainedSink) sink.slotSharingGroup(group('keyed'))
  else sink.slotSharingGroup(group('sink')).disableChaining()
}

function numbers(
  env: JobEnvironment,
  context: FlowContext,
  prefix: string,
  group: (name: string) => string,
): Stream<Numbered> {
  const { shape } = context
  if (shape.wiring !== 'union') {
    const read = source(env, context, { uid: `${prefix}numbers`, first: 0, splits: shape.splits, group })
    return shape.wiring === 'straight' ? read : dealtOut(read, shape, group)
  }
  const half = shape.splits / 2
  const left = source(env, context, { uid: `${prefix}left`, first: 0, splits: half, group })
  return left.union(source(env, context, { uid: `${prefix}right`, first: half, splits: half, group }))
}

interface SourceParts {
  readonly uid: string
  /** Its splits are first, first + 1 … of the job's. */
  readonly first: number
  readonly splits: number
  readonly group: (name: string) => string
}

function source(
  env: JobEnvironment,
  { shape, gate }: FlowContext,
  { uid, first, splits, group }: SourceParts,
): OperatorStream<Numbered> {
  const ratePerSecond = shape.ratePerSecond === undefined ? undefined : (shape.ratePerSecond * splits) / shape.splits
  const pad = 'p'.repeat(shape.padBytes)
  const endless = shape.ending === 'cut'
  const { stepMs } = shape
  const even = sequence({
    splits,
    stepMs,
    ...(ratePerSecond && { ratePerSecond }),
    ...(!endless && { perSplit: shape.perSplit }),
  })
  const uneven = numberedSource<SequenceRecord>({
    name: 'uneven sequence',
    bounded: !endless,
    output: typeInfoOf('sequence record', sequenceRecordSchema),
    splits,
    ratePerSecond,
    countOf: ({ index }) => finite(recordsOf(shape, first + index)),
    recordOf: ({ index }, n) => ({ split: index, n, magic: LEDGER_MAGIC }),
    timestampOf: (_, n) => n * stepMs,
  })
  const ofJob: GateHandle = {
    isOpen: (split) => gate.isOpen(first + split),
    onOpen: (split, callback) => gate.onOpen(first + split, callback),
  }
  const numbered = shape.flow === 'idle windows' ? uneven : even
  const held = heldSource(numbered, { countOf: (split) => recordsOf(shape, first + split), gate: ofJob })
  const watermarks =
    shape.idleAfterMs === undefined
      ? monotonic<SequenceRecord>()
      : monotonic<SequenceRecord>().withIdleness(shape.idleAfterMs)
  return env
    .source(held, { uid, watermarks })
    .parallelism(shape.parallelism.source)
    .slotSharingGroup(group('source'))
    .map(({ split, n, magic }) => ({ split: split + first, n, magic, pad }), { schema: numberedSchema })
    .parallelism(shape.parallelism.source)
}

function finite(count: number): number | undefined {
  return count === Infinity ? undefined : count
}

/** A stateless vertex of a parallelism of its own between source and keyed operator. */
function dealtOut(stream: Stream<Numbered>, shape: JobShape, group: (name: string) => string): Stream<Numbered> {
  return stream
    .rebalance()
    .filter(({ magic }) => {
      checkMagic({ magic })
      return true
    })
    .parallelism(shape.parallelism.sink)
    .slotSharingGroup(group('keyed'))
}

function keyed(stream: Stream<Numbered>, shape: JobShape): OperatorStream<Entry> {
  switch (shape.flow) {
    case 'counter':
    case 'regions':
      return counter(stream, shape)
    case 'windows':
    case 'idle windows':
      return windows(stream, shape)
    case 'event timers':
      return eventTimers(stream, shape)
    case 'processing timers':
      return processingTimers(stream, shape)
    default:
      return shape.flow satisfies never
  }
}

function counter(stream: Stream<Numbered>, shape: JobShape): OperatorStream<Entry> {
  return stream
    .keyBy(({ split, n }) => keyOf(shape, split, n))
    .process(
      {
        state: { count: valueState('count', z.int()) },
        process(value, { key, state, emit }) {
          checkMagic(value)
          const count = (state.count.get() ?? 0) + 1
          state.count.update(count)
          emit({ ...value, key, count })
        },
      },
      { schema: entrySchema },
    )
}

/** An entry for each firing: `split` is 0, `n` says which window of the key, `count` holds the sum. */
function windows(stream: Stream<Numbered>, shape: JobShape): OperatorStream<Entry> {
  return stream
    .keyBy(({ split, n }) => keyOf(shape, split, n))
    .window(tumblingWindows({ sizeMs: shape.windowMs }))
    .aggregate<{ sum: number }, number, Entry>(
      {
        create: () => ({ sum: 0 }),
        add: (accumulator, { split, n, magic }) => {
          checkMagic({ magic })
          accumulator.sum += weightOf(split, n)
          return accumulator
        },
        result: ({ sum }) => sum,
      },
      {
        accumulator: z.object({ sum: z.int() }),
        schema: entrySchema,
        process: (key, { startMs }, sum) => ({
          split: 0,
          n: startMs / shape.windowMs,
          magic: LEDGER_MAGIC,
          key,
          count: sum,
          pad: '',
        }),
      },
    )
}

/** What a record adds to its window: no two records the same, so that one cannot stand in for another. */
export function weightOf(split: number, n: number): number {
  return 1 + split * 100_003 + n * 7
}

const doomed = 'doomed'

/** Each record comes out when its timer fires. Another one is registered with each record and deleted with the next: it never fires. */
function eventTimers(stream: Stream<Numbered>, shape: JobShape): OperatorStream<Entry> {
  const { stepMs, timerDelayMs } = shape
  const doomedAtMs = (n: number): number => (n + 3) * stepMs
  return stream
    .keyBy(({ split, n }) => keyOf(shape, split, n))
    .process(
      {
        state: { fired: valueState('fired', z.int()) },
        process(value, { timers }) {
          checkMagic(value)
          timers.register('event', value.n * stepMs + timerDelayMs)
          if (value.n > 0) timers.delete('event', doomedAtMs(value.n - 1), doomed)
          if (value.n + 1 < shape.perSplit) timers.register('event', doomedAtMs(value.n), doomed)
        },
        onTimer({ timestampMs, tag }, { key, state, emit }) {
          const count = (state.fired.get() ?? 0) + 1
          state.fired.update(count)
          const n = tag === doomed ? -1 : (timestampMs - timerDelayMs) / stepMs
          emit({ split: splitOf(key), n, magic: LEDGER_MAGIC, key, count, pad: '' })
        },
      },
      { schema: entrySchema },
    )
}

/** Each record waits in state for its timer. */
function processingTimers(stream: Stream<Numbered>, shape: JobShape): OperatorStream<Entry> {
  return stream
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

function splitOf(key: string): number {
  return Number(key.slice('split '.length))
}
