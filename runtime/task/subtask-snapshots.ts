// The snapshots of one subtask: frozen in one turn, written between its slices, and acknowledged or declined.

import type { Environment } from '../base/environment.ts'
import { InvariantError } from '../base/errors.ts'
import type { CheckpointId } from '../base/ids.ts'
import type { MetricGroup } from '../base/metrics.ts'
import type { SnapshotWriters, SubtaskSnapshot } from '../checkpoint/contract.ts'
import type { OperatorStatePart } from '../operators/contract.ts'
import type { Barrier, SnapshotKind } from '../record/element.ts'
import { isRecordError } from '../record/errors.ts'
import type { KeyedStateBackend } from '../state/contract.ts'
import type { OperatorChain } from './operator-chain.ts'
import { assembleSnapshot, snapshotBytes } from './snapshot-assembly.ts'
import type { SnapshotParts } from './snapshot-assembly.ts'
import { slicesOf } from './slices.ts'

export interface SubtaskSnapshotsOptions {
  readonly environment: Environment
  readonly metrics: MetricGroup
  readonly chain: OperatorChain
  readonly keyed: KeyedStateBackend | undefined
  /** The first operator's uid: keyed state and a source's splits are its. */
  readonly headUid: string
  readonly writers: SnapshotWriters
  /** The input's own state. */
  readonly inputPart: (id: CheckpointId) => OperatorStatePart | undefined
  /** After its end a subtask says nothing more. */
  readonly isClosed: () => boolean
  readonly acknowledge: (id: CheckpointId, snapshot: SubtaskSnapshot) => void
  readonly decline: (id: CheckpointId, reason: string) => void
  readonly fail: (error: unknown) => void
  /** One is written, or given up. */
  readonly onDone: () => void
}

/** What the sync part took. */
export type MeasuredSnapshot = Required<Pick<SubtaskSnapshot, 'syncMs' | 'alignmentMs' | 'startDelayMs'>>

interface Frozen {
  readonly parts: readonly SnapshotParts[]
  readonly abort: () => void
}

export class SubtaskSnapshots {
  readonly #options: SubtaskSnapshotsOptions
  #running: { readonly id: CheckpointId; readonly abort: () => void } | undefined

  constructor(options: SubtaskSnapshotsOptions) {
    this.#options = options
  }

  /** The one that is being written. */
  get pending(): CheckpointId | undefined {
    return this.#running?.id
  }

  /** What is still written of it is nobody's; it must not hold up the end of this subtask. */
  drop(): void {
    this.#running?.abort()
    this.#running = undefined
  }

  /** The state as it is now; nothing may come between this and the barrier. */
  freeze(id: CheckpointId, kind: SnapshotKind): Frozen {
    const { keyed, headUid, writers, environment, inputPart, chain } = this.#options
    this.drop()
    const parts: SnapshotParts[] = []
    const keyedSnapshot = keyed?.snapshot(id, writers.ofKind(kind), slicesOf(environment))
    if (keyedSnapshot !== undefined) parts.push({ uid: headUid, keyed: owned(keyedSnapshot.done) })
    const input = inputPart(id)
    if (input !== undefined) parts.push({ uid: headUid, part: Promise.resolve(input) })
    for (const { spec, operator } of chain.operators()) {
      const part = operator.snapshot?.(id)
      if (part !== undefined) parts.push({ uid: spec.uid, part: owned(Promise.resolve(part)) })
    }
    return { parts, abort: () => keyedSnapshot?.abort() }
  }

  /** Writes it and says so. Never rejects. */
  async write(barrier: Barrier, { parts, abort }: Frozen, measured: MeasuredSnapshot): Promise<void> {
    const { environment, writers, metrics, isClosed, acknowledge, decline, fail, onDone } = this.#options
    const { clock, failpoints } = environment
    const startedMs = clock.nowMs()
    const running = { id: barrier.id, abort }
    this.#running = running
    try {
      const operators = await assembleSnapshot({ id: barrier.id, parts, writer: writers.ofKind(barrier.kind) })
      failpoints.hit('task.snapshot.async')
      if (isClosed()) return
      const asyncMs = clock.nowMs() - startedMs
      const bytes = snapshotBytes(operators)
      metrics.set('checkpoint_async_ms', asyncMs)
      metrics.set('checkpoint_alignment_ms', measured.alignmentMs)
      metrics.set('checkpoint_bytes', bytes)
      failpoints.hit('task.acknowledge.before')
      acknowledge(barrier.id, { operators, finished: false, bytes, asyncMs, ...measured })
      failpoints.hit('task.acknowledge.after')
    } catch (error) {
      if (isClosed()) return
      // What is broken in itself, such as a value that its schema does not take, would decline for ever, and the job go on unprotected.
      if (error instanceof InvariantError || isRecordError(error)) fail(error)
      // The task goes on; only this checkpoint will not be (R7: an async decline counts, the sync part failing fails the task).
      else decline(barrier.id, String(error))
    } finally {
      if (this.#running === running) this.#running = undefined
      onDone()
    }
  }

  /** Of a subtask that has finished: it acknowledges every later snapshot (rule 19). */
  async writeFinal(id: CheckpointId, { parts }: Frozen): Promise<SubtaskSnapshot> {
    const operators = await assembleSnapshot({ id, parts, writer: this.#options.writers.ofKind('checkpoint') })
    return { operators, finished: true, bytes: snapshotBytes(operators), syncMs: 0, asyncMs: 0, alignmentMs: 0 }
  }
}

/** Its failure is reported by whoever awaits it later; until then it must not count as unhandled. */
function owned<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}
