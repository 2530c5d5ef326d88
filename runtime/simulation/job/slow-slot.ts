// A slot that works slowly: one record a turn, and each turn takes its time. What it is sent piles up before it.

import type { Environment } from '../../base/environment.ts'
import type { SlotId } from '../../base/ids.ts'
import { Lane } from '../pending.ts'
import type { SimProcess } from '../process.ts'

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

/** Which slot of the job it is, whatever its life: `<number>#<life>`. */
export function numberOf(slot: SlotId): number {
  return Number(slot.split('#')[0])
}
