import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DuckDBInstance } from '@duckdb/node-api'
import type { DuckDBConnection } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inFolder, runCommand } from '../support/command.ts'
import type { CommandOptions, CommandResult } from '../support/command.ts'

const jobFile = fileURLToPath(new URL('../../examples/flights/job.ts', import.meta.url))
const allFlights = fileURLToPath(new URL('../data/flights-3m.parquet', import.meta.resolve('vega-datasets')))
/** As many as a run reads while some checkpoints complete, in ten row groups. */
const fewFlightsCount = 400_000

let duckdb: DuckDBConnection
let shared: string
let fewFlights: string

beforeAll(async () => {
  shared = await mkdtemp(join(tmpdir(), 'millrace-flights-'))
  fewFlights = join(shared, 'few.parquet')
  duckdb = await (await DuckDBInstance.create()).connect()
  await duckdb.run(
    `copy (select * from '${allFlights}' limit ${fewFlightsCount}) to '${fewFlights}' (format parquet, row_group_size 40960)`,
  )
})

afterAll(async () => {
  duckdb?.disconnectSync()
  if (shared !== undefined) await rm(shared, { recursive: true, force: true })
})

/** Rows that are in one of the two and not, or not as often, in the other. */
interface Difference {
  readonly rows: number
  readonly missing: readonly unknown[]
  readonly tooMany: readonly unknown[]
}

async function difference(got: string, want: string): Promise<Difference> {
  const rowsOf = async (query: string): Promise<unknown[]> => (await duckdb.runAndReadAll(query)).getRowsJson()
  const [count] = (await rowsOf(`select count(*) from (${got})`)) as [[string]]
  return {
    rows: Number(count[0]),
    missing: await rowsOf(`(${want}) except all (${got}) limit 5`),
    tooMany: await rowsOf(`(${got}) except all (${want}) limit 5`),
  }
}

/** The whole output of a finished job against DuckDB over the same file. */
async function expectExactOutput(output: string, input: string): Promise<void> {
  const hours = await difference(
    `select * from read_json('${output}/airport-hours/part-*.jsonl', columns = {airport: 'varchar', hour: 'varchar',
       departures: 'bigint', meanDelay: 'double', p95Delay: 'bigint'})`,
    `select origin, strftime(date_trunc('hour', date), '%Y-%m-%dT%H:%M:%SZ'), count(*), avg(delay), quantile_disc(delay, 0.95)
       from '${input}' group by all`,
  )
  expect(hours).toMatchObject({ missing: [], tooMany: [] })
  expect(hours.rows).toBeGreaterThan(10_000)

  const routes = await difference(
    `select * from read_csv('${output}/worst-routes/part-*.csv', header = true, columns = {day: 'varchar', rank: 'bigint',
       origin: 'varchar', destination: 'varchar', flights: 'bigint', meanDelay: 'double'})`,
    `select * from (
       select strftime(date, '%Y-%m-%d') as day,
         row_number() over (partition by strftime(date, '%Y-%m-%d') order by avg(delay) desc, origin || '-' || destination) as rank,
         origin, destination, count(*), avg(delay)
       from '${input}' group by day, origin, destination having count(*) >= 10
     ) where rank <= 10`,
  )
  expect(routes).toMatchObject({ missing: [], tooMany: [] })
  expect(routes.rows).toBeGreaterThan(100)
}

const flights = (input: string, options: CommandOptions): Promise<CommandResult> =>
  runCommand(['run', jobFile, '--arg', `input=${input}`, '--checkpoint-interval', '100', '--parallelism', '2'], options)

const killed = { exitCode: null, signal: 'SIGKILL' }
const finished = { exitCode: 0, signal: null }

describe('the flights job', () => {
  it('gives what DuckDB gives over all three million flights, also when it was killed in the middle', async () => {
    await inFolder(async (folder) => {
      expect(await flights(allFlights, { folder, failpoints: 'coordinator.swap.after:kill:4' })).toMatchObject(killed)
      const result = await flights(allFlights, { folder })
      expect(result).toMatchObject(finished)
      expect(result.stderr).toMatch(/Resuming flights from checkpoint \d+/)
      expect(result.stdout).toContain('424259 airport hours and 1810 daily worst routes')
      await expectExactOutput(join(folder, 'out/flights'), allFlights)
    })
  })

  const moments = [
    'task.process:kill:1',
    'task.snapshot.sync:kill:2',
    'task.snapshot.async:kill:3',
    'sink.preCommit.after:kill:2',
    'coordinator.manifest.before:kill:2',
    'coordinator.swap.before:kill:2',
    'coordinator.swap.after:kill:2',
    'sink.commit.middle:kill:1',
    'coordinator.confirm.before:kill:2',
    'task.finish:kill:1',
  ]
  it.each(moments)(
    'gives the same when the process is killed at %s and the same command is given again',
    async (failpoints) => {
      await inFolder(async (folder) => {
        expect(await flights(fewFlights, { folder, failpoints })).toMatchObject(killed)
        expect(await flights(fewFlights, { folder })).toMatchObject(finished)
        await expectExactOutput(join(folder, 'out/flights'), fewFlights)
      })
    },
  )

  it('gives the same when every second command is killed while it restores or commits', async () => {
    await inFolder(async (folder) => {
      const kills = [
        'coordinator.swap.after:kill:1',
        'task.restore:kill:3',
        'sink.commit.before:kill:1',
        'sink.commit.after:kill:2',
      ]
      for (const failpoints of kills) expect(await flights(fewFlights, { folder, failpoints })).toMatchObject(killed)
      expect(await flights(fewFlights, { folder })).toMatchObject(finished)
      await expectExactOutput(join(folder, 'out/flights'), fewFlights)
    })
  })
})
