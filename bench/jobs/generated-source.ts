// A source like the peer's: split i of P emits numbers i, i + P, …, as fast as they are taken, up to a limit that the driver moves.

import type { Timer } from '../../runtime/base/environment.ts'
import type { ReaderContext, SourceOutput, SourceReader } from '../../runtime/connectors/contract.ts'
import { numberedSource } from '../../runtime/connectors/numbered-source.ts'
import type { NumberedSource, NumberedSplit } from '../../runtime/connectors/numbered-source.ts'
import type { TypeInfo } from '../../runtime/record/contract.ts'
import { Board, board } from './board.ts'

export interface GeneratedSourceOptions<T> {
  readonly name: string
  readonly output: TypeInfo<T>
  /** Makes the function of one reader: records first, first + stride, …, `count` of them. */
  readonly createBlocks: () => (first: number, stride: number, count: number) => T[]
  readonly timestampOf: (n: number) => number
  /** Numbers in all; undefined: endless. */
  readonly end: number | undefined
}

export function generatedSource<T>(options: GeneratedSourceOptions<T>): NumberedSource<T> {
  const { name, output, end } = options
  const numbered = numberedSource<T>({
    name,
    bounded: end !== undefined,
    output,
    countOf: () => undefined,
    recordOf: () => {
      throw new Error('its own reader makes the records')
    },
    timestampOf: () => 0,
  })
  return { ...numbered, createReader: (context) => new GeneratedReader(context, options) }
}

/** Records made at once; what is left of them is made again after a restore. */
const blockRecords = 128
/** At the limit: until the driver is asked again. */
const limitPollMs = 1

class GeneratedReader<T> implements SourceReader<T, NumberedSplit> {
  readonly #context: ReaderContext
  readonly #block: (first: number, stride: number, count: number) => T[]
  readonly #timestampOf: (n: number) => number
  readonly #end: number
  readonly #board = board()
  readonly #lane: number
  #split: NumberedSplit | undefined
  #id = ''
  #stride = 1
  /** The number of the next record. */
  #n = 0
  #records: T[] = []
  #index = 0
  #count: number
  #noMore = false
  #timer: Timer | undefined

  constructor(context: ReaderContext, options: GeneratedSourceOptions<T>) {
    this.#context = context
    this.#block = options.createBlocks()
    this.#timestampOf = options.timestampOf
    this.#end = options.end ?? Number.POSITIVE_INFINITY
    this.#lane = Board.lane('source', context.task.subtask)
    this.#count = this.#board.numbers[this.#lane]!
  }

  start(): void {
    this.#context.requestSplit()
  }

  addSplits(splits: readonly NumberedSplit[]): void {
    if (this.#split !== undefined || splits.length !== 1)
      throw new Error('a bench runs at the parallelism that it began with: one split for each reader')
    this.#split = splits[0]!
    this.#id = String(this.#split.index)
    this.#stride = this.#split.of
    this.#n = this.#split.index + this.#split.next * this.#split.of
    this.#context.wake()
  }

  noMoreSplits(): void {
    this.#noMore = true
    this.#context.wake()
  }

  poll(output: SourceOutput<T>): 'more' | 'nothing' | 'end' {
    if (this.#index === this.#records.length && !this.#refill()) return this.#n >= this.#end ? 'end' : 'nothing'
    const n = this.#n
    const record = this.#records[this.#index++]!
    this.#n = n + this.#stride
    output.emit(record, this.#timestampOf(n), this.#id)
    this.#board.numbers[this.#lane] = ++this.#count
    return 'more'
  }

  snapshot(): readonly NumberedSplit[] {
    if (this.#split === undefined) return []
    return [{ ...this.#split, next: (this.#n - this.#split.index) / this.#stride }]
  }

  ownedSplits(): readonly string[] {
    return this.#split === undefined ? [] : [this.#id]
  }

  hasPending(): boolean {
    return true
  }

  close(): void {
    this.#timer?.cancel()
  }

  #refill(): boolean {
    if (!this.#noMore || this.#split === undefined) return false
    const limit = Math.min(this.#board.get('limit'), this.#end)
    const count = Math.min(blockRecords, Math.ceil((limit - this.#n) / this.#stride))
    if (count <= 0) {
      this.#waitForLimit()
      return false
    }
    this.#records = this.#block(this.#n, this.#stride, count)
    this.#index = 0
    return true
  }

  #waitForLimit(): void {
    this.#timer ??= this.#context.environment.clock.timer(limitPollMs, () => {
      this.#timer = undefined
      this.#context.wake()
    })
  }
}
