// What a file format gives to the file source: how a file is cut into splits, and runs of records of one split.

import type { ZodType } from 'zod'
import { z } from 'zod'
import type { FileSystem } from '../storage/contract.ts'
import { errorCodeOf } from '../storage/errors.ts'
import { jsonCodec } from './json-codec.ts'
import { connectorError, messageOf } from './errors.ts'

/** A part of a file with the place of the next record. */
export interface FileSplit {
  readonly path: string
  /** 0-based: the row group of a Parquet file; 0 for a file that is read as a whole. */
  readonly part: number
  /** Place among all splits of the source; splits are handed out in this order. */
  readonly order: number
  /** Bytes of the whole file when it was found; another size later means that it changed. */
  readonly fileBytes: number
  /** Records already read, malformed ones included. */
  readonly record: number
  /** Byte at which record `record` begins; 0 before the first and for formats that count records only. */
  readonly offset: number
}

const count = z.number().int().min(0)
export const fileSplitSchema: ZodType<FileSplit> = z.object({
  path: z.string(),
  part: count,
  order: count,
  fileBytes: count,
  record: count,
  offset: count,
})

export const fileSplitCodec = jsonCodec<FileSplit>('file split', 1, fileSplitSchema)

export interface FileFormat<T> {
  readonly name: string
  /** How many splits the file has. Throws MR-N05 if it is not of this format. */
  countSplits(files: FileSystem, path: string, fileBytes: number): Promise<number>
  /** Reads from the split's place on. `nextTurn` lets others run between pieces of heavy work. */
  open(files: FileSystem, split: FileSplit, nextTurn: () => Promise<void>): SplitCursor<T>
}

export interface SplitCursor<T> {
  /** The next records; undefined at the end. One call at a time. Throws MR-N…. */
  next(): Promise<RecordRun<T> | undefined>
}

/** Records in memory, in order. */
export interface RecordRun<T> {
  readonly count: number
  /** Read each record once, in order. */
  read(index: number): T | MalformedRecord
  /** The byte after record `index`; 0 for formats that count records only. */
  offsetAfter(index: number): number
}

/** A record that does not fit; `text` is bounded. */
export class MalformedRecord {
  readonly problem: string
  readonly text: string

  constructor(problem: string, text: string) {
    this.problem = problem
    this.text = text.length > MALFORMED_TEXT_CHARACTERS_MAX ? `${text.slice(0, MALFORMED_TEXT_CHARACTERS_MAX)}…` : text
  }
}

/** Enough to recognise the record; a message or a side output never carries a whole file. */
const MALFORMED_TEXT_CHARACTERS_MAX = 2_000

/** Exactly the bytes [offset, offset + length), or the reason as a connector error. */
export async function readExactly(
  files: FileSystem,
  path: string,
  offset: number,
  length: number,
): Promise<Uint8Array<ArrayBuffer>> {
  let bytes: Uint8Array
  try {
    bytes = await files.readRange(path, offset, length)
  } catch (error) {
    throw readFailure(path, error)
  }
  if (bytes.byteLength !== length)
    throw connectorError('MR-N03', `${path}: ${bytes.byteLength} of ${length} bytes at ${offset} are left.`)
  return bytes as Uint8Array<ArrayBuffer>
}

/** The file's size in bytes, or the reason as a connector error. */
export async function sizeOfInput(files: FileSystem, path: string): Promise<number> {
  try {
    return await files.sizeOf(path)
  } catch (error) {
    throw readFailure(path, error)
  }
}

function readFailure(path: string, error: unknown): Error {
  const code = errorCodeOf(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return connectorError('MR-N01', `${path}.`, error)
  // No repetition makes a file of it.
  if (code === 'EISDIR') return connectorError('MR-N01', `${path} is a folder; give the paths of its files.`, error)
  return connectorError('MR-N02', `${path}: ${messageOf(error)}.`, error)
}

/** Throws MR-N06 for an address: it would be read or written as a path below the working folder. `what`: csv files, path. */
export function refuseAddress(what: string, path: string): void {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(path)) return
  throw connectorError(
    'MR-N06',
    `${what}: ${path} is an address; files are read and written by their paths. On a cluster mount a volume that all pods share.`,
  )
}
