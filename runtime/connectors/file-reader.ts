// Reads file splits one after another: fetches run ahead asynchronously, poll() only hands out what is there.

import type { CheckpointId } from '../base/ids.ts'
import { within } from '../base/deadline.ts'
import { invariant } from '../base/errors.ts'
import { NO_TIMESTAMP } from '../record/element.ts'
import type { PollStatus, ReaderContext, SourceOutput, SourceReader } from './contract.ts'
import { connectorError } from './errors.ts'
import {
  MalformedRecord,
  sizeOfInput,
  type FileFormat,
  type FileSplit,
  type RecordRun,
  type SplitCursor,
} from './file-format.ts'
import { splitIdOf } from './file-enumerator.ts'

/** What happens to a record that does not fit the schema or cannot be parsed. Skipped and side-output ones are counted as malformed_records_total. */
export type MalformedPolicy = 'fail' | 'skip' | 'side output'

/** Tag of the side output of a file source. */
export const MALFORMED_TAG = 'malformed'

export interface MalformedFileRecord {
  readonly path: string
  /** 0-based within its split. */
  readonly position: number
  readonly error: string
  /** The record as it stood, cut to 2,000 characters. */
  readonly text: string
}

/** One run is handed out while the next is fetched; a run is 256 KiB of lines or one row group. */
const FETCHED_RUNS_MAX = 2
/** A fetch reads at most one row group; a disk that takes longer is taken for dead. */
const FETCH_DEADLINE_MS = 120_000

/** The split being read. */
interface Reading<T> {
  readonly split: FileSplit
  readonly id: string
  cursor: SplitCursor<T> | undefined
  readonly fetched: RecordRun<T>[]
  fetching: boolean
  exhausted: boolean
  /** Of fetched[0]: the next record to hand out. */
  index: number
  record: number
  offset: number
}

export class FileReader<T> implements SourceReader<T, FileSplit> {
  readonly #context: ReaderContext
  readonly #format: FileFormat<T>
  readonly #policy: MalformedPolicy
  readonly #unread: FileSplit[] = []
  #reading: Reading<T> | undefined
  #owned: readonly string[] = []
  #noMore = false
  #closed = false

  constructor(context: ReaderContext, format: FileFormat<T>, policy: MalformedPolicy) {
    this.#context = context
    this.#format = format
    this.#policy = policy
  }

  start(): void {
    if (this.#owned.length === 0) this.#context.requestSplit()
  }

  addSplits(splits: readonly FileSplit[]): void {
    this.#unread.push(...splits)
    this.#unread.sort((left, right) => left.order - right.order)
    this.#recountOwned()
    this.#context.wake()
  }

  noMoreSplits(): void {
    this.#noMore = true
    this.#context.wake()
  }

  poll(output: SourceOutput<T>): PollStatus {
    const reading = this.#reading ?? this.#beginNext()
    if (reading === undefined) return this.#noMore ? 'end' : 'nothing'
    const run = reading.fetched[0]
    if (run === undefined) {
      if (!reading.exhausted) return 'nothing'
      this.#finish(reading)
      return 'more'
    }
    const value = run.read(reading.index)
    const position = reading.record++
    if (++reading.index === run.count) this.#finishRun(reading, run)
    if (value instanceof MalformedRecord) this.#malformed(reading, position, value, output)
    else output.emit(value, NO_TIMESTAMP, reading.id)
    return 'more'
  }

  snapshot(_checkpoint: CheckpointId): readonly FileSplit[] {
    const reading = this.#reading
    if (reading === undefined) return [...this.#unread]
    const run = reading.fetched[0]
    const offset = run !== undefined && reading.index > 0 ? run.offsetAfter(reading.index - 1) : reading.offset
    return [{ ...reading.split, record: reading.record, offset }, ...this.#unread]
  }

  ownedSplits(): readonly string[] {
    return this.#owned
  }

  /** A file never falls silent: what was not read yet is there to be read. */
  hasPending(splitId: string): boolean {
    return this.#owned.includes(splitId)
  }

  close(): void {
    this.#closed = true
    this.#reading = undefined
    this.#unread.length = 0
    this.#owned = []
  }

  #beginNext(): Reading<T> | undefined {
    const split = this.#unread.shift()
    if (split === undefined) return undefined
    this.#reading = {
      split,
      id: splitIdOf(split),
      cursor: undefined,
      fetched: [],
      fetching: false,
      exhausted: false,
      index: 0,
      record: split.record,
      offset: split.offset,
    }
    this.#fetch(this.#reading)
    return this.#reading
  }

  #finishRun(reading: Reading<T>, run: RecordRun<T>): void {
    reading.offset = run.offsetAfter(run.count - 1)
    reading.fetched.shift()
    reading.index = 0
    this.#fetch(reading)
  }

  #finish(reading: Reading<T>): void {
    this.#reading = undefined
    this.#recountOwned()
    this.#context.splitFinished(reading.id)
    if (this.#unread.length === 0 && !this.#noMore) this.#context.requestSplit()
  }

  #recountOwned(): void {
    const ids = this.#unread.map(splitIdOf)
    this.#owned = this.#reading === undefined ? ids : [this.#reading.id, ...ids]
  }

  /** Owns the promise of one fetch; its failure fails the task. */
  #fetch(reading: Reading<T>): void {
    if (reading.fetching || reading.exhausted || reading.fetched.length >= FETCHED_RUNS_MAX) return
    reading.fetching = true
    const late = () => connectorError('MR-N08', `${reading.split.path} (${FETCH_DEADLINE_MS} ms).`)
    void within(this.#context.environment.clock, FETCH_DEADLINE_MS, this.#nextRun(reading), late).then(
      (run) => {
        reading.fetching = false
        if (this.#closed || this.#reading !== reading) return
        if (run === undefined) reading.exhausted = true
        else {
          invariant(run.count > 0, 'a run holds at least one record')
          reading.fetched.push(run)
          this.#fetch(reading)
        }
        this.#context.wake()
      },
      (error: unknown) => {
        if (!this.#closed) this.#context.fail(error)
      },
    )
  }

  async #nextRun(reading: Reading<T>): Promise<RecordRun<T> | undefined> {
    if (reading.cursor === undefined) {
      const { path, fileBytes } = reading.split
      const size = await sizeOfInput(this.#context.files, path)
      // Positions count records of the file as it was found; in another file they would lose or double some.
      if (size !== fileBytes) throw connectorError('MR-N03', `${path} had ${fileBytes} bytes and has ${size} now.`)
      const { executor } = this.#context.environment
      const nextTurn = (): Promise<void> => new Promise((resolve) => executor.post(resolve))
      reading.cursor = this.#format.open(this.#context.files, reading.split, nextTurn)
    }
    return reading.cursor.next()
  }

  #malformed(reading: Reading<T>, position: number, record: MalformedRecord, output: SourceOutput<T>): void {
    const { path } = reading.split
    if (this.#policy === 'fail')
      throw connectorError(
        'MR-N04',
        `${path}, record ${position} of split ${reading.id}: ${record.problem}. It reads: ${record.text}`,
      )
    this.#context.metrics.add('malformed_records_total', 1)
    if (this.#policy === 'skip') return
    const side: MalformedFileRecord = { path, position, error: record.problem, text: record.text }
    output.emitTo(MALFORMED_TAG, side, NO_TIMESTAMP)
  }
}
