import { describe, expect, it } from 'vitest'
import { checkpointId, incarnation, jobId, subtaskIndex, taskKey, vertexId } from '../base/ids.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { deploymentsOf } from './deployment.ts'
import { Execution } from './execution.ts'
import { placeTasks } from './placement.ts'
import type { RestorePlan } from './restore.ts'

const graph = graphOf({
  vertices: [
    { id: 'source', parallelism: 2 },
    { id: 'map', parallelism: 2 },
    { id: 'count', parallelism: 3 },
  ],
  edges: [
    ['source', 'forward', 'map'],
    ['map', 'hash', 'count'],
  ],
})

function subject() {
  const placement = placeTasks(graph)
  const slots = {
    start: () => {
      throw new Error('nothing starts here')
    },
    terminate: async () => undefined,
  }
  const execution = new Execution({
    graph,
    job: jobId('job'),
    incarnation: incarnation(4),
    rescaledTo: undefined,
    environment: manualEnvironment(),
    placement,
    slots,
    onMessage: () => undefined,
    onFailure: () => undefined,
  })
  const tasks = placement.tasks.map(({ task }) => task)
  execution.renew(tasks)
  const subtasks = new Map(
    tasks.map((task) => [taskKey(task), { restored: { operators: {} }, finishedBefore: task.vertex === 'source' }]),
  )
  const plan: RestorePlan = {
    id: checkpointId(5),
    subtasks,
    finishedVertices: new Set(),
    finals: new Map(),
    enumerators: new Map(),
    committablesWithoutWriter: new Map(),
  }
  return { execution, plan, tasks }
}

describe('a deployment', () => {
  it("joins both ends of every channel with each other's attempts and addresses", () => {
    const { execution, plan, tasks } = subject()
    const deployments = deploymentsOf({
      graph,
      job: jobId('job'),
      tasks,
      execution,
      plan,
      newestKnown: checkpointId(9),
    })
    const ends = new Map<string, string[]>()
    for (const { task, attempt, outputs, inputs } of deployments) {
      for (const { channel, attempt: peer } of [...outputs, ...inputs]) {
        const key = `${channel.edge}:${channel.producer}>${channel.consumer}`
        const own = `${task.vertex}/${task.subtask}@${attempt.number} knows ${peer.number}`
        ends.set(key, [...(ends.get(key) ?? []), own])
      }
    }
    expect([...ends.keys()].toSorted()).toEqual([
      '0:0>0',
      '0:1>1',
      '1:0>0',
      '1:0>1',
      '1:0>2',
      '1:1>0',
      '1:1>1',
      '1:1>2',
    ])
    expect(ends.get('1:1>2')).toEqual(['map/1@4 knows 7', 'count/2@7 knows 4'])
    for (const both of ends.values()) expect(both).toHaveLength(2)
    expect(
      deployments.map(({ newestKnownCheckpoint, finishedBefore }) => [newestKnownCheckpoint, finishedBefore])[0],
    ).toEqual([9, true])
  })

  it('of some subtasks names the present attempts of all, and addresses of the slots that live now', () => {
    const { execution, plan } = subject()
    const again = { vertex: vertexId('count'), subtask: subtaskIndex(2) }
    const before = execution.slotOf(again)
    execution.renew([again])
    expect(execution.slotOf(again)).not.toBe(before)
    const [deployment] = deploymentsOf({
      graph,
      job: jobId('job'),
      tasks: [again],
      execution,
      plan,
      newestKnown: checkpointId(9),
    })
    expect(deployment!.attempt).toEqual({ incarnation: 4, number: 8 })
    expect(deployment!.inputs.map(({ attempt, address }) => [attempt.number, address.slot])).toEqual([
      [3, '0#4.1'],
      [4, '1#4.1'],
    ])
  })
})
