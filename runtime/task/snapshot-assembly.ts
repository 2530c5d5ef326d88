// The async part of a subtask's snapshot: waits for the operators, writes their state, and describes it.

import type { CheckpointId } from '../base/ids.ts'
import type {
  KeyedSnapshot,
  OperatorSnapshot,
  OperatorStateSnapshot,
  SnapshotWriter,
  StateHandle,
  SubtaskSnapshot,
} from '../checkpoint/contract.ts'
import type { OperatorStatePart } from '../operators/contract.ts'
import { writeOperatorState } from '../state/operator-state.ts'

/** What the sync part left: one entry an operator of the chain that has any state. */
export interface SnapshotParts {
  readonly uid: string
  readonly keyed?: Promise<KeyedSnapshot>
  readonly part?: Promise<OperatorStatePart>
}

export interface AssemblyOptions {
  readonly id: CheckpointId
  readonly parts: readonly SnapshotParts[]
  readonly writer: SnapshotWriter
}

/** By uid. Rejects with the first failure after all parts have settled, so that no write goes on unseen. */
export async function assembleSnapshot(options: AssemblyOptions): Promise<SubtaskSnapshot['operators']> {
  const settled = await Promise.allSettled(
    options.parts.map(async (entry) => [entry.uid, await assemble(entry, options)] as const),
  )
  const operators: Record<string, OperatorSnapshot> = {}
  for (const result of settled) {
    if (result.status === 'rejected') throw result.reason
    const [uid, snapshot] = result.value
    if (Object.keys(snapshot).length > 0) operators[uid] = { ...operators[uid], ...snapshot }
  }
  return operators
}

/** Bytes that the snapshot refers to, for people. */
export function snapshotBytes(operators: SubtaskSnapshot['operators']): number {
  let bytes = 0
  for (const snapshot of Object.values(operators)) {
    for (const group of snapshot.keyed?.groups ?? []) bytes += sizeOf(group.handle)
    for (const state of Object.values(snapshot.operatorState ?? {})) bytes += sizeOf(state.items)
  }
  return bytes
}

async function assemble(entry: SnapshotParts, options: AssemblyOptions): Promise<OperatorSnapshot> {
  const [keyed, part] = await Promise.all([entry.keyed, entry.part])
  const operatorState: Record<string, OperatorStateSnapshot> = {}
  for (const [name, state] of Object.entries(part?.operatorState ?? {})) {
    operatorState[name] = await writeOperatorState(state, options.id, options.writer)
  }
  return {
    ...(keyed === undefined ? {} : { keyed }),
    ...(Object.keys(operatorState).length === 0 ? {} : { operatorState }),
    ...(part?.committables === undefined || part.committables.length === 0 ? {} : { committables: part.committables }),
  }
}

function sizeOf(handle: StateHandle | undefined): number {
  if (handle === undefined) return 0
  return handle.kind === 'object' ? handle.length : Math.floor((handle.base64.length * 3) / 4)
}
