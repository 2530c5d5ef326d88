// What each subtask is told when it is deployed: its attempt, its neighbours' attempts and addresses, its share of the restore point.

import { subtaskIndex, taskKey } from '../base/ids.ts'
import type { CheckpointId, JobId, SubtaskIndex, TaskId, VertexId } from '../base/ids.ts'
import { invariant } from '../base/errors.ts'
import type { TaskDeployment } from '../control/contract.ts'
import type { JobEdge, JobGraph } from '../job/contract.ts'
import { vertexOf } from '../job/vertex-of.ts'
import type { ChannelPeer } from '../network/contract.ts'
import { creditAddress, dataAddress } from '../network/subjects.ts'
import type { Execution } from './execution.ts'
import type { RestorePlan } from './restore.ts'

export interface DeploymentOptions {
  readonly graph: JobGraph
  readonly job: JobId
  readonly tasks: readonly TaskId[]
  readonly execution: Execution
  readonly plan: RestorePlan
  /** Ids ≤ this belong to an earlier life. */
  readonly newestKnown: CheckpointId
}

export function deploymentsOf(options: DeploymentOptions): TaskDeployment[] {
  const { graph, execution, plan, newestKnown } = options
  return options.tasks.map((task) => {
    const assignment = plan.subtasks.get(taskKey(task))
    const vertex = vertexOf(graph, task.vertex)
    invariant(assignment !== undefined, `no subtask ${taskKey(task)} in the restore plan`)
    return {
      task,
      attempt: execution.attemptOf(task),
      outputs: vertex.outputs.flatMap((id) => outputPeers(graph.edges[id]!, task.subtask, options)),
      inputs: vertex.inputs.flatMap((id) => inputPeers(graph.edges[id]!, task.subtask, options)),
      restored: assignment.restored,
      newestKnownCheckpoint: newestKnown,
      finishedBefore: assignment.finishedBefore,
    }
  })
}

function outputPeers(
  edge: JobEdge,
  producer: SubtaskIndex,
  { graph, job, execution }: DeploymentOptions,
): ChannelPeer[] {
  return consumersOf(edge, producer, graph).map((task) => {
    const attempt = execution.attemptOf(task)
    const address = dataAddress(job, execution.slotOf(task), { task, attempt })
    return { channel: { edge: edge.id, producer, consumer: task.subtask }, attempt, address }
  })
}

function inputPeers(
  edge: JobEdge,
  consumer: SubtaskIndex,
  { graph, job, execution }: DeploymentOptions,
): ChannelPeer[] {
  return producersOf(edge, consumer, graph).map((task) => {
    const attempt = execution.attemptOf(task)
    const address = creditAddress(job, execution.slotOf(task), { task, attempt })
    return { channel: { edge: edge.id, producer: task.subtask, consumer }, attempt, address }
  })
}

/** The subtasks that a producer's subtask sends to over an edge. */
export function consumersOf(edge: JobEdge, producer: SubtaskIndex, graph: JobGraph): TaskId[] {
  return neighbours(edge, producer, edge.target, graph)
}

/** The subtasks that a consumer's subtask hears from over an edge. */
export function producersOf(edge: JobEdge, consumer: SubtaskIndex, graph: JobGraph): TaskId[] {
  return neighbours(edge, consumer, edge.source, graph)
}

/** The subtasks at the other end: the same one of a forward edge, all of any other. */
function neighbours(edge: JobEdge, own: SubtaskIndex, vertex: VertexId, graph: JobGraph): TaskId[] {
  if (edge.partitioning === 'forward') return [{ vertex, subtask: own }]
  const { parallelism } = vertexOf(graph, vertex)
  return Array.from({ length: parallelism }, (_, index) => ({ vertex, subtask: subtaskIndex(index) }))
}
