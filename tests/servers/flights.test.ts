// The flights job over two workers, with NATS and S3 between them, gives what it gives in one process, also when both kinds of
// process and both servers are killed in the middle.

import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { FailpointName } from '../../runtime/base/failpoints.ts'
import { runCommand } from '../support/command.ts'
import { distributedWorld } from './support/distributed-world.ts'
import type { ServerProcess } from './support/server-process.ts'

const world = distributedWorld('flights')
const jobFile = fileURLToPath(new URL('../../examples/flights/job.ts', import.meta.url))
const allFlights = fileURLToPath(new URL('../data/flights-3m.parquet', import.meta.resolve('vega-datasets')))
/** As many as are read while some checkpoints complete, in ten row groups. */
const flightsCount = 400_000

let folder: string
let input: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-flights-'))
  input = join(folder, 'few.parquet')
  const duckdb = await (await DuckDBInstance.create()).connect()
  await duckdb.run(
    `copy (select * from '${allFlights}' limit ${flightsCount}) to '${input}' (format parquet, row_group_size 40960)`,
  )
  duckdb.disconnectSync()
})
afterAll(async () => rm(folder, { recursive: true, force: true }))

const killed = { code: null, signal: 'SIGKILL' }

interface Output {
  readonly hours: readonly string[]
  readonly routes: readonly string[]
}

/** What is committed, whichever subtask wrote it. */
async function outputOf(output: string): Promise<Output> {
  const lines = async (part: string): Promise<string[]> => {
    const names = (await readdir(join(output, part))).filter((name) => name.startsWith('part-'))
    const texts = await Promise.all(names.map((name) => readFile(join(output, part, name), 'utf8')))
    return texts
      .flatMap((text) => text.trimEnd().split('\n'))
      .filter((line) => !line.startsWith('day,rank,'))
      .toSorted()
  }
  return { hours: await lines('airport-hours'), routes: await lines('worst-routes') }
}

describe('the flights job over two workers', () => {
  it('gives what it gives in one process, also when a worker, the coordinator, NATS and S3 are killed in the middle', async () => {
    const local = await runCommand(['run', jobFile, '--arg', `input=${input}`, '--parallelism', '2'], { folder })
    expect(local).toMatchObject({ exitCode: 0 })
    const want = await outputOf(join(folder, 'out/flights'))
    expect(want.hours.length).toBeGreaterThan(10_000)
    expect(want.routes.length).toBeGreaterThan(100)

    const output = join(folder, 'distributed')
    const job = await world.started({
      file: jobFile,
      args: { input, output },
      settings: { checkpointIntervalMs: 100 },
      workers: 0,
      failpoints: { coordinator: 'coordinator.swap.after:kill:3' },
    })
    await job.startWorker('worker-0', 'sink.commit.middle:kill:1')
    await job.startWorker('worker-1')
    const worker = job.workers.get('worker-0')!
    // The first checkpoints may hold nothing to commit: which of the two dies first is not known.
    const { coordinator } = job
    let isBack = false
    const { nats, s3 } = world.servers
    // Where the next coordinator is held, and which server is killed while it stands there.
    const windows: { readonly at: FailpointName; readonly server: ServerProcess }[] = [
      { at: 'coordinator.adopt.middle', server: nats.process },
      { at: 'coordinator.manifest.before', server: s3.process },
    ]
    const bringBack = async (): Promise<void> => {
      const [next] = windows
      if (
        isBack &&
        next !== undefined &&
        job.coordinator.stopped &&
        job.coordinator.output.includes(`held at ${next.at}\n`)
      ) {
        await next.server.kill()
        expect(next.server.end).toEqual(killed)
        await next.server.start()
        expect(job.coordinator.stopped).toBe(true)
        windows.shift()
        job.coordinator.thaw()
      }
      if (isBack || coordinator.running) return
      expect(coordinator.end).toEqual(killed)
      isBack = true
      await job.launchCoordinator(windows.map(({ at }) => `${at}:hold:1`).join(','))
    }
    await job.until('the worker to be killed in its first commit', async () => {
      await bringBack()
      return !worker.running
    })
    expect(worker.end).toEqual(killed)
    await job.startWorker('worker-0')
    await job.until(
      'the coordinator to be killed at its third checkpoint, and NATS and S3 while the next one is held',
      async () => {
        await bringBack()
        return windows.length === 0
      },
    )
    await job.until('it to have the job, and the restart', async () => {
      const status = await job.status()
      return status?.incarnation === 2 && status.restarts === 1
    })
    await job.left()
    expect(job.coordinator.output).toContain('the job is finished')
    expect(await outputOf(join(output, job.id))).toEqual(want)
  })
})
