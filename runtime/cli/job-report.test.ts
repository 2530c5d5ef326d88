import { expect, it } from 'vitest'
import { jobId, requestId, start } from '../base/ids.ts'
import { headKeeperOf } from '../local/local-jobs.ts'
import { checkpointRef, savepointRef } from '../rest/test-job.ts'
import { completeSavepoint, newJob, requestSavepoint, rescale } from '../storage/head.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { jobReport } from './job-report.ts'

it("the checkpoint behind a rescale is the job's, and no savepoint, in what is told of it", async () => {
  const world = { files: new MemoryFiles(), environment: manualEnvironment(), folder: '/w' }
  const stored = { id: jobId('flights'), storeFolder: '/w/.millrace/flights' }
  const keeper = await headKeeperOf(stored, world)
  await keeper.begin(() => newJob({ job: stored.id, start: start(1), parallelism: 1, maxParallelism: 8 }))
  await keeper.reserveIds(2)
  await keeper.update((head) =>
    completeSavepoint(requestSavepoint(head, { request: requestId('a'), mode: 'savepoint' }), {
      request: requestId('a'),
      manifest: savepointRef(1),
    }),
  )
  await keeper.update((head) =>
    rescale(head, {
      request: requestId('b'),
      parallelism: 2,
      manifest: checkpointRef(2),
      retainedMax: 3,
      commitsPending: false,
    }),
  )
  const report = await jobReport(stored, world)
  expect(report.savepoints.map(({ id, kind }) => [id, kind])).toEqual([[1, 'savepoint']])
  expect(report.retained.map(({ id }) => id)).toEqual([2])
})
