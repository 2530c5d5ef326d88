// The distributed job over a real NATS server and a real S3 server, as the ledger saw it: exact, whatever is killed.

import { describe, expect, it } from 'vitest'
import type { DistributedJob, DistributedJobOptions } from './support/distributed-job.ts'
import { distributedWorld } from './support/distributed-world.ts'

const world = distributedWorld('job')
const { expectExact } = world

function started(options: Partial<DistributedJobOptions> = {}): Promise<DistributedJob> {
  return world.started({ ...options, args: { perSplit: 20_000, ratePerSecond: 10_000, ...options.args } })
}

describe('a distributed job', () => {
  it('runs to its end, sends its workers home, and is exact', async () => {
    const job = await started({ args: { perSplit: 5_000, ratePerSecond: undefined } })
    await expectExact(job, 5_000)
    await job.left()
    expect([job.coordinator, ...job.workers.values()].map(({ end }) => end?.code)).toEqual([0, 0, 0])
  })

  it('takes a NATS server that is killed -9 and comes back for a pause', async () => {
    const job = await started()
    await job.checkpoints(2)
    await world.servers.nats.process.kill()
    await world.servers.nats.process.start()
    await job.checkpoints(2)
    expect(await job.status()).toMatchObject({ incarnation: 1, restarts: 0 })
    await expectExact(job, 20_000)
  })

  it('runs on without S3, fails checkpoints, and completes them when it is back', async () => {
    const job = await started()
    await job.checkpoints(2)
    await world.servers.s3.process.kill()
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    await world.servers.s3.process.start()
    await job.checkpoints(2)
    await expectExact(job, 20_000)
  })
})
