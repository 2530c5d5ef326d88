// The flights job as a command, and its whole output against DuckDB over the same file.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DuckDBInstance } from '@duckdb/node-api'
import type { DuckDBConnection } from '@duckdb/node-api'
import { afterAll, beforeAll, expect } from 'vitest'
import { runCommand } from './command.ts'
import type { CommandOptions, CommandResult } from './command.ts'

const jobFile = fileURLToPath(new URL('../../examples/flights/job.ts', import.meta.url))
export const allFlights = fileURLToPath(new URL('../data/flights-3m.parquet', import.meta.resolve('vega-datasets')))
/** As many as a run reads while some checkpoints complete, in ten row groups. */
const fewFlightsCount = 400_000

let duckdb: DuckDBConnection
let shared: string
let few: string

/** The first 400,000. Of the file that called useFlights. */
export const fewFlights = (): string => few

/** Before and after the tests of the file that calls it. */
export function useFlights(): void {
  beforeAll(begin)
  afterAll(end)
}

async function begin(): Promise<void> {
  shared = await mkdtemp(join(tmpdir(), 'millrace-flights-'))
  few = join(shared, 'few.parquet')
  duckdb = await (await DuckDBInstance.create()).connect()
  await duckdb.run(
    `copy (select * from '${allFlights}' limit ${fewFlightsCount}) to '${few}' (format parquet, row_group_size 40960)`,
  )
}

async function end(): Promise<void> {
  duckdb?.disconnectSync()
  if (shared !== undefined) await rm(shared, { recursive: true, force: true })
}

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
export async function expectExactOutput(output: string, input: string): Promise<void> {
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

export const flights = (input: string, options: CommandOptions): Promise<CommandResult> =>
  runCommand(['run', jobFile, '--arg', `input=${input}`, '--checkpoint-interval', '100', '--parallelism', '2'], options)

export const killed = { exitCode: null, signal: 'SIGKILL' }
export const finished = { exitCode: 0, signal: null }
