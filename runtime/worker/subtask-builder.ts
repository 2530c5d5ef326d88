// Puts a subtask together from its deployment: channels, writers, chain, state, input; and restores it.

import { within } from '../base/deadline.ts'
import { operatorError } from '../operators/errors.ts'
import { Metrics } from '../base/metrics.ts'
import type { EdgeId, JobId } from '../base/ids.ts'
import { invariant } from '../base/errors.ts'
import type { Environment } from '../base/environment.ts'
import type { SnapshotReader, SnapshotWriters } from '../checkpoint/contract.ts'
import type { FromSlot, TaskDeployment, TaskReport } from '../control/contract.ts'
import type { ChainedOperator, JobGraph, JobVertex } from '../job/contract.ts'
import { vertexOf } from '../job/vertex-of.ts'
import { SPLITS_STATE } from '../connectors/contract.ts'
import type { Source } from '../connectors/contract.ts'
import type { ChannelHub, ChannelOwner } from '../network/channel-hub.ts'
import type { OutputChannel } from '../network/contract.ts'
import { createRecordWriter } from '../network/record-writer.ts'
import type { RecordWriter } from '../network/record-writer.ts'
import type { OperatorContext, RestoredOperatorState, TaskInfo } from '../operators/contract.ts'
import { createUserMetrics } from '../operators/user-metrics.ts'
import { createReader } from '../record/bytes.ts'
import type { CodecDescription } from '../record/contract.ts'
import { keyGroupRange } from '../record/key-group.ts'
import { deepFreeze } from '../state/deep-freeze.ts'
import { createHeapBackend } from '../state/heap/backend.ts'
import { stateError } from '../state/errors.ts'
import { readOperatorState } from '../state/operator-state.ts'
import type { KeyedStateBackend } from '../state/contract.ts'
import type { FileSystem } from '../storage/contract.ts'
import { BarrierHandler } from '../task/barrier-handler.ts'
import { FinishedInput } from '../task/finished-input.ts'
import { GateInput } from '../task/gate-input.ts'
import { InputGate } from '../task/input-gate.ts'
import { OperatorChain } from '../task/operator-chain.ts'
import { SourceInput } from '../task/source-input.ts'
import { Task } from '../task/task.ts'
import type { TaskInput } from '../task/task-input.ts'
import { bytesToRestore, countedReader } from './restore-progress.ts'

/**
 * What open() of a function or a sink may take, ms: time to load what it needs. One that hangs would keep the job from ever running. Commits of
 * the restore point come before, and have a deadline of their own (`commitDeadlineMs`).
 */
export const openDeadlineMs = 300_000

export interface BuilderOptions {
  readonly job: JobId
  readonly graph: JobGraph
  readonly environment: Environment
  readonly files: FileSystem
  readonly hub: ChannelHub
  readonly control: { send(message: FromSlot): void }
  readonly snapshotWriters: SnapshotWriters
  readonly snapshotReader: SnapshotReader
  readonly wake: (task: Task) => void
  readonly fail: (error: unknown) => void
}

export interface Subtask {
  readonly task: Task
  /** Restores, opens, and begins to run. Rejects when that cannot be. */
  start(): Promise<void>
  assign(splits: readonly Uint8Array[], noMore: boolean): void
  setSplitsWait(waiting: boolean): void
  report(): TaskReport
}

export function buildSubtask(deployment: TaskDeployment, options: BuilderOptions): Subtask {
  return new BuiltSubtask(vertexOf(options.graph, deployment.task.vertex), deployment, options)
}

class BuiltSubtask implements Subtask {
  readonly task: Task
  readonly #vertex: JobVertex
  readonly #deployment: TaskDeployment
  readonly #options: BuilderOptions
  readonly #metrics = new Metrics()
  readonly #chain: OperatorChain
  readonly #keyed: KeyedStateBackend | undefined
  readonly #snapshots: SnapshotReader
  readonly #info: TaskInfo
  readonly #outputs: OutputChannel[] = []
  readonly #owner: ChannelOwner
  #source: SourceInput | undefined
  /** Assignments that came while the reader was still being restored. */
  readonly #early: (() => void)[] = []

  constructor(vertex: JobVertex, deployment: TaskDeployment, options: BuilderOptions) {
    this.#vertex = vertex
    this.#deployment = deployment
    this.#options = options
    const { settings } = options.graph
    const { subtask } = deployment.task
    this.#info = {
      job: options.job,
      vertex: vertex.id,
      vertexName: vertex.name,
      subtask,
      parallelism: vertex.parallelism,
      maxParallelism: vertex.maxParallelism,
      attempt: deployment.attempt,
    }
    this.#owner = { task: deployment.task, attempt: deployment.attempt, fail: options.fail, metrics: this.#metrics }
    this.#chain = new OperatorChain({
      vertex,
      writers: this.#writers(),
      freeze: settings.freezeRecords ? deepFreeze : undefined,
      metrics: this.#metrics,
      finishedBefore: deployment.finishedBefore,
    })
    this.#keyed = this.#createBackend()
    this.#snapshots = countedReader(options.snapshotReader, this.#metrics)
    const ownGroups = keyGroupRange(vertex.parallelism, subtask, vertex.maxParallelism)
    this.#metrics.set('restore_bytes', bytesToRestore(deployment.restored, ownGroups))
    this.task = new Task({
      deployment,
      environment: options.environment,
      metrics: this.#metrics,
      chain: this.#chain,
      outputs: this.#outputs,
      keyed: this.#keyed,
      keySelectors: vertex.keySelectors,
      twoPhase:
        !deployment.finishedBefore &&
        vertex.chain.some(({ factory }) => factory.kind === 'operator' && factory.twoPhase),
      headUid: vertex.chain[0]!.uid,
      bufferTimeoutMs: settings.bufferTimeoutMs,
      checkpointTimeoutMs: settings.checkpointTimeoutMs,
      writers: options.snapshotWriters,
      send: (message) => {
        // After its end nobody asks any more, and its last figures would be missing from every sum.
        if (message.type === 'finished') options.control.send({ type: 'report', tasks: [this.report()] })
        options.control.send(message)
      },
      onClose: () => options.hub.close(deployment.task, deployment.attempt),
      wake: () => options.wake(this.task),
      fail: options.fail,
    })
  }

  async start(): Promise<void> {
    this.#options.environment.failpoints.hit('task.restore')
    const restored = this.#deployment.restored?.operators ?? {}
    if (this.#keyed !== undefined) {
      await this.#keyed.restore(restored[this.#vertex.chain[0]!.uid]?.keyed ?? [], this.#snapshots)
    }
    const states = new Map<string, ReadonlyMap<string, RestoredOperatorState>>()
    for (const { uid } of this.#vertex.chain) states.set(uid, await this.#readOperatorState(uid))
    const contexts = this.#vertex.chain.map((spec, index) => this.#context(index, spec, states.get(spec.uid)!))
    await this.#chain.commitRestored((index) => contexts[index]!)
    const opening = this.#chain.open((index) => contexts[index]!)
    await within(this.#options.environment.clock, openDeadlineMs, opening, () =>
      operatorError('MR-J66', `Subtask ${this.#deployment.task.subtask} of ${this.#vertex.id}: ${openDeadlineMs} ms.`),
    )
    if (this.task.state === 'closed') return
    const input = this.#createInput(states.get(this.#vertex.chain[0]!.uid)!)
    this.task.start(input)
    for (const assignment of this.#early.splice(0)) assignment()
  }

  assign(splits: readonly Uint8Array[], noMore: boolean): void {
    this.#toSource((source) => {
      if (splits.length > 0) source.addSplits(splits, this.#decodeSplit)
      if (noMore) source.noMoreSplits()
    })
  }

  setSplitsWait(waiting: boolean): void {
    this.#toSource((source) => source.setSplitsWait(waiting))
  }

  report(): TaskReport {
    this.#metrics.set('records_out_total', this.#chain.recordsOut)
    this.#metrics.set('current_watermark_ms', this.#chain.watermarkOf(0))
    if (this.#keyed !== undefined) this.#metrics.set('state_entries', this.#keyed.entryCount)
    const { task, attempt } = this.#deployment
    return { task, attempt, metrics: this.#metrics.figures() }
  }

  /** In the mailbox, so that assignments and triggers keep the order in which they were sent (rule 20). */
  #toSource(act: (source: SourceInput) => void): void {
    const mail = () => this.task.post(() => this.#source !== undefined && act(this.#source))
    if (this.#source === undefined) this.#early.push(mail)
    else mail()
  }

  readonly #decodeSplit = (bytes: Uint8Array): unknown => {
    const { factory } = this.#vertex.chain[0]!
    invariant(factory.kind === 'source', `${this.#vertex.id} is no source`)
    return factory.source.splitCodec.decode(createReader(bytes))
  }

  /** With the codec of then: the source may have changed since. */
  #decodeRestored(source: Source<unknown, unknown, unknown>, bytes: Uint8Array, stored: CodecDescription): unknown {
    const answer = source.splitCodec.readerOf(stored)
    if ('refused' in answer) {
      throw stateError('MR-T02', `Splits of source '${this.#vertex.chain[0]!.uid}': ${answer.refused}`)
    }
    return answer.codec.decode(createReader(bytes))
  }

  #writers(): Map<EdgeId, RecordWriter> {
    const writers = new Map<EdgeId, RecordWriter>()
    for (const id of this.#vertex.outputs) {
      const { type, partitioning, keySelector, target } = this.#options.graph.edges[id]!
      const peers = this.#deployment.outputs.filter((peer) => peer.channel.edge === id)
      const channels = peers.map((peer) => this.#options.hub.output(peer, type, this.#owner))
      this.#outputs.push(...channels)
      const { maxParallelism } = vertexOf(this.#options.graph, target)
      const { subtask } = this.#deployment.task
      writers.set(id, createRecordWriter({ partitioning, channels, subtask, keySelector, maxParallelism }))
    }
    return writers
  }

  #createBackend(): KeyedStateBackend | undefined {
    const vertex = this.#vertex
    const { task, finishedBefore } = this.#deployment
    const isKeyed = vertex.keySelectors.some((keySelector) => keySelector !== undefined)
    if (!isKeyed || finishedBefore) return undefined
    const range = keyGroupRange(vertex.parallelism, task.subtask, vertex.maxParallelism)
    return createHeapBackend({
      uid: vertex.chain[0]!.uid,
      timerMeaning: vertex.chain[0]!.timerMeaning,
      ...range,
      maxParallelism: vertex.maxParallelism,
      freeze: this.#options.graph.settings.freezeRecords,
      planted: this.#options.environment.planted,
      clock: this.#options.environment.clock,
    })
  }

  #createInput(restored: ReadonlyMap<string, RestoredOperatorState>): TaskInput {
    const { environment, files } = this.#options
    const head = this.#vertex.chain[0]!
    if (head.factory.kind === 'operator') return this.#createGateInput()
    if (this.#deployment.finishedBefore) return new FinishedInput(this.task)
    const { source, watermarks } = head.factory
    const { task, attempt } = this.#deployment
    const reader = source.createReader({
      environment,
      files,
      task: this.#info,
      metrics: this.#metrics,
      wake: () => this.#options.wake(this.task),
      requestSplit: () => {
        this.#source?.splitRequested()
        this.#options.control.send({ type: 'requestSplit', task, attempt })
      },
      splitFinished: (splitId) => this.#source?.splitFinished(splitId),
      fail: this.#options.fail,
    })
    const splits = restored.get(SPLITS_STATE)?.items ?? []
    if (splits.length > 0)
      reader.addSplits(splits.map(({ bytes, codec }) => this.#decodeRestored(source, bytes, codec)))
    this.#source = new SourceInput({
      source,
      strategy: watermarks,
      reader,
      newestKnown: this.#deployment.newestKnownCheckpoint,
      output: this.#chain.headOutput,
      host: this.task,
      environment,
      metrics: this.#metrics,
    })
    return this.#source
  }

  #createGateInput(): GateInput {
    const { environment, hub, graph } = this.#options
    const { inputs, newestKnownCheckpoint } = this.#deployment
    const channels = inputs.map((peer) => hub.input(peer, graph.edges[peer.channel.edge]!.type, this.#owner))
    const gate = new InputGate(channels, () => this.#options.wake(this.task))
    const handler = new BarrierHandler({
      channels: channels.length,
      newestKnown: newestKnownCheckpoint,
      mode: graph.settings.checkpointMode,
      planted: environment.planted,
    })
    return new GateInput({
      gate,
      second: inputs.map((peer) => graph.edges[peer.channel.edge]!.input === 1),
      handler,
      host: this.task,
      clock: environment.clock,
      metrics: this.#metrics,
      failpoints: environment.failpoints,
    })
  }

  async #readOperatorState(uid: string): Promise<ReadonlyMap<string, RestoredOperatorState>> {
    const states = new Map<string, RestoredOperatorState>()
    for (const [name, snapshots] of Object.entries(this.#deployment.restored?.operators[uid]?.operatorState ?? {})) {
      const items: { bytes: Uint8Array; codec: (typeof snapshots)[number]['codec'] }[] = []
      for (const snapshot of snapshots) {
        const read = await readOperatorState(name, snapshot, this.#snapshots)
        for (const bytes of read.slice(snapshot.from, snapshot.to)) items.push({ bytes, codec: snapshot.codec })
      }
      states.set(name, { items })
    }
    return states
  }

  #context(
    index: number,
    spec: ChainedOperator,
    restored: ReadonlyMap<string, RestoredOperatorState>,
  ): OperatorContext {
    return {
      task: this.#info,
      uid: spec.uid,
      name: spec.name,
      environment: this.#options.environment,
      files: this.#options.files,
      metrics: this.#metrics,
      userMetrics: createUserMetrics({
        uid: spec.uid,
        metrics: this.#metrics,
        environment: this.#options.environment,
      }),
      keyed: index === 0 ? this.#keyed : undefined,
      restored,
      restoredCommittables: this.#deployment.restored?.operators[spec.uid]?.committables ?? [],
      newestKnownCheckpoint: this.#deployment.newestKnownCheckpoint,
      currentWatermark: () => this.#chain.watermarkOf(index),
      watermarks: { forward: (watermark) => this.#chain.forwardFrom(index, watermark) },
      post: (mail) => this.task.postOfOperator(mail),
      fail: this.#options.fail,
    }
  }
}
