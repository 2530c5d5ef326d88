// How far a subtask's restore is: what it has to read, and what it has read, for whoever watches the start of a job.

import type { MetricGroup } from '../base/metrics.ts'
import type { SnapshotReader, StateHandle } from '../checkpoint/contract.ts'
import type { RestoredSubtask } from '../control/contract.ts'

export interface GroupRange {
  /** Key groups [first, last]. */
  readonly first: number
  readonly last: number
}

/** Of state handles; of keyed state the groups of the subtask's own range alone, whatever else their snapshots hold. */
export function bytesToRestore(restored: RestoredSubtask | undefined, own: GroupRange): number {
  let bytes = 0
  for (const { keyed = [], operatorState = {} } of Object.values(restored?.operators ?? {})) {
    for (const { groups } of keyed)
      for (const { keyGroup, handle } of groups)
        if (keyGroup >= own.first && keyGroup <= own.last) bytes += sizeOf(handle)
    for (const shares of Object.values(operatorState)) for (const { items } of shares) bytes += sizeOf(items)
  }
  return bytes
}

/** Counts what is read through it. */
export function countedReader(reader: SnapshotReader, metrics: MetricGroup): SnapshotReader {
  return {
    read: async (handle) => {
      const bytes = await reader.read(handle)
      metrics.add('restored_bytes_total', bytes.length)
      return bytes
    },
  }
}

function sizeOf(handle: StateHandle | undefined): number {
  if (handle === undefined) return 0
  return handle.kind === 'object' ? handle.length : Buffer.byteLength(handle.base64, 'base64')
}
