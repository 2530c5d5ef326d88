// What restarts when something fails (rule 25). The unit of a restart is a slot's thread: a failed subtask takes its thread with it, and
// a restart gets a fresh one. So tasks of one slot restart together, tasks of one region restart together, and that until nothing
// more is drawn in. "Regions restart apart only in different slots."

import { taskKey } from '../base/ids.ts'
import type { TaskId } from '../base/ids.ts'
import type { JobGraph } from '../job/contract.ts'
import type { Placement } from './placement.ts'
import { pipelinedRegions } from './regions.ts'

export interface FailoverOptions {
  readonly graph: JobGraph
  readonly strategy: 'region' | 'full'
  readonly placement: Placement
  /** The subtasks that failed; of a lost slot, all that it hosts. */
  readonly failed: readonly TaskId[]
}

export interface FailoverScope {
  /** In the placement's order. */
  readonly tasks: readonly TaskId[]
  /** The slots that host them: they host nothing else. */
  readonly slots: ReadonlySet<number>
}

export function failoverScope({ graph, strategy, placement, failed }: FailoverOptions): FailoverScope {
  const entries = placement.tasks
  if (failed.length === 0) return { tasks: [], slots: new Set() }
  if (strategy === 'full')
    return { tasks: entries.map(({ task }) => task), slots: new Set(entries.map(({ slot }) => slot)) }
  const regionOf = pipelinedRegions(graph)
  const failedKeys = new Set(failed.map(taskKey))
  const slots = new Set(entries.filter(({ task }) => failedKeys.has(taskKey(task))).map(({ slot }) => slot))
  const regions = new Set<number>()
  let before: number
  do {
    before = slots.size + regions.size
    for (const { task, slot } of entries) {
      const region = regionOf.get(taskKey(task))!
      if (!slots.has(slot) && !regions.has(region)) continue
      slots.add(slot)
      regions.add(region)
    }
  } while (slots.size + regions.size > before)
  return { tasks: entries.filter(({ slot }) => slots.has(slot)).map(({ task }) => task), slots }
}
