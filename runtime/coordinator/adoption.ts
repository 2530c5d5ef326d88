// Which subtasks that outlived their coordinator the next one takes over, as a pure function (rule 25). The data went on without it: what
// fits goes on, and only the rest restarts.

import { formatAttempt, sameAttempt, taskKey } from '../base/ids.ts'
import type { Attempt, SlotId, TaskId, TaskKey } from '../base/ids.ts'
import { CONTROL_VERSION } from '../control/contract.ts'
import type { SurvivingSlot, SurvivingTask } from '../control/contract.ts'
import type { JobGraph } from '../job/contract.ts'
import { vertexOf } from '../job/vertex-of.ts'
import type { ChannelPeer } from '../network/contract.ts'
import { consumersOf, producersOf } from './deployment.ts'
import { failoverScope } from './failover.ts'
import { slotNumberOf } from './placement.ts'
import type { Placement } from './placement.ts'

export interface AdoptionFacts {
  readonly graph: JobGraph
  readonly placement: Placement
  readonly strategy: 'region' | 'full'
  /** HEAD's: slots that were not given up. undefined: it does not say. */
  readonly deployed: readonly SlotId[] | undefined
  readonly survivors: readonly SurvivingSlot[]
}

export interface Adoption {
  /** Each hosts nothing that restarts. */
  readonly slots: readonly { readonly number: number; readonly survivor: SurvivingSlot }[]
  /** In the placement's order. */
  readonly tasks: readonly SurvivingTask[]
  /** The rest of the job, in the placement's order. */
  readonly restart: readonly TaskId[]
  /** Survivors that are of no use, to be ended. */
  readonly given: readonly SurvivingSlot[]
  /** Why subtasks that were reported do not fit, by task. */
  readonly unfit: ReadonlyMap<TaskKey, string>
}

/** Whether every subtask of the job has been reported by a slot that was not given up: nothing better can come. */
export function isComplete(
  placement: Placement,
  survivors: readonly SurvivingSlot[],
  deployed: readonly SlotId[] | undefined,
): boolean {
  const valid = notGivenUp(survivors, deployed)
  const reported = new Set(valid.flatMap(({ registered }) => registered.tasks.map(({ task }) => taskKey(task))))
  return placement.tasks.every(({ task }) => reported.has(taskKey(task)))
}

export function decideAdoption({ graph, placement, strategy, deployed, survivors }: AdoptionFacts): Adoption {
  const reports = new Map<TaskKey, { readonly survivor: SurvivingSlot; readonly task: SurvivingTask }[]>()
  for (const survivor of notGivenUp(survivors, deployed)) {
    for (const task of survivor.registered.tasks) {
      const key = taskKey(task.task)
      reports.set(key, [...(reports.get(key) ?? []), { survivor, task }])
    }
  }
  const unfit = new Map<TaskKey, string>()
  const fitting = new Map<TaskKey, { readonly survivor: SurvivingSlot; readonly task: SurvivingTask }>()
  for (const { task, slot } of placement.tasks) {
    const key = taskKey(task)
    const found = reports.get(key) ?? []
    const misfit = found.length === 1 ? misfitOf({ ...found[0]!, slot, graph }) : reportedTimes(found.length)
    if (misfit === undefined) fitting.set(key, found[0]!)
    else unfit.set(key, misfit)
  }
  // A slot lives and dies as a whole: two lives of one number cannot both go on.
  for (const { task, slot } of placement.tasks) {
    const own = fitting.get(taskKey(task))
    if (own === undefined) continue
    const strange = placement.tasks.some((other) => {
      const neighbour = fitting.get(taskKey(other.task))
      return other.slot === slot && neighbour !== undefined && neighbour.survivor !== own.survivor
    })
    if (strange) unfit.set(taskKey(task), `two lives of slot ${slot} run on`)
  }
  // Connected to each other: a neighbour that was restarted meanwhile hears nothing of this attempt.
  const attempts = new Map([...fitting].map(([key, { task }]) => [key, task.attempt]))
  for (const [key, { task }] of fitting) {
    const misfit = disconnected(graph, task, attempts)
    if (misfit !== undefined && !unfit.has(key)) unfit.set(key, misfit)
  }
  const failed = placement.tasks.map(({ task }) => task).filter((task) => unfit.has(taskKey(task)))
  const scope = failoverScope({ graph, strategy, placement, failed })
  const restart = new Set(scope.tasks.map(taskKey))
  const adopted = placement.tasks.filter(({ task }) => !restart.has(taskKey(task)))
  const slots = new Map(adopted.map(({ task, slot }) => [slot, fitting.get(taskKey(task))!.survivor]))
  const used = new Set(slots.values())
  return {
    slots: [...slots].map(([number, survivor]) => ({ number, survivor })),
    tasks: adopted.map(({ task }) => fitting.get(taskKey(task))!.task),
    restart: scope.tasks,
    given: survivors.filter((survivor) => !used.has(survivor)),
    unfit,
  }
}

/**
 * A slot that a coordinator could not reach and gave up may run on, and be the first to find the next one: what it has read was read again
 * elsewhere, and what it has pre-committed was swept.
 */
function notGivenUp(
  survivors: readonly SurvivingSlot[],
  deployed: readonly SlotId[] | undefined,
): readonly SurvivingSlot[] {
  return deployed === undefined ? survivors : survivors.filter(({ slot }) => deployed.includes(slot))
}

function reportedTimes(times: number): string {
  return times === 0 ? 'nobody runs it' : `${times} slots run it`
}

interface Reported {
  readonly survivor: SurvivingSlot
  readonly task: SurvivingTask
  /** Where the placement has it. */
  readonly slot: number
  readonly graph: JobGraph
}

function misfitOf({ survivor, task, slot, graph }: Reported): string | undefined {
  const { version, graphHash } = survivor.registered
  if (version !== CONTROL_VERSION) return `its slot speaks version ${version} of the control messages`
  if (graphHash !== graph.hash) return `its slot runs another graph (${graphHash})`
  if (slotNumberOf(survivor.slot) !== slot) return `it runs in slot ${survivor.slot}`
  if (task.status === 'restoring') return 'its state is still being restored'
  if (task.status === 'halted') return 'it stands behind a stop barrier'
  if (task.status === 'finished' && task.final === undefined) return 'its final state is missing'
  return undefined
}

function disconnected(
  graph: JobGraph,
  { task, inputs, outputs }: SurvivingTask,
  attempts: ReadonlyMap<TaskKey, Attempt>,
): string | undefined {
  const vertex = vertexOf(graph, task.vertex)
  const expectedOutputs = vertex.outputs.flatMap((id) => consumersOf(graph.edges[id]!, task.subtask, graph))
  const expectedInputs = vertex.inputs.flatMap((id) => producersOf(graph.edges[id]!, task.subtask, graph))
  const target = ({ channel }: ChannelPeer): TaskId => ({
    vertex: graph.edges[channel.edge]!.target,
    subtask: channel.consumer,
  })
  const source = ({ channel }: ChannelPeer): TaskId => ({
    vertex: graph.edges[channel.edge]!.source,
    subtask: channel.producer,
  })
  return (
    differs(expectedOutputs, new Map(outputs.map((peer) => [taskKey(target(peer)), peer.attempt])), attempts) ??
    differs(expectedInputs, new Map(inputs.map((peer) => [taskKey(source(peer)), peer.attempt])), attempts)
  )
}

function differs(
  expected: readonly TaskId[],
  connected: ReadonlyMap<TaskKey, Attempt>,
  attempts: ReadonlyMap<TaskKey, Attempt>,
): string | undefined {
  for (const task of expected) {
    const key = taskKey(task)
    const there = connected.get(key)
    const now = attempts.get(key)
    if (there === undefined) return `it has no channel to ${key}`
    if (now === undefined) return `${key}, which it is connected to, does not run on`
    if (!sameAttempt(there, now))
      return `it is connected to attempt ${formatAttempt(there)} of ${key}, and ${formatAttempt(now)} runs`
  }
  return undefined
}
