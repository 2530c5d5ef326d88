// The split enumerators of a job: they run here, and are part of the checkpoint (rule 20).

import { within } from '../base/deadline.ts'
import type { Environment } from '../base/environment.ts'
import { subtaskIndex } from '../base/ids.ts'
import type { CheckpointId, SubtaskIndex, TaskId, VertexId } from '../base/ids.ts'
import type { EnumeratorContext, Source, SplitEnumerator } from '../connectors/contract.ts'
import { connectorError } from '../connectors/errors.ts'
import type { SurvivingTask, ToSlot } from '../control/contract.ts'
import type { JobGraph } from '../job/contract.ts'
import { createReader, createWriter } from '../record/bytes.ts'
import type { CodecDescription } from '../record/contract.ts'
import type { FileSystem } from '../storage/contract.ts'
import { coordinatorError } from './errors.ts'
import type { RestorePlan } from './restore.ts'

/** Finding the first splits: one that waits longer waits for something that will not come, and holds up every end of the job. */
export const startDeadlineMs = 120_000

export interface EnumeratorsOptions {
  readonly graph: JobGraph
  readonly environment: Environment
  readonly files: FileSystem
  /** To the task's current attempt, in order with its triggers. */
  readonly send: (task: TaskId, message: TaskMessage) => void
  readonly fail: (vertex: VertexId, error: unknown) => void
}

/** A message to one task, before its attempt is filled in. */
export type TaskMessage = DistributiveOmit<Extract<ToSlot, { task: TaskId }>, 'task' | 'attempt'>
type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

export interface EnumeratorState {
  readonly codec: CodecDescription
  readonly bytes: Uint8Array
}

type Assignment = Extract<TaskMessage, { type: 'assign' }>

interface Entry {
  readonly vertex: VertexId
  readonly uid: string
  readonly parallelism: number
  readonly source: Source<unknown, unknown, unknown>
  enumerator: SplitEnumerator<unknown, unknown> | undefined
  /** What the restore point has of a source that had wholly finished. */
  finished: EnumeratorState | undefined
  /** Readers run on that were given splits by an enumerator before this one, and no checkpoint has completed since. */
  adopted: boolean
  /** What the readers were last told. */
  splitsWait: boolean
  /** Rises with each restore: what an earlier life still says is dropped. */
  life: number
  /** The newest id that the enumerator was snapshotted for; 0 before any. */
  newestSnapshot: number
  /** What each reader was given, with the newest snapshot before; kept until a checkpoint that holds it has completed. */
  readonly given: { readonly subtask: SubtaskIndex; readonly splits: readonly unknown[]; readonly after: number }[]
  /** What was assigned to readers that do not run yet; a reader that runs has no entry. */
  readonly early: Map<SubtaskIndex, Assignment[]>
  /** What the enumerator assigns in its present turn; undefined between turns. */
  turn: Map<SubtaskIndex, Assignment> | undefined
}

export class Enumerators {
  readonly #options: EnumeratorsOptions
  readonly #entries = new Map<VertexId, Entry>()

  constructor(options: EnumeratorsOptions) {
    this.#options = options
    for (const vertex of options.graph.vertices) {
      const head = vertex.chain[0]!
      if (head.factory.kind !== 'source') continue
      const { source } = head.factory
      const { id, parallelism } = vertex
      this.#entries.set(id, {
        vertex: id,
        uid: head.uid,
        parallelism,
        source,
        enumerator: undefined,
        finished: undefined,
        adopted: false,
        splitsWait: true,
        life: 0,
        newestSnapshot: 0,
        given: [],
        early: new Map(),
        turn: undefined,
      })
    }
  }

  /**
   * Before these readers are deployed. Where all readers of a source restart, its enumerator begins again from the restore point; where
   * only some do, it goes on, and what they were given after that checkpoint is given back, to go out first (rule 20).
   */
  async restore(tasks: readonly TaskId[], plan: RestorePlan): Promise<void> {
    this.#keepFinished(plan)
    for (const entry of this.#entries.values()) {
      const subtasks = tasks.filter(({ vertex }) => vertex === entry.vertex).map(({ subtask }) => subtask)
      if (subtasks.length === 0) continue
      // What an earlier attempt was to get is given back, or assigned again by an enumerator that begins again.
      for (const subtask of subtasks) entry.early.set(subtask, [])
      if (subtasks.length === entry.parallelism) await this.#restart(entry, plan)
      else for (const subtask of subtasks) this.#giveBack(entry, subtask, plan.id ?? 0)
    }
  }

  /**
   * Readers that run on from an earlier incarnation: their enumerator begins again from the newest checkpoint and is told what they own
   * and have read since (rule 20). Before the other readers are restored.
   */
  async adopt(tasks: readonly SurvivingTask[], plan: RestorePlan): Promise<void> {
    this.#keepFinished(plan)
    for (const entry of this.#entries.values()) {
      const readers = tasks.filter(({ task }) => task.vertex === entry.vertex)
      if (readers.length === 0) continue
      const adopted = new Set(readers.map(({ task }) => task.subtask))
      for (let index = 0; index < entry.parallelism; index++) {
        if (!adopted.has(subtaskIndex(index))) entry.early.set(subtaskIndex(index), [])
      }
      await this.#restart(entry, plan)
      entry.adopted = true
      const owned = new Map<SubtaskIndex, readonly unknown[]>()
      const finished: string[] = []
      for (const { task, splits } of readers) {
        if (splits === undefined) continue
        owned.set(
          task.subtask,
          splits.owned.map((bytes) => entry.source.splitCodec.decode(createReader(bytes))),
        )
        finished.push(...splits.finished)
      }
      if (!this.#options.environment.planted.has('reconcile-skipped'))
        this.#turn(readers[0]!.task, (enumerator) => enumerator.reconcile(owned, finished))
      for (const { task, splits, status } of readers) {
        entry.early.delete(task.subtask)
        if (status === 'finished') continue
        this.#turn(task, (enumerator) => {
          enumerator.addReader(task.subtask)
          if (splits?.asks === true) enumerator.requestSplit(task.subtask)
        })
        this.#options.send(task, { type: 'splitsWait', waiting: entry.splitsWait })
      }
    }
  }

  /**
   * The readers of the sources among these that must restart with them: until a checkpoint of this incarnation holds what adopted readers
   * were given before it, nobody here could give it back (rule 20).
   */
  bound(tasks: readonly TaskId[]): readonly TaskId[] {
    if (this.#options.environment.planted.has('bound-readers-ignored')) return []
    const vertices = new Set(tasks.map(({ vertex }) => vertex))
    return [...this.#entries.values()]
      .filter(({ vertex, adopted }) => adopted && vertices.has(vertex))
      .flatMap(({ vertex, parallelism }) =>
        Array.from({ length: parallelism }, (_, index) => ({ vertex, subtask: subtaskIndex(index) })),
      )
  }

  /** Splits that this checkpoint holds in a reader's state need not be remembered here. */
  completed(id: CheckpointId): void {
    for (const entry of this.#entries.values()) {
      const { given } = entry
      while (given.length > 0 && given[0]!.after < id) given.shift()
      entry.adopted = false
    }
  }

  /** Before any trigger for it: what waited for it then lies before the cuts of enumerator and reader. */
  readerRuns(task: TaskId): void {
    const entry = this.#entries.get(task.vertex)
    if (entry === undefined) return
    const early = entry.early.get(task.subtask) ?? []
    entry.early.delete(task.subtask)
    for (const message of early) this.#options.send(task, message)
    this.#turn(task, (enumerator) => enumerator.addReader(task.subtask))
    this.#options.send(task, { type: 'splitsWait', waiting: entry.splitsWait })
  }

  requestSplit(task: TaskId): void {
    this.#turn(task, (enumerator) => enumerator.requestSplit(task.subtask))
  }

  /** By uid. Sync: in the same turn as the triggers. */
  snapshot(id: CheckpointId): ReadonlyMap<string, EnumeratorState> {
    const states = new Map<string, EnumeratorState>()
    for (const entry of this.#entries.values()) {
      const { uid, source, enumerator, finished } = entry
      if (enumerator === undefined) {
        if (finished !== undefined) states.set(uid, finished)
        continue
      }
      entry.newestSnapshot = id
      const writer = createWriter()
      source.enumeratorCodec.encode(enumerator.snapshot(id), writer)
      states.set(uid, { codec: source.enumeratorCodec.description, bytes: writer.take() })
    }
    return states
  }

  /** What they still say is heard by nobody. Never throws. */
  close(): void {
    for (const entry of this.#entries.values()) this.#end(entry)
  }

  /** Nothing runs of these, but every later checkpoint says what they have read: in another graph they may have to run again. */
  #keepFinished(plan: RestorePlan): void {
    for (const entry of this.#entries.values())
      if (plan.finishedVertices.has(entry.vertex)) entry.finished = plan.enumerators.get(entry.uid)
  }

  async #restart(entry: Entry, plan: RestorePlan): Promise<void> {
    this.#end(entry)
    entry.adopted = false
    entry.splitsWait = true
    entry.given.length = 0
    // What is given from now on is not in the restore point, whoever made that: a coordinator before this one may have.
    entry.newestSnapshot = Math.max(entry.newestSnapshot, plan.id ?? 0)
    if (plan.finishedVertices.has(entry.vertex)) return
    const stored = plan.enumerators.get(entry.uid)
    const restored = stored === undefined ? undefined : decodeState(entry, stored)
    entry.enumerator = entry.source.createEnumerator(this.#context(entry), restored)
    const late = () => coordinatorError('MR-O22', `Source ${entry.uid}: ${startDeadlineMs} ms.`)
    await within(this.#options.environment.clock, startDeadlineMs, entry.enumerator.start(), late)
  }

  /** The end of a life. One whose close() throws is over all the same: closed again at each restart, it would let none succeed. */
  #end(entry: Entry): void {
    const { enumerator, uid } = entry
    entry.enumerator = undefined
    entry.life++
    try {
      enumerator?.close()
    } catch (error) {
      this.#options.environment.log('warn', 'a split enumerator did not close', { source: uid, error: String(error) })
    }
  }

  #giveBack(entry: Entry, subtask: SubtaskIndex, restoredFrom: number): void {
    const lost = entry.given.filter((given) => given.subtask === subtask && given.after >= restoredFrom)
    const kept = entry.given.filter((given) => given.subtask !== subtask)
    entry.given.splice(0, entry.given.length, ...kept)
    this.#turn({ vertex: entry.vertex, subtask }, (enumerator) => {
      const splits = lost.flatMap((given) => given.splits)
      if (splits.length > 0) enumerator.addSplitsBack(splits, subtask)
    })
  }

  /**
   * What it says to a reader in one turn is one message: a coordinator that is lost on its way has said all of it or nothing. A reader that
   * had got splits, and never heard that there are no more, would wait for ever: it does not ask, and the next coordinator knows of nothing.
   */
  #turn(task: TaskId, act: (enumerator: SplitEnumerator<unknown, unknown>) => void): void {
    const entry = this.#entries.get(task.vertex)
    if (entry?.enumerator === undefined) return
    const turn = new Map<SubtaskIndex, Assignment>()
    entry.turn = turn
    try {
      act(entry.enumerator)
    } catch (error) {
      return this.#options.fail(entry.vertex, error)
    } finally {
      entry.turn = undefined
    }
    for (const [subtask, assignment] of turn) this.#deliver(entry, subtask, assignment)
    this.#tellWaiting(entry)
  }

  /** A reader that does not run has no mailbox yet: what is assigned to it waits here, and is not lost. */
  #deliver(entry: Entry, subtask: SubtaskIndex, assignment: Assignment): void {
    const early = entry.early.get(subtask)
    if (early === undefined) this.#options.send({ vertex: entry.vertex, subtask }, assignment)
    else early.push(joined(early.pop(), assignment))
  }

  /** A reader without splits is idle only after the enumerator says that none waits (design: Time). */
  #tellWaiting(entry: Entry): void {
    // It is being made, and may assign on its way.
    if (entry.enumerator === undefined) return
    const waiting = entry.enumerator.splitsWait
    if (waiting === entry.splitsWait) return
    entry.splitsWait = waiting
    for (let subtask = 0; subtask < entry.parallelism; subtask++) {
      this.#options.send({ vertex: entry.vertex, subtask: subtaskIndex(subtask) }, { type: 'splitsWait', waiting })
    }
  }

  #context(entry: Entry): EnumeratorContext<unknown> {
    const { life } = entry
    const { environment, files, fail } = this.#options
    const assign = (subtask: SubtaskIndex, splits: readonly unknown[], noMore: boolean): void => {
      if (entry.life !== life) return
      if (!Number.isInteger(subtask) || subtask < 0 || subtask >= entry.parallelism)
        throw connectorError(
          'MR-N21',
          `The enumerator of source ${entry.uid} spoke to reader ${subtask}; there are ${entry.parallelism}, from 0 on.`,
        )
      if (splits.length > 0) entry.given.push({ subtask, splits, after: entry.newestSnapshot })
      const encoded = splits.map((split) => {
        const writer = createWriter()
        entry.source.splitCodec.encode(split, writer)
        return writer.take()
      })
      const assignment: Assignment = { type: 'assign', splits: encoded, noMore }
      if (entry.turn !== undefined) return void entry.turn.set(subtask, joined(entry.turn.get(subtask), assignment))
      this.#deliver(entry, subtask, assignment)
      this.#tellWaiting(entry)
    }
    return {
      environment,
      files,
      parallelism: entry.parallelism,
      assign: (subtask, splits) => assign(subtask, splits, false),
      signalNoMoreSplits: (subtask) => assign(subtask, [], true),
      fail: (error) => entry.life === life && fail(entry.vertex, error),
    }
  }
}

function joined(before: Assignment | undefined, after: Assignment): Assignment {
  if (before === undefined) return after
  return { type: 'assign', splits: [...before.splits, ...after.splits], noMore: before.noMore || after.noMore }
}

function decodeState(entry: Entry, stored: EnumeratorState): unknown {
  const answer = entry.source.enumeratorCodec.readerOf(stored.codec)
  if ('refused' in answer) throw coordinatorError('MR-O10', `Source ${entry.uid}: ${answer.refused}.`)
  return answer.codec.decode(createReader(stored.bytes))
}
