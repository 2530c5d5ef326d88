// Which slot hosts which subtask. A slot runs one subtask of every vertex of one slot-sharing group (design: Processes), so a group
// needs as many slots as its largest parallelism, and a job the sum over its groups.

import { slotId, subtaskIndex } from '../base/ids.ts'
import type { Incarnation, SlotId, TaskId } from '../base/ids.ts'
import type { JobGraph } from '../job/contract.ts'

export interface Placement {
  /** Slots are numbered 0 … slotCount - 1; a restart gives a slot a fresh thread under the same number. */
  readonly slotCount: number
  /** In the graph's order of vertices, then by subtask. */
  readonly tasks: readonly { readonly task: TaskId; readonly slot: number }[]
}

/** A slot's name says its number and its life, so that no name is used twice. */
export function nameOfSlot(slot: number, incarnation: Incarnation, life: number): SlotId {
  return slotId(`${slot}#${incarnation}.${life}`)
}

/** NaN for a name that is none of ours. */
export function slotNumberOf(slot: SlotId): number {
  return Number(/^(\d+)#/.exec(slot)?.[1])
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
