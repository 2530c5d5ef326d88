// Commits as the coordinator sees them: when all are confirmed, those of sinks that run no more, and the sweep (rules 3, 22-24).

import type { Environment } from '../base/environment.ts'
import { taskKey } from '../base/ids.ts'
import type { CheckpointId, JobId, TaskId, TaskKey } from '../base/ids.ts'
import { Metrics } from '../base/metrics.ts'
import type { Committable } from '../checkpoint/contract.ts'
import type { CollectedSnapshot } from '../checkpoint/core-contract.ts'
import type { Committer } from '../connectors/contract.ts'
import type { JobGraph } from '../job/contract.ts'
import { commitWithRetry } from '../operators/commit-with-retry.ts'
import type { FileSystem } from '../storage/contract.ts'
import { confirmCommits } from '../storage/head.ts'
import type { HeadKeeper } from '../storage/head-keeper.ts'
import { parseTransactionName } from '../storage/paths.ts'
import type { Execution } from './execution.ts'

/** Above every id. */
const everyCheckpoint = Number.MAX_SAFE_INTEGER as CheckpointId

export interface CommitsOptions {
  readonly graph: JobGraph
  readonly job: JobId
  readonly environment: Environment
  readonly files: FileSystem
  readonly keeper: HeadKeeper
}

export class Commits {
  readonly #options: CommitsOptions
  readonly #committers = new Map<string, Committer>()
  /** The newest checkpoint that each two-phase subtask has committed. */
  readonly #committed = new Map<TaskKey, CheckpointId>()
  #permitted: { readonly id: CheckpointId; readonly waits: ReadonlySet<TaskKey> } | undefined
  readonly #metrics = new Metrics()
  readonly #stop = new AbortController()

  constructor(options: CommitsOptions) {
    this.#options = options
    for (const vertex of options.graph.vertices) {
      for (const { uid, factory } of vertex.chain) {
        if (factory.kind !== 'operator' || factory.sink?.createCommitter === undefined) continue
        const { environment, files, job } = options
        this.#committers.set(uid, factory.sink.createCommitter({ environment, files, uid, job }))
      }
    }
  }

  /** Commits without the writers: of an ended start, or of sinks that had wholly finished (rule 23). `byUid`: from a permitted manifest. */
  async commitWithoutWriters(byUid: ReadonlyMap<string, readonly Committable[]>): Promise<void> {
    const { environment, graph } = this.#options
    for (const [uid, committables] of byUid) {
      if (committables.length === 0) continue
      await commitWithRetry({
        committer: this.committerOf(uid),
        committables,
        environment,
        metrics: this.#metrics,
        deadlineMs: graph.settings.commitDeadlineMs,
        sink: uid,
        stop: this.#stop.signal,
      })
    }
  }

  committerOf(uid: string): Committer {
    const committer = this.#committers.get(uid)
    // The assignment has refused a restore point with transactions of a sink that is not there (rule 23).
    if (committer === undefined) throw new Error(`no two-phase sink ${uid}`)
    return committer
  }

  /** A checkpoint completed: `waits` are the two-phase subtasks that have something to commit in it. */
  permitted(collected: CollectedSnapshot): void {
    const waits = new Set<TaskKey>()
    for (const [key, { snapshot }] of collected.subtasks) {
      const some = Object.values(snapshot.operators).some(({ committables }) => (committables?.length ?? 0) > 0)
      if (some) waits.add(key)
    }
    this.#permitted = { id: collected.id, waits }
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

  /** These run from the restore point, and so have committed what it holds for them, before any new record (rule 22). */
  restored(from: CheckpointId, tasks: readonly TaskId[]): void {
    for (const task of tasks) this.#committed.set(taskKey(task), from)
    // Whatever a coordinator before this one had permitted is in the restore point that all subtasks began from.
    if (this.#permitted === undefined) void this.#confirm(from)
    else this.#confirmIfAll()
  }

  close(): void {
    this.#stop.abort()
  }

  /** For an ended start, whose HEAD nobody owns: confirming is right whoever does it. */
  async confirmAmending(id: CheckpointId): Promise<void> {
    await this.#options.keeper.amend((head) => confirmCommits(head, id))
  }

  get allConfirmed(): boolean {
    return this.#permitted === undefined
  }

  /** Resolved when HEAD shows the confirmation of everything permitted. */
  onAllConfirmed: () => void = () => undefined

  /**
   * Rule 24: aborts the transactions that exist, less those in `readKept` and those of current attempts. The order matters: what is
   * listed by an attempt that was given up before the list was made is in HEAD as it is read after it, or in no checkpoint at all.
   * `readKept` gives undefined when HEAD is another incarnation's: then nothing of it may be judged here.
   */
  async sweep(readKept: () => Promise<ReadonlySet<string> | undefined>, execution: Execution): Promise<void> {
    for (const [uid, committer] of this.#committers) {
      const before = this.#currentAttempts(execution, uid)
      const existing = (await committer.list()).filter((name) => this.#isLeftover(name, uid, before))
      if (existing.length === 0) continue
      const kept = await readKept()
      if (kept === undefined) return
      const now = this.#currentAttempts(execution, uid)
      const leftovers = existing.filter((name) => !kept.has(name) && this.#isLeftover(name, uid, now))
      if (leftovers.length === 0) continue
      this.#options.environment.log('info', 'aborting transactions that no checkpoint holds', { uid, transactions: leftovers.length })
      await committer.abort(leftovers)
    }
  }

  /** Only the job's own, and never those of an attempt that is running: it may be about to pre-commit. */
  #isLeftover(name: string, uid: string, current: ReadonlySet<string>): boolean {
    const identity = parseTransactionName(name)
    if (identity === undefined || identity.job !== this.#options.job || identity.uid !== uid) return false
    return !current.has(`${identity.subtask}/${identity.attempt.incarnation}.${identity.attempt.number}`)
  }

  #currentAttempts(execution: Execution, uid: string): ReadonlySet<string> {
    const vertex = this.#options.graph.vertices.find(({ chain }) => chain.some((operator) => operator.uid === uid))
    const current = new Set<string>()
    for (const { task, attempt } of execution.tasks.values()) {
      if (task.vertex === vertex?.id) current.add(`${task.subtask}/${attempt.incarnation}.${attempt.number}`)
    }
    return current
  }

  #confirmIfAll(): void {
    const permitted = this.#permitted
    if (permitted === undefined) return
    for (const key of permitted.waits) {
      const committed = this.#committed.get(key)
      if (committed === undefined || committed < permitted.id) return
    }
    if (permitted.waits.size === 0) {
      this.#permitted = undefined
      this.onAllConfirmed()
    } else void this.#confirm(permitted.id)
  }

  async #confirm(id: CheckpointId): Promise<void> {
    const { environment, keeper } = this.#options
    try {
      environment.failpoints.hit('coordinator.confirm.before')
      const answer = await keeper.update((head) => confirmCommits(head, id))
      environment.failpoints.hit('coordinator.confirm.after')
      if (answer.outcome !== 'won' || (this.#permitted !== undefined && this.#permitted.id > id)) return
      this.#permitted = undefined
      this.onAllConfirmed()
    } catch (error) {
      // Confirming late costs a repeated, idempotent commit, never a record: the next confirmation covers this one.
      environment.log('warn', 'commits could not be confirmed in HEAD', { id, error: String(error) })
    }
  }
}

/** Names of all transactions that a HEAD's manifests may still need. */
export function transactionsOf(committables: Iterable<readonly Committable[]>): Set<string> {
  const names = new Set<string>()
  for (const list of committables) for (const { transaction } of list) names.add(transaction)
  return names
}

