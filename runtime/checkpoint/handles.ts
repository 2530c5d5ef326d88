// The handles of a snapshot, all of them in one place: what copies, verifies or renames objects must not overlook a kind.

import type { ObjectKey } from '../storage/contract.ts'
import { absoluteKey, snapshotFolder } from '../storage/paths.ts'
import type { OperatorSnapshot, StateHandle } from './contract.ts'
import type { Manifest } from './manifest.ts'

export type ObjectHandle = Extract<StateHandle, { kind: 'object' }>

/** The same snapshot with every handle to an object replaced; inlined state stays as it is. */
export function withHandles(
  { keyed, operatorState, ...rest }: OperatorSnapshot,
  replace: (handle: ObjectHandle) => StateHandle,
): OperatorSnapshot {
  const replaced = (handle: StateHandle): StateHandle => (handle.kind === 'object' ? replace(handle) : handle)
  return {
    ...rest,
    ...(keyed !== undefined && {
      keyed: {
        ...keyed,
        groups: keyed.groups.map(({ handle, base, ...group }) => ({
          ...group,
          ...(handle !== undefined && { handle: replaced(handle) }),
          ...(base !== undefined && { base: base.map(replaced) }),
        })),
      },
    }),
    ...(operatorState !== undefined && {
      operatorState: Object.fromEntries(
        Object.entries(operatorState).map(([name, list]) => [name, { ...list, items: replaced(list.items) }]),
      ),
    }),
  }
}

/** Every handle to an object, as often as it stands there. */
export function handlesOf(manifest: Manifest): ObjectHandle[] {
  const handles: ObjectHandle[] = []
  withManifestHandles(manifest, (handle) => {
    handles.push(handle)
    return handle
  })
  return handles
}

/** The manifest as it is to be read outside of the store that it was written for; `at` is its own absolute key. */
export function withAbsoluteHandles(manifest: Manifest, at: ObjectKey): Manifest {
  const place = { manifest: at, folder: snapshotFolder(manifest.id, manifest.kind) }
  return withManifestHandles(manifest, (handle) => ({ ...handle, object: absoluteKey(handle.object, place) }))
}

function withManifestHandles(manifest: Manifest, replace: (handle: ObjectHandle) => StateHandle): Manifest {
  return {
    ...manifest,
    vertices: manifest.vertices.map((vertex) => ({
      ...vertex,
      operators: Object.fromEntries(
        Object.entries(vertex.operators).map(([uid, perSubtask]) => [
          uid,
          perSubtask.map((snapshot) => (snapshot === null ? null : withHandles(snapshot, replace))),
        ]),
      ),
    })),
    enumerators: Object.fromEntries(
      Object.entries(manifest.enumerators).map(([uid, { codec, handle }]) => [
        uid,
        { codec, handle: handle.kind === 'object' ? replace(handle) : handle },
      ]),
    ),
  }
}
