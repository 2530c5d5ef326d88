import { describe, expect, it } from 'vitest'
import { checkpointId, jobId, requestId, start } from '../base/ids.ts'
import { completeSavepoint, newJob, raiseIncarnation, requestSavepoint, stop } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { MemoryHeadStore } from '../storage/memory-store.ts'
import { manifestKey } from '../storage/paths.ts'
import { manualEnvironment, settlePromises } from '../testkit/manual-clock.ts'
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
  return new Savepoints({
    waiting: new Map(),
    keeper,
    log: () => undefined,
    handle: unexpected,
    refuseRescale: unexpected,
    onOvertaken: unexpected,
    onBroken: unexpected,
  })
}

describe('a savepoint that is asked for when the job has just stopped with another', () => {
  it('hears that the job has ended, and breaks nothing', async () => {
    const savepoints = await stopped()
    expect(await savepoints.ask({ request: requestId('late'), mode: 'savepoint' })).toEqual({
      outcome: 'ended',
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

describe('a savepoint that fails', () => {
  const request = requestId('asked')
  const asked = 'info: a snapshot is asked for'
  const failed = 'warn: a snapshot that was asked for failed'

  /** It was asked for and triggered; then another coordinator took the job over, and `change` is what that one did. */
  async function subject(change: ((head: Head) => Head) | undefined) {
    const heads = new MemoryHeadStore()
    const keeper = await HeadKeeper.open(heads, manualEnvironment())
    await keeper.begin(() => newJob({ job: jobId('job'), start: start(1), parallelism: 1, maxParallelism: 8 }))
    await keeper.reserveIds(10)
    const told: string[] = []
    const savepoints = new Savepoints({
      waiting: new Map(),
      keeper,
      log: (level, message) => told.push(`${level}: ${message}`),
      handle: ({ type }) => told.push(type),
      refuseRescale: () => undefined,
      onOvertaken: ({ outcome }) => told.push(outcome),
      onBroken: (error) => told.push(String(error)),
    })
    const answers: unknown[] = []
    void savepoints.ask({ request, mode: 'savepoint' }).then((answer) => answers.push(answer))
    await settlePromises()
    if (change !== undefined) {
      const other = await HeadKeeper.open(heads, manualEnvironment())
      await other.begin((head) => raiseIncarnation(head!))
      await other.update(change)
    }
    await savepoints.failed(request, 'expired')
    await settlePromises()
    return { savepoints, told, answers, keeper }
  }

  it('is answered so once HEAD says so', async () => {
    const { told, answers, keeper } = await subject(undefined)
    expect(answers).toEqual([{ outcome: 'failed', detail: 'expired' }])
    expect(told).toEqual([asked, 'savepointRequested', failed])
    expect((await keeper.readBegun()).savepointRequests).toEqual([])
  })

  it('is not answered so where the next coordinator may still complete it: whoever waits hears to ask again (rule 21)', async () => {
    const { savepoints, told, answers, keeper } = await subject((head) => head)
    expect([answers, told]).toEqual([[], [asked, 'savepointRequested', 'fenced']])
    expect((await keeper.readBegun()).savepointRequests).toMatchObject([{ request }])
    savepoints.close('another coordinator runs the job')
    await settlePromises()
    expect(answers).toEqual([{ outcome: 'ended', detail: 'another coordinator runs the job' }])
  })

  it('is answered as completed where the next coordinator has completed it', async () => {
    const id = checkpointId(1)
    const path = manifestKey(id, 'savepoint')
    const manifest = { id, kind: 'savepoint', path, start: start(1), completedAtMs: 0, bytes: 0 } as const
    const { told, answers } = await subject((head) => completeSavepoint(head, { request, manifest }))
    expect(told).not.toContain(failed)
    expect(answers).toEqual([{ outcome: 'completed', manifest }])
  })
})
