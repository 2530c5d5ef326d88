// A slot that works slowly: one record a turn, and each turn takes its time. What it is sent piles up before it.

import type { Environment } from '../../base/environment.ts'
import type { SlotId } from '../../base/ids.ts'
import { placeTasks } from '../../coordinator/placement.ts'
import type { JobGraph, JobVertex } from '../../job/contract.ts'
import { Lane } from '../pending.ts'
import type { SimProcess } from '../process.ts'
import type { SeededRandom } from '../random.ts'
import type { JobShape } from './shape.ts'

export function slowed(process: SimProcess, turnMs: number): Environment {
  const { world, environment } = process
  const lane = new Lane()
  const label = `slow turn of ${process.name}`
  const post = (turn: () => void): void => {
    if (!process.alive) return
    const action = (): void => {
      lane.freeAtMs = world.nowMs + turnMs
      turn()
    }
    world.after(0, label, action, { owner: process, lane })
  }
  return { ...environment, executor: { post }, budget: { begin: () => undefined, shouldYield: () => true } }
}

/** Whether it is one of those that work slowly. The same at each of its lives. */
export function isSlowSlot(
  slot: SlotId,
  { shape, graph, random }: { readonly shape: JobShape; readonly graph: JobGraph; readonly random: SeededRandom },
): boolean {
  if (shape.slowTurnMs === undefined) return false
  const number = numberOf(slot)
  const runs = (isIt: (vertex: JobVertex, subtask: number) => boolean): boolean =>
    placeTasks(graph).tasks.some(
      ({ task, slot: at }) =>
        at === number &&
        isIt(
          graph.vertices.find(({ id }) => id === task.vertex)!,
          task.subtask,
        ),
    )
  switch (shape.slowSlots) {
    case 'any':
      return random.split(`slowness of ${number}`).chance(0.5)
    case 'behind the sources':
      return !runs(({ inputs }) => inputs.length === 0)
    case 'one keyed':
      return runs(({ keySelectors }, subtask) => keySelectors[0] !== undefined && subtask === 0)
    default:
      return shape.slowSlots satisfies never
  }
}

/** Which slot of the job it is, whatever its life: `<number>#<life>`. */
export function numberOf(slot: SlotId): number {
  return Number(slot.split('#')[0])
}
