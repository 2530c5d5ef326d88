// State of snapshots that will never complete. It is deleted late and only when nothing can use it (R8, rule 7, B14): after a later
// checkpoint has completed, no manifest that HEAD names, no finished subtask and no pending snapshot may refer to its object.
//
// Why nobody can begin to use one afterwards: a subtask writes, also its final state, under the newest id that it has met; a completed
// checkpoint was met by every subtask or holds its final state; so that what is written from then on has no smaller id.

import type { CheckpointId } from '../base/ids.ts'
import type { SubtaskSnapshot } from '../checkpoint/contract.ts'
import { objectsOfSnapshot } from '../checkpoint/manifest.ts'
import type { SnapshotKind } from '../record/element.ts'
import type { ObjectKey, ObjectStore, SavepointStore } from '../storage/contract.ts'
import { isOfSavepoint, manifestKey, snapshotFolder } from '../storage/paths.ts'
import { storeOfKind } from '../storage/savepoint-place.ts'
import { deletedAtOnce } from './store-calls.ts'

/** Remembered candidates; beyond it the oldest are forgotten and stay behind for a sweep: leaving a file is safe, deleting is not. */
const candidatesMax = 10_000

interface Folder {
  readonly id: CheckpointId
  readonly kind: SnapshotKind
}

/** Where one kind lies may be away while the other is there: the job's own space comes first. */
const kinds = ['checkpoint', 'savepoint'] as const

export interface OrphansOptions {
  readonly store: ObjectStore
  /** As in JobCoordinatorOptions. */
  readonly savepoints?: SavepointStore | undefined
}

export class Orphans {
  readonly #stores: OrphansOptions
  readonly #candidates = new Map<ObjectKey, CheckpointId>()
  /** Whose folders hold only what nobody acknowledged, or what others use too. */
  readonly #aborted = new Map<CheckpointId, SnapshotKind>()

  constructor(stores: OrphansOptions) {
    this.#stores = stores
  }

  add(id: CheckpointId, snapshot: SubtaskSnapshot): void {
    const own = `${snapshotFolder(id, 'savepoint')}/`
    for (const key of objectsOfSnapshot(snapshot)) {
      // A final state may lie in the savepoint that the job began from: that is the user's, for ever (rule 7).
      if (isOfSavepoint(key) && !key.startsWith(own)) continue
      this.#candidates.set(key, id)
      forgetOldest(this.#candidates)
    }
  }

  /** Subtasks that had not acknowledged may have written all the same. */
  aborted(id: CheckpointId, kind: SnapshotKind): void {
    this.#aborted.set(id, kind)
    forgetOldest(this.#aborted)
  }

  /**
   * Deletes what belongs to ids below `completed` and is not in use. A failure leaves the files: they are nobody's. `mayGoOn` is asked before
   * each call; what there is no time for is remembered.
   */
  async collect(completed: CheckpointId, used: ReadonlySet<ObjectKey>, mayGoOn: () => boolean): Promise<void> {
    for (const kind of kinds) {
      while (mayGoOn()) {
        const keys = this.#take(kind, completed, used)
        if (keys.length === 0) break
        await storeOfKind(kind, this.#stores).objects.delete(keys)
      }
      // A copy: what could not be emptied is put back meanwhile.
      for (const [id, its] of new Map(this.#aborted))
        if (its === kind && id < completed && mayGoOn()) await this.#emptied({ id, kind }, used)
    }
  }

  #take(kind: SnapshotKind, completed: CheckpointId, used: ReadonlySet<ObjectKey>): ObjectKey[] {
    const keys: ObjectKey[] = []
    for (const [key, id] of this.#candidates) {
      if (id >= completed || isOfSavepoint(key) !== (kind === 'savepoint')) continue
      this.#candidates.delete(key)
      if (!used.has(key) && keys.push(key) === deletedAtOnce) break
    }
    return keys
  }

  /** Forgotten before the list is made: what lands behind that is told of once more, and swept the next time. */
  async #emptied(folder: Folder, used: ReadonlySet<ObjectKey>): Promise<void> {
    this.#aborted.delete(folder.id)
    try {
      await this.#emptyFolder(folder, used)
    } catch (error) {
      this.aborted(folder.id, folder.kind)
      throw error
    }
  }

  /** Data first, the manifest last, should one have been written: it lists what remains to be deleted (rule 7). */
  async #emptyFolder({ id, kind }: Folder, used: ReadonlySet<ObjectKey>): Promise<void> {
    const { objects } = storeOfKind(kind, this.#stores)
    const manifest = manifestKey(id, kind)
    const keys = await objects.list(`${snapshotFolder(id, kind)}/`)
    await objects.delete(keys.filter((key) => key !== manifest && !used.has(key)))
    if (keys.includes(manifest)) await objects.delete([manifest])
  }
}

function forgetOldest(remembered: Map<unknown, unknown> | Set<unknown>): void {
  if (remembered.size <= candidatesMax) return
  for (const oldest of remembered.keys()) return void remembered.delete(oldest)
}
