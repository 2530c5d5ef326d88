// Runs one operator in a test: virtual time, keyed state on the heap, outputs collected, snapshot and restore.

import { checkpointId, incarnation, jobId, keyGroup, subtaskIndex, vertexId } from '../base/ids.ts'
import type { CheckpointId } from '../base/ids.ts'
import { Metrics } from '../base/metrics.ts'
import type { Committable, KeyedSnapshot, StateHandle } from '../checkpoint/contract.ts'
import type { Key } from '../record/contract.ts'
import { MAX_WATERMARK, MIN_WATERMARK, NO_TIMESTAMP } from '../record/element.ts'
import type { KeyedStateBackend } from '../state/contract.ts'
import { deepFreeze } from '../state/deep-freeze.ts'
import { createHeapBackend } from '../state/heap/backend.ts'
import type { FileSystem } from '../storage/contract.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import type { ManualEnvironment } from '../testkit/manual-clock.ts'
import type { OperatorContext, OperatorStatePart, RestoredOperatorState, StreamOperator, TaskInfo } from './contract.ts'
import { createUserMetrics } from './user-metrics.ts'

export interface HarnessOptions {
  /** A function gives each harness an operator of its own, as each attempt of a subtask has. */
  readonly operator: StreamOperator | (() => StreamOperator)
  /** Given: the operator has keyed state and timers, and the key of each record is this. */
  readonly keySelector?: (value: never) => Key
  /** The same for records of the second input; without it they have no key. */
  readonly secondKeySelector?: (value: never) => Key
  readonly environment?: ManualEnvironment
  /** For sinks that write files; default: an empty file system in memory. */
  readonly files?: FileSystem
  readonly task?: Partial<TaskInfo>
  /** Several when a smaller parallelism is restored. */
  readonly restored?: readonly HarnessSnapshot[]
  /** Key groups of the subtask, both inclusive; default: all. */
  readonly keyGroups?: readonly [number, number]
  /** Whether emitted records are frozen, as in local mode; default true. */
  readonly freeze?: boolean
}

/** What a subtask would acknowledge with: keyed state and timers, and the operator's own part. */
export interface HarnessSnapshot {
  readonly keyed: KeyedSnapshot | undefined
  readonly part: OperatorStatePart
}

export interface Emitted {
  readonly value: unknown
  /** undefined: no event time. */
  readonly timestamp: number | undefined
}

/** Opens the operator; restored overdue timers have fired when it resolves. Rejects with what its `open` throws. */
export async function openHarness(options: HarnessOptions): Promise<OperatorHarness> {
  const harness = new OperatorHarness(options)
  await harness.open()
  return harness
}

export class OperatorHarness {
  readonly environment: ManualEnvironment
  /** `figures()` gives all, the function's own under `user/tested/…`. */
  readonly metrics = new Metrics()
  /** Watermarks that an operator that holds them has let go. */
  readonly forwarded: number[] = []
  /** Errors given to OperatorContext.fail. */
  readonly failures: unknown[] = []
  #emitted: Emitted[] = []
  readonly #sideOutputs = new Map<string, Emitted[]>()
  readonly #options: HarnessOptions
  readonly #operator: StreamOperator
  readonly #backend: KeyedStateBackend | undefined
  #watermark = MIN_WATERMARK
  #checkpoints = 0

  constructor(options: HarnessOptions) {
    this.#options = options
    this.#operator = typeof options.operator === 'function' ? options.operator() : options.operator
    this.environment = options.environment ?? manualEnvironment()
    const [first, last] = options.keyGroups ?? [0, maxParallelism - 1]
    this.#backend =
      options.keySelector &&
      createHeapBackend({
        uid: 'tested',
        timerMeaning: 'timers of what is tested',
        first: keyGroup(first),
        last: keyGroup(last),
        maxParallelism,
        clock: this.environment.clock,
      })
  }

  /** Event time of the operator, ms. */
  get currentWatermark(): number {
    return this.#watermark
  }

  /** Called by openHarness. */
  async open(): Promise<void> {
    const { restored = [] } = this.#options
    const keyed = restored.flatMap((snapshot) => snapshot.keyed ?? [])
    if (keyed.length > 0)
      await this.#backend?.restore(keyed, { read: (handle) => Promise.resolve(inlineBytes(handle)) })
    const context = this.#context(restored)
    await this.#operator.commitRestored?.(context)
    await this.#operator.open(context, {
      emit: (value, timestamp) => this.#emitted.push(this.#record(value, timestamp)),
      emitTo: (tag, value, timestamp) => this.sideOutput(tag).push(this.#record(value, timestamp)),
    })
    if (this.#backend === undefined || keyed.length === 0) return
    for (;;) {
      const due = this.#backend.takeOverdueOfRestore()
      if (due === undefined) break
      this.#operator.onTimer?.(due)
    }
    this.#watermark = this.#backend.restoredWatermark
  }

  /** Throws what the operator throws. `timestamp`: event time, ms; none by default. */
  process(value: unknown, timestamp: number = NO_TIMESTAMP): void {
    this.#setKey(this.#options.keySelector, value)
    this.#operator.process(value, timestamp)
  }

  /** As `process`, for the operator's second input. */
  processSecond(value: unknown, timestamp: number = NO_TIMESTAMP): void {
    this.#setKey(this.#options.secondKeySelector, value)
    this.#operator.processSecond!(value, timestamp)
  }

  /** Fires event timers up to it, then hands it to the operator. Never moves back. */
  watermark(timestamp: number): void {
    if (timestamp <= this.#watermark) return
    this.#watermark = timestamp
    this.#backend?.setWatermark(timestamp)
    this.#fire('event', timestamp)
    this.#operator.onWatermark?.(timestamp)
  }

  /** Moves the clock on and fires processing-time timers. */
  async advance(ms: number): Promise<void> {
    await this.environment.clock.advanceSettled(ms)
    this.#fire('processing', this.environment.clock.wallMs())
  }

  /** Runs what was posted, such as answers to an asynchronous function, and what follows from it. */
  async settle(): Promise<void> {
    await this.environment.executor.runAllSettled()
  }

  /** What was emitted since the last call. */
  takeOutput(): Emitted[] {
    const taken = this.#emitted
    this.#emitted = []
    return taken
  }

  /** All that was emitted to the side output of this name. */
  sideOutput(tag: string): Emitted[] {
    const known = this.#sideOutputs.get(tag)
    if (known !== undefined) return known
    const fresh: Emitted[] = []
    this.#sideOutputs.set(tag, fresh)
    return fresh
  }

  /** As at a barrier: cuts the state as it is now, and a sink's transaction. */
  async snapshot(checkpoint: CheckpointId = checkpointId(++this.#checkpoints)): Promise<HarnessSnapshot> {
    const keyed = this.#backend?.snapshot(
      checkpoint,
      { write: (_checkpoint, bytes) => Promise.resolve(inlineHandle(bytes)) },
      { begin: () => undefined, shouldYield: () => false, nextTurn: () => Promise.resolve() },
    )
    const part = this.#operator.snapshot?.(checkpoint)
    return { keyed: await keyed?.done, part: (await part) ?? {} }
  }

  /** The input has ended, as a bounded one does and one that is drained: time ends first, so that all event timers fire. */
  drain(): void {
    this.watermark(MAX_WATERMARK)
    this.finish()
  }

  /** The input has ended. */
  finish(): void {
    this.#operator.finish?.()
  }

  /** The permit to commit everything of checkpoints ≤ this one. */
  async complete(checkpoint: CheckpointId): Promise<void> {
    await this.#operator.complete?.(checkpoint)
  }

  async close(): Promise<void> {
    await this.#operator.close?.()
    this.#backend?.close()
  }

  #setKey(keySelector: HarnessOptions['keySelector'], value: unknown): void {
    if (keySelector !== undefined) this.#backend?.setKey((keySelector as (value: unknown) => Key)(value))
  }

  #fire(domain: 'event' | 'processing', upToMs: number): void {
    for (;;) {
      const due = this.#backend?.takeDue(domain, upToMs)
      if (due === undefined) return
      this.#operator.onTimer?.(due)
    }
  }

  #record(value: unknown, timestamp: number): Emitted {
    const frozen = (this.#options.freeze ?? true) ? deepFreeze(value) : value
    return { value: frozen, timestamp: timestamp === NO_TIMESTAMP ? undefined : timestamp }
  }

  #context(restored: readonly HarnessSnapshot[]): OperatorContext {
    return {
      task: { ...defaultTask, ...this.#options.task },
      uid: 'tested',
      name: 'tested',
      environment: this.environment,
      files: this.#options.files ?? new MemoryFiles(),
      metrics: this.metrics,
      userMetrics: createUserMetrics({ uid: 'tested', metrics: this.metrics, environment: this.environment }),
      keyed: this.#backend,
      restored: operatorStateOf(restored),
      restoredCommittables: restored.flatMap((snapshot): readonly Committable[] => snapshot.part.committables ?? []),
      newestKnownCheckpoint: checkpointId(0),
      currentWatermark: () => this.#watermark,
      watermarks: { forward: (watermark) => this.forwarded.push(watermark) },
      post: (mail) => this.environment.executor.post(mail),
      fail: (error) => this.failures.push(error),
    }
  }
}

const maxParallelism = 128

const defaultTask: TaskInfo = {
  job: jobId('tested'),
  vertex: vertexId('tested'),
  vertexName: 'tested',
  subtask: subtaskIndex(0),
  parallelism: 1,
  maxParallelism,
  attempt: { incarnation: incarnation(1), number: 1 },
}

function operatorStateOf(restored: readonly HarnessSnapshot[]): OperatorContext['restored'] {
  const states = new Map<string, { readonly items: RestoredOperatorState['items'] }>()
  for (const { part } of restored) {
    for (const [name, state] of Object.entries(part.operatorState ?? {})) {
      const items = state.items.map((bytes) => ({ bytes, codec: state.codec }))
      states.set(name, { items: [...(states.get(name)?.items ?? []), ...items] })
    }
  }
  return states
}

function inlineHandle(bytes: Uint8Array): StateHandle {
  return { kind: 'inline', base64: Buffer.from(bytes).toString('base64'), crc: 0 }
}

function inlineBytes(handle: StateHandle): Uint8Array {
  return handle.kind === 'inline' ? new Uint8Array(Buffer.from(handle.base64, 'base64')) : new Uint8Array()
}
