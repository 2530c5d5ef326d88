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

/** Pieces read and written at the same time: enough to share objects (snapshot-writer.ts). */
const copiesMax = 64
/** Of those pieces together; the objects that are uploaded hold small ones once more. A larger piece, such as a whole key group, goes alone. */
export const copiedBytesMax = 64 * 1024 * 1024

export interface SelfContainedOptions {
  readonly reader: SnapshotReader
  readonly writers: SnapshotWriters
}

type Copies = Map<string, StateHandle>

export interface Needed {
  /** With the copies that are known already. */
  readonly snapshot: CollectedSnapshot
  /** What is still to be copied. */
  readonly missing: ReadonlyMap<string, ObjectHandle>
}

/** For one incarnation: it remembers what completed checkpoints have copied, as finished subtasks go on naming where it came from. */
export class SelfContained {
  readonly #options: SelfContainedOptions
  /** By what was copied. A later checkpoint names the same copy, which keeps it from the clean-up; the original may be gone by then. */
  readonly #known: Copies = new Map()
  readonly #pending = new Map<CheckpointId, Copies>()
  /**
   * What checkpoints that did not complete have copied since one did, by what was copied: the next one names it and goes on from there, or
   * much final state behind a short timeout would never be copied. Clean-up takes away what a completed checkpoint does not name, and this with it.
   */
  #kept: Copies = new Map()
  /** Also of what was given up. They settle: reads and uploads have deadlines. */
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(options: SelfContainedOptions) {
    this.#options = options
  }

  needed(collected: CollectedSnapshot): Needed {
    const snapshot =
      this.#known.size === 0 ? collected : withEach(collected, (handle) => this.#known.get(nameOf(handle)) ?? handle)
    const keep = mayReferTo(collected)
    const missing = new Map<string, ObjectHandle>()
    withEach(snapshot, (handle) => {
      if (!keep(handle.object)) missing.set(nameOf(handle), handle)
      return handle
    })
    return { snapshot, missing }
  }

  /**
   * Before the manifest is written: the same snapshot, with everything copied that it may not refer to. Rejects with the reader's or the
   * writer's error, or at once with the signal's: then it must not complete, and what is under way alone is still read or written. `onPiece`
   * hears of each piece that is there.
   */
  async copied(
    { snapshot, missing }: Needed,
    { signal, onPiece = () => undefined }: { readonly signal: AbortSignal; readonly onPiece?: () => void },
  ): Promise<CollectedSnapshot> {
    const copied = await this.#copy(snapshot, missing, { signal, onPiece })
    // Of a savepoint only itself may make use: it is the user's.
    if (snapshot.kind === 'checkpoint') this.#pending.set(snapshot.id, copied)
    return withEach(snapshot, (handle) => copied.get(nameOf(handle)) ?? handle)
  }

  /** Resolves when nothing of what was begun until now is read or written any more. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay)
  }

  /** Its swap has won. */
  completed({ id: completed, kind }: Pick<CollectedSnapshot, 'id' | 'kind'>): void {
    // What lands late is set into the map that nobody looks into any more. Behind a savepoint nothing is cleaned up.
    if (kind === 'checkpoint') this.#kept = new Map()
    for (const [original, copy] of this.#pending.get(completed) ?? []) this.#known.set(original, copy)
    for (const id of this.#pending.keys()) if (id <= completed) this.#pending.delete(id)
  }

  async #copy(
    { id, kind }: CollectedSnapshot,
    missing: Needed['missing'],
    { signal, onPiece }: { readonly signal: AbortSignal; readonly onPiece: () => void },
  ): Promise<Copies> {
    const { reader, writers } = this.#options
    const writer = writers.ofKind(kind)
    const copied: Copies = new Map()
    // A savepoint names nothing outside of its own folder, and nothing else may name what is in there.
    const kept: Copies = kind === 'checkpoint' ? this.#kept : new Map()
    for (const name of kept.keys()) if (!missing.has(name)) kept.delete(name)
    // One that was given up holds memory for its last pieces, which a job that restarts again and again must not add up.
    const remains = [...this.#underWay]
    const copy = async ([name, handle]: [string, ObjectHandle]): Promise<void> => {
      await Promise.allSettled(remains)
      signal.throwIfAborted()
      if (!kept.has(name)) {
        const bytes = await reader.read(handle)
        signal.throwIfAborted()
        kept.set(name, await writer.write(id, bytes))
        onPiece()
      }
      copied.set(name, kept.get(name)!)
    }
    const weighing = {
      max: copiedBytesMax,
      weightOf: ([, { length }]: [string, ObjectHandle]) => length,
    }
    const counted = async (piece: [string, ObjectHandle]): Promise<void> => {
      const copying = copy(piece)
      this.#underWay.add(copying)
      try {
        await copying
      } finally {
        this.#underWay.delete(copying)
      }
    }
    await forEachBounded(missing, copiesMax, counted, { weighing, signal })
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
