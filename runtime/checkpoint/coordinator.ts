// The checkpoint coordinator as a pure machine: an event and the time go in, actions come out. It decides when a snapshot starts, who
// is triggered, when it is complete, and what ends it; the shell (runtime/coordinator/) carries actions out in the order given and
// feeds their outcomes back. The life of one snapshot:
//
//   trigger ──▶ collecting ──all acknowledged──▶ writing ──manifest written──▶ swapping ──swap won──▶ complete
//                   │                               │                             │
//                   └─ declined, expired,           ├─ manifest failed            └─ fenced: everything stops
//                      subtask lost, trigger failed └─ while copying: expired, subtask lost
//                                  ╰───────── aborted ───────╯
//
// notifyComplete, the permit to commit, comes only after the swap was won (rule 3): a coordinator that was overtaken, or one that dies
// between the two, must not have let anybody commit what the next start does not know of.

import { checkpointId, sameAttempt, taskKey } from '../base/ids.ts'
import { invariant, unreachable } from '../base/errors.ts'
import type { Attempt, CheckpointId, RequestId, TaskId, TaskKey } from '../base/ids.ts'
import type { PlantedFault } from '../base/planted.ts'
import type { Halt, SnapshotKind } from '../record/element.ts'
import type { SubtaskSnapshot } from './contract.ts'
import type {
  AbortReason,
  CheckpointAction,
  CheckpointEvent,
  CheckpointIds,
  CheckpointSettings,
  RefuseRequest,
  Topology,
} from './core-contract.ts'
import { PendingSnapshot } from './pending.ts'
import type { PendingPhase } from './pending.ts'
import { RequestQueue, waitingRequestsMax } from './requests.ts'
import { SubtaskTable } from './subtasks.ts'
import { decideTrigger, finalRetryDelayMs, nextPeriodicDue } from './triggering.ts'

/** A savepoint that goes on copying has so many of its timeouts: nothing else is triggered meanwhile, and nothing committed. */
const copyingTimeoutsMax = 6

export interface PendingView {
  readonly id: CheckpointId
  readonly kind: SnapshotKind
  readonly request: RequestId | undefined
  readonly phase: PendingPhase
  readonly triggeredAtMs: number
  readonly missing: ReadonlySet<TaskKey>
}

/** Snapshots of any kind, but for `consecutiveFailures`: checkpoints that count against the tolerable failures, since the last completed one. */
export interface CheckpointCounters {
  readonly triggered: number
  readonly completed: number
  readonly failed: number
  readonly consecutiveFailures: number
}

export interface CheckpointCoordinator {
  /** Never throws for what subtasks say; throws an InvariantError for outcomes of actions that were not given out. */
  step(event: CheckpointEvent, nowMs: number): readonly CheckpointAction[]
  readonly pending: PendingView | undefined
  /** Final states of the finished subtasks. */
  readonly finished: ReadonlyMap<TaskKey, SubtaskSnapshot>
  readonly counters: CheckpointCounters
  /** The newest checkpoint (no savepoint) that this coordinator completed. */
  readonly lastCompleted: CheckpointId | undefined
}

/** Rule 16: what is nobody's fault, or is counted as the failure of a task already, does not count. */
const countsAsFailure: Readonly<Record<AbortReason, boolean>> = {
  declined: true,
  expired: true,
  storage: true,
  'trigger failed': true,
  'subtask lost': false,
}

/** Until the first of a start has completed it is tried again after so long, however long the interval is. */
const firstRetryMs = 10_000

/** A message repeats within seconds: nobody repeats an acknowledgement that is a hundred snapshots old. */
const completedIdsMax = 100

export function createCheckpointCoordinator(
  topology: Topology,
  settings: CheckpointSettings,
  ids: CheckpointIds,
  planted: ReadonlySet<PlantedFault> = new Set(),
  refuse: RefuseRequest = () => undefined,
): CheckpointCoordinator {
  return new Machine({ topology, settings, ids, planted, refuse })
}

class Machine implements CheckpointCoordinator {
  readonly #settings: CheckpointSettings
  readonly #ids: CheckpointIds
  readonly #planted: ReadonlySet<PlantedFault>
  readonly #subtasks: SubtaskTable
  readonly #requests: RequestQueue
  readonly #counters = { triggered: 0, completed: 0, failed: 0, consecutiveFailures: 0 }
  #pending: PendingSnapshot | undefined
  #actions: CheckpointAction[] = []
  #allRunning = false
  #fenced = false
  /** Every id ≤ this was given out by this coordinator or is older than it. */
  #newestId = checkpointId(0)
  #lastCompleted: CheckpointId | undefined
  /** The newest ones, savepoints too, whose state a late word must not touch. */
  readonly #completedIds = new Set<CheckpointId>()
  #lastEndMs: number | undefined
  #periodicDueMs: number | undefined
  /** The first periodic one of this start is still to complete. */
  #firstIsDue: boolean
  #finalFailures = 0
  #wakeAtMs: number | undefined

  constructor({
    topology,
    settings,
    ids,
    planted,
    refuse,
  }: {
    readonly topology: Topology
    readonly settings: CheckpointSettings
    readonly ids: CheckpointIds
    readonly planted: ReadonlySet<PlantedFault>
    readonly refuse: RefuseRequest
  }) {
    this.#requests = new RequestQueue(refuse)
    this.#subtasks = new SubtaskTable(topology)
    this.#settings = settings
    this.#firstIsDue = settings.firstAtOnce
    this.#ids = ids
    this.#planted = planted
  }

  get pending(): PendingView | undefined {
    return this.#pending
  }

  get finished(): ReadonlyMap<TaskKey, SubtaskSnapshot> {
    return this.#subtasks.finished
  }

  get counters(): CheckpointCounters {
    return { ...this.#counters }
  }

  get lastCompleted(): CheckpointId | undefined {
    return this.#lastCompleted
  }

  step(event: CheckpointEvent, nowMs: number): readonly CheckpointAction[] {
    // A fenced coordinator owns nothing any more: it neither discards state nor answers requests that its successor will answer.
    if (this.#fenced) return []
    this.#actions = []
    this.#handle(event, nowMs)
    if (this.#fenced) return []
    this.#giveUpWhatIsDue(nowMs)
    this.#triggerIfDue(nowMs)
    this.#arm(nowMs)
    return this.#actions
  }

  #handle(event: CheckpointEvent, nowMs: number): void {
    switch (event.type) {
      case 'allRunning':
        return this.#onAllRunning(event.attempts, nowMs)
      case 'subtasksLost':
        this.#allRunning = false
        return this.#onLost(event.tasks, nowMs)
      case 'tick':
        // The timer is used up, also if it came a little early.
        this.#wakeAtMs = undefined
        return undefined
      case 'savepointRequested':
        return this.#onRequest({ kind: 'savepoint', request: event.request, halt: event.halt }, nowMs)
      case 'checkpointRequested':
        return this.#onRequest({ kind: 'checkpoint', request: event.request, halt: event.halt }, nowMs)
      case 'acknowledged':
        return this.#onAcknowledged(event.id, event)
      case 'declined':
        return this.#onDeclined(event, nowMs)
      case 'finished':
        return this.#onFinished(event)
      case 'waitsForCheckpoint':
        return this.#onWaits(event.task, event.attempt)
      case 'triggerFailed':
        if (this.#pending?.id === event.id && this.#pending.phase === 'collecting')
          this.#abort('trigger failed', event.reason, nowMs)
        return undefined
      case 'copyBegun':
        this.#expectPhase(event.id, 'writing').isCopying = true
        return undefined
      case 'copyProgressed': {
        const pending = this.#expectPhase(event.id, 'writing')
        invariant(pending.isCopying && pending.kind === 'savepoint', `${event.id} goes on copying for no savepoint`)
        const { savepointTimeoutMs } = this.#settings
        const lastMs = pending.triggeredAtMs + copyingTimeoutsMax * savepointTimeoutMs
        pending.deadlineMs = Math.min(nowMs + savepointTimeoutMs, lastMs)
        return undefined
      }
      case 'copied':
        this.#expectPhase(event.id, 'writing').isCopying = false
        return undefined
      case 'manifestWritten': {
        const pending = this.#expectPhase(event.id, 'writing')
        invariant(!pending.isCopying, `the manifest of ${event.id} was written before its copies`)
        pending.phase = 'swapping'
        this.#actions.push({ type: 'swap', snapshot: pending.collected() })
        return undefined
      }
      case 'manifestFailed':
        this.#expectPhase(event.id, 'writing')
        return this.#abort('storage', event.reason, nowMs)
      case 'swapWon':
        return this.#complete(this.#expectPhase(event.id, 'swapping'), nowMs)
      case 'fenced':
        this.#fenced = true
        this.#pending = undefined
        return undefined
      default:
        return unreachable(event)
    }
  }

  // ---- who runs ----

  #onAllRunning(attempts: ReadonlyMap<TaskKey, Attempt>, nowMs: number): void {
    this.#onLost(this.#subtasks.replacedBy(attempts), nowMs)
    this.#subtasks.allRunning(attempts)
    this.#allRunning = true
    this.#finalFailures = 0
    const { intervalMs } = this.#settings
    this.#periodicDueMs = intervalMs === undefined ? undefined : nowMs + (this.#firstIsDue ? 0 : intervalMs)
  }

  #onLost(tasks: readonly TaskId[], nowMs: number): void {
    const released = this.#subtasks.lost(tasks)
    const pending = this.#pending
    // Rule 21: one that is fully acknowledged goes on; it is what the lost subtasks will be restored from. But no restart waits for copies.
    if (pending?.mayBeAborted === true && tasks.length > 0) {
      this.#abort('subtask lost', someOf(new Set(tasks.map(taskKey))), nowMs)
    }
    for (const snapshot of released) {
      if (pending?.uses(snapshot) !== true) this.#actions.push({ type: 'discard', id: this.#newestId, snapshot })
    }
  }

  // ---- what subtasks say ----

  #onAcknowledged(
    id: CheckpointId,
    said: { readonly task: TaskId; readonly attempt: Attempt; readonly snapshot: SubtaskSnapshot },
  ): void {
    const subtask = this.#subtasks.get(said.task)
    // An id that was never given out belongs to a coordinator that we do not know: nothing of it is ours to discard.
    if (subtask === undefined || id > this.#newestId) return
    // A repeated acknowledgement names the same state as the first, which is in use; also after its subtask was lost (rule 21).
    if (this.#completedIds.has(id)) return
    const pending = this.#pending
    if (pending?.id === id) {
      if (pending.phase !== 'collecting') return
      if (this.#subtasks.isCurrent(said.task, said.attempt)) {
        if (!pending.isMissing(subtask.key)) return
        pending.acknowledge(subtask, said.snapshot)
        this.#writeIfComplete(pending)
        return
      }
    }
    this.#actions.push({ type: 'discard', id, snapshot: said.snapshot })
  }

  #onDeclined(
    said: { readonly id: CheckpointId; readonly task: TaskId; readonly attempt: Attempt; readonly reason: string },
    nowMs: number,
  ): void {
    const pending = this.#pending
    if (pending?.id !== said.id || pending.phase !== 'collecting') return
    if (!this.#subtasks.isCurrent(said.task, said.attempt)) return
    this.#abort('declined', `${taskKey(said.task)}: ${said.reason}`, nowMs)
  }

  #onFinished(said: { readonly task: TaskId; readonly attempt: Attempt; readonly snapshot: SubtaskSnapshot }): void {
    const subtask = this.#subtasks.get(said.task)
    if (subtask === undefined) return
    if (subtask.state.status === 'finished' && sameAttempt(subtask.state.attempt, said.attempt)) return
    if (!this.#subtasks.isCurrentOrNewer(said.task, said.attempt)) {
      this.#actions.push({ type: 'discard', id: this.#newestId, snapshot: said.snapshot })
      return
    }
    this.#subtasks.finish(said.task, said.attempt, said.snapshot)
    const pending = this.#pending
    if (pending?.phase !== 'collecting') return
    // It met its end of data before the trigger or barrier: its final state is its acknowledgement.
    const acknowledges = pending.isMissing(subtask.key)
    if (acknowledges) pending.acknowledge(subtask, said.snapshot)
    // Also when it had acknowledged: it may have done so behind its end of data, without a barrier for anybody.
    this.#triggerMore(pending, said.task)
    if (acknowledges) this.#writeIfComplete(pending)
  }

  #onWaits(task: TaskId, attempt: Attempt): void {
    const subtask = this.#subtasks.get(task)
    if (subtask === undefined || subtask.state.status === 'finished' || subtask.state.status === 'waiting') return
    if (!this.#subtasks.isCurrentOrNewer(task, attempt)) return
    // One that is pending already may have been acknowledged before the end of data: only a later one is sure to hold all.
    this.#subtasks.wait(task, attempt, this.#newestId)
    if (this.#pending?.phase === 'collecting') this.#triggerMore(this.#pending, task)
  }

  /** Whoever waits for a barrier that no producer will send any more, now that `task` has ended, is triggered for the same id (rule 19). */
  #triggerMore(pending: PendingSnapshot, task: TaskId): void {
    const tasks = pending.trigger(this.#subtasks.triggerSetAfter(task))
    const { id, kind, halt } = pending
    if (tasks.length > 0) this.#actions.push({ type: 'triggerMore', id, kind, halt, tasks })
  }

  // ---- what is asked for ----

  #onRequest(asked: Asked, nowMs: number): void {
    const outcome = this.#requests.add({ ...asked, deadlineMs: nowMs + this.#settings.savepointTimeoutMs })
    if (outcome === 'full')
      this.#answer(asked.request, 'failed', undefined, `${waitingRequestsMax} requests wait already`)
  }

  #answer(
    request: RequestId | undefined,
    outcome: 'completed' | 'failed',
    id: CheckpointId | undefined,
    detail: string,
  ): void {
    if (request === undefined) return
    this.#requests.answered(request)
    this.#actions.push({ type: 'savepointAnswered', request, outcome, id, detail })
  }

  // ---- the ends of a snapshot ----

  #writeIfComplete(pending: PendingSnapshot): void {
    if (pending.missing.size > 0) return
    invariant(pending.phase === 'collecting', `snapshot ${pending.id} is fully acknowledged twice`)
    pending.phase = 'writing'
    if (this.#commitsBeforeSwap(pending)) this.#actions.push({ type: 'notifyComplete', id: pending.id })
    this.#actions.push({ type: 'writeManifest', snapshot: pending.collected() })
  }

  #complete(pending: PendingSnapshot, nowMs: number): void {
    this.#end(nowMs)
    this.#counters.completed++
    this.#completedIds.add(pending.id)
    for (const oldest of this.#completedIds) {
      if (this.#completedIds.size <= completedIdsMax) break
      this.#completedIds.delete(oldest)
    }
    if (pending.kind === 'savepoint' && pending.halt === undefined && this.#planted.has('savepoint-subsumes'))
      this.#actions.push({ type: 'notifyComplete', id: pending.id })
    if (pending.kind === 'checkpoint') {
      this.#lastCompleted = pending.id
      this.#firstIsDue = false
      this.#counters.consecutiveFailures = 0
      this.#finalFailures = 0
      if (!this.#commitsBeforeSwap(pending)) this.#actions.push({ type: 'notifyComplete', id: pending.id })
    }
    this.#answer(pending.request, 'completed', pending.id, `in ${nowMs - pending.triggeredAtMs} ms`)
    // The job has ended with it, or goes on in new attempts; the shell takes the tasks down.
    if (pending.halt !== undefined) this.#onHaltOver()
  }

  #abort(reason: AbortReason, detail: string, nowMs: number): void {
    const pending = this.#pending
    invariant(pending !== undefined, `nothing to abort: ${reason}`)
    this.#end(nowMs)
    this.#counters.failed++
    this.#actions.push({ type: 'abort', id: pending.id, kind: pending.kind, reason, detail })
    for (const [key, { snapshot }] of pending.collected().subtasks) {
      // The final state of a finished subtask acknowledges the next snapshot too.
      if (this.#subtasks.finished.get(key) !== snapshot)
        this.#actions.push({ type: 'discard', id: pending.id, snapshot })
    }
    this.#answer(pending.request, 'failed', pending.id, `${reason}: ${detail}`)
    if (pending.halt !== undefined) this.#onHaltOver()
    let hasFailed = false
    if (pending.kind === 'checkpoint') {
      this.#finalFailures++
      if (this.#firstIsDue && this.#periodicDueMs !== undefined)
        this.#periodicDueMs = Math.min(this.#periodicDueMs, nowMs + firstRetryMs)
      hasFailed = countsAsFailure[reason] && this.#isTooMuch(pending.id, `${reason}: ${detail}`)
    }
    // A job that has failed restarts by its strategy, if at all: with what has halted.
    if (pending.halt !== undefined && !hasFailed)
      this.#actions.push({ type: 'restartHalted', id: pending.id, detail: `${reason}: ${detail}` })
  }

  /** Until all run again nothing could complete: what has halted acknowledges nothing. */
  #onHaltOver(): void {
    this.#allRunning = false
    this.#requests.dropMoves()
  }

  /** Counts a failure, and fails the job by one too many. Savepoints never count: one that fails leaves the job running (scenarios.md R20 b). */
  #isTooMuch(id: CheckpointId, detail: string): boolean {
    this.#counters.consecutiveFailures++
    const { consecutiveFailures } = this.#counters
    if (consecutiveFailures <= this.#settings.tolerableFailures) return false
    this.#counters.consecutiveFailures = 0
    this.#allRunning = false
    const last = `the last, ${id}, ${detail}`
    this.#actions.push({
      type: 'failJob',
      reason: `${consecutiveFailures} checkpoints in a row did not complete (${last})`,
    })
    return true
  }

  #end(nowMs: number): void {
    this.#pending = undefined
    this.#lastEndMs = nowMs
  }

  // ---- time ----

  #giveUpWhatIsDue(nowMs: number): void {
    const pending = this.#pending
    if (pending?.mayBeAborted === true && pending.deadlineMs <= nowMs) {
      const what = pending.isCopying
        ? 'final states of finished subtasks not copied'
        : `no answer of ${someOf(pending.missing)}`
      this.#abort('expired', `${what} within ${nowMs - pending.triggeredAtMs} ms`, nowMs)
    }
    const over = this.#subtasks.allFinished && this.#pending === undefined
    for (const { request } of this.#requests.giveUp(over ? 'all' : { dueAtMs: nowMs })) {
      this.#answer(request, 'failed', undefined, over ? 'every subtask has finished' : 'it was not triggered in time')
    }
  }

  #triggerIfDue(nowMs: number): void {
    if (!this.#mayTrigger) return
    for (const { request, why } of this.#requests.giveUpRefused(nowMs)) this.#answer(request, 'failed', undefined, why)
    const decision = decideTrigger(this.#triggerFacts, nowMs)
    if (decision.start === undefined) return
    if (decision.start === 'request') {
      this.#requests.take(decision.request)
      this.#trigger(decision.request, nowMs)
    } else this.#trigger({ kind: 'checkpoint', request: undefined, halt: undefined }, nowMs)
  }

  #trigger({ kind, request, halt }: Asked, nowMs: number): void {
    const { intervalMs, timeoutMs, savepointTimeoutMs } = this.#settings
    const id = this.#ids.next()
    invariant(id > this.#newestId, `checkpoint id ${id} after ${this.#newestId} (rule 6)`)
    this.#newestId = id
    this.#counters.triggered++
    const deadlineMs = nowMs + (kind === 'savepoint' ? savepointTimeoutMs : timeoutMs)
    const pending = new PendingSnapshot(
      { id, kind, request, halt, triggeredAtMs: nowMs, deadlineMs },
      this.#subtasks.all(),
    )
    this.#pending = pending
    const tasks = pending.trigger(this.#subtasks.triggerSet())
    this.#actions.push({ type: 'trigger', id, kind, halt, tasks, request })
    if (kind === 'checkpoint' && intervalMs !== undefined && this.#periodicDueMs !== undefined) {
      this.#periodicDueMs = nextPeriodicDue(this.#periodicDueMs, intervalMs, nowMs)
    }
  }

  /** One wake-up at a time: the earliest moment at which a tick would do something. */
  #arm(nowMs: number): void {
    const moments = [this.#requests.earliestDeadlineMs]
    if (this.#pending?.mayBeAborted === true) moments.push(this.#pending.deadlineMs)
    if (this.#mayTrigger) {
      moments.push(this.#requests.earliestRefusalMs)
      const decision = decideTrigger(this.#triggerFacts, nowMs)
      if (decision.start === undefined) moments.push(decision.waitUntilMs)
    }
    const wakeAtMs = Math.min(...moments.map((moment) => moment ?? Infinity))
    if (wakeAtMs === Infinity) return
    if (wakeAtMs === this.#wakeAtMs && wakeAtMs > nowMs) return
    this.#wakeAtMs = wakeAtMs
    this.#actions.push({ type: 'wakeIn', delayMs: wakeAtMs - nowMs })
  }

  get #mayTrigger(): boolean {
    return this.#allRunning && this.#pending === undefined && !this.#subtasks.allFinished
  }

  get #triggerFacts() {
    const waitsBeyond = this.#subtasks.onlyWaitingBeyond()
    const needsFinal =
      waitsBeyond !== undefined && (this.#lastCompleted === undefined || this.#lastCompleted <= waitsBeyond)
    const retryMs = finalRetryDelayMs(this.#finalFailures)
    return {
      request: this.#requests.next,
      finalNotBeforeMs: needsFinal ? (retryMs === 0 ? -Infinity : (this.#lastEndMs ?? -Infinity) + retryMs) : undefined,
      periodicDueMs: this.#periodicDueMs,
      lastEndMs: this.#lastEndMs,
      minPauseMs: this.#settings.minPauseMs,
    }
  }

  // ---- small things ----

  #commitsBeforeSwap(pending: PendingSnapshot): boolean {
    return pending.kind === 'checkpoint' && this.#planted.has('commit-before-swap')
  }

  #expectPhase(id: CheckpointId, phase: PendingPhase): PendingSnapshot {
    const pending = this.#pending
    invariant(pending?.id === id && pending.phase === phase, `an outcome for ${id}, which is not ${phase}`)
    return pending
  }
}

/** What is to be triggered. */
interface Asked {
  readonly kind: SnapshotKind
  readonly request: RequestId | undefined
  readonly halt?: Halt | undefined
}

function someOf(keys: ReadonlySet<TaskKey>): string {
  const named = [...keys].slice(0, 3).join(' ')
  return keys.size > 3 ? `${named} and ${keys.size - 3} more` : named
}
