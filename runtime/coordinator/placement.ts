// Which slot hosts which subtask. A slot runs one subtask of every vertex of one slot-sharing group (design: Processes), so a group
// needs as many slots as its largest parallelism, and a job the sum over its groups.

import { subtaskIndex } from '../base/ids.ts'
import type { TaskId } from '../base/ids.ts'
import type { JobGraph } from '../job/contract.ts'

export interface Placement {
  /** Slots are numbered 0 … slotCount - 1; a restart gives a slot a fresh thread under the same number. */
  readonly slotCount: number
  /** In the graph's order of vertices, then by subtask. */
  readonly tasks: readonly { readonly task: TaskId; readonly slot: number }[]
}

export function placeTasks(graph: JobGraph): Placement {
  const slotsOfGroup = new Map<string, number>()
  for (const { slotSharingGroup, parallelism } of graph.vertices) {
    slotsOfGroup.set(slotSharingGroup, Math.max(parallelism, slotsOfGroup.get(slotSharingGroup) ?? 0))
  }
  let slotCount = 0
  const firstSlotOf = new Map<string, number>()
  for (const [group, slots] of slotsOfGroup) {
    firstSlotOf.set(group, slotCount)
    slotCount += slots
  }
  const tasks = graph.vertices.flatMap(({ id, parallelism, slotSharingGroup }) =>
    Array.from({ length: parallelism }, (_, index) => ({
      task: { vertex: id, subtask: subtaskIndex(index) },
      slot: firstSlotOf.get(slotSharingGroup)! + index,
    })),
  )
  return { slotCount, tasks }
}
