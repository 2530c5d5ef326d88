import { describe, expect, it } from 'vitest'

import { taskKey } from '../base/ids.ts'
import type { Attempt, CheckpointId, SubtaskIndex, VertexId } from '../base/ids.ts'
import type { SubtaskSnapshot } from './contract.ts'
import { PendingSnapshot } from './pending.ts'
import type { Subtask } from './subtasks.ts'

function subtaskOf(vertex: string, index: number, final?: SubtaskSnapshot): Subtask {
  const task = { vertex: vertex as VertexId, subtask: index as SubtaskIndex }
  const attempt = {} as Attempt
  const state =
    final === undefined
      ? ({ status: 'running', attempt } as const)
      : ({ status: 'finished', attempt, snapshot: final } as const)
  return { task, key: taskKey(task), state }
}

describe('what a pending snapshot has collected', () => {
  it('is in the order of the graph, in whatever order it was acknowledged and whoever had finished', () => {
    const snapshot = {} as SubtaskSnapshot
    const subtasks = [
      subtaskOf('numbers', 0),
      subtaskOf('numbers', 1, snapshot),
      subtaskOf('sums', 0),
      subtaskOf('sums', 1),
    ]
    const options = {
      id: 1 as CheckpointId,
      kind: 'checkpoint',
      request: undefined,
      triggeredAtMs: 0,
      deadlineMs: 1,
    } as const
    const pending = new PendingSnapshot(options, subtasks)
    for (const index of [3, 0, 2]) pending.acknowledge(subtasks[index]!, snapshot)
    expect([...pending.collected().subtasks.keys()]).toEqual(subtasks.map(({ key }) => key))
  })
})
