import { describe, expect, it } from 'vitest'
import { checkpointId, jobId, requestId, start } from '../base/ids.ts'
import { newJob, requestSavepoint, stop } from '../storage/head.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { MemoryHeadStore } from '../storage/memory-store.ts'
import { manifestKey } from '../storage/paths.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { Savepoints } from './savepoints.ts'

/** A job whose savepoint to stop with has just completed, before the rest of the coordinator heard of it. */
async function stopped(): Promise<Savepoints> {
  const keeper = await HeadKeeper.open(new MemoryHeadStore(), manualEnvironment())
  await keeper.begin(() => newJob({ job: jobId('job'), start: start(1), parallelism: 1, maxParallelism: 8 }))
  await keeper.reserveIds(10)
  const id = checkpointId(1)
  const path = manifestKey(id, 'savepoint')
  const manifest = { id, kind: 'savepoint', path, start: start(1), completedAtMs: 0, bytes: 0 } as const
  await keeper.update((head) =>
    stop(requestSavepoint(head, { request: requestId('stop'), mode: 'stop' }), {
      request: requestId('stop'),
      manifest,
      commitsPending: false,
    }),
  )
  const unexpected = (): never => {
    throw new Error('nothing is triggered, and nothing is broken')
  }
  return new Savepoints({ keeper, handle: unexpected, onOvertaken: unexpected, onBroken: unexpected })
}

describe('a savepoint that is asked for when the job has just stopped with another', () => {
  it('is answered as failed, and breaks nothing', async () => {
    const savepoints = await stopped()
    expect(await savepoints.ask({ request: requestId('late'), mode: 'savepoint' })).toEqual({
      outcome: 'failed',
      detail: 'the job has ended',
    })
  })

  it('is answered by that one if it is the same request', async () => {
    const savepoints = await stopped()
    expect(await savepoints.ask({ request: requestId('stop'), mode: 'stop' })).toMatchObject({
      outcome: 'completed',
      manifest: { id: 1 },
    })
  })
})
