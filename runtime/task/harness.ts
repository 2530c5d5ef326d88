// A task in the test's hand: real chain, gate, channels and heap; manual time and turns; an operator that writes down what it is told.

import { checkpointId, edgeId, incarnation, keyGroup, subtaskIndex, vertexId } from '../base/ids.ts'
import { Metrics } from '../base/metrics.ts'
import type { KeyedSnapshot, SnapshotWriter } from '../checkpoint/contract.ts'
import type { FromSlot, TaskDeployment } from '../control/contract.ts'
import type { JobVertex } from '../job/contract.ts'
import { memoryChannel } from '../network/memory-channel.ts'
import { createRecordWriter } from '../network/record-writer.ts'
import type { OperatorContext, OperatorStatePart, Output, StreamOperator } from '../operators/contract.ts'
import { createUserMetrics } from '../operators/user-metrics.ts'
import type { Barrier, ChannelItem, SnapshotKind } from '../record/element.ts'
import type { DueTimer, KeyedStateBackend } from '../state/contract.ts'
import { createHeapBackend } from '../state/heap/backend.ts'
import { MemorySnapshots } from '../state/conformance-harness.ts'
import { manualEnvironment, settlePromises } from '../testkit/manual-clock.ts'
import type { ManualEnvironment } from '../testkit/manual-clock.ts'
import { BarrierHandler } from './barrier-handler.ts'
import { GateInput } from './gate-input.ts'
import { InputGate } from './input-gate.ts'
import { OperatorChain } from './operator-chain.ts'
import { Task } from './task.ts'

const producers = 2

export function barrier(id: number, kind: SnapshotKind = 'checkpoint'): Barrier {
  return { id: checkpointId(id), kind, triggeredAtMs: 0, alignedMs: 0 }
}

/** Emits each record again, sums it, and tells everything in order. */
class RecordingOperator implements StreamOperator<number, number> {
  readonly story: string[] = []
  sum = 0
  ready = true
  /** It may be ready again. */
  wake: () => void = () => undefined
  keyed: KeyedStateBackend | undefined
  /** What snapshot() gives; may throw or reject. */
  onSnapshot: (id: number) => OperatorStatePart | Promise<OperatorStatePart> = () => ({})
  onComplete: (id: number) => Promise<void> = async () => undefined
  onClose: () => Promise<void> = async () => undefined
  onFire: (timer: DueTimer) => void = () => undefined
  #output!: Output<number>

  open(context: OperatorContext, output: Output<number>): void {
    this.keyed = context.keyed
    this.wake = () => context.post(() => undefined)
    this.#output = output
  }

  process(value: number, timestamp: number): void {
    this.story.push(`process ${value}`)
    this.sum += value
    this.#output.emit(value, timestamp)
  }

  onTimer(timer: DueTimer): void {
    this.story.push(`timer ${timer.domain} ${timer.timestampMs}`)
    this.onFire(timer)
    this.#output.emit(-timer.timestampMs, timer.timestampMs)
  }

  onWatermark(watermark: number): void {
    this.story.push(`watermark ${watermark}`)
  }

  finish(): void {
    this.story.push('finish')
    this.#output.emit(1000 + this.sum, 0)
  }

  snapshot(id: number): OperatorStatePart | Promise<OperatorStatePart> {
    this.story.push(`snapshot ${id} of ${this.sum}`)
    return this.onSnapshot(id)
  }

  complete(id: number): Promise<void> {
    this.story.push(`complete ${id}`)
    return this.onComplete(id)
  }

  close(): Promise<void> {
    this.story.push('close')
    return this.onClose()
  }
}

export interface TestTaskOptions {
  readonly twoPhase?: boolean
  readonly withKeys?: boolean
  readonly restored?: readonly KeyedSnapshot[]
  readonly snapshots?: MemorySnapshots
  readonly writer?: SnapshotWriter
  readonly environment?: ManualEnvironment
  readonly newestKnown?: number
  readonly bufferTimeoutMs?: number
  readonly checkpointTimeoutMs?: number
  /** Default: true. */
  readonly started?: boolean
  /** It starts, and is not told to begin. */
  readonly waits?: boolean
  /** Chained in front of the recording operator. */
  readonly first?: StreamOperator
  /** Chained behind it. */
  readonly last?: StreamOperator
}

export async function testTask(options: TestTaskOptions = {}) {
  const environment = options.environment ?? manualEnvironment()
  const { executor } = environment
  const operator = new RecordingOperator()
  const twoPhase = options.twoPhase ?? false
  const operators = { first: options.first, sums: operator, last: options.last }
  const chained = Object.entries(operators).flatMap(([uid, made]) => (made === undefined ? [] : [{ uid, made }]))
  const vertex: JobVertex = {
    id: vertexId('sums'),
    name: 'sums',
    parallelism: 1,
    maxParallelism: 8,
    slotSharingGroup: 'default',
    chain: chained.map(({ uid, made }, index) => ({
      uid,
      uidGiven: true,
      name: uid,
      factory: { kind: 'operator', create: () => made, twoPhase },
      outputs: [
        index === chained.length - 1
          ? { tag: undefined, to: 'edge', edge: edgeId(1) }
          : { tag: undefined, to: 'chained', operator: index + 1 },
      ],
    })),
    keySelectors: [options.withKeys === true ? (value) => value as number : undefined],
    inputs: [edgeId(0)],
    outputs: [edgeId(1)],
  }
  const channel = (edge: number, producer: number) =>
    memoryChannel({ edge: edgeId(edge), producer: subtaskIndex(producer), consumer: subtaskIndex(0) }, executor)
  const inputs = Array.from({ length: producers }, (_, index) => channel(0, index))
  const out = channel(1, 0)
  const sent: FromSlot[] = []
  const failures: unknown[] = []
  const task: TaskDeployment['task'] = { vertex: vertex.id, subtask: subtaskIndex(0) }
  const attempt = { incarnation: incarnation(1), number: 1 }
  const newestKnown = checkpointId(options.newestKnown ?? 0)
  const deployment: TaskDeployment = {
    task,
    attempt,
    inputs: [],
    outputs: [],
    restored: undefined,
    newestKnownCheckpoint: newestKnown,
    finishedBefore: false,
  }
  const metrics = new Metrics()
  const writer = createRecordWriter({
    partitioning: 'forward',
    channels: [out.output],
    subtask: 0,
    keySelector: undefined,
    maxParallelism: 8,
  })
  const chain = new OperatorChain({
    vertex,
    writers: new Map([[edgeId(1), writer]]),
    freeze: undefined,
    metrics,
    finishedBefore: false,
  })
  const snapshots = options.snapshots ?? new MemorySnapshots()
  const keyed =
    options.withKeys === true
      ? createHeapBackend({
          uid: 'sums',
          timerMeaning: 'timers of sums',
          first: keyGroup(0),
          last: keyGroup(7),
          maxParallelism: 8,
          clock: environment.clock,
        })
      : undefined
  let queued = false
  let closes = 0
  const wake = (): void => {
    if (queued) return
    queued = true
    executor.post(() => {
      queued = false
      environment.budget.begin()
      if (subject.run() === 'again') wake()
    })
  }
  const fail = (error: unknown): void => {
    failures.push(error)
    subject.close()
  }
  const subject: Task = new Task({
    deployment,
    environment,
    metrics,
    chain,
    outputs: [out.output],
    keyed,
    keySelectors: vertex.keySelectors,
    twoPhase,
    headUid: chained[0]!.uid,
    bufferTimeoutMs: options.bufferTimeoutMs ?? 100,
    checkpointTimeoutMs: options.checkpointTimeoutMs ?? 600_000,
    writers: { ofKind: () => options.writer ?? snapshots },
    send: (message) => sent.push(message),
    onClose: () => closes++,
    wake,
    fail,
  })
  if (options.restored !== undefined) await keyed!.restore(options.restored, snapshots)
  const contextOf = (index: number, uid: string): Partial<OperatorContext> => ({
    uid,
    name: uid,
    environment,
    userMetrics: createUserMetrics({ uid, metrics, environment }),
    keyed: index === 0 ? keyed : undefined,
    restored: new Map(),
    currentWatermark: () => chain.watermarkOf(index),
    watermarks: { forward: (watermark) => chain.forwardFrom(index, watermark) },
    post: (mail) => subject.postOfOperator(mail),
    fail,
  })
  await chain.open((index, { uid }) => contextOf(index, uid) as OperatorContext)
  const gate = new InputGate(
    inputs.map(({ input }) => input),
    wake,
  )
  const handler = new BarrierHandler({
    channels: producers,
    newestKnown,
    mode: 'exactly-once',
    planted: environment.planted,
  })
  const input = new GateInput({
    gate,
    second: inputs.map(() => false),
    handler,
    host: subject,
    clock: environment.clock,
    metrics,
    failpoints: environment.failpoints,
  })
  const start = (): void => {
    subject.start(input)
    if (options.waits !== true) subject.begin()
  }
  if (options.started !== false) start()
  return {
    task: subject,
    operator,
    environment,
    snapshots,
    metrics,
    sent,
    failures,
    keyed,
    start,
    /** Producer ends. */
    producers: inputs.map(({ output }) => output),
    closes: () => closes,
    /** Everything that can happen without time passing. */
    settle: async () => {
      await executor.runAllSettled()
    },
    turn: () => executor.runOne(),
    promises: () => settlePromises(),
    /** What came out, one word each: records as numbers. */
    taken: (): (number | string)[] => {
      const words: (number | string)[] = []
      for (let item = out.input.next(); item !== undefined; item = out.input.next()) words.push(...wordsOf(item))
      return words
    },
    types: (): string[] => sent.map(({ type }) => type),
  }
}

export function wordsOf(item: ChannelItem): (number | string)[] {
  switch (item.kind) {
    case 'records':
      return item.values as number[]
    case 'watermark':
      return [`watermark ${item.timestamp}`]
    case 'status':
      return [item.idle ? 'idle' : 'active']
    case 'barrier':
      return [`barrier ${item.barrier.id}`]
    case 'end':
      return ['end']
    default:
      return item satisfies never
  }
}
