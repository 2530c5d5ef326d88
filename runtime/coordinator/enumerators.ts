// The split enumerators of a job: they run here, and are part of the checkpoint (rule 20).

import { within } from '../base/deadline.ts'
import type { Environment } from '../base/environment.ts'
import { invariant } from '../base/errors.ts'
import { subtaskIndex } from '../base/ids.ts'
import type { CheckpointId, SubtaskIndex, TaskId, VertexId } from '../base/ids.ts'
import type { EnumeratorContext, Source, SplitEnumerator } from '../connectors/contract.ts'
import type { ToSlot } from '../control/contract.ts'
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

interface Entry {
  readonly vertex: VertexId
  readonly uid: string
  readonly parallelism: number
  readonly source: Source<unknown, unknown, unknown>
  enumerator: SplitEnumerator<unknown, unknown> | undefined
  /** What the readers were last told. */
  splitsWait: boolean
  /** Rises with each restore: what an earlier life still says is dropped. */
  life: number
  /** The newest id that the enumerator was snapshotted for; 0 before any. */
  newestSnapshot: number
  /** What each reader was given, with the newest snapshot before; kept until a checkpoint that holds it has completed. */
  readonly given: { readonly subtask: SubtaskIndex; readonly splits: readonly unknown[]; readonly after: number }[]
  /** What was assigned to readers that do not run yet; a reader that runs has no entry. */
  readonly early: Map<SubtaskIndex, TaskMessage[]>
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
        splitsWait: true,
        life: 0,
        newestSnapshot: 0,
        given: [],
        early: new Map(),
      })
    }
  }

  /**
   * Before these readers are deployed. Where all readers of a source restart, its enumerator begins again from the restore point; where
   * only some do, it goes on, and what they were given after that checkpoint is given back, to go out first (rule 20).
   */
  async restore(tasks: readonly TaskId[], plan: RestorePlan): Promise<void> {
    for (const entry of this.#entries.values()) {
      const subtasks = tasks.filter(({ vertex }) => vertex === entry.vertex).map(({ subtask }) => subtask)
      if (subtasks.length === 0) continue
      // What an earlier attempt was to get is given back, or assigned again by an enumerator that begins again.
      for (const subtask of subtasks) entry.early.set(subtask, [])
      if (subtasks.length === entry.parallelism) await this.#restart(entry, plan)
      else for (const subtask of subtasks) this.#giveBack(entry, subtask, plan.id ?? 0)
    }
  }

  /** Splits that this checkpoint holds in a reader's state need not be remembered here. */
  completed(id: CheckpointId): void {
    for (const { given } of this.#entries.values()) {
      while (given.length > 0 && given[0]!.after < id) given.shift()
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
      const { uid, source, enumerator } = entry
      if (enumerator === undefined) continue
      entry.newestSnapshot = id
      const writer = createWriter()
      source.enumeratorCodec.encode(enumerator.snapshot(id), writer)
      states.set(uid, { codec: source.enumeratorCodec.description, bytes: writer.take() })
    }
    return states
  }

  close(): void {
    for (const entry of this.#entries.values()) entry.enumerator?.close()
  }

  async #restart(entry: Entry, plan: RestorePlan): Promise<void> {
    entry.enumerator?.close()
    entry.enumerator = undefined
    entry.life++
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

  #giveBack(entry: Entry, subtask: SubtaskIndex, restoredFrom: number): void {
    const lost = entry.given.filter((given) => given.subtask === subtask && given.after >= restoredFrom)
    const kept = entry.given.filter((given) => given.subtask !== subtask)
    entry.given.splice(0, entry.given.length, ...kept)
    this.#turn({ vertex: entry.vertex, subtask }, (enumerator) => {
      const splits = lost.flatMap((given) => given.splits)
      if (splits.length > 0) enumerator.addSplitsBack(splits, subtask)
    })
  }

  #turn(task: TaskId, act: (enumerator: SplitEnumerator<unknown, unknown>) => void): void {
    const entry = this.#entries.get(task.vertex)
    if (entry?.enumerator === undefined) return
    try {
      act(entry.enumerator)
      this.#tellWaiting(entry)
    } catch (error) {
      this.#options.fail(entry.vertex, error)
    }
  }

  /** A reader that does not run has no mailbox yet: what is assigned to it waits here, and is not lost. */
  #deliver(entry: Entry, subtask: SubtaskIndex, message: TaskMessage): void {
    const early = entry.early.get(subtask)
    if (early === undefined) this.#options.send({ vertex: entry.vertex, subtask }, message)
    else early.push(message)
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
      invariant(subtask >= 0 && subtask < entry.parallelism, `a split for subtask ${subtask} of ${entry.vertex}`)
      if (splits.length > 0) entry.given.push({ subtask, splits, after: entry.newestSnapshot })
      const encoded = splits.map((split) => {
        const writer = createWriter()
        entry.source.splitCodec.encode(split, writer)
        return writer.take()
      })
      this.#deliver(entry, subtask, { type: 'assign', splits: encoded, noMore })
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

function decodeState(entry: Entry, stored: EnumeratorState): unknown {
  const answer = entry.source.enumeratorCodec.readerOf(stored.codec)
  if ('refused' in answer) throw coordinatorError('MR-O10', `Source ${entry.uid}: ${answer.refused}.`)
  return answer.codec.decode(createReader(stored.bytes))
}
