// What the tests of distributed jobs share: the servers, the jobs of a test, and the ledger's judgement of them.

import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { LedgerClient } from '../../../e2e/harness/ledger-client.ts'
import { DistributedJob, startServers } from './distributed-job.ts'
import type { DistributedJobOptions, Servers } from './distributed-job.ts'
import { buildDeadlineMs } from './go-tool.ts'

export const splits = 4
export const keys = 100
/** Enough for everything: on a machine that others use too a job takes a few times as long. */
export const exactDeadlineMs = 120_000

const faultless = { lost: 0, doubled: 0, reordered: 0, unexpected: 0, wrongCounts: 0 }

/** To be called once, at the top of a test file. `name` is unique among them. */
export function distributedWorld(name: string) {
  let servers: Servers
  let ledger: LedgerClient
  const jobs: DistributedJob[] = []
  let number = 0

  beforeAll(async () => {
    servers = await startServers()
    ledger = new LedgerClient(servers.ledger.url)
  }, buildDeadlineMs)
  afterAll(async () => servers?.stop())
  afterEach(async () => {
    await ledger.release()
    for (const job of jobs.splice(0)) await job.stop()
    for (const server of [servers.nats.process, servers.s3.process]) if (!server.running) await server.start()
  })

  const complete = (options: Partial<DistributedJobOptions>): DistributedJobOptions => ({
    servers,
    id: `${name}-${++number}`,
    ...options,
    args:
      options.file === undefined
        ? { splits, keys, ratePerSecond: 4_000, checkpointMs: 200, ...options.args }
        : (options.args ?? {}),
  })

  /** Holds every number once, in order, with the right counts, and nothing else. */
  async function expectExact(job: DistributedJob, perSplit: number, book = job.id): Promise<void> {
    const question = { book, splits, perSplit, keys }
    await job.until('all records', async () => (await ledger.report(question)).lost === 0, exactDeadlineMs)
    expect(await ledger.report(question)).toMatchObject({
      lost: 0,
      doubled: 0,
      reordered: 0,
      unexpected: 0,
      wrongMagic: 0,
      wrongCounts: 0,
      present: splits * perSplit,
      exact: true,
    })
  }

  return {
    get servers(): Servers {
      return servers
    },
    get ledger(): LedgerClient {
      return ledger
    },

    /** The endless ledger job, if `args` says nothing else. Gone at the end of the test. */
    async started(options: Partial<DistributedJobOptions> = {}): Promise<DistributedJob> {
      const job = await DistributedJob.start(complete(options))
      jobs.push(job)
      return job
    },

    async prepared(options: Partial<DistributedJobOptions> = {}): Promise<DistributedJob> {
      const job = await DistributedJob.prepare(complete(options))
      jobs.push(job)
      return job
    },

    expectExact,

    /** The next start of a job that was stopped: all up to there is exact, and there it begins. */
    async goOn(job: DistributedJob, change: Parameters<DistributedJob['changeJob']>[0] = {}): Promise<void> {
      expect(await ledger.report({ book: job.id, splits, keys })).toMatchObject(faultless)
      await job.changeJob({ start: job.config.job.start + 1, ...change })
      await job.startAll()
    },

    /**
     * Stops an endless job with a savepoint; its next start goes on from there to an end that all of its records lie before. So a test takes as
     * long as what it does, and what is lost at the end is missed too.
     */
    async expectExactToTheEnd(job: DistributedJob, options: { readonly parallelism?: number } = {}): Promise<void> {
      const request = await job.ask('/v1/stop', { drain: false })
      await job.left()
      const stopped = await ledger.report({ book: job.id, splits, keys })
      expect(stopped, request).toMatchObject(faultless)
      const perSplit = Math.max(...stopped.splits.map(({ highest }) => highest)) + 500
      const args = { ...(job.config.job.args as object), perSplit, ratePerSecond: undefined }
      await job.changeJob({ start: job.config.job.start + 1, args, ...options })
      await job.startAll()
      await expectExact(job, perSplit)
    },
  }
}
