// One subtask: a mailbox loop over its input, its chain and the coordinator's mail. Everything it does happens in run(),
// one slice at a time; only the async parts of snapshots and commits go on between slices.
//
//   restoring → restored → running → finishing → (committing) → ending → finished
//                             ╰──── stop barrier ───→ (draining) → halted
//
// restored: it could run, and waits for the coordinator's word that all others could too. What one of them cannot restore ends the start,
// and nothing may have been read, fired or called by then.
// finishing: all inputs are read, and what the operators have left, or have in flight, goes out.
// draining, halted: a savepoint to stop with (rule 25). Behind it nothing is read and nothing emitted, whatever becomes of it: if it
// fails, the coordinator restarts the task from HEAD.
// committing: all inputs are read, and a two-phase sink's last transactions wait for a checkpoint (rule 3).
// ending: the end of data is sent; the subtask stays until its consumers have received it (rule 19).

import { within } from '../base/deadline.ts'
import type { Environment, Timer } from '../base/environment.ts'
import { unreachable } from '../base/errors.ts'
import type { CheckpointId } from '../base/ids.ts'
import type { MetricGroup } from '../base/metrics.ts'
import type { SnapshotWriters, SubtaskSnapshot } from '../checkpoint/contract.ts'
import type { FromSlot, SurvivingSplits, SurvivingTask, TaskDeployment } from '../control/contract.ts'
import type { OutputChannel } from '../network/contract.ts'
import { operatorError } from '../operators/errors.ts'
import type { Barrier } from '../record/element.ts'
import type { JobVertex } from '../job/contract.ts'
import type { KeyedStateBackend } from '../state/contract.ts'
import { CommitQueue } from './commit-queue.ts'
import type { OperatorChain } from './operator-chain.ts'
import { recordsInto } from './records-into.ts'
import { SubtaskSnapshots } from './subtask-snapshots.ts'
import type { InputHost, TaskInput } from './task-input.ts'
import { TimerFiring } from './timer-firing.ts'

/** A task that does not stop in this time fails its thread (design: Processes). */
export const closeDeadlineMs = 30_000

/**
 * A final state that is not written by then fails the thread: behind a snapshot stands the coordinator's timeout, behind this nobody's. As long
 * as a checkpoint's default, since the state may be large, and longer where the job gives its checkpoints more.
 */
export const finalDeadlineMsMin = 600_000

export type RunOutcome = 'again' | 'wait'

type TaskState =
  | 'restoring'
  | 'restored'
  | 'running'
  | 'finishing'
  | 'draining'
  | 'halted'
  | 'committing'
  | 'ending'
  | 'finished'
  | 'closed'

/** What a new coordinator must know of a subtask that runs on (rule 25). */
export type TaskSurvey = Pick<SurvivingTask, 'status' | 'waitsForCheckpoint' | 'splits'>

export interface TaskOptions {
  readonly deployment: TaskDeployment
  readonly environment: Environment
  readonly metrics: MetricGroup
  readonly chain: OperatorChain
  readonly outputs: readonly OutputChannel[]
  readonly keyed: KeyedStateBackend | undefined
  readonly keySelectors: JobVertex['keySelectors']
  readonly twoPhase: boolean
  /** The first operator's uid: keyed state and a source's splits are its. */
  readonly headUid: string
  readonly bufferTimeoutMs: number
  readonly checkpointTimeoutMs: number
  readonly writers: SnapshotWriters
  readonly send: (message: FromSlot) => void
  /** Its channels may go. */
  readonly onClose: () => void
  /** Asks for another run(). */
  readonly wake: () => void
  /** Ends the slot's thread: what is broken here is not to be trusted any more. */
  readonly fail: (error: unknown) => void
}

export class Task implements InputHost {
  readonly #options: TaskOptions
  readonly #chain: OperatorChain
  readonly #environment: Environment
  readonly #timers: TimerFiring
  readonly #commits: CommitQueue
  readonly #mail: (() => void)[] = []
  /** Of operators, from before `begin`: it may call the job's functions and emit, as restored records in flight do. */
  readonly #heldMail: (() => void)[] = []
  #input!: TaskInput
  #state: TaskState = 'restoring'
  readonly #snapshots: SubtaskSnapshots
  #newestCheckpoint: CheckpointId
  /** The first checkpoint that covers everything this subtask will ever emit to its two-phase sinks. */
  #finalCheckpoint: CheckpointId | undefined
  /** Waits for timers and operators to finish (stop with drain). */
  #drained: { readonly barrier: Barrier; readonly alignmentMs: number } | undefined
  #lastFlushMs: number
  #waiting: { readonly sinceMs: number; readonly metric: 'idle_ms_total' | 'backpressured_ms_total' } | undefined
  #tick: Timer | undefined
  #backpressured = false
  readonly #surveys = new Set<() => void>()
  /** Of a source that has finished: no checkpoint may hold yet that its splits are read, and the next enumerator would deal them again. */
  #readToTheEnd: SurvivingSplits | undefined
  #leaked = false

  /** The way of a record into the chain, found once: looked up for each record it cost a keyed job a tenth of its time. */
  readonly process: (value: unknown, timestamp: number) => void
  readonly processSecond: (value: unknown, timestamp: number) => void

  constructor(options: TaskOptions) {
    this.#options = options
    this.#chain = options.chain
    this.process = recordsInto(options, 0)
    this.processSecond = recordsInto(options, 1)
    this.#environment = options.environment
    this.#newestCheckpoint = options.deployment.newestKnownCheckpoint
    this.#lastFlushMs = options.environment.clock.nowMs()
    this.#timers = new TimerFiring({
      keyed: options.keyed,
      chain: options.chain,
      clock: options.environment.clock,
      mayGoOn: () => !this.#environment.budget.shouldYield() && this.#chain.ready,
      wake: options.wake,
      planted: options.environment.planted,
    })
    this.#snapshots = new SubtaskSnapshots({
      environment: options.environment,
      metrics: options.metrics,
      chain: options.chain,
      keyed: options.keyed,
      headUid: options.headUid,
      writers: options.writers,
      inputPart: (id) => this.#input.snapshot(id),
      isClosed: () => this.#state === 'closed',
      acknowledge: (id, snapshot) => this.#send({ type: 'acknowledged', id, ...this.#identity(), snapshot }),
      decline: (id, reason) => this.#decline(id, reason),
      fail: options.fail,
      onDone: options.wake,
    })
    this.#commits = new CommitQueue({
      chain: options.chain,
      committed: (id) => this.#committed(id),
      fail: options.fail,
    })
    for (const output of options.outputs) output.onChange(options.wake)
  }

  get deployment(): TaskDeployment {
    return this.#options.deployment
  }

  get state(): TaskState {
    return this.#state
  }

  /** State is restored and all operators are open: it runs from `begin` on. */
  start(input: TaskInput): void {
    this.#input = input
    this.#state = 'restored'
    this.#timers.restored()
    // The enumerator hears of the reader before the reader asks for a split.
    this.#send({ type: 'running', ...this.#identity() })
    if (this.#environment.planted.has('begun-before-all-restored')) this.begin()
    this.#options.wake()
  }

  /** All subtasks of the job have restored: read, let timers fire. May be said again, by this coordinator or the next. */
  begin(): void {
    // Decided as it is said: before 'running' it is meant for no attempt of this subtask.
    if (this.#state !== 'restored') return
    this.post(() => {
      if (this.#state !== 'restored') return
      this.#state = 'running'
      this.#input.start()
      this.#mail.unshift(...this.#heldMail.splice(0))
    })
  }

  /** As `post`, for what operators have to do later: nothing of theirs may come out before `begin` or behind a stop barrier. */
  postOfOperator(mail: () => void): void {
    this.post(() => {
      if (this.#state === 'restoring' || this.#state === 'restored') this.#heldMail.push(mail)
      else if (this.#state !== 'halted') mail()
    })
  }

  /** Runs `mail` between records, in order. After the end it is dropped. */
  post(mail: () => void): void {
    if (this.#state === 'closed') return
    this.#mail.push(mail)
    this.#options.wake()
  }

  trigger(barrier: Barrier): void {
    this.post(() => {
      if (this.#state === 'finished' || this.#state === 'halted' || barrier.id <= this.#newestCheckpoint) return
      if (this.#state === 'restoring') this.#decline(barrier.id, 'its state is still being restored')
      else if (this.#state === 'restored') this.#decline(barrier.id, 'it has not been told to begin')
      else if (this.#state === 'running') this.#input.trigger(barrier)
      else this.snapshot(barrier, 0)
    })
  }

  abort(id: CheckpointId): void {
    this.post(() => {
      // Nothing is open yet that could have heard of it.
      if (this.#state === 'restoring') return
      this.#input.abort(id)
      if (this.#snapshots.pending === id) this.#snapshots.drop()
    })
  }

  /** The permit to commit everything of checkpoints ≤ id. */
  complete(id: CheckpointId): void {
    // What the restore point holds is committed while opening, and 'running' says so: an answer now would come before it is done.
    this.post(() => {
      if (this.#state === 'restoring') return
      this.#input.completed(id)
      this.#commits.permit(id)
    })
  }

  /** A new coordinator has adopted this attempt: snapshots with ids ≤ `newestKnown` are over, whatever became of them (rule 25). */
  adopt(newestKnown: CheckpointId): void {
    this.post(() => {
      if (this.#state === 'restoring') return
      if (newestKnown > this.#newestCheckpoint) this.#newestCheckpoint = newestKnown
      this.#input.forget(newestKnown)
      this.#snapshots.drop()
    })
  }

  /**
   * Nobody is left to complete what it waits for: its blocked channels go on, and a barrier of that snapshot that still comes aligns
   * nothing (rule 25).
   */
  dropAlignment(): void {
    this.post(() => {
      const id = this.#state === 'restoring' ? undefined : this.#input.aligning
      if (id !== undefined) this.#input.abort(id)
    })
  }

  /** Answers once, in a turn of its own behind the mail that is there, or when it closes. */
  survey(answer: (survey: TaskSurvey) => void): void {
    const once = (): void => {
      if (this.#surveys.delete(once)) answer(this.#surveyed())
    }
    this.#surveys.add(once)
    if (this.#state === 'closed') once()
    else this.post(once)
  }

  #surveyed(): TaskSurvey {
    const state = this.#state
    const restoring = state === 'restoring' || state === 'closed'
    const halted = state === 'halted' || state === 'draining'
    return {
      status: restoring ? 'restoring' : halted ? 'halted' : 'running',
      waitsForCheckpoint: state === 'committing',
      splits: this.#readToTheEnd ?? (restoring ? undefined : this.#input.splits()),
    }
  }

  /** One slice of work. */
  run(): RunOutcome {
    const { clock } = this.#environment
    const startedMs = clock.nowMs()
    try {
      this.#endWaiting()
      return this.#slice()
    } catch (error) {
      this.#options.fail(error)
      return 'wait'
    } finally {
      this.#options.metrics.add('busy_ms_total', clock.nowMs() - startedMs)
    }
  }

  close(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#mail.length = 0
    this.#heldMail.length = 0
    for (const answer of this.#surveys) answer()
    this.#tick?.cancel()
    this.#timers.close()
    this.#snapshots.drop()
    this.#options.keyed?.close()
    this.#options.onClose()
  }

  // ---- InputHost ----

  shouldStop(): boolean {
    return (
      this.#state !== 'running' ||
      this.#mail.length > 0 ||
      this.#timers.busy ||
      !this.#chain.ready ||
      this.#environment.budget.shouldYield()
    )
  }

  announce(values: readonly unknown[], from: number, input: 0 | 1): number {
    const { keyed, keySelectors } = this.#options
    const keySelector = keySelectors[input]
    if (keyed === undefined || keySelector === undefined) return values.length - from
    return keyed.announce(values, from, keySelector)
  }

  advanceWatermark(watermark: number): void {
    this.#timers.advanceTo(watermark)
  }

  idleness(idle: boolean): void {
    this.#timers.idleness(idle)
  }

  snapshot(barrier: Barrier, alignmentMs: number): void {
    const stillEmits = this.#state === 'running' || this.#state === 'finishing'
    if (barrier.halt === 'drain' && stillEmits) {
      this.#newestCheckpoint = barrier.id
      this.#drained = { barrier, alignmentMs }
      this.#input.drain()
      this.#state = 'draining'
      return this.#options.wake()
    }
    this.#take(barrier, alignmentMs)
    // At its end of data it has nothing more to read, and its consumers still count on that end.
    if (barrier.halt !== undefined && this.#state !== 'ending') this.#state = 'halted'
  }

  /** The sync part: the barrier behind everything emitted so far, and the state as it is now, in one turn. */
  #take(barrier: Barrier, alignmentMs: number): void {
    const { clock, failpoints } = this.#environment
    const startedMs = clock.nowMs()
    const startDelayMs = Math.max(0, clock.wallMs() - barrier.triggeredAtMs - alignmentMs)
    failpoints.hit('task.snapshot.sync')
    this.#newestCheckpoint = barrier.id
    if (this.#state === 'committing' && barrier.kind === 'checkpoint') this.#finalCheckpoint ??= barrier.id
    // After the end of data nothing more goes out: its consumers count this channel as having delivered the barrier.
    if (this.#state !== 'ending') this.#chain.event({ kind: 'barrier', barrier })
    this.#chain.flush()
    const frozen = this.#snapshots.freeze(barrier.id, barrier.kind)
    const syncMs = clock.nowMs() - startedMs
    this.#options.metrics.set('checkpoint_sync_ms', syncMs)
    void this.#snapshots.write(barrier, frozen, { syncMs, alignmentMs, startDelayMs })
  }

  // ---- the loop ----

  #slice(): RunOutcome {
    for (;;) {
      while (this.#mail.length > 0) this.#mail.shift()!()
      switch (this.#state) {
        case 'restoring':
        case 'restored':
        case 'finished':
        case 'closed':
          return 'wait'
        case 'running':
        case 'finishing':
        case 'draining':
        case 'halted':
        case 'committing':
        case 'ending': {
          const step = this.#step(this.#state)
          if (step !== 'again') return this.#wait(step)
          break
        }
        default:
          return unreachable(this.#state)
      }
      this.#flushIfOld()
      if (this.#environment.budget.shouldYield()) return 'again'
    }
  }

  #step(
    state: Exclude<TaskState, 'restoring' | 'restored' | 'finished' | 'closed'>,
  ): 'again' | 'idle' | 'backpressured' {
    switch (state) {
      case 'running':
        return this.#work()
      case 'finishing':
        return this.#finishOperators()
      case 'draining':
        return this.#drain()
      case 'halted':
        this.#leakIfPlanted()
        return this.#leave()
      case 'committing':
      case 'ending':
        return this.#leave()
      default:
        return unreachable(state)
    }
  }

  #work(): 'again' | 'idle' | 'backpressured' {
    if (!this.#chain.ready) {
      this.#chain.flush()
      if (!this.#chain.ready) return 'backpressured'
    }
    this.#setBackpressured(false)
    if (this.#timers.busy || this.#timers.processingDue) {
      this.#timers.fire()
      return 'again'
    }
    this.#timers.settleIdleness()
    const outcome = this.#input.read()
    // A stop barrier may have been read.
    if (this.#state !== 'running' || this.#timers.busy || outcome === 'more') return 'again'
    if (outcome === 'ended') {
      this.#state = 'finishing'
      return 'again'
    }
    this.#chain.flush()
    this.#lastFlushMs = this.#environment.clock.nowMs()
    return 'idle'
  }

  #finishOperators(): 'again' | 'idle' {
    if (!this.#chain.finish()) {
      this.#chain.flush()
      return 'idle'
    }
    if (this.#options.twoPhase) {
      this.#state = 'committing'
      this.#send({ type: 'waitsForCheckpoint', ...this.#identity() })
    } else this.#sendEnd()
    return 'again'
  }

  /** Everything before the barrier goes out first: timers, their watermark, what the operators have left. */
  #drain(): 'again' | 'idle' | 'backpressured' {
    if (!this.#chain.ready) {
      this.#chain.flush()
      if (!this.#chain.ready) return 'backpressured'
    }
    if (this.#timers.busy) {
      this.#timers.fire()
      return 'again'
    }
    if (!this.#chain.finish()) {
      this.#chain.flush()
      return 'idle'
    }
    const { barrier, alignmentMs } = this.#drained!
    this.#take(barrier, alignmentMs)
    this.#state = 'halted'
    return 'again'
  }

  #sendEnd(): void {
    this.#state = 'ending'
    this.#chain.event({ kind: 'end' })
    this.#chain.flush()
  }

  #leave(): 'idle' {
    this.#chain.flush()
    const mayLeave = this.#state === 'ending' && this.#snapshots.pending === undefined
    if (mayLeave && this.#options.outputs.every((output) => output.endReceived)) this.#finish()
    return 'idle'
  }

  /** The planted fault: behind its stop barrier the task reads until there was something to read. */
  #leakIfPlanted(): void {
    if (this.#leaked || !this.#environment.planted.has('stop-barrier-leaks')) return
    this.#leaked = this.#chain.ready && this.#input.read() === 'more'
  }

  /** Rule 19: its final state acknowledges every later snapshot for it. */
  #finish(): void {
    this.#environment.failpoints.hit('task.finish')
    this.#state = 'finished'
    this.#readToTheEnd = this.#input.splits()
    const id = this.#newestCheckpoint
    void this.#closeAndReport(this.#snapshots.writeFinal(id, this.#snapshots.freeze(id, 'checkpoint')))
  }

  async #closeAndReport(final: Promise<SubtaskSnapshot>): Promise<void> {
    const { checkpointTimeoutMs } = this.#options
    try {
      const snapshot = await this.#inTime('MR-J67', Math.max(finalDeadlineMsMin, checkpointTimeoutMs), final)
      await this.#inTime('MR-J64', closeDeadlineMs, this.#closeOperators())
      if (this.#state === 'closed') return
      this.#send({ type: 'finished', ...this.#identity(), snapshot })
      this.close()
    } catch (error) {
      this.#options.fail(error)
    }
  }

  #inTime<T>(code: 'MR-J64' | 'MR-J67', deadlineMs: number, step: Promise<T>): Promise<T> {
    return within(this.#environment.clock, deadlineMs, step, () => {
      const { task } = this.#options.deployment
      return operatorError(code, `Subtask ${task.subtask} of ${task.vertex}: ${deadlineMs} ms.`)
    })
  }

  async #closeOperators(): Promise<void> {
    await this.#input.close()
    this.#environment.failpoints.hit('task.close')
    await this.#chain.close()
  }

  #decline(id: CheckpointId, reason: string): void {
    this.#send({ type: 'declined', id, ...this.#identity(), reason })
  }

  #committed(id: CheckpointId): void {
    if (this.#state === 'closed') return
    if (this.#options.twoPhase) this.#send({ type: 'committed', id, ...this.#identity() })
    if (this.#state === 'committing' && this.#finalCheckpoint !== undefined && id >= this.#finalCheckpoint) {
      // Two permits may be carried out in one turn; a second end would count for another channel's.
      this.post(() => {
        if (this.#state === 'committing') this.#sendEnd()
      })
    }
  }

  // ---- waiting ----

  #wait(reason: 'idle' | 'backpressured'): 'wait' {
    this.#setBackpressured(reason === 'backpressured')
    this.#waiting = {
      sinceMs: this.#environment.clock.nowMs(),
      metric: reason === 'idle' ? 'idle_ms_total' : 'backpressured_ms_total',
    }
    // Without credit, or at the end of data, nothing may fire: a timer that is due would only wake the task again and again.
    if (this.#state !== 'running' || reason === 'backpressured') return 'wait'
    this.#timers.arm()
    const { tickMs } = this.#input
    if (tickMs !== undefined) {
      this.#tick?.cancel()
      this.#tick = this.#environment.clock.timer(tickMs, this.#options.wake)
    }
    return 'wait'
  }

  #endWaiting(): void {
    if (this.#waiting === undefined) return
    this.#options.metrics.add(this.#waiting.metric, this.#environment.clock.nowMs() - this.#waiting.sinceMs)
    this.#waiting = undefined
  }

  #setBackpressured(yes: boolean): void {
    if (yes === this.#backpressured) return
    this.#backpressured = yes
    this.#input.backpressured(yes)
  }

  #flushIfOld(): void {
    const nowMs = this.#environment.clock.nowMs()
    if (nowMs - this.#lastFlushMs < this.#options.bufferTimeoutMs) return
    this.#lastFlushMs = nowMs
    this.#chain.flush()
  }

  #identity() {
    const { task, attempt } = this.#options.deployment
    return { task, attempt }
  }

  #send(message: FromSlot): void {
    this.#options.send(message)
  }
}
