// Parquet files: a split is a row group, read column by column; only the schema's columns are fetched and decoded.

import { parquetMetadataAsync, parquetScan, type AsyncBuffer, type FileMetaData, type ParquetParsers } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import type { ZodType } from 'zod'
import { MillraceError, invariant } from '../base/errors.ts'
import type { FileSystem } from '../storage/contract.ts'
import { connectorError, messageOf } from './errors.ts'
import {
  MalformedRecord,
  readExactly,
  type FileFormat,
  type FileSplit,
  type RecordRun,
  type SplitCursor,
} from './file-format.ts'
import { fileSource, type FileSource, type FileSourceOptions } from './file-source.ts'
import { fieldsOf, rowObject, validatorOf, type FieldKind, type RecordField } from './record-schema.ts'

export interface ParquetFilesOptions<T> extends FileSourceOptions<T> {
  /** The file's name of a column, by field, where the two differ. */
  readonly columns?: Readonly<Record<string, string>>
}

/**
 * Rows of Parquet files as objects of the schema's fields. 64-bit integers that fit become numbers where the schema says
 * number; dates and timestamps become milliseconds since the epoch, or Dates where it says date. A reader holds the
 * needed columns of one row group in memory.
 */
export function parquetFiles<T>(options: ParquetFilesOptions<T>): FileSource<T> {
  return fileSource(options, parquetFormat(options.schema, options.columns ?? {}))
}

/** A field and the column it is read from. */
interface ColumnOfField {
  readonly field: RecordField
  readonly column: string
}

function parquetFormat<T>(schema: ZodType<T>, renamed: Readonly<Record<string, string>>): FileFormat<T> {
  const fields = fieldsOf(schema)
  if (fields === undefined) throw connectorError('MR-N06', 'Parquet files: the schema must be a z.object.')
  for (const name of Object.keys(renamed)) {
    if (fields.every((field) => field.name !== name))
      throw connectorError('MR-N06', `Parquet files: columns names ${name}, which the schema does not have.`)
  }
  const wanted = fields.map((field) => ({ field, column: renamed[field.name] ?? field.name }))
  return {
    name: 'Parquet',
    async countSplits(files, path, fileBytes) {
      const metadata = await metadataOf(files, path, fileBytes)
      requireColumns(metadata, path, wanted)
      return metadata.row_groups.length
    },
    open: (files, split, nextTurn) => {
      let done = false
      return {
        async next() {
          if (done) return undefined
          done = true
          return readRowGroup({ files, split, nextTurn, schema, wanted })
        },
      } satisfies SplitCursor<T>
    },
  }
}

interface RowGroupOptions<T> {
  readonly files: FileSystem
  readonly split: FileSplit
  readonly nextTurn: () => Promise<void>
  readonly schema: ZodType<T>
  readonly wanted: readonly ColumnOfField[]
}

/** The rows of one row group from the split's record on; undefined when none is left. */
async function readRowGroup<T>({
  files,
  split,
  nextTurn,
  schema,
  wanted,
}: RowGroupOptions<T>): Promise<RecordRun<T> | undefined> {
  const metadata = await metadataOf(files, split.path, split.fileBytes)
  const present = requireColumns(metadata, split.path, wanted)
  const group = metadata.row_groups[split.part]
  if (group === undefined) throw connectorError('MR-N03', `${split.path} has no row group ${split.part} any more.`)
  const rowStart = metadata.row_groups
    .slice(0, split.part)
    .reduce((rows, earlier) => rows + Number(earlier.num_rows), 0)
  const rows = Number(group.num_rows)
  if (split.record >= rows) return undefined

  const columns: ArrayLike<unknown>[] = []
  for (const { field, column } of wanted) {
    if (!present.has(column)) {
      columns.push([])
      continue
    }
    try {
      // A scan keeps what it decoded: one per column lets the raw values go as soon as they are converted.
      const scan = await parquetScan({
        file: bufferOf(files, split),
        metadata,
        columns: [column],
        compressors,
        parsers: millisecondParsers,
      })
      const values = await scan.readColumn({ column, rowStart, rowEnd: rowStart + rows })
      if (values.length !== rows) throw new Error(`column ${column} has ${values.length} of ${rows} values`)
      columns.push(converted(values as ArrayLike<unknown>, field.kind))
    } catch (error) {
      throw foreignFormat(split.path, error)
    }
    // Decoding a column takes tens of milliseconds; control gets its turn between two.
    await nextTurn()
  }
  return runOf({ schema, fields: wanted.map((one) => one.field), columns, from: split.record, rows })
}

function runOf<T>(options: {
  readonly schema: ZodType<T>
  readonly fields: readonly RecordField[]
  readonly columns: readonly ArrayLike<unknown>[]
  readonly from: number
  readonly rows: number
}): RecordRun<T> {
  const { schema, fields, columns, from, rows } = options
  const validator = validatorOf(schema)
  return {
    count: rows - from,
    read(index) {
      const record = validator.acceptRow(columns, from + index)
      return record ?? new MalformedRecord(validator.problem, textOf(rowObject(fields, columns, from + index)))
    },
    offsetAfter: () => 0,
  }
}

async function metadataOf(files: FileSystem, path: string, fileBytes: number): Promise<FileMetaData> {
  if (fileBytes === 0) throw connectorError('MR-N05', `${path} is empty; it should be a Parquet file.`)
  try {
    return await parquetMetadataAsync(bufferOf(files, { path, fileBytes }), { parsers: millisecondParsers })
  } catch (error) {
    throw foreignFormat(path, error)
  }
}

/** The file's columns; throws MR-N15 if one that must be there is not. */
function requireColumns(metadata: FileMetaData, path: string, wanted: readonly ColumnOfField[]): ReadonlySet<string> {
  // The first schema element is the root; its children are the columns.
  const present = new Set<string>()
  for (const group of metadata.row_groups)
    for (const chunk of group.columns) present.add(chunk.meta_data?.path_in_schema[0] ?? '')
  if (metadata.row_groups.length === 0) for (const element of metadata.schema.slice(1)) present.add(element.name)
  for (const { field, column } of wanted) {
    if (!present.has(column) && !field.optional)
      throw connectorError('MR-N15', `${path} has ${[...present].sort().join(', ')}, but not ${column}.`)
  }
  return present
}

function bufferOf(
  files: FileSystem,
  { path, fileBytes }: { readonly path: string; readonly fileBytes: number },
): AsyncBuffer {
  return {
    byteLength: fileBytes,
    async slice(start, end = fileBytes) {
      const bytes = await readExactly(files, path, start, end - start)
      // hyparquet takes whole ArrayBuffers; a view into a larger one is copied out.
      return bytes.byteLength === bytes.buffer.byteLength ? bytes.buffer : bytes.slice().buffer
    },
  }
}

function foreignFormat(path: string, error: unknown): Error {
  return error instanceof MillraceError ? error : connectorError('MR-N05', `${path}: ${messageOf(error)}.`, error)
}

/** Event times are integer milliseconds: finer units are cut off downwards. */
const millisecondParsers: Partial<ParquetParsers> = {
  timestampFromMilliseconds: (milliseconds) => Number(milliseconds),
  timestampFromMicroseconds: (microseconds) => Math.floor(Number(microseconds) / 1_000),
  timestampFromNanoseconds: (nanoseconds) => {
    const past = nanoseconds % 1_000_000n
    return Number((nanoseconds - past) / 1_000_000n) - (past < 0n ? 1 : 0)
  },
  dateFromDays: (days) => days * 86_400_000,
}

/** The column's values as the schema's field kind wants them; what does not fit stays as it is and fails validation. */
function converted(values: ArrayLike<unknown>, kind: FieldKind): ArrayLike<unknown> {
  if (kind === 'number') return asNumbers(values)
  if (kind === 'bigint')
    return Array.from(values, (value) => (typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : value))
  if (kind === 'date') return Array.from(values, (value) => (typeof value === 'number' ? new Date(value) : value))
  return values
}

/** A packed array of doubles where every value is a number that fits, else the mixed values. */
function asNumbers(values: ArrayLike<unknown>): ArrayLike<unknown> {
  const numbers = new Float64Array(values.length)
  for (let index = 0; index < values.length; index++) {
    const value = values[index]
    if (typeof value === 'number') numbers[index] = value
    else if (typeof value === 'bigint' && fits(value)) numbers[index] = Number(value)
    else return Array.from(values, (mixed) => (typeof mixed === 'bigint' && fits(mixed) ? Number(mixed) : mixed))
  }
  return numbers
}

function fits(value: bigint): boolean {
  return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)
}

function textOf(row: Record<string, unknown>): string {
  const text = JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))
  invariant(text !== undefined, 'an object has a JSON form')
  return text
}
