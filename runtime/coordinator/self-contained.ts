// A snapshot that needs nothing which may go away without it. What subtasks write goes where it belongs; the final state of subtasks
// that have finished comes from wherever it was written once: an earlier checkpoint, a savepoint, another job's store.
//
// A savepoint needs only its own folder, so that it can be copied (rule 18). A checkpoint needs nothing outside of the job's store (no
// claim: the restore point belongs to somebody else) and nothing of a savepoint, which the user may take away.

import { forEachBounded } from '../base/bounded.ts'
import type { CheckpointId } from '../base/ids.ts'
import type { SnapshotReader, SnapshotWriters, StateHandle, SubtaskSnapshot } from '../checkpoint/contract.ts'
import type { CollectedSnapshot } from '../checkpoint/core-contract.ts'
import { withHandles } from '../checkpoint/handles.ts'
import type { ObjectHandle } from '../checkpoint/handles.ts'
import { isAbsoluteKey, isOfSavepoint, snapshotFolder } from '../storage/paths.ts'

/** Pieces read and written at the same time: few enough for memory, and enough to share objects (snapshot-writer.ts). */
const copiesMax = 64

export interface SelfContainedOptions {
  readonly reader: SnapshotReader
  readonly writers: SnapshotWriters
}

type Copies = Map<string, StateHandle>

/** For one incarnation: it remembers what completed checkpoints have copied, as finished subtasks go on naming where it came from. */
export class SelfContained {
  readonly #options: SelfContainedOptions
  /** By what was copied. A later checkpoint names the same copy, which keeps it from the clean-up; the original may be gone by then. */
  readonly #known: Copies = new Map()
  /** Copies of a checkpoint that does not complete are deleted with it. */
  readonly #pending = new Map<CheckpointId, Copies>()

  constructor(options: SelfContainedOptions) {
    this.#options = options
  }

  /**
   * Before the manifest is written: the same snapshot, with everything copied that it may not refer to. Rejects with the reader's or the
   * writer's error: then it must not complete.
   */
  async of(collected: CollectedSnapshot): Promise<CollectedSnapshot> {
    const { id, kind } = collected
    const snapshot =
      this.#known.size === 0 ? collected : withEach(collected, (handle) => this.#known.get(nameOf(handle)) ?? handle)
    const keep = mayReferTo(collected)
    const missing = new Map<string, ObjectHandle>()
    withEach(snapshot, (handle) => {
      if (!keep(handle.object)) missing.set(nameOf(handle), handle)
      return handle
    })
    // Nearly always: what subtasks write goes where it belongs.
    if (missing.size === 0) return snapshot
    const copied = await this.#copy(collected, missing)
    // Of a savepoint only itself may make use: it is the user's.
    if (kind === 'checkpoint') this.#pending.set(id, copied)
    return withEach(snapshot, (handle) => copied.get(nameOf(handle)) ?? handle)
  }

  /** Its swap has won. */
  completed(completed: CheckpointId): void {
    for (const [original, copy] of this.#pending.get(completed) ?? []) this.#known.set(original, copy)
    for (const id of this.#pending.keys()) if (id <= completed) this.#pending.delete(id)
  }

  async #copy({ id, kind }: CollectedSnapshot, missing: ReadonlyMap<string, ObjectHandle>): Promise<Copies> {
    const { reader, writers } = this.#options
    const writer = writers.ofKind(kind)
    const copied: Copies = new Map()
    await forEachBounded(missing, copiesMax, async ([name, handle]) => {
      copied.set(name, await writer.write(id, await reader.read(handle)))
    })
    return copied
  }
}

/** What a snapshot of this kind may refer to. */
function mayReferTo({ id, kind }: Pick<CollectedSnapshot, 'id' | 'kind'>): (object: string) => boolean {
  const own = `${snapshotFolder(id, kind)}/`
  return kind === 'savepoint'
    ? (object) => object.startsWith(own)
    : (object) => !isAbsoluteKey(object) && !isOfSavepoint(object)
}

function withEach(collected: CollectedSnapshot, replace: (handle: ObjectHandle) => StateHandle): CollectedSnapshot {
  const subtasks = [...collected.subtasks].map(
    ([key, { task, snapshot }]) => [key, { task, snapshot: withSubtaskHandles(snapshot, replace) }] as const,
  )
  return { ...collected, subtasks: new Map(subtasks) }
}

function withSubtaskHandles(
  snapshot: SubtaskSnapshot,
  replace: (handle: ObjectHandle) => StateHandle,
): SubtaskSnapshot {
  const operators = Object.entries(snapshot.operators).map(([uid, operator]) => [uid, withHandles(operator, replace)])
  return { ...snapshot, operators: Object.fromEntries(operators) as SubtaskSnapshot['operators'] }
}

function nameOf({ object, offset, length }: ObjectHandle): string {
  return `${object} ${offset} ${length}`
}
