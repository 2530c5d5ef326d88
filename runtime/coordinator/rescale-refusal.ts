// Why a job cannot go to another parallelism now: asked before the request is written into HEAD, and again right before its trigger.

import { counted } from '../base/counted.ts'
import type { JobCoordinatorOptions } from './coordinator-contract.ts'
import { placeTasks } from './placement.ts'

export interface RescaleWish {
  readonly parallelism: number
  /** Another rescale comes before it: the size of now says nothing of the one that it will find. */
  readonly isBehindAnother: boolean
}

/** `graph`: as it runs. As a sentence without its end; undefined: it can. */
export function refuseRescale(
  { graph, graphAt, slots }: Pick<JobCoordinatorOptions, 'graph' | 'graphAt' | 'slots'>,
  { parallelism, isBehindAnother }: RescaleWish,
): string | undefined {
  if (graphAt === undefined) return 'this job cannot be rescaled while it runs'
  try {
    const next = graphAt(parallelism)
    const { slotCount } = placeTasks(next)
    const { slotsOffered = slotCount } = slots
    if (next.hash === graph.hash && !isBehindAnother) return `it runs at parallelism ${parallelism} already`
    if (slotCount > slotsOffered)
      return `it needs ${counted(slotCount, 'slot', 'slots')}, and the workers offer ${slotsOffered}`
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
