// A sink as the end of a chain: pre-commit at the barrier, keep what is pre-committed until its commit is confirmed, commit on permit (rule 22).

import { invariant } from '../base/errors.ts'
import type { CheckpointId } from '../base/ids.ts'
import type { Committable } from '../checkpoint/contract.ts'
import type { Committer, Sink, SinkWriter } from '../connectors/contract.ts'
import type { JobSettings } from '../job/contract.ts'
import { commitWithRetry } from './commit-with-retry.ts'
import type { OperatorContext, OperatorStatePart, StreamOperator } from './contract.ts'
import { operatorError } from './errors.ts'
import { describe, userError } from './user-code.ts'

/** Name of the writer's operator state. */
export const WRITER_STATE = 'writer'

export interface SinkSettings extends Pick<JobSettings, 'commitDeadlineMs' | 'onUnknownCommit'> {
  /** Its uid was given, or may be trusted: what its writer keeps is found again. */
  readonly mayKeepState: boolean
}

export class SinkOperator implements StreamOperator {
  readonly #sink: Sink<unknown>
  readonly #settings: SinkSettings
  #context!: OperatorContext
  #writer!: SinkWriter<unknown>
  #committer: Committer | undefined
  /** In order of their checkpoints. Bounded by the coordinator: one more snapshot at a time, and commits have a deadline. */
  #unconfirmed: Committable[] = []
  /** Resolves when all pre-commits so far are durable and listed. */
  #prepared: Promise<unknown> = Promise.resolve()
  /** Commits run one after the other: two at once could confirm what the other is still committing. */
  #committed: Promise<void> = Promise.resolve()
  #endOfInput = false
  readonly #stop = new AbortController()

  constructor(sink: Sink<unknown>, settings: SinkSettings) {
    this.#sink = sink
    this.#settings = settings
  }

  async commitRestored(context: OperatorContext): Promise<void> {
    const { environment, files, uid, task } = context
    this.#context = context
    this.#committer = this.#sink.createCommitter?.({ environment, files, uid, job: task.job })
    // Rule 22: the swap that chose the restore point is their permit; before any new record, else the external order is not ours.
    this.#unconfirmed = [...context.restoredCommittables]
    if (this.#unconfirmed.length > 0 && this.#committer === undefined)
      throw operatorError('MR-J63', `At ${describe(context)}.`)
    await this.#commit(this.#unconfirmed)
  }

  async open(context: OperatorContext): Promise<void> {
    const { environment, files, uid, task, newestKnownCheckpoint, metrics } = context
    const restored = context.restored.get(WRITER_STATE) ?? { items: [] }
    const fail = (error: unknown): void => context.fail(this.#writeError(error))
    const wake = (): void => context.post(() => undefined)
    this.#writer = this.#sink.createWriter({
      environment,
      files,
      task,
      uid,
      newestKnownCheckpoint,
      metrics,
      restored,
      fail,
      wake,
    })
    // Only the writer shows that it keeps state. Without this the first restart would be refused, for ever (MR-C14).
    if (this.#writer.snapshot !== undefined && !this.#settings.mayKeepState)
      throw operatorError('MR-J69', `At ${describe(context)}.`)
    await this.#writer.open()
  }

  /** A writer that waits for its external system holds its producers back. */
  get ready(): boolean {
    return this.#writer?.ready !== false
  }

  process(value: unknown, timestamp: number): void {
    try {
      this.#writer.write(value, timestamp)
    } catch (error) {
      throw userError(this.#context, 'write', error)
    }
  }

  finish(): void {
    this.#endOfInput = true
  }

  /** The call cuts the transaction; records written from now on belong to the next one. */
  snapshot(checkpoint: CheckpointId): Promise<OperatorStatePart> {
    this.#context.environment.failpoints.hit('sink.preCommit.before')
    const transactions = this.#writer.prepareCommit(checkpoint, this.#endOfInput)
    const writerState = this.#writer.snapshot?.(checkpoint)
    const committables = this.#listWhenDurable(checkpoint, transactions, this.#prepared)
    this.#prepared = committables
    // Owned by the task through the returned promise; if it dropped that (the checkpoint was aborted), fail() has reported the error.
    committables.catch(() => {})
    return committables.then((listed) => ({
      ...(this.#committer === undefined ? {} : { committables: listed }),
      ...(writerState === undefined ? {} : { operatorState: { [WRITER_STATE]: writerState } }),
    }))
  }

  complete(checkpoint: CheckpointId): Promise<void> {
    const earlier = this.#committed
    this.#committed = (async () => {
      await earlier
      await this.#commit(this.#unconfirmed.filter((committable) => committable.checkpoint <= checkpoint))
    })()
    return this.#committed
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#writer?.close()
  }

  /**
   * All unconfirmed committables up to this checkpoint: also those pre-committed for an aborted one, whose records lie before this
   * barrier too, so that dropping them would lose records.
   */
  async #listWhenDurable(
    checkpoint: CheckpointId,
    prepared: ReturnType<SinkWriter<unknown>['prepareCommit']>,
    earlier: Promise<unknown>,
  ): Promise<readonly Committable[]> {
    try {
      const transactions = await prepared
      // A failed earlier pre-commit fails this one: the checkpoint would stand for records that no transaction holds (B22).
      await earlier
      if (transactions.length > 0 && this.#committer === undefined)
        throw operatorError('MR-J74', `At ${describe(this.#context)}.`)
      for (const { transaction, payload } of transactions) this.#unconfirmed.push({ checkpoint, transaction, payload })
    } catch (error) {
      const failure = this.#writeError(error)
      this.#context.fail(failure)
      throw failure
    }
    this.#context.environment.failpoints.hit('sink.preCommit.after')
    return this.#unconfirmed.filter((committable) => committable.checkpoint <= checkpoint)
  }

  async #commit(committables: readonly Committable[]): Promise<void> {
    if (committables.length === 0) return
    const { failpoints } = this.#context.environment
    failpoints.hit('sink.commit.before')
    // The first one alone, so that a crash in the middle of several leaves some committed and some not: what tests must see survive.
    await this.#commitAndConfirm(committables.slice(0, 1))
    failpoints.hit('sink.commit.middle')
    if (committables.length > 1) await this.#commitAndConfirm(committables.slice(1))
    failpoints.hit('sink.commit.after')
  }

  async #commitAndConfirm(committables: readonly Committable[]): Promise<void> {
    const committer = this.#committer
    invariant(committer !== undefined, `sink '${this.#sink.name}' has committables but no committer`)
    await commitWithRetry({
      committer,
      committables,
      environment: this.#context.environment,
      metrics: this.#context.metrics,
      deadlineMs: this.#settings.commitDeadlineMs,
      onUnknown: this.#settings.onUnknownCommit,
      sink: this.#context.uid,
      stop: this.#stop.signal,
    })
    const confirmed = new Set(committables)
    this.#unconfirmed = this.#unconfirmed.filter((committable) => !confirmed.has(committable))
  }

  #writeError(error: unknown): Error {
    return error instanceof Error && 'code' in error && String(error.code).startsWith('MR-')
      ? error
      : operatorError('MR-J61', `${describe(this.#context)}: ${String(error)}.`, error)
  }
}
