import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkpointId, subtaskIndex } from '../base/ids.ts'
import { Metrics } from '../base/metrics.ts'
import { createReader, createWriter } from '../record/bytes.ts'
import type { FileSystem } from '../storage/contract.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { taskOf } from './conformance-support.ts'
import { csvFiles } from './csv.ts'
import type { FileSplit } from './file-format.ts'
import type { FileSource } from './file-source.ts'
import { jsonLineFiles } from './json-lines.ts'
import { RECORD_BYTES_MAX } from './line-records.ts'

const schema = z.object({ n: z.int(), text: z.string() })

/** A start of the source's enumerator at what an earlier one stored. */
async function enumerate<T>(source: FileSource<T>, files: FileSystem, stored?: Uint8Array) {
  const splits: FileSplit[] = []
  const enumerator = source.createEnumerator(
    {
      environment: manualEnvironment(),
      files,
      parallelism: 1,
      assign: (_, assigned) => splits.push(...assigned),
      signalNoMoreSplits: () => undefined,
      fail: (error) => expect.fail(String(error)),
    },
    stored === undefined ? undefined : source.enumeratorCodec.decode(createReader(stored)),
  )
  await enumerator.start()
  const writer = createWriter()
  source.enumeratorCodec.encode(enumerator.snapshot(checkpointId(1)), writer)
  return { stored: writer.take(), enumerator, splits }
}

/** One reader with the whole source; answers with what came of it. */
async function read<T>(
  source: FileSource<T>,
  files: FileSystem,
  options: { readonly afterFind?: () => Promise<void> } = {},
) {
  const environment = manualEnvironment()
  const metrics = new Metrics()
  const failures: unknown[] = []
  const fail = (error: unknown): void => void failures.push(error)
  const { enumerator, splits } = await enumerate(source, files)
  while (enumerator.splitsWait) enumerator.requestSplit(subtaskIndex(0))
  await options.afterFind?.()
  const reader = source.createReader({
    environment,
    files,
    task: taskOf({ subtask: 0, parallelism: 1, attempt: 1 }),
    metrics,
    wake: () => undefined,
    requestSplit: () => undefined,
    splitFinished: () => undefined,
    fail,
  })
  reader.addSplits(splits)
  reader.start()
  reader.noMoreSplits()
  const records: T[] = []
  const malformed: unknown[] = []
  const output = {
    emit: (value: T) => void records.push(value),
    emitTo: (tag: string, value: unknown) => void malformed.push({ tag, value }),
  }
  for (let turns = 0; turns < 10_000 && failures.length === 0; turns++) {
    const status = reader.poll(output)
    if (status === 'end') break
    if (status === 'nothing') await environment.executor.runAllSettled()
  }
  return { records, malformed, metrics, splits, failures, snapshot: () => reader.snapshot(checkpointId(1)), reader }
}

async function filesWith(content: Readonly<Record<string, string | Uint8Array>>): Promise<MemoryFiles> {
  const files = new MemoryFiles()
  for (const [path, bytes] of Object.entries(content))
    await files.writeNew(path, typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes)
  return files
}

describe('file source', () => {
  it('reads records of several chunks, also one that is longer than a chunk', async () => {
    const rows = Array.from({ length: 5_000 }, (_, n) => ({
      n,
      text: n === 2_500 ? 'x'.repeat(600_000) : `text ${n} äöü€`,
    }))
    const files = await filesWith({ 'rows.jsonl': rows.map((row) => JSON.stringify(row)).join('\r\n') })
    const { records, failures } = await read(jsonLineFiles({ path: 'rows.jsonl', schema }), files)
    expect(failures).toEqual([])
    expect(records).toEqual(rows)
  })

  it('passes over a byte order mark, empty lines and a missing last line end', async () => {
    const files = await filesWith({ 'a.jsonl': '\uFEFF\n{"n":1,"text":"a"}\n  \n\n{"n":2,"text":"b"}' })
    const { records } = await read(jsonLineFiles({ path: 'a.jsonl', schema }), files)
    expect(records.map(({ n }) => n)).toEqual([1, 2])
  })

  it('refuses to go on with other paths than those in which the splits were found, whatever their order', async () => {
    const files = await filesWith({ 'a.jsonl': '{"n":1,"text":"a"}', 'b.jsonl': '{"n":2,"text":"b"}' })
    const of = (...paths: string[]) => jsonLineFiles({ paths, schema })
    const one = await enumerate(of('a.jsonl'), files)
    const both = await enumerate(of('a.jsonl', 'b.jsonl'), files)
    await expect(enumerate(of('a.jsonl', 'b.jsonl'), files, one.stored)).rejects.toThrow(/MR-N20.* b\.jsonl is new\./)
    await expect(enumerate(of('b.jsonl'), files, both.stored)).rejects.toThrow(/MR-N20.* a\.jsonl is gone\./)
    const again = await enumerate(of('b.jsonl', 'a.jsonl'), files, both.stored)
    again.enumerator.requestSplit(subtaskIndex(0))
    expect(again.splits).toMatchObject([{ path: 'a.jsonl' }])
  })

  it('goes on from a state of before its paths were stored', async () => {
    const files = await filesWith({ 'a.jsonl': '' })
    const source = jsonLineFiles({ path: 'a.jsonl', schema })
    const writer = createWriter()
    source.enumeratorCodec.encode({ found: true, waiting: [] }, writer)
    const { enumerator } = await enumerate(source, files, writer.take())
    expect(enumerator.splitsWait).toBe(false)
    expect(enumerator.snapshot(checkpointId(2))).toMatchObject({ paths: ['a.jsonl'] })
  })

  it('knows at each record the byte at which the next one begins', async () => {
    const text = '\uFEFF{"n":1,"text":"ä"}\n\n{"n":2,"text":"b"}\n'
    const files = await filesWith({ 'a.jsonl': text })
    const { snapshot, reader } = await read(jsonLineFiles({ path: 'a.jsonl', schema }), files)
    // All is read and the split is finished.
    expect(snapshot()).toEqual([])
    expect(reader.ownedSplits()).toEqual([])
  })

  it('has no records in an empty file', async () => {
    const files = await filesWith({ 'a.jsonl': '', 'a.csv': '', 'b.csv': 'n,text\n' })
    expect((await read(jsonLineFiles({ path: 'a.jsonl', schema }), files)).records).toEqual([])
    expect((await read(csvFiles({ paths: ['a.csv', 'b.csv'], schema }), files)).records).toEqual([])
  })

  it('refuses a missing file before any record', async () => {
    await expect(read(jsonLineFiles({ path: 'none.jsonl', schema }), new MemoryFiles())).rejects.toThrow('MR-N01')
  })

  it('refuses a folder, which no repetition makes a file of', async () => {
    const files = new MemoryFiles()
    await files.makeDirectory('in')
    await expect(read(jsonLineFiles({ path: 'in', schema }), files)).rejects.toMatchObject({
      code: 'MR-N01',
      retry: false,
    })
  })

  it('calls a disk error retryable', async () => {
    let broken = false
    const files = new MemoryFiles((operation) =>
      broken && operation === 'readRange' ? { code: 'EIO', effect: 'none' } : undefined,
    )
    await files.writeNew('a.jsonl', new TextEncoder().encode('{"n":1,"text":"a"}\n'))
    const { failures } = await read(jsonLineFiles({ path: 'a.jsonl', schema }), files, {
      afterFind: async () => void (broken = true),
    })
    expect(failures).toMatchObject([{ code: 'MR-N02', retry: true }])
  })

  it('refuses a file that changed since it was found', async () => {
    const files = await filesWith({ 'a.jsonl': '{"n":1,"text":"a"}\n' })
    const afterFind = () => files.append('a.jsonl', new TextEncoder().encode('{"n":2,"text":"b"}\n'))
    const { failures, records } = await read(jsonLineFiles({ path: 'a.jsonl', schema }), files, { afterFind })
    expect(failures).toMatchObject([{ code: 'MR-N03' }])
    expect(records).toEqual([])
  })

  it('says when a record has no end', async () => {
    const files = await filesWith({ 'a.csv': `n,text\n1,"${'x'.repeat(RECORD_BYTES_MAX + 300_000)}` })
    const { failures } = await read(csvFiles({ path: 'a.csv', schema }), files)
    expect(failures).toMatchObject([{ code: 'MR-N07' }])
  })

  it('gives a fetch up at its deadline', async () => {
    const files = await filesWith({ 'a.jsonl': '{"n":1,"text":"a"}\n' })
    const environment = manualEnvironment()
    const source = jsonLineFiles({ path: 'a.jsonl', schema })
    const failures: unknown[] = []
    const hanging: FileSystem = Object.assign(Object.create(files) as FileSystem, {
      sizeOf: () => new Promise<number>(() => undefined),
    })
    const reader = source.createReader({
      environment,
      files: hanging,
      task: taskOf({ subtask: 0, parallelism: 1, attempt: 1 }),
      metrics: new Metrics(),
      wake: () => undefined,
      requestSplit: () => undefined,
      splitFinished: () => undefined,
      fail: (error) => failures.push(error),
    })
    reader.addSplits([{ path: 'a.jsonl', part: 0, order: 0, fileBytes: 19, record: 0, offset: 0 }])
    expect(reader.poll({ emit: () => undefined, emitTo: () => undefined })).toBe('nothing')
    await environment.clock.advanceSettled(120_000)
    expect(failures).toMatchObject([{ code: 'MR-N08', retry: true }])
  })

  it('refuses options that cannot work when the job is built', () => {
    expect(() => jsonLineFiles({ schema })).toThrow('MR-N06')
    expect(() => jsonLineFiles({ paths: ['a', 'a'], schema })).toThrow('MR-N06')
    expect(() => jsonLineFiles({ path: 's3://in/orders.jsonl', schema })).toThrow(/MR-N06.*is an address/)
    expect(() => csvFiles({ path: 'a', schema, delimiter: ';;' })).toThrow('MR-N06')
    expect(() => csvFiles({ path: 'a', schema: z.string() })).toThrow('MR-N06')
  })
})

describe('malformed records', () => {
  const lines = ['{"n":1,"text":"a"}', '{"n":"one","text":"b"}', '{"n":2,', '{"n":3,"text":"c"}']

  it('fail the job by default, saying where and why', async () => {
    const files = await filesWith({ 'a.jsonl': lines.join('\n') })
    await expect(read(jsonLineFiles({ path: 'a.jsonl', schema }), files)).rejects.toThrow(
      /MR-N04.*a\.jsonl, record 1.*n: .*"one"/,
    )
  })

  it('are skipped and counted', async () => {
    const files = await filesWith({ 'a.jsonl': lines.join('\n') })
    const { records, metrics, malformed } = await read(
      jsonLineFiles({ path: 'a.jsonl', schema, malformed: 'skip' }),
      files,
    )
    expect(records.map(({ n }) => n)).toEqual([1, 3])
    expect(metrics.values.get('malformed_records_total')).toBe(2)
    expect(malformed).toEqual([])
  })

  it('go to the side output with their place and text', async () => {
    const files = await filesWith({ 'a.jsonl': lines.join('\n') })
    const { malformed, metrics } = await read(
      jsonLineFiles({ path: 'a.jsonl', schema, malformed: 'side output' }),
      files,
    )
    expect(metrics.values.get('malformed_records_total')).toBe(2)
    expect(malformed).toMatchObject([
      { tag: 'malformed', value: { path: 'a.jsonl', position: 1, text: lines[1] } },
      { tag: 'malformed', value: { path: 'a.jsonl', position: 2, text: lines[2] } },
    ])
  })

  it('include text that is not UTF-8', async () => {
    const files = await filesWith({
      'a.jsonl': Uint8Array.from([...Buffer.from('{"n":1,"text":"'), 0xff, ...Buffer.from('"}\n')]),
    })
    await expect(read(jsonLineFiles({ path: 'a.jsonl', schema }), files)).rejects.toThrow('MR-N04')
  })

  it('of CSV swallow no neighbour: a stray quote, too many fields, a text where a number belongs', async () => {
    const content = 'n,text\n1,a\n2,b"b\n3,c,c\nx,d\n,e\n5,"f"g\n6,"g\ng"\n7,h\n'
    const files = await filesWith({ 'a.csv': content })
    const { records, malformed } = await read(csvFiles({ path: 'a.csv', schema, malformed: 'side output' }), files)
    expect(records).toEqual([
      { n: 1, text: 'a' },
      { n: 6, text: 'g\ng' },
      { n: 7, text: 'h' },
    ])
    expect(malformed).toMatchObject([2, 3, 4, 5, 6].map((line) => ({ value: { position: line - 1 } })))
  })
})

describe('CSV files', () => {
  it('give texts the types of the schema', async () => {
    const typedSchema = z.object({
      number: z.number().nullable(),
      flag: z.boolean(),
      big: z.bigint(),
      day: z.date(),
      text: z.string(),
      note: z.string().optional(),
      level: z.enum(['low', 'high']).default('low'),
    })
    const files = await filesWith({
      'a.csv':
        'level,note,number,flag,big,day,text,ignored\n,,-1.5e3,true,12345678901234567890,2024-02-29,,x\nhigh,n,,false,0,1970-01-01T00:00:01Z,t,y\n',
    })
    const { records } = await read(csvFiles({ path: 'a.csv', schema: typedSchema }), files)
    expect(records).toEqual([
      { number: -1500, flag: true, big: 12345678901234567890n, day: new Date('2024-02-29'), text: '', level: 'low' },
      { number: null, flag: false, big: 0n, day: new Date(1000), text: 't', note: 'n', level: 'high' },
    ])
  })

  it('are refused when a column of the schema is missing', async () => {
    const files = await filesWith({ 'a.csv': 'n,other\n1,a\n' })
    const { failures } = await read(csvFiles({ path: 'a.csv', schema }), files)
    expect(failures).toMatchObject([{ code: 'MR-N15' }])
  })

  it('may use another delimiter', async () => {
    const files = await filesWith({ 'a.csv': 'text;n\n"a;b";1\n' })
    expect((await read(csvFiles({ path: 'a.csv', schema, delimiter: ';' }), files)).records).toEqual([
      { n: 1, text: 'a;b' },
    ])
  })
})
