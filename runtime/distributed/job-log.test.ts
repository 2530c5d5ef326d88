import { describe, expect, it } from 'vitest'
import { checkpointId, jobId, requestId, start } from '../base/ids.ts'
import { newJob } from '../storage/head.ts'
import type { ManifestRef } from '../storage/head-contract.ts'
import { parseObjectKey } from '../storage/paths.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { jobLog } from './job-log.ts'

describe('the log of a coordinator', () => {
  it('tells when the job begins and runs, of a rescale, and of savepoints, not of each checkpoint', () => {
    const { environment, lines } = loggedEnvironment()
    const told = jobLog(environment.log)
    const head = newJob({ job: jobId('orders'), start: start(3), parallelism: 2, maxParallelism: 8 })
    told.began(head, { kind: 'manifest', manifest: manifestOf('checkpoint', 4) })
    told.running()
    told.checkpointCompleted(completed('checkpoint', 5))
    told.checkpointCompleted(completed('savepoint', 6))
    told.rescaled(4)
    told.began({ ...head, rescaledTo: 4 }, { kind: 'empty' })
    told.running()
    expect(lines()).toEqual([
      ['the job begins', { start: 3, incarnation: 1, parallelism: 2, from: 'path-4' }],
      ['all subtasks run', { start: 3, incarnation: 1, parallelism: 2 }],
      ['a savepoint completed', { id: 6, path: 'path-6', durationMs: 12, request: 'asked' }],
      ['the job is rescaled', { parallelism: 4 }],
      ['the job begins', { start: 3, incarnation: 1, parallelism: 4, from: 'the beginning' }],
      ['all subtasks run', { start: 3, incarnation: 1, parallelism: 4 }],
    ])
  })
})

function loggedEnvironment() {
  const { lines, ...environment } = manualEnvironment()
  return { environment, lines: () => lines.map(({ message, fields }) => [message, fields]) }
}

function manifestOf(kind: ManifestRef['kind'], id: number): ManifestRef {
  return { id: checkpointId(id), kind, path: parseObjectKey(`path-${id}`), start: start(3), completedAtMs: 0, bytes: 1 }
}

function completed(kind: ManifestRef['kind'], id: number) {
  const manifest = manifestOf(kind, id)
  const collected = { id: manifest.id, kind, triggeredAtMs: 0, subtasks: new Map(), request: requestId('asked') }
  return { manifest, collected, durationMs: 12 }
}
