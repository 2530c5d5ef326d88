import { describe, it } from 'vitest'
import { z } from 'zod'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment, SeededRandom } from '../testkit/manual-clock.ts'
import { collected, collectionSink } from './collection.ts'
import { plainSinkClaims, sinkClaims, sourceClaims, type SinkCase, type SourceCase } from './conformance.ts'
import type { Source } from './contract.ts'
import { csvFiles } from './csv.ts'
import { dataGenerator } from './datagen.ts'
import { FileLedger } from './file-ledger.ts'
import { jsonLineFiles } from './json-lines.ts'
import { ledgerSink, plainLedgerSink, type LedgerEntry } from './ledger.ts'
import { MemoryLedger } from './memory-ledger.ts'
import { fromCollection } from './memory-source.ts'
import { printSink } from './print.ts'
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

const entry = (n: number): LedgerEntry => ({ split: 0, n, magic: LEDGER_MAGIC })
const environment = manualEnvironment()
let cases = 0

function textSinkCase(
  sink: typeof jsonLineFileSink<{ n: number }>,
  parse: (text: string) => { n: number }[],
): SinkCase<{ n: number }> {
  let full = false
  const files = new MemoryFiles((operation) =>
    full && (operation === 'append' || operation === 'writeNew') ? { code: 'ENOSPC', effect: 'half' } : undefined,
  )
  const random = new SeededRandom(++cases)
  return {
    name: 'files',
    createSink: () => sink({ folder: 'results/today' }),
    environment,
    files,
    record: (n) => ({ n }),
    keyOf: ({ n }) => String(n),
    crash: () => files.crash(() => random.next()),
    refuse: () => {
      full = true
    },
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
})

describe('sinks without transactions conform', () => {
  const claims = [
    ...plainSinkClaims('plain ledger', () => {
      const ledger = new MemoryLedger()
      return {
        name: 'plain ledger',
        createSink: () => plainLedgerSink(ledger),
        environment,
        files: new MemoryFiles(),
        record: entry,
        keyOf: ({ n }) => String(n),
        visible: async () => ledger.entries,
      }
    }),
    ...plainSinkClaims('print', () => {
      const lines: string[] = []
      return {
        name: 'print',
        createSink: () => printSink<number>({ writeLine: (line) => void lines.push(line) }),
        environment,
        files: new MemoryFiles(),
        record: (n) => n,
        keyOf: String,
        visible: async () => lines.map(Number),
      }
    }),
  ]
  for (const claim of claims) it(claim.name, claim.run)
})
