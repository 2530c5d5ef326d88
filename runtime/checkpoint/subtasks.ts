// What the checkpoint coordinator knows of each subtask: who runs, who has finished with which final state, who waits
// for a checkpoint, and hence who has to be triggered (rule 19).

import { sameAttempt, subtaskIndex, taskKey } from '../base/ids.ts'
import type { Attempt, CheckpointId, TaskId, TaskKey } from '../base/ids.ts'
import { invariant } from '../base/errors.ts'
import type { SubtaskSnapshot } from './contract.ts'
import type { Topology } from './core-contract.ts'

export type SubtaskState =
  /** Not deployed yet. */
  | { readonly status: 'unknown' }
  | { readonly status: 'running'; readonly attempt: Attempt }
  /** At its end of data; only a checkpoint with an id above `since` lets it finish (rule 3). */
  | { readonly status: 'waiting'; readonly attempt: Attempt; readonly since: CheckpointId }
  | { readonly status: 'finished'; readonly attempt: Attempt; readonly snapshot: SubtaskSnapshot }
  /** Failed, or about to be restarted: what this attempt still says is stale. */
  | { readonly status: 'lost'; readonly attempt: Attempt }

export interface Subtask {
  readonly task: TaskId
  readonly key: TaskKey
  readonly state: SubtaskState
}

interface Entry extends Subtask {
  state: SubtaskState
  readonly vertex: Vertex
}

interface Vertex {
  readonly entries: Entry[]
  readonly producers: { readonly vertex: Vertex; readonly forward: boolean }[]
  readonly consumers: { readonly vertex: Vertex; readonly forward: boolean }[]
  /** Subtasks that send no more records: finished, or waiting at their end of data. */
  ended: number
}

export class SubtaskTable {
  readonly #vertices: Vertex[] = []
  readonly #entries = new Map<TaskKey, Entry>()
  /** Their final states acknowledge every later snapshot for them. */
  readonly #finals = new Map<TaskKey, SubtaskSnapshot>()

  #waiting = 0

  constructor(topology: Topology) {
    const byId = new Map<string, Vertex>()
    for (const shape of topology.vertices) {
      const vertex: Vertex = { entries: [], producers: [], consumers: [], ended: 0 }
      for (let index = 0; index < shape.parallelism; index++) {
        const task = { vertex: shape.id, subtask: subtaskIndex(index) }
        const entry: Entry = { task, key: taskKey(task), state: { status: 'unknown' }, vertex }
        vertex.entries.push(entry)
        this.#entries.set(entry.key, entry)
      }
      for (const id of shape.producers) {
        const producer = byId.get(id)
        invariant(producer !== undefined, `${shape.id} stands before its producer ${id}: not in topological order`)
        const forward = shape.forwardProducers?.includes(id) ?? false
        vertex.producers.push({ vertex: producer, forward })
        producer.consumers.push({ vertex, forward })
      }
      byId.set(shape.id, vertex)
      this.#vertices.push(vertex)
    }
  }

  get(task: TaskId): Subtask | undefined {
    return this.#entries.get(taskKey(task))
  }

  all(): Iterable<Subtask> {
    return this.#entries.values()
  }

  get finished(): ReadonlyMap<TaskKey, SubtaskSnapshot> {
    return this.#finals
  }

  get allFinished(): boolean {
    return this.#finals.size === this.#entries.size
  }

  /** Whether this attempt is the one that may speak for the subtask now. */
  isCurrent(task: TaskId, attempt: Attempt): boolean {
    const state = this.get(task)?.state
    return (
      state !== undefined &&
      state.status !== 'unknown' &&
      state.status !== 'lost' &&
      sameAttempt(state.attempt, attempt)
    )
  }

  /** A fresh attempt may say that it finished or waits before all others run. */
  isCurrentOrNewer(task: TaskId, attempt: Attempt): boolean {
    const state = this.get(task)?.state
    if (state?.status === 'unknown') return true
    if (state?.status === 'lost') return isNewer(attempt, state.attempt)
    return this.isCurrent(task, attempt)
  }

  /** All subtasks run with these attempts; those that already finished or wait in the same attempt go on doing so. */
  allRunning(attempts: ReadonlyMap<TaskKey, Attempt>): void {
    for (const entry of this.#entries.values()) {
      const attempt = attempts.get(entry.key)
      invariant(attempt !== undefined || entry.state.status === 'finished', `${entry.key} runs without an attempt`)
      if (attempt !== undefined && !this.isCurrent(entry.task, attempt))
        this.#set(entry, { status: 'running', attempt })
    }
  }

  /** Subtasks whose attempt differs from the one known. */
  replacedBy(attempts: ReadonlyMap<TaskKey, Attempt>): TaskId[] {
    const replaced: TaskId[] = []
    for (const { task, key, state } of this.#entries.values()) {
      const attempt = attempts.get(key)
      if (attempt === undefined || state.status === 'unknown' || state.status === 'lost') continue
      if (!sameAttempt(attempt, state.attempt)) replaced.push(task)
    }
    return replaced
  }

  /** Returns the final states that nobody will acknowledge with any more. */
  lost(tasks: readonly TaskId[]): SubtaskSnapshot[] {
    const released: SubtaskSnapshot[] = []
    for (const task of tasks) {
      const entry = this.#entries.get(taskKey(task))
      if (entry === undefined || entry.state.status === 'unknown' || entry.state.status === 'lost') continue
      if (entry.state.status === 'finished') released.push(entry.state.snapshot)
      this.#set(entry, { status: 'lost', attempt: entry.state.attempt })
    }
    return released
  }

  finish(task: TaskId, attempt: Attempt, snapshot: SubtaskSnapshot): void {
    this.#set(this.#entryOf(task), { status: 'finished', attempt, snapshot })
  }

  wait(task: TaskId, attempt: Attempt, since: CheckpointId): void {
    this.#set(this.#entryOf(task), { status: 'waiting', attempt, since })
  }

  /** Subtasks that no barrier will reach through a channel. */
  triggerSet(): TaskId[] {
    return tasksOf([...this.#entries.values()].filter(needsTrigger))
  }

  /** Now that `task` has ended: those of it and its consumers that no barrier will reach through a channel any more. */
  triggerSetAfter(task: TaskId): TaskId[] {
    const entry = this.#entryOf(task)
    return tasksOf([entry, ...consumersOf(entry)].filter(needsTrigger))
  }

  /**
   * The newest id that somebody waits beyond, if nothing can go on without a checkpoint: every subtask has finished, waits,
   * has only consumers that wait (nothing is left to do for it), or is fed by such alone.
   */
  onlyWaitingBeyond(): CheckpointId | undefined {
    if (this.#waiting === 0) return undefined
    let since: CheckpointId | undefined
    for (const { state } of this.#entries.values()) {
      if (state.status === 'waiting' && (since === undefined || state.since > since)) since = state.since
    }
    const held = new Set<Entry>()
    for (const vertex of this.#vertices.toReversed()) {
      for (const entry of vertex.entries) {
        if (hasEnded(entry)) held.add(entry)
        else if (vertex.consumers.length > 0 && consumersOf(entry).every((consumer) => held.has(consumer)))
          held.add(entry)
      }
    }
    for (const vertex of this.#vertices) {
      for (const entry of vertex.entries) {
        if (held.has(entry)) continue
        if (vertex.producers.length === 0 || !producersOf(entry).every((producer) => held.has(producer)))
          return undefined
        // Its producers have all finished: it still has data to work through, and will end by itself.
        if (producersOf(entry).every((producer) => producer.state.status === 'finished')) return undefined
        held.add(entry)
      }
    }
    return since
  }

  #entryOf(task: TaskId): Entry {
    const entry = this.#entries.get(taskKey(task))
    invariant(entry !== undefined, `no subtask ${taskKey(task)}`)
    return entry
  }

  #set(entry: Entry, state: SubtaskState): void {
    if (hasEnded(entry)) entry.vertex.ended--
    if (entry.state.status === 'waiting') this.#waiting--
    entry.state = state
    if (hasEnded(entry)) entry.vertex.ended++
    if (state.status === 'waiting') this.#waiting++
    if (state.status === 'finished') this.#finals.set(entry.key, state.snapshot)
    else this.#finals.delete(entry.key)
  }
}

function hasEnded(entry: Entry): boolean {
  return entry.state.status === 'finished' || entry.state.status === 'waiting'
}

function producersEnded(entry: Entry): boolean {
  return entry.vertex.producers.every(({ vertex, forward }) =>
    forward ? hasEnded(vertex.entries[entry.task.subtask]!) : vertex.ended === vertex.entries.length,
  )
}

/**
 * Not finished, and either no producer sends any more, or it has consumed the end of data of all of them itself (it waits): a producer
 * that still runs only until its end is received puts no barrier before that end.
 */
function needsTrigger(entry: Entry): boolean {
  const { status } = entry.state
  return status === 'waiting' || (status !== 'finished' && producersEnded(entry))
}

function tasksOf(entries: readonly Entry[]): TaskId[] {
  return entries.map((entry) => entry.task)
}

function producersOf(entry: Entry): Entry[] {
  return entry.vertex.producers.flatMap(({ vertex, forward }) =>
    forward ? [vertex.entries[entry.task.subtask]!] : vertex.entries,
  )
}

function consumersOf(entry: Entry): Entry[] {
  return entry.vertex.consumers.flatMap(({ vertex, forward }) =>
    forward ? [vertex.entries[entry.task.subtask]!] : vertex.entries,
  )
}

function isNewer(left: Attempt, right: Attempt): boolean {
  return left.incarnation > right.incarnation || (left.incarnation === right.incarnation && left.number > right.number)
}
