// CSV files (RFC 4180: quotes double inside quotes, line ends may stand in quotes) with a header row.

import { parse } from 'csv-parse/sync'
import type { ZodType } from 'zod'
import type { FileSystem } from '../storage/contract.ts'
import { connectorError, messageOf } from './errors.ts'
import { MalformedRecord, type FileFormat, type FileSplit, type RecordRun, type SplitCursor } from './file-format.ts'
import { fileSource, type FileSource, type FileSourceOptions } from './file-source.ts'
import { lossyText } from './json-lines.ts'
import { LINE_FEED, LineRecords, textStart, type ChunkOfRecords } from './line-records.ts'
import { fieldsOf, validatorOf, type RecordField, type RecordValidator } from './record-schema.ts'

export interface CsvFilesOptions<T> extends FileSourceOptions<T> {
  /** One ASCII character; default ','. */
  readonly delimiter?: string
}

/**
 * Records of CSV files (UTF-8) as objects of the schema's fields, matched by the header row; other columns are ignored.
 * Texts become numbers, booleans (true, false), bigints and Dates where the schema says so; an empty text is null or
 * absent where the schema allows that. A file is one split; an empty file has no records.
 */
export function csvFiles<T>(options: CsvFilesOptions<T>): FileSource<T> {
  const delimiter = options.delimiter ?? ','
  if (delimiter.length !== 1 || delimiter.charCodeAt(0) > 127 || '"\r\n'.includes(delimiter))
    throw connectorError('MR-N06', `CSV files: delimiter ${JSON.stringify(delimiter)} must be one ASCII character.`)
  return fileSource(options, csvFormat(options.schema, delimiter))
}

/** csv-parse is asked for this many records at once: its set-up per call is dear, and a run must not stall the loop. */
const RECORDS_PER_PARSE = 128

interface Csv<T> {
  readonly delimiter: string
  readonly fields: readonly RecordField[]
  readonly validator: RecordValidator<T>
}

function csvFormat<T>(schema: ZodType<T>, delimiter: string): FileFormat<T> {
  const fields = fieldsOf(schema)
  if (fields === undefined) throw connectorError('MR-N06', 'CSV files: the schema must be a z.object.')
  return {
    name: 'CSV',
    countSplits: () => Promise.resolve(1),
    open(files, split) {
      const csv: Csv<T> = { delimiter, fields, validator: validatorOf(schema) }
      let opened: { readonly header: readonly string[]; readonly records: LineRecords } | undefined
      return {
        async next() {
          opened ??= await openRecords(files, split, csv)
          if (opened === undefined) return undefined
          for (;;) {
            const chunk = await opened.records.next()
            if (chunk === undefined) return undefined
            const run = new CsvRun(chunk, opened.header, csv)
            if (run.count > 0) return run
          }
        },
      } satisfies SplitCursor<T>
    },
  }
}

/** The header is read again on each opening; records begin behind it or at the split's place. undefined: an empty file. */
async function openRecords<T>(files: FileSystem, split: FileSplit, csv: Csv<T>) {
  const findEnd = recordEndFinder(csv.delimiter)
  const first = await new LineRecords(files, split, await textStart(files, split), findEnd).next()
  if (first === undefined) return undefined
  const headerBytes = first.bytes.subarray(first.starts[0], first.ends[0])
  let header: readonly string[] | undefined
  try {
    header = parseAll(headerBytes, csv.delimiter)[0]?.map((name) => name.trim())
  } catch (error) {
    throw connectorError('MR-N05', `${split.path}, header row: ${messageOf(error)}.`, error)
  }
  if (header === undefined)
    throw connectorError('MR-N05', `${split.path} begins with an empty line instead of a header row.`)
  for (const field of csv.fields) {
    if (!field.optional && !header.includes(field.name))
      throw connectorError('MR-N15', `${split.path} has ${header.join(', ')}, but not ${field.name}.`)
  }
  const offset = split.offset === 0 ? first.offsetsAfter[0]! : split.offset
  return { header, records: new LineRecords(files, split, offset, findEnd) }
}

/** Line ends inside quotes do not end a record. A quote opens only at the beginning of a field, so a stray one swallows nothing. */
function recordEndFinder(delimiter: string) {
  const delimiterCode = delimiter.charCodeAt(0)
  return (bytes: Uint8Array, start: number, end: number): number => {
    let index = start
    let fieldStart = true
    while (index < end) {
      const byte = bytes[index]!
      if (byte === QUOTE && fieldStart) {
        index = behindClosingQuote(bytes, index + 1, end)
        fieldStart = false
        continue
      }
      if (byte === LINE_FEED) return index
      fieldStart = byte === delimiterCode
      index++
    }
    return -1
  }
}

const QUOTE = 0x22

function behindClosingQuote(bytes: Uint8Array, from: number, end: number): number {
  let index = from
  while (index < end) {
    if (bytes[index] !== QUOTE) index++
    else if (bytes[index + 1] === QUOTE) index += 2
    else return index + 1
  }
  return end
}

/** Texts of all records in `bytes`. Throws csv-parse's error. */
function parseAll(bytes: Uint8Array, delimiter: string): string[][] {
  return parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), {
    delimiter,
    relax_column_count: true,
    record_delimiter: ['\r\n', '\n'],
  })
}

class CsvRun<T> implements RecordRun<T> {
  readonly count: number
  readonly #chunk: ChunkOfRecords
  readonly #header: readonly string[]
  readonly #csv: Csv<T>
  /** Lines that are not empty. */
  readonly #filled: readonly number[]
  /** Place of each field in the header, -1 if absent. */
  readonly #places: readonly number[]
  #parsedFrom = 0
  #parsed: readonly (readonly string[] | MalformedRecord)[] = []

  constructor(chunk: ChunkOfRecords, header: readonly string[], csv: Csv<T>) {
    this.#chunk = chunk
    this.#header = header
    this.#csv = csv
    this.#filled = chunk.starts.flatMap((start, line) => (chunk.ends[line]! > start ? [line] : []))
    this.#places = csv.fields.map((field) => header.indexOf(field.name))
    this.count = this.#filled.length
  }

  read(index: number): T | MalformedRecord {
    if (index >= this.#parsedFrom + this.#parsed.length) this.#parse(index)
    const texts = this.#parsed[index - this.#parsedFrom]!
    if (texts instanceof MalformedRecord) return texts
    const raw: Record<string, unknown> = {}
    for (let at = 0; at < this.#places.length; at++) {
      const place = this.#places[at]!
      if (place < 0) continue
      const field = this.#csv.fields[at]!
      const value = typed(texts[place]!, field)
      if (value !== undefined) raw[field.name] = value
    }
    const { validator } = this.#csv
    return validator.accept(raw) ?? new MalformedRecord(validator.problem, lossyText(this.#bytesOf(index)))
  }

  offsetAfter(index: number): number {
    return this.#chunk.offsetsAfter[this.#filled[index]!]!
  }

  #bytesOf(index: number): Uint8Array {
    const line = this.#filled[index]!
    return this.#chunk.bytes.subarray(this.#chunk.starts[line], this.#chunk.ends[line])
  }

  #parse(from: number): void {
    const to = Math.min(this.count, from + RECORDS_PER_PARSE)
    this.#parsedFrom = from
    const first = this.#chunk.starts[this.#filled[from]!]!
    const last = this.#chunk.ends[this.#filled[to - 1]!]!
    let records: string[][] | undefined
    try {
      records = parseAll(this.#chunk.bytes.subarray(first, last), this.#csv.delimiter)
    } catch {
      // One of them is malformed; each is then parsed alone to find which.
    }
    if (records?.length === to - from) this.#parsed = records.map((texts, at) => this.#checked(texts, from + at))
    else this.#parsed = Array.from({ length: to - from }, (_, at) => this.#parseOne(from + at))
  }

  #parseOne(index: number): readonly string[] | MalformedRecord {
    const bytes = this.#bytesOf(index)
    try {
      const records = parseAll(bytes, this.#csv.delimiter)
      if (records.length === 1) return this.#checked(records[0]!, index)
      return new MalformedRecord(`the record reads as ${records.length}`, lossyText(bytes))
    } catch (error) {
      return new MalformedRecord(messageOf(error), lossyText(bytes))
    }
  }

  #checked(texts: readonly string[], index: number): readonly string[] | MalformedRecord {
    if (texts.length === this.#header.length) return texts
    const problem = `${texts.length} fields where the header has ${this.#header.length}`
    return new MalformedRecord(problem, lossyText(this.#bytesOf(index)))
  }
}

/** The text as the field's kind; a text that is none stays text and fails validation. */
function typed(text: string, field: RecordField): unknown {
  if (text === '' && (field.nullable || field.optional || field.kind !== 'string'))
    return field.nullable ? null : undefined
  switch (field.kind) {
    case 'number': {
      const number = Number(text)
      return text.trim() === '' || Number.isNaN(number) ? text : number
    }
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : text
    case 'bigint':
      return /^-?\d+$/.test(text) ? BigInt(text) : text
    case 'date': {
      const date = new Date(text)
      return Number.isNaN(date.getTime()) ? text : date
    }
    case 'string':
    case 'other':
      return text
    default:
      return field.kind satisfies never
  }
}
