// Snapshots of a small job, for tests of manifests and of what is restored from them.

import { checkpointId, keyGroup, subtaskIndex, taskKey, vertexId } from '../base/ids.ts'
import type { TaskId, TaskKey } from '../base/ids.ts'
import type { JobGraph } from '../job/contract.ts'
import type { CodecDescription } from '../record/contract.ts'
import { keyGroupRange } from '../record/key-group.ts'
import type {
  Committable,
  KeyedSnapshot,
  OperatorSnapshot,
  OperatorStateSnapshot,
  Redistribution,
  StateHandle,
  SubtaskSnapshot,
} from './contract.ts'
import type { CollectedSnapshot } from './core-contract.ts'

export const codec: CodecDescription = { version: 1, kind: 'bytes', fingerprint: 'b', layout: null }

export function handleIn(object: string, offset = 0): StateHandle {
  return { kind: 'object', object, offset, length: 10, crc: 7 }
}

/** Every second group is empty. */
export function keyedOf(range: {
  readonly parallelism: number
  readonly subtask: number
  readonly maxParallelism: number
}): KeyedSnapshot {
  const { first, last } = keyGroupRange(range.parallelism, subtaskIndex(range.subtask), range.maxParallelism)
  const groups = Array.from({ length: last - first + 1 }, (_, index) => {
    const group = first + index
    const watermark = 1000 + range.subtask
    return {
      keyGroup: keyGroup(group),
      watermark,
      ...(group % 2 === 0 && { handle: handleIn('chk-7/counts', group * 10) }),
    }
  })
  return { format: 1, states: [{ name: 'count', kind: 'value', codecs: { key: codec, value: codec } }], groups }
}

export function listOf(redistribution: Redistribution, object: string): OperatorStateSnapshot {
  return { redistribution, codec, items: handleIn(object), count: 2 }
}

export function transaction(name: string, checkpoint = 7): Committable {
  return { checkpoint: checkpointId(checkpoint), transaction: name, payload: { file: name } }
}

export function subtaskSnapshot(
  operators: Readonly<Record<string, OperatorSnapshot>>,
  finished = false,
): SubtaskSnapshot {
  return { operators, finished, bytes: 100, syncMs: 1, asyncMs: 2, alignmentMs: 3 }
}

/** Checkpoint 7 of a graph; `snapshotOf` says what each subtask acknowledged. */
export function collectedOf(
  graph: JobGraph,
  snapshotOf: (vertex: string, subtask: number) => SubtaskSnapshot,
): CollectedSnapshot {
  const subtasks = new Map<TaskKey, { readonly task: TaskId; readonly snapshot: SubtaskSnapshot }>()
  for (const { id, parallelism } of graph.vertices) {
    for (let index = 0; index < parallelism; index++) {
      const task = { vertex: vertexId(id), subtask: subtaskIndex(index) }
      subtasks.set(taskKey(task), { task, snapshot: snapshotOf(id, index) })
    }
  }
  return { id: checkpointId(7), kind: 'checkpoint', triggeredAtMs: 12_345, subtasks, request: undefined }
}
