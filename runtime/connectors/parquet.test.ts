import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { subtaskIndex } from '../base/ids.ts'
import { NodeFiles } from '../local/platform/node-files.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { sourceClaims } from './conformance.ts'
import type { FileSplit } from './file-format.ts'
import type { FileSource } from './file-source.ts'
import { parquetFiles } from './parquet.ts'
import { Metrics } from '../base/metrics.ts'
import { taskOf } from './conformance-support.ts'

// The package exports its index alone; the data lies beside it.
const flights = join(createRequire(import.meta.url).resolve('vega-datasets'), '../../data/flights-3m.parquet')
const files = new NodeFiles()
const folder = await mkdtemp(join(tmpdir(), 'millrace-parquet-'))
afterAll(() => rm(folder, { recursive: true }))

/** Writes a query's result with as many rows a group as DuckDB allows at least. */
async function parquetOf(name: string, query: string): Promise<string> {
  const path = join(folder, name)
  const connection = await (await DuckDBInstance.create(':memory:')).connect()
  await connection.run(`COPY (${query}) TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)`)
  connection.closeSync()
  return path
}

async function splitsOf<T>(source: FileSource<T>): Promise<FileSplit[]> {
  const splits: FileSplit[] = []
  const enumerator = source.createEnumerator(
    {
      environment: manualEnvironment(),
      files,
      parallelism: 1,
      assign: (_, assigned) => splits.push(...assigned),
      signalNoMoreSplits: () => undefined,
      fail: () => undefined,
    },
    undefined,
  )
  await enumerator.start()
  while (enumerator.splitsWait) enumerator.requestSplit(subtaskIndex(0))
  return splits
}

/** Records of the given splits; rejects as the task would fail. */
async function readSplits<T>(source: FileSource<T>, splits: readonly FileSplit[]): Promise<T[]> {
  const environment = manualEnvironment()
  let failure: unknown
  const reader = source.createReader({
    environment,
    files,
    task: taskOf({ subtask: 0, parallelism: 1, attempt: 1 }),
    metrics: new Metrics(),
    wake: () => undefined,
    requestSplit: () => undefined,
    splitFinished: () => undefined,
    fail: (error) => (failure = error),
  })
  reader.addSplits(splits)
  reader.noMoreSplits()
  const records: T[] = []
  const output = { emit: (value: T) => void records.push(value), emitTo: () => undefined }
  for (let status = reader.poll(output); status !== 'end'; status = reader.poll(output)) {
    if (status === 'more') continue
    await new Promise((resolve) => setImmediate(resolve))
    environment.executor.runAll()
    if (failure !== undefined) throw failure
  }
  return records
}

describe('Parquet files', () => {
  it('read the real flights: a split per row group, integers as numbers, timestamps as milliseconds', async () => {
    const schema = z.object({
      date: z.int(),
      delay: z.int(),
      distance: z.int(),
      origin: z.string(),
      destination: z.string(),
    })
    const source = parquetFiles({ path: flights, schema })
    const splits = await splitsOf(source)
    expect(splits).toHaveLength(11)
    // Near the end of the second group, so that the test hands out few records.
    const records = await readSplits(source, [{ ...splits[1]!, record: 272_725 }])
    expect(records).toHaveLength(2)
    expect(records[0]).toEqual({
      date: expect.any(Number) as number,
      delay: expect.any(Number) as number,
      distance: expect.any(Number) as number,
      origin: expect.stringMatching(/^[A-Z]{3}$/) as string,
      destination: expect.stringMatching(/^[A-Z]{3}$/) as string,
    })
    expect(new Date(records[0]!.date).getUTCFullYear()).toBe(2001)
  })

  it('give each type its form, and null or absence where the schema says so', async () => {
    const path = await parquetOf(
      'types.parquet',
      `SELECT * FROM (VALUES
        (1::BIGINT, 9007199254740993::BIGINT, 2::INTEGER, 1.5::DOUBLE, true, 'a', DATE '2024-02-29', TIMESTAMP '2001-01-01 00:01:00.123456', TIMESTAMP_NS '1969-12-31 23:59:59.999999999', [1, 2]),
        (NULL, 5, NULL, NULL, false, NULL, NULL, NULL, TIMESTAMP_NS '1970-01-01 00:00:00', [])
       ) AS t(big, exact, small, double, flag, text, day, moment, nanos, list)`,
    )
    const schema = z.object({
      big: z.number().nullable(),
      exact: z.bigint(),
      small: z.number().optional(),
      double: z.number().nullish(),
      flag: z.boolean(),
      text: z.string().nullable(),
      day: z.date().nullable(),
      at: z.number().nullable(),
      nanos: z.number(),
      list: z.array(z.number()),
      missing: z.string().optional(),
    })
    const source = parquetFiles({ path, schema, columns: { at: 'moment' } })
    const records = await readSplits(source, await splitsOf(source))
    expect(records).toEqual([
      {
        big: 1,
        exact: 9007199254740993n,
        small: 2,
        double: 1.5,
        flag: true,
        text: 'a',
        day: new Date('2024-02-29'),
        at: Date.UTC(2001, 0, 1, 0, 1, 0, 123),
        nanos: -1,
        list: [1, 2],
      },
      { big: null, exact: 5n, double: null, flag: false, text: null, day: null, at: null, nanos: 0, list: [] },
    ])
  })

  it('refuse an integer that does not fit a number instead of rounding it', async () => {
    const path = await parquetOf('large.parquet', `SELECT 9007199254740993::BIGINT AS n`)
    const source = parquetFiles({ path, schema: z.object({ n: z.number() }) })
    await expect(readSplits(source, await splitsOf(source))).rejects.toThrow(/MR-N04.*9007199254740993n/)
  })

  it('are refused when empty, of another format, cut off, or without a column', async () => {
    const schema = z.object({ n: z.number() })
    const memory = new MemoryFiles()
    await memory.writeNew('empty', new Uint8Array(0))
    await memory.writeNew('text', new TextEncoder().encode('n\n1\n'))
    const whole = await files.readFile(await parquetOf('whole.parquet', 'SELECT range AS n FROM range(5000)'))
    await memory.writeNew('cut', whole.slice(0, 10_000))
    await memory.writeNew('whole', whole)
    const start = (path: string, of: z.ZodType = schema) =>
      parquetFiles({ path, schema: of })
        .createEnumerator(
          {
            environment: manualEnvironment(),
            files: memory,
            parallelism: 1,
            assign: () => undefined,
            signalNoMoreSplits: () => undefined,
            fail: () => undefined,
          },
          undefined,
        )
        .start()
    await start('whole')
    await expect(start('empty')).rejects.toThrow('MR-N05')
    await expect(start('text')).rejects.toThrow('MR-N05')
    await expect(start('cut')).rejects.toThrow('MR-N05')
    await expect(start('whole', z.object({ other: z.number() }))).rejects.toThrow(/MR-N15.* n, but not other/)
    expect(() => parquetFiles({ path: 'whole', schema, columns: { other: 'n' } })).toThrow('MR-N06')
  })
})

describe('Parquet conforms', async () => {
  const path = await parquetOf('groups.parquet', `SELECT range AS n, 'text ' || range AS text FROM range(5000)`)
  const environment = manualEnvironment()
  const claims = sourceClaims({
    name: 'Parquet',
    createSource: () => parquetFiles({ path, schema: z.object({ n: z.int(), text: z.string() }) }),
    environment,
    files,
    expected: Array.from({ length: 5_000 }, (_, n) => ({ n, text: `text ${n}` })),
    keyOf: ({ n, text }) => `${n} ${text}`,
    settle: async () => {
      // A millisecond, since this reads a real disk: the suite's bound on settling is then one of time, also on a busy machine.
      await new Promise((resolve) => setTimeout(resolve, 1))
      environment.executor.runAll()
    },
  })
  for (const claim of claims) it(claim.name, claim.run)
})
