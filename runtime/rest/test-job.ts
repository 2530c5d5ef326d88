// A job behind REST's interface, for tests: it does what it is told to, and remembers what it was asked.

import {
  checkpointId,
  edgeId,
  incarnation,
  jobId,
  slotId,
  start,
  subtaskIndex,
  taskKey,
  vertexId,
} from '../base/ids.ts'
import type { RequestId, SlotId, TaskId, TaskKey } from '../base/ids.ts'
import type { SavepointAnswer } from '../coordinator/coordinator-contract.ts'
import type { JobGraph } from '../job/contract.ts'
import { completeSavepoint, newJob, requestSavepoint } from '../storage/head.ts'
import type { Head, ManifestRef, SavepointRequest } from '../storage/head-contract.ts'
import { manifestKey } from '../storage/paths.ts'
import type { ControlledJob, ControlledTask } from './controlled-job.ts'

export class TestJob implements ControlledJob {
  readonly asked: string[] = []
  head: Head = {
    ...newJob({ job: jobId('orders'), start: start(1), parallelism: 1, maxParallelism: 8 }),
    reservedIds: 9,
  }
  execution: ControlledJob['execution'] = { allRunning: true, tasks: tasks(), slotOf: slotOfTask }
  checkpoints: ControlledJob['checkpoints'] = {
    pending: undefined,
    counters: { triggered: 3, completed: 2, failed: 1, consecutiveFailures: 1 },
    lastCompleted: checkpointId(2),
  }
  workers: ControlledJob['workers']
  rescaledTo: number | undefined
  readonly #waiting = new Map<RequestId, (answer: SavepointAnswer) => void>()

  savepoint(request: RequestId): Promise<SavepointAnswer> {
    return this.#ask('savepoint', request)
  }

  stop({ drain, request }: { readonly drain: boolean; readonly request: RequestId }): Promise<SavepointAnswer> {
    return this.#ask(drain ? 'drain' : 'stop', request)
  }

  rescale(parallelism: number, request: RequestId): Promise<SavepointAnswer> {
    return this.#ask('rescale', request, parallelism)
  }

  suspend(): void {
    this.asked.push('suspend')
  }

  cancel(): void {
    this.asked.push('cancel')
  }

  checkpoint(): void {
    this.asked.push('checkpoint')
  }

  /** HEAD has the savepoint, and whoever asked for it is told. */
  complete(request: RequestId, id: number): void {
    this.head = completeSavepoint(this.head, { request, manifest: savepointRef(id) })
    this.#waiting.get(request)!({ outcome: 'completed', manifest: savepointRef(id) })
  }

  answer(request: RequestId, answer: SavepointAnswer): void {
    this.#waiting.get(request)!(answer)
  }

  #ask(mode: SavepointRequest['mode'], request: RequestId, parallelism?: number): Promise<SavepointAnswer> {
    this.asked.push([mode, request, ...(parallelism === undefined ? [] : [parallelism])].join(' '))
    this.head = requestSavepoint(this.head, { request, mode, ...(parallelism !== undefined && { parallelism }) })
    return new Promise((resolve) => this.#waiting.set(request, resolve))
  }
}

export function savepointRef(id: number): ManifestRef {
  return {
    id: checkpointId(id),
    kind: 'savepoint',
    path: manifestKey(checkpointId(id), 'savepoint'),
    start: start(1),
    completedAtMs: 1_700_000_000_000,
    bytes: 100,
  }
}

export function checkpointRef(id: number): ManifestRef {
  return { ...savepointRef(id), kind: 'checkpoint', path: manifestKey(checkpointId(id), 'checkpoint') }
}

/** Each subtask has one to itself, named after its vertex. */
export function slotOfTask({ vertex, subtask }: TaskId): SlotId {
  return slotId(`${vertex}-${subtask}`)
}

function tasks(): ReadonlyMap<TaskKey, ControlledTask> {
  const source = { vertex: vertexId('orders'), subtask: subtaskIndex(0) }
  const sums = { vertex: vertexId('sums'), subtask: subtaskIndex(0) }
  const attempt = { incarnation: incarnation(1), number: 2 }
  const metrics = {
    records_in_total: 10,
    busy_ms_total: 5.5,
    current_watermark_ms: Number.MAX_SAFE_INTEGER,
    state_entries: 4,
    'user.cancelled_orders': 3,
  }
  return new Map<TaskKey, ControlledTask>([
    [taskKey(source), { task: source, attempt, status: 'running', report: undefined }],
    [taskKey(sums), { task: sums, attempt, status: 'running', report: { metrics } }],
  ])
}

export const testGraph = {
  name: 'orders',
  hash: '0123',
  maxParallelism: 8,
  settings: { checkpointIntervalMs: 10_000 },
  vertices: [
    {
      id: vertexId('orders'),
      name: 'orders',
      parallelism: 1,
      maxParallelism: 8,
      slotSharingGroup: 'default',
      chain: [{ uid: 'orders', uidGiven: true, name: 'source', outputs: [] }],
      keySelectors: [],
      inputs: [],
      outputs: [edgeId(0)],
    },
  ],
  edges: [
    {
      id: edgeId(0),
      source: vertexId('orders'),
      target: vertexId('sums'),
      input: 0,
      partitioning: 'hash',
    },
  ],
} as unknown as JobGraph
