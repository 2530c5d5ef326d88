// Which objects of the job's store a snapshot needs: nothing of them may be deleted while it may be restored (rule 7, R8, B14). Objects
// outside of it are not named here: they are somebody else's, and nothing of them is ever deleted.

import type { ObjectKey } from '../storage/contract.ts'
import { isAbsoluteKey } from '../storage/paths.ts'
import type { OperatorSnapshot, StateHandle, SubtaskSnapshot } from './contract.ts'
import type { Manifest } from './manifest.ts'

/** The objects whose bytes a manifest needs. */
export function objectsOf(manifest: Manifest): ReadonlySet<ObjectKey> {
  const objects = new Set<ObjectKey>()
  for (const vertex of manifest.vertices) {
    for (const perSubtask of Object.values(vertex.operators)) {
      for (const snapshot of perSubtask) if (snapshot !== null) addObjectsOf(snapshot, objects)
    }
  }
  for (const { handle } of Object.values(manifest.enumerators)) addObject(handle, objects)
  return objects
}

/** The objects whose bytes one subtask's acknowledgement needs. */
export function objectsOfSnapshot(snapshot: SubtaskSnapshot): readonly ObjectKey[] {
  const objects = new Set<ObjectKey>()
  for (const operator of Object.values(snapshot.operators)) addObjectsOf(operator, objects)
  return [...objects]
}

function addObjectsOf({ keyed, operatorState }: OperatorSnapshot, objects: Set<ObjectKey>): void {
  for (const { handle, base } of keyed?.groups ?? []) {
    if (handle !== undefined) addObject(handle, objects)
    for (const older of base ?? []) addObject(older, objects)
  }
  for (const { items } of Object.values(operatorState ?? {})) addObject(items, objects)
}

function addObject(handle: StateHandle, objects: Set<ObjectKey>): void {
  if (handle.kind === 'object' && !isAbsoluteKey(handle.object)) objects.add(handle.object as ObjectKey)
}
