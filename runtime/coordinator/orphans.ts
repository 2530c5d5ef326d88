// State of snapshots that will never complete. It is deleted late and only when nothing can use it (R8, rule 7, B14): after a later
// checkpoint has completed, no manifest that HEAD names, no finished subtask and no pending snapshot may refer to its object.

import type { CheckpointId } from '../base/ids.ts'
import type { SubtaskSnapshot } from '../checkpoint/contract.ts'
import { objectsOfSnapshot } from '../checkpoint/manifest.ts'
import type { ObjectKey, ObjectStore } from '../storage/contract.ts'

/** Remembered candidates; beyond it the oldest are forgotten and stay behind for a sweep: leaving a file is safe, deleting is not. */
const candidatesMax = 10_000

export class Orphans {
  readonly #store: ObjectStore
  readonly #candidates = new Map<ObjectKey, CheckpointId>()

  constructor(store: ObjectStore) {
    this.#store = store
  }

  add(id: CheckpointId, snapshot: SubtaskSnapshot): void {
    for (const key of objectsOfSnapshot(snapshot)) {
      this.#candidates.set(key, id)
      if (this.#candidates.size <= candidatesMax) continue
      for (const oldest of this.#candidates.keys()) {
        this.#candidates.delete(oldest)
        break
      }
    }
  }

  /** Deletes what belongs to ids below `completed` and is not in use. A failure leaves the files: they are nobody's. */
  async collect(completed: CheckpointId, used: ReadonlySet<ObjectKey>): Promise<void> {
    const keys: ObjectKey[] = []
    for (const [key, id] of this.#candidates) {
      if (id >= completed) continue
      this.#candidates.delete(key)
      if (!used.has(key)) keys.push(key)
    }
    if (keys.length > 0) await this.#store.delete(keys)
  }
}
