// The network between any two processes cut for a while, in one direction or both, and processes that are frozen and come back. What a
// frozen or cut-off process still does is refused, and the job is exact.
//
// With MILLRACE_NIGHTLY every way is cut in every direction, and processes are frozen for the 60 s of the scenarios.

import { describe, expect, it } from 'vitest'
import type { FailpointName } from '../../runtime/base/failpoints.ts'
import type { DistributedJob } from './support/distributed-job.ts'
import { distributedWorld } from './support/distributed-world.ts'
import type { Way } from './support/job-network.ts'
import type { Direction } from './support/proxy.ts'
import type { ServerProcess } from './support/server-process.ts'

const world = distributedWorld('partitions')
const isNightly = (process.env['MILLRACE_NIGHTLY'] ?? '') !== ''
/** Longer than the silence after which a worker is lost (10 s). */
const frozenMs = isNightly ? 60_000 : 13_000
const shortMs = isNightly ? 20_000 : 4_000
const testDeadlineMs = 600_000

const natsCuts: readonly { readonly process: string; readonly direction?: Direction }[] = isNightly
  ? ['worker-0', 'coordinator'].flatMap((process) => [
      { process },
      { process, direction: 'toServer' },
      { process, direction: 'toClient' },
    ])
  : [{ process: 'worker-0' }, { process: 'coordinator', direction: 'toServer' }]
const s3Cuts: readonly { readonly process: string; readonly direction: Direction }[] = isNightly
  ? ['worker-0', 'coordinator'].flatMap((process) => [
      { process, direction: 'toServer' },
      { process, direction: 'toClient' },
    ])
  : [
      { process: 'worker-0', direction: 'toClient' },
      { process: 'coordinator', direction: 'toServer' },
    ]

interface Cut {
  readonly process: string
  readonly from: Way
  /** Default: both. */
  readonly direction?: Direction
  readonly forMs: number
}

/** Nothing passes in that direction, and nobody is told; what was sent arrives afterwards, as TCP has it. Sees that it was felt. */
async function cut(job: DistributedJob, { process, from, direction, forMs }: Cut): Promise<void> {
  const way = job.network!.way(process, from)
  way.weather({ kind: 'hold' }, direction)
  way.accepts = 'silent'
  const connections = way.accepted
  let held = 0
  await passed(job, forMs, () => {
    held = Math.max(held, way.waiting('toServer') + way.waiting('toClient'))
  })
  // A process that is still about to connect anew has nothing on its way: then its attempts are what is held up.
  expect(held + way.accepted - connections, `cut between ${process} and ${from}`).toBeGreaterThan(0)
  way.clear()
}

/** Stopped by its own failpoint, and seen to stand there. */
async function heldAt(job: DistributedJob, process: ServerProcess, place: FailpointName): Promise<void> {
  const stands = (): boolean => process.stopped && process.output.includes(`held at ${place}\n`)
  await job.until(`${process.name} to be held at ${place}`, stands)
}

/** For what is a matter of time alone. */
async function passed(job: DistributedJob, ms: number, look: () => void = () => undefined): Promise<void> {
  const endMs = performance.now() + ms
  const isOver = (): boolean => {
    look()
    return performance.now() >= endMs
  }
  await job.until(`${ms} ms to pass`, isOver, ms + 10_000)
}

describe('a network cut between', () => {
  it(
    'a process and NATS is a pause, in one direction or both: nothing restarts, and the job is exact',
    async () => {
      const job = await world.started({ network: true })
      await job.checkpoints(1)
      for (const { process, direction } of natsCuts) {
        await cut(job, { process, from: 'nats', forMs: shortMs, ...(direction && { direction }) })
        await job.checkpoints(1)
      }
      expect(await job.status()).toMatchObject({ incarnation: 1, restarts: 0 })
      await world.expectExactToTheEnd(job)
    },
    testDeadlineMs,
  )

  it(
    'a process and S3 costs checkpoints at most',
    async () => {
      const args = { stateBytes: 20_000, checkpointMs: 500 }
      const job = await world.started({ network: true, args })
      await job.checkpoints(1)
      for (const { process, direction } of s3Cuts) {
        await cut(job, { process, from: 's3', direction, forMs: shortMs })
        await job.checkpoints(1)
      }
      expect(await job.status()).toMatchObject({ incarnation: 1, restarts: 0 })
      await world.expectExactToTheEnd(job)
    },
    testDeadlineMs,
  )

  it(
    'a worker and its coordinator is borne for some seconds, and then is the loss of the worker',
    async () => {
      const job = await world.started({ network: true })
      await job.checkpoints(1)
      for (const direction of isNightly ? ([undefined, 'toServer', 'toClient'] as const) : (['toServer'] as const)) {
        const way = { process: 'worker-0', from: 'coordinator', ...(direction && { direction }) } as const
        const { restarts } = await job.status()
        await cut(job, { ...way, forMs: 4_000 })
        await job.checkpoints(1)
        expect((await job.status()).restarts, `${direction} for some seconds`).toBe(restarts)
        await cut(job, { ...way, forMs: 13_000 })
        await job.checkpoints(1)
        expect((await job.status()).restarts, `${direction} for longer`).toBeGreaterThan(restarts)
      }
      await world.expectExactToTheEnd(job)
    },
    testDeadlineMs,
  )
})

describe('a frozen process', () => {
  it(
    'that is a worker is replaced by a spare one; what it still does when it wakes up is refused',
    async () => {
      const job = await world.started({ workers: 0 })
      // Then it stands before a pre-commit, which is the first thing that it does when it wakes up.
      await job.startWorker('worker-0', 'sink.preCommit.before:hold:15')
      await job.startWorker('worker-1')
      await job.checkpoints(1)
      await job.startWorker('worker-2')
      const worker = job.workers.get('worker-0')!

      worker.freeze()
      await passed(job, 3_000)
      worker.thaw()
      await job.checkpoints(1)
      expect((await job.status()).restarts).toBe(0)

      await heldAt(job, worker, 'sink.preCommit.before')
      const frozenAtMs = performance.now()
      await job.until('its loss', async () => (await job.status())?.restarts === 1)
      await job.checkpoints(1)
      await passed(job, Math.max(0, frozenMs - (performance.now() - frozenAtMs)))
      // What there was of its transactions was aborted when it was given up, and nobody else's are.
      const before = await world.ledger.report({ book: job.id })
      worker.thaw()
      await job.until('its late transaction to be refused, or aborted behind it', async () => {
        const { refused, aborted } = await world.ledger.report({ book: job.id })
        return refused > before.refused || aborted > before.aborted
      })
      await job.until('it to be back', async () => {
        const { body } = await job.request('GET', '/v1/workers')
        return body.workers.every(({ state }: { state: string }) => state === 'registered') && body.slotsOffered === 3
      })
      await job.checkpoints(1)
      expect(await job.status()).toMatchObject({ incarnation: 1, restarts: 1 })
      await world.expectExactToTheEnd(job)
    },
    testDeadlineMs,
  )

  it(
    'that is the coordinator is overtaken by another one, which adopts all; waking up it ends as fenced',
    async () => {
      const job = await world.started({ network: true })
      await job.checkpoints(1)
      job.coordinator.freeze()
      await passed(job, 3_000)
      job.coordinator.thaw()
      await job.checkpoints(1)
      expect(await job.status()).toMatchObject({ incarnation: 1, restarts: 0 })

      // Then it stands before a swap of HEAD, which is the first thing that it does when it wakes up.
      await job.coordinator.kill()
      await heldAt(job, await job.launchCoordinator('coordinator.swap.before:hold:3'), 'coordinator.swap.before')
      const frozenAtMs = performance.now()
      const former = await job.rival()
      await job.checkpoints(1)
      await passed(job, Math.max(0, frozenMs - (performance.now() - frozenAtMs)))
      former.thaw()
      await job.until('the former one to end', () => !former.running)
      expect(former.end, former.output).toEqual({ code: 3, signal: null })
      expect(former.output).toContain('another coordinator runs the job')
      await job.checkpoints(1)
      expect(await job.status()).toMatchObject({ incarnation: 3, restarts: 0 })
      await world.expectExactToTheEnd(job)
    },
    testDeadlineMs,
  )

  it(
    'that was overtaken under its supervisor takes the job back only once the other one is gone',
    async () => {
      const job = await world.started({ network: true, supervised: true })
      await job.checkpoints(1)
      const place = job.config.coordinator
      const former = await job.rival()
      const overtaken = (): number => former.output.split('another coordinator runs the job').length - 1
      await job.until('the former one to be overtaken', () => overtaken() === 1)
      // It answers, and waits.
      await job.until('the former one to wait', async () => {
        const answer = await fetch(`http://${place.restAddress}/readyz`).catch(() => undefined)
        const { waitsFor } = ((await answer?.json()) ?? {}) as { readonly waitsFor?: string }
        return answer?.status === 503 && waitsFor === 'a sign that the other coordinator is gone'
      })
      await job.until('the former one to find that the other one lives', () => overtaken() === 2)
      await job.checkpoints(1)
      expect((await job.status()).incarnation).toBe(2)

      await job.coordinator.kill()
      await job.takeOver(former, place)
      await job.until('the former one to have the job', async () => (await job.status())?.incarnation === 3, 120_000)
      await job.checkpoints(1)
      expect(await job.status()).toMatchObject({ incarnation: 3, restarts: 0 })
      await world.expectExactToTheEnd(job)
    },
    testDeadlineMs,
  )

  it(
    'or not: of two coordinators that run at once the later one has the job, and the former ends as fenced',
    async () => {
      const job = await world.started({ network: true })
      await job.checkpoints(1)
      const former = await job.rival()
      await job.until('the former one to end', () => !former.running)
      expect(former.end, former.output).toEqual({ code: 3, signal: null })
      await job.checkpoints(1)
      expect((await job.status()).incarnation).toBe(2)
      await world.expectExactToTheEnd(job)
    },
    testDeadlineMs,
  )
})
