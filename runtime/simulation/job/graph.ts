// The graph of a simulated job. Each process builds its own from the same shape, with its own handles of what is outside.

import { monotonic } from '../../connectors/watermarks.ts'
import { ledgerSink } from '../../connectors/ledger.ts'
import type { LedgerSystem } from '../../connectors/ledger.ts'
import { numberedSource } from '../../connectors/numbered-source.ts'
import { LEDGER_MAGIC, checkMagic, sequence, sequenceRecordSchema } from '../../connectors/sequence.ts'
import type { SequenceRecord } from '../../connectors/sequence.ts'
import type { Sink } from '../../connectors/contract.ts'
import { jsonLineFileSink } from '../../connectors/text-sinks.ts'
import type { Environment } from '../../base/environment.ts'
import { buildGraph } from '../../job/build-graph.ts'
import type { JobGraph } from '../../job/contract.ts'
import { defineJob } from '../../job/define-job.ts'
import type { JobEnvironment } from '../../job/job-environment.ts'
import type { OperatorStream, Stream } from '../../job/stream.ts'
import { typeInfoOf } from '../../record/type-info.ts'
import { numberedSchema } from '../flows/flow.ts'
import type { Entry, Numbered } from '../flows/flow.ts'
import { flows } from '../flows/flows.ts'
import type { GateHandle } from './gate.ts'
import { heldSource } from './held-source.ts'
import { isEndless, recordsOf } from './shape.ts'
import type { JobShape } from './shape.ts'

/** Where file sinks write. */
export const filesFolder = 'out'

export interface GraphContext {
  readonly shape: JobShape
  readonly environment: Environment
  /** One; two of a job of two regions, or with a slow sink. */
  readonly ledgers: readonly LedgerSystem[]
  readonly gate: GateHandle
  readonly witness: Sink<Entry>
  /** Called for each record of a source. */
  readonly onRead: () => void
}

export function graphOf(context: GraphContext): JobGraph {
  return buildGraph(
    defineJob((env) => define(env, context)),
    { name: 'simulated' },
  )
}

function define(env: JobEnvironment, context: GraphContext): void {
  const { shape, ledgers } = context
  configure(env, shape)
  if (shape.flow === 'regions') {
    for (const [index, ledger] of ledgers.entries()) branch(env, context, `region${index}-`, ledger)
  } else branch(env, context, '', ledgers[0]!)
}

function configure(env: JobEnvironment, shape: JobShape): void {
  const { config } = env
  config.maxParallelism = shape.maxParallelism
  config.checkpointMode = shape.mode
  config.checkpointIntervalMs = shape.checkpointIntervalMs
  config.checkpointTimeoutMs = shape.checkpointTimeoutMs
  config.tolerableFailures = shape.tolerableFailures
  config.onCancellation = shape.onCancellation
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
function branch(env: JobEnvironment, context: GraphContext, prefix: string, ledger: LedgerSystem): void {
  const { shape, environment } = context
  const group = (name: string): string => (shape.apart ? `${prefix}${name}` : `${prefix}all`)
  const half = shape.splits / 2
  const halves = () => ({
    left: source(env, context, { uid: `${prefix}left`, first: 0, splits: half, group }),
    right: source(env, context, { uid: `${prefix}right`, first: half, splits: half, group }),
  })
  const all = (): Stream<Numbered> => {
    if (shape.wiring === 'union') {
      const { left, right } = halves()
      return left.union(right)
    }
    const read = source(env, context, { uid: `${prefix}numbers`, first: 0, splits: shape.splits, group })
    return shape.wiring === 'straight' ? read : dealtOut(read, shape, group)
  }
  const results = flows[shape.flow]
    .build({ shape, environment, all, halves })
    .uid(`${prefix}keyed`)
    .parallelism(shape.parallelism.keyed)
    .maxParallelism(shape.maxParallelismKeyed)
    .slotSharingGroup(group('keyed'))
  const sink = results.sinkTo(ledgerSink(ledger)).uid(`${prefix}ledger`).parallelism(shape.parallelism.sink)
  // Only a sink in its operator's slots can be chained to it.
  if (shape.chainedSink) sink.slotSharingGroup(group('keyed'))
  else sink.slotSharingGroup(group('sink')).disableChaining()
  const beside = (other: Sink<Entry>, uid: string): void => {
    results.sinkTo(other).uid(uid).parallelism(shape.parallelism.keyed).slotSharingGroup(group('keyed'))
  }
  if (shape.removable) remember(results, shape, group('keyed'))
  if (shape.slowSink) beside(ledgerSink(context.ledgers[1]!), 'slow')
  if (shape.witness) beside(context.witness, 'witness')
  if (shape.files) beside(jsonLineFileSink<Entry>({ folder: filesFolder }), 'files')
}

/** Keeps the newest entry of each key, for nobody. */
function remember(results: Stream<Entry>, { parallelism }: JobShape, group: string): void {
  const place = <Placed extends { parallelism(n: number): Placed; slotSharingGroup(name: string): Placed }>(
    of: Placed,
  ) => of.parallelism(parallelism.keyed).slotSharingGroup(group)
  const newest = place(results.keyBy(({ key }) => key).reduce((_, last) => last)).uid('removable')
  place(newest.sinkTo(nowhere))
}

const nowhere: Sink<Entry> = {
  name: 'nowhere',
  createWriter: () => ({
    open: () => Promise.resolve(),
    write: () => undefined,
    prepareCommit: () => Promise.resolve([]),
    close: () => undefined,
  }),
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
  { shape, gate, onRead }: GraphContext,
  { uid, first, splits, group }: SourceParts,
): OperatorStream<Numbered> {
  const share = (splits / shape.splits) * (shape.slowSource && first > 0 ? 0.25 : 1)
  const ratePerSecond = shape.ratePerSecond === undefined ? undefined : shape.ratePerSecond * share
  const pad = 'p'.repeat(shape.padBytes)
  const endless = isEndless(shape)
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
  const held = heldSource(numbered, {
    countOf: (split) => recordsOf(shape, first + split),
    gate: ofJob,
    dealt: shape.dealt ? splits : undefined,
  })
  const watermarks =
    shape.idleAfterMs === undefined
      ? monotonic<SequenceRecord>()
      : monotonic<SequenceRecord>().withIdleness(shape.idleAfterMs)
  return env
    .source(held, { uid, watermarks })
    .parallelism(shape.parallelism.source)
    .slotSharingGroup(group('source'))
    .map(
      ({ split, n, magic }) => {
        onRead()
        return { split: split + first, n, magic, pad }
      },
      { schema: numberedSchema },
    )
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
