// Commits as the coordinator sees them: when all are confirmed, those of sinks that run no more, and the sweep (rules 3, 22-24).

import type { Environment, Timer } from '../base/environment.ts'
import { InvariantError, MillraceError } from '../base/errors.ts'
import { formatAttempt, taskKey } from '../base/ids.ts'
import type { Attempt, CheckpointId, JobId, SubtaskIndex, TaskId, TaskKey } from '../base/ids.ts'
import { Metrics } from '../base/metrics.ts'
import type { Committable } from '../checkpoint/contract.ts'
import type { CollectedSnapshot } from '../checkpoint/core-contract.ts'
import { checkpointError } from '../checkpoint/errors.ts'
import type { Committer } from '../connectors/contract.ts'
import type { JobGraph } from '../job/contract.ts'
import { commitWithRetry, isCommitRefused } from '../operators/commit-with-retry.ts'
import type { FileSystem } from '../storage/contract.ts'
import { confirmCommits, confirmCommitsOf } from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import type { HeadKeeper, Overtaken } from '../storage/head-keeper.ts'
import { parseTransactionName } from '../storage/paths.ts'
import { coordinatorError } from './errors.ts'
import type { Execution } from './execution.ts'
import type { RestorePlan } from './restore.ts'

/** Between tries to confirm, after the keeper's own have failed: HEAD could not be written for a minute. */
const confirmPauseMs = 5_000

/** Above every id. */
const everyCheckpoint = Number.MAX_SAFE_INTEGER as CheckpointId

export interface CommitsOptions {
  readonly graph: JobGraph
  readonly job: JobId
  readonly environment: Environment
  readonly files: FileSystem
  readonly keeper: HeadKeeper
  /** HEAD shows the confirmation of everything permitted. */
  readonly onAllConfirmed: () => void
  /** Confirming found another owner, or an end. */
  readonly onOvertaken: (answer: Overtaken) => void
  readonly onBroken: (error: unknown) => void
}

export class Commits {
  readonly #options: CommitsOptions
  readonly #committers: ReadonlyMap<string, Committer>
  /** The newest checkpoint that each two-phase subtask has committed. */
  readonly #committed = new Map<TaskKey, CheckpointId>()
  #permitted: { readonly id: CheckpointId; readonly waits: ReadonlySet<TaskKey> } | undefined
  /** The id whose confirmation is on its way to HEAD. */
  #confirming: CheckpointId | undefined
  #retry: Timer | undefined
  readonly #metrics = new Metrics()
  readonly #stop = new AbortController()

  constructor(options: CommitsOptions) {
    this.#options = options
    this.#committers = committersOf(options)
  }

  /** Commits without the writers: of an ended start, or of sinks that had wholly finished (rule 23). `byUid`: from a permitted manifest. */
  async commitWithoutWriters(byUid: ReadonlyMap<string, readonly Committable[]>): Promise<void> {
    const { environment, graph } = this.#options
    for (const [uid, committables] of byUid) {
      if (committables.length === 0) continue
      await commitWithRetry({
        committer: this.#committerOf(uid),
        committables,
        environment,
        metrics: this.#metrics,
        deadlineMs: graph.settings.commitDeadlineMs,
        onUnknown: graph.settings.onUnknownCommit,
        sink: uid,
        stop: this.#stop.signal,
      })
    }
  }

  #committerOf(uid: string): Committer {
    const committer = this.#committers.get(uid)
    if (committer === undefined) throw checkpointError('MR-C12', `uid ${uid}.`)
    return committer
  }

  /**
   * These subtasks begin again from the restore point of `head`: what they committed before is forgotten, and when they run they have
   * committed what it holds for them. Call after the commits without writers.
   */
  restoring(tasks: readonly TaskId[], head: Head, plan: RestorePlan): void {
    for (const task of tasks) this.#committed.delete(taskKey(task))
    if (this.#permitted !== undefined || head.unconfirmed === undefined) return
    // Permitted by a coordinator before this one. It is not newer than the restore point, which holds all of it that is left.
    const waits = new Set<TaskKey>()
    for (const [key, { restored }] of plan.subtasks) {
      if (holdsCommittables(restored.operators)) waits.add(key)
    }
    this.#permitted = { id: plan.id ?? head.unconfirmed.id, waits }
    this.#confirmIfAll()
  }

  /**
   * A checkpoint completed: the two-phase subtasks that have something to commit in it are waited for. One that has nothing has
   * committed all that it had before, since each snapshot holds everything that is not committed yet (rule 22).
   */
  permitted(collected: CollectedSnapshot): void {
    const waits = new Set<TaskKey>()
    for (const [key, { snapshot }] of collected.subtasks) {
      if (holdsCommittables(snapshot.operators)) waits.add(key)
    }
    // Without any, the swap itself has confirmed what was permitted before.
    this.#permitted = waits.size === 0 ? undefined : { id: collected.id, waits }
    this.#confirmIfAll()
  }

  /** A subtask has committed everything of checkpoints ≤ id. */
  committed(key: TaskKey, id: CheckpointId): void {
    const before = this.#committed.get(key)
    if (before === undefined || id > before) this.#committed.set(key, id)
    this.#confirmIfAll()
  }

  /**
   * A subtask ends only after it has committed all that it ever pre-committed. What it had listed for a checkpoint that completes
   * later is committed too, though it is no longer there to say so.
   */
  finished(key: TaskKey): void {
    this.committed(key, everyCheckpoint)
  }

  close(): void {
    this.#stop.abort()
    this.#retry?.cancel()
  }

  /**
   * For an ended start, whose HEAD nobody owns: confirming is right whoever does it. A later start may have begun meanwhile, from a manifest
   * of any id.
   */
  async confirmAmending(permitted: ManifestRef): Promise<void> {
    await this.#options.keeper.amend((head) => confirmCommitsOf(head, permitted))
  }

  get allConfirmed(): boolean {
    return this.#permitted === undefined
  }

  /** By uid: those whose transactions are swept. */
  get sinks(): readonly string[] {
    return [...this.#committers.keys()]
  }

  /**
   * Rule 24: aborts the transactions of a sink that exist, less those in `readKept` and those of current attempts. The order matters: what is
   * listed by an attempt that was given up before the list was made is in HEAD as it is read after it, or in no checkpoint at all; however
   * long after. `readKept` gives undefined when HEAD is another incarnation's: then nothing of it may be judged here.
   */
  async sweep(
    uid: string,
    readKept: () => Promise<ReadonlySet<string> | undefined>,
    execution: Execution,
  ): Promise<void> {
    const committer = this.#committerOf(uid)
    const before = this.#currentAttempts(execution, uid)
    const existing = (await committer.list()).filter((name) => this.#isLeftover(name, uid, before))
    if (existing.length === 0) return
    const kept = await readKept()
    if (kept === undefined) return
    const now = this.#currentAttempts(execution, uid)
    const leftovers = existing.filter((name) => !kept.has(name) && this.#isLeftover(name, uid, now))
    if (leftovers.length === 0) return
    this.#options.environment.log('info', 'aborting transactions that no checkpoint holds', {
      uid,
      transactions: leftovers.length,
    })
    await committer.abort(leftovers)
  }

  /** Only the job's own, and never those of an attempt that is running: it may be about to pre-commit. */
  #isLeftover(name: string, uid: string, current: ReadonlySet<string>): boolean {
    const identity = parseTransactionName(name)
    if (identity === undefined || identity.job !== this.#options.job || identity.uid !== uid) return false
    return !current.has(attemptOf(identity))
  }

  #currentAttempts(execution: Execution, uid: string): ReadonlySet<string> {
    const vertex = this.#options.graph.vertices.find(({ chain }) => chain.some((operator) => operator.uid === uid))
    const current = new Set<string>()
    for (const { task, attempt } of execution.tasks.values()) {
      if (task.vertex !== vertex?.id) continue
      current.add(attemptOf({ subtask: task.subtask, attempt }))
      const former = execution.formerAttemptOf(task)
      if (former !== undefined) current.add(attemptOf({ subtask: task.subtask, attempt: former }))
    }
    return current
  }

  #confirmIfAll(): void {
    const permitted = this.#permitted
    if (permitted === undefined || permitted.id === this.#confirming || this.#stop.signal.aborted) return
    for (const key of permitted.waits) {
      const committed = this.#committed.get(key)
      if (committed === undefined || committed < permitted.id) return
    }
    void this.#confirm(permitted.id)
  }

  async #confirm(id: CheckpointId): Promise<void> {
    const { environment, keeper, onAllConfirmed, onOvertaken, onBroken } = this.#options
    this.#confirming = id
    try {
      environment.failpoints.hit('coordinator.confirm.before')
      const answer = await keeper.update((head) => confirmCommits(head, id))
      environment.failpoints.hit('coordinator.confirm.after')
      if (answer.outcome !== 'won') return onOvertaken(answer)
      // A restart that has read HEAD before asks for it again.
      if (this.#confirming === id) this.#confirming = undefined
      // A newer checkpoint may have been permitted meanwhile; its own confirmation follows.
      if (this.#permitted?.id !== id) return
      this.#permitted = undefined
      onAllConfirmed()
    } catch (error) {
      if (error instanceof InvariantError) return onBroken(error)
      // Confirming late costs a repeated, idempotent commit, never a record. But a job that is to end waits for it.
      environment.log('warn', 'commits could not be confirmed in HEAD; trying again', { id, error: String(error) })
      if (this.#confirming === id) this.#confirming = undefined
      this.#retry?.cancel()
      if (!this.#stop.signal.aborted) this.#retry = environment.clock.timer(confirmPauseMs, () => this.#confirmIfAll())
    }
  }
}

/** What a commit made here was refused for, as whoever has to act needs it: by `code` it says what that means for the job. */
export function askingForCommit(code: 'MR-O23' | 'MR-O28', error: unknown): unknown {
  return error instanceof MillraceError && isCommitRefused(error.code)
    ? coordinatorError(code, error.message, error)
    : error
}

/** By uid of the sinks: what commits, lists and aborts without their writers (rule 23). */
export function committersOf({
  graph,
  job,
  environment,
  files,
}: Pick<CommitsOptions, 'graph' | 'job' | 'environment' | 'files'>): ReadonlyMap<string, Committer> {
  const committers = new Map<string, Committer>()
  for (const { uid, factory } of graph.vertices.flatMap(({ chain }) => chain)) {
    if (factory.kind !== 'operator' || factory.sink?.createCommitter === undefined) continue
    committers.set(uid, factory.sink.createCommitter({ environment, files, uid, job }))
  }
  return committers
}

/** Whether a subtask's snapshot, or its share of a restore point, has anything to commit. */
export function holdsCommittables(
  operators: Readonly<Record<string, { readonly committables?: readonly Committable[] }>>,
): boolean {
  return Object.values(operators).some(({ committables }) => (committables?.length ?? 0) > 0)
}

function attemptOf({ subtask, attempt }: { readonly subtask: SubtaskIndex; readonly attempt: Attempt }): string {
  return `${subtask}/${formatAttempt(attempt)}`
}
