// Reading keyed state back: which blocks, each exactly once, all checked before any is used.

import { forEachBounded } from '../../base/bounded.ts'
import { MillraceError } from '../../base/errors.ts'
import type { KeyGroup } from '../../base/ids.ts'
import type {
  KeyedSnapshot,
  KeyedStateDescription,
  KeyGroupHandle,
  SnapshotReader,
  StateHandle,
} from '../../checkpoint/contract.ts'
import { stateError } from '../errors.ts'
import { nameOfHandle } from '../operator-state.ts'
import { describePlace, openBlock, SEGMENT_VERSION, SEGMENT_VERSION_OLDEST } from '../segment.ts'
import type { BlockPlace, BlockSection } from '../segment.ts'

/** Blocks read at the same time. */
const READS_AT_ONCE = 8

export interface SelectedGroup {
  readonly format: number
  readonly group: KeyGroupHandle
  readonly states: readonly KeyedStateDescription[]
}

export interface RestoredGroup {
  readonly watermark: number
  readonly sections: readonly (BlockSection & { readonly place: string })[]
}

export interface GroupRange {
  readonly uid: string
  readonly first: KeyGroup
  readonly last: KeyGroup
}

/** The range's groups in order, out of the snapshots of whatever subtasks wrote them. Throws MR-T04 when one is missing or doubled, MR-T05 for a later format. */
export function selectGroups(snapshots: readonly KeyedSnapshot[], range: GroupRange): SelectedGroup[] {
  const selected: (SelectedGroup | undefined)[] = Array.from({ length: range.last - range.first + 1 })
  for (const snapshot of snapshots) {
    if (snapshot.format < SEGMENT_VERSION_OLDEST || snapshot.format > SEGMENT_VERSION) {
      throw stateError(
        'MR-T05',
        `Operator '${range.uid}' has keyed state of format ${snapshot.format}; this version reads ${SEGMENT_VERSION_OLDEST} to ${SEGMENT_VERSION}.`,
      )
    }
    for (const group of snapshot.groups) {
      if (group.keyGroup < range.first || group.keyGroup > range.last) continue
      if (selected[group.keyGroup - range.first] !== undefined) {
        throw stateError('MR-T04', `Operator '${range.uid}', key group ${group.keyGroup}: it is there twice.`)
      }
      if (group.base !== undefined && group.base.length > 0) {
        throw stateError('MR-T05', `Operator '${range.uid}', key group ${group.keyGroup}: it builds on older blocks.`)
      }
      selected[group.keyGroup - range.first] = { format: snapshot.format, group, states: snapshot.states }
    }
  }
  return selected.map((entry, index) => {
    if (entry === undefined)
      throw stateError('MR-T04', `Operator '${range.uid}', key group ${range.first + index}: it is missing.`)
    return entry
  })
}

/** Reads and checks all of them; rejects before anything of it is used. */
export async function readGroups(
  selected: readonly SelectedGroup[],
  uid: string,
  reader: SnapshotReader,
): Promise<RestoredGroup[]> {
  const restored: RestoredGroup[] = Array.from({ length: selected.length })
  await forEachBounded(selected.entries(), READS_AT_ONCE, async ([index, group]) => {
    restored[index] = await readGroup(group, uid, reader)
  })
  return restored
}

async function readGroup(
  { format, group, states }: SelectedGroup,
  uid: string,
  reader: SnapshotReader,
): Promise<RestoredGroup> {
  const { watermark, handle } = group
  if (handle === undefined) return { watermark, sections: [] }
  const place = { uid, keyGroup: group.keyGroup, watermark, object: nameOfHandle(handle), format, states }
  const sections = openBlock(await readBlock(handle, place, reader), place)
  return { watermark, sections: sections.map((section) => ({ ...section, place: describePlace(place) })) }
}

/** What may pass is left to the caller's retries; what will not is told with the state that it hits. */
async function readBlock(handle: StateHandle, place: BlockPlace, reader: SnapshotReader): Promise<Uint8Array> {
  try {
    return await reader.read(handle)
  } catch (cause) {
    if (!(cause instanceof MillraceError) || cause.retry) throw cause
    const names = place.states.map((state) => `'${state.name}'`).join(', ')
    throw stateError('MR-T03', `States ${names} (${describePlace(place)}) cannot be read, ${cause.code}.`, cause)
  }
}
