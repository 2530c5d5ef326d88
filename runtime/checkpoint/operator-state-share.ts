// Which items of a named operator state each subtask restores, at any parallelism.
//
// split       at the same parallelism each subtask keeps its own list; at another one the lists, one behind the other in the order of the
//             old subtasks, are cut into equal parts, of which the first ones are one item longer
// union       everything to everybody
// broadcast   all lists are copies of one: each subtask gets one of them, its own if it has one

import type { PlantedFault } from '../base/planted.ts'
import type { OperatorStateShare } from '../control/contract.ts'
import type { OperatorStateSnapshot } from './contract.ts'

/** `lists`: by old subtask; undefined: that one wrote none. At least one is written, and all have the same redistribution. */
export function shareOfLists(
  lists: readonly (OperatorStateSnapshot | undefined)[],
  {
    parallelism,
    subtask,
    planted,
  }: { readonly parallelism: number; readonly subtask: number; readonly planted?: ReadonlySet<PlantedFault> },
): OperatorStateShare[] {
  const written = lists.filter((list) => list !== undefined)
  const own = lists.length === parallelism ? lists[subtask] : undefined
  const { redistribution } = written[0]!
  switch (redistribution) {
    case 'split':
      if (lists.length !== parallelism)
        return part(written, { parallelism, subtask, extra: planted?.has('item-dealt-twice') ? 1 : 0 })
      return own === undefined ? [] : [whole(own)]
    case 'union':
      return written.map(whole)
    case 'broadcast':
      return [whole(own ?? written[subtask % written.length]!)]
    default:
      return redistribution satisfies never
  }
}

function part(
  written: readonly OperatorStateSnapshot[],
  { parallelism, subtask, extra }: { readonly parallelism: number; readonly subtask: number; readonly extra: number },
): OperatorStateShare[] {
  const total = written.reduce((sum, { count }) => sum + count, 0)
  const size = Math.floor(total / parallelism)
  const longer = total % parallelism
  const first = subtask * size + Math.min(subtask, longer)
  // `extra` is the planted fault: the next subtask's first item as well.
  const end = first + size + (subtask < longer ? 1 : 0) + extra
  const shares: OperatorStateShare[] = []
  let at = 0
  for (const list of written) {
    const from = Math.max(first - at, 0)
    const to = Math.min(end - at, list.count)
    if (from < to) shares.push({ ...list, from, to })
    at += list.count
  }
  return shares
}

function whole(list: OperatorStateSnapshot): OperatorStateShare {
  return { ...list, from: 0, to: list.count }
}
