import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment, SeededRandom } from '../testkit/manual-clock.ts'
import { collected, collectionSink } from './collection.ts'
import { sinkClaims, sourceClaims, type SinkCase, type SourceCase } from './conformance.ts'
import type { Source, SourceReader } from './contract.ts'
import { csvFiles } from './csv.ts'
import { dataGenerator } from './datagen.ts'
import { FileLedger } from './file-ledger.ts'
import { jsonLineFiles } from './json-lines.ts'
import { ledgerSink, type LedgerEntry } from './ledger.ts'
import { MemoryLedger } from './memory-ledger.ts'
import { fromCollection } from './memory-source.ts'
import type { NumberedSource, NumberedSplit } from './numbered-source.ts'
import { LEDGER_MAGIC, sequence } from './sequence.ts'
import { csvFileSink, jsonLineFileSink } from './text-sinks.ts'

const rows = Array.from({ length: 40 }, (_, n) => ({ n, text: `row ${n}, "quoted"\nand on two lines` }))
const rowSchema = z.object({ n: z.int(), text: z.string() })

const inputs = new MemoryFiles()
const write = (path: string, text: string) => inputs.writeNew(path, new TextEncoder().encode(text))
const asCsv = (from: number, to: number): string =>
  `n,text\r\n${rows
    .slice(from, to)
    .map(({ n, text }) => `${n},"${text.replaceAll('"', '""')}"\r\n`)
    .join('')}`
const asJson = (from: number, to: number): string =>
  rows
    .slice(from, to)
    .map((row) => `${JSON.stringify(row)}\n`)
    .join('')
await write('one.csv', asCsv(0, 25))
await write('two.csv', asCsv(25, 40))
await write('one.jsonl', asJson(0, 1))
await write('empty.jsonl', '')
await write('two.jsonl', asJson(1, 40).trimEnd())

function sourceCase<T, Split, State>(
  name: string,
  createSource: () => Source<T, Split, State>,
  expected: readonly T[],
): SourceCase<T, Split, State> {
  const environment = manualEnvironment()
  return {
    name,
    createSource,
    environment,
    files: inputs,
    expected,
    keyOf: (value) => JSON.stringify(value),
    settle: async () => {
      await environment.executor.runAllSettled()
      await environment.clock.advanceSettled(50)
    },
  }
}

const numbered = (splits: number, perSplit: number) =>
  Array.from({ length: splits * perSplit }, (_, index) => ({
    split: index % splits,
    n: Math.floor(index / splits),
    magic: LEDGER_MAGIC,
  }))

describe('sources conform', () => {
  const claims = [
    ...sourceClaims(sourceCase('collection', () => fromCollection(rows, { schema: rowSchema }), rows)),
    ...sourceClaims(sourceCase('collection in four splits', () => fromCollection(rows, { splits: 4 }), rows)),
    ...sourceClaims(sourceCase('sequence', () => sequence({ splits: 3, perSplit: 11 }), numbered(3, 11))),
    ...sourceClaims(
      sourceCase(
        'rate-limited data generator',
        () => dataGenerator({ create: (n) => n * n, count: 30, splits: 4, ratePerSecond: 200 }),
        Array.from({ length: 30 }, (_, n) => n * n),
      ),
    ),
    ...sourceClaims(sourceCase('CSV', () => csvFiles({ paths: ['one.csv', 'two.csv'], schema: rowSchema }), rows)),
    ...sourceClaims(
      sourceCase(
        'JSON lines',
        () => jsonLineFiles({ paths: ['one.jsonl', 'empty.jsonl', 'two.jsonl'], schema: rowSchema }),
        rows,
      ),
    ),
  ]
  for (const claim of claims) it(claim.name, claim.run)
})

describe('the source suite', () => {
  /** A collection whose reader is spoiled in one thing. */
  const spoiled = (
    spoil: (reader: SourceReader<number, NumberedSplit>) => Partial<SourceReader<number, NumberedSplit>>,
  ) => {
    const values = Array.from({ length: 20 }, (_, n) => n)
    const createSource = (): NumberedSource<number> => {
      const source = fromCollection(values, { splits: 2 })
      const createReader: typeof source.createReader = (context) => {
        const reader = source.createReader(context)
        return Object.assign(Object.create(reader) as typeof reader, bound(reader), spoil(reader))
      }
      return { ...source, createReader }
    }
    return sourceClaims(sourceCase('spoiled', createSource, values))
  }
  const bound = (reader: SourceReader<number, NumberedSplit>): SourceReader<number, NumberedSplit> => ({
    start: () => reader.start(),
    addSplits: (splits) => reader.addSplits(splits),
    noMoreSplits: () => reader.noMoreSplits(),
    poll: (output) => reader.poll(output),
    snapshot: (id) => reader.snapshot(id),
    ownedSplits: () => reader.ownedSplits(),
    hasPending: (id) => reader.hasPending(id),
    close: () => reader.close(),
  })
  const failures = async (claims: ReturnType<typeof spoiled>): Promise<number> => {
    const results = await Promise.allSettled(claims.map((claim) => claim.run()))
    return results.filter(({ status }) => status === 'rejected').length
  }

  it('passes a reader that is not spoiled', async () => {
    expect(await failures(spoiled(() => ({})))).toBe(0)
  })

  it('sees a position that is one too early, and one too late', async () => {
    const shifted = (by: number) =>
      spoiled((reader) => ({
        snapshot: (id) => reader.snapshot(id).map((split) => ({ ...split, next: Math.max(0, split.next + by) })),
      }))
    expect(await failures(shifted(-1))).toBeGreaterThan(0)
    expect(await failures(shifted(1))).toBeGreaterThan(0)
  })

  it('sees an end that comes before the last record', async () => {
    let polls = 0
    expect(
      await failures(spoiled((reader) => ({ poll: (output) => (++polls % 15 === 0 ? 'end' : reader.poll(output)) }))),
    ).toBeGreaterThan(0)
  })
})

const entry = (n: number): LedgerEntry => ({ split: 0, n, magic: LEDGER_MAGIC })
const environment = manualEnvironment()
let cases = 0

function textSinkCase(
  sink: typeof jsonLineFileSink<{ n: number }>,
  parse: (text: string) => { n: number }[],
): SinkCase<{ n: number }> {
  const files = new MemoryFiles()
  const random = new SeededRandom(++cases)
  return {
    name: 'files',
    createSink: () => sink({ folder: 'results/today' }),
    environment,
    files,
    record: (n) => ({ n }),
    keyOf: ({ n }) => String(n),
    crash: () => files.crash(() => random.next()),
    visible: async () => {
      const names = (await files.exists('results/today')) ? await files.list('results/today') : []
      const texts = await Promise.all(
        names.filter((name) => name !== '.pending').map((name) => files.readFile(`results/today/${name}`)),
      )
      return texts.flatMap((bytes) => parse(new TextDecoder().decode(bytes)))
    },
  }
}

const parseCsv = (text: string) =>
  text
    .split('\n')
    .slice(1)
    .filter(Boolean)
    .map((n) => ({ n: Number(n) }))
const parseJson = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as { n: number })

describe('two-phase sinks conform', () => {
  const claims = [
    ...sinkClaims('JSON lines', () => textSinkCase(jsonLineFileSink, parseJson)),
    ...sinkClaims('CSV', () => textSinkCase(({ folder }) => csvFileSink({ folder, columns: ['n'] }), parseCsv)),
    ...sinkClaims('ledger in memory', () => {
      const ledger = new MemoryLedger()
      return {
        name: 'ledger in memory',
        createSink: () => ledgerSink(ledger),
        environment,
        files: new MemoryFiles(),
        record: entry,
        keyOf: ({ n }) => String(n),
        visible: async () => ledger.entries,
      }
    }),
    ...sinkClaims('ledger in files', () => {
      const files = new MemoryFiles()
      return {
        name: 'ledger in files',
        createSink: () => ledgerSink(new FileLedger(files, 'ledger')),
        environment,
        files,
        record: entry,
        keyOf: ({ n }) => String(n),
        visible: () => new FileLedger(files, 'ledger').entries(),
      }
    }),
    ...sinkClaims('collection', () => {
      const name = `conformance ${++cases}`
      return {
        name,
        createSink: () => collectionSink<number>(name),
        environment,
        files: new MemoryFiles(),
        record: (n: number) => n,
        keyOf: String,
        visible: async () => collected<number>(name),
      }
    }),
  ]
  for (const claim of claims) it(claim.name, claim.run)

  it('sees a sink that commits too early', async () => {
    const ledger = new MemoryLedger()
    const eager = {
      append: ledger.append.bind(ledger),
      preCommit: async (name: string) => {
        await ledger.preCommit(name)
        await ledger.commit(name)
      },
      commit: ledger.commit.bind(ledger),
      abort: async () => undefined,
      list: async () => [],
    }
    const given = () => ({
      name: 'eager',
      createSink: () => ledgerSink(eager),
      environment,
      files: new MemoryFiles(),
      record: entry,
      keyOf: ({ n }: LedgerEntry) => String(n),
      visible: async () => ledger.entries,
    })
    const crash = sinkClaims('eager', given).find(({ name }) =>
      name.endsWith('exact after a crash after pre-commit, before the acknowledgement'),
    )!
    await expect(crash.run()).rejects.toThrow('too many')
  })
})
