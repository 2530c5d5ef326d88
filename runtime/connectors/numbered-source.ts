// Sources whose n-th record of a split is a function of n: datagen, the ledger's sequence, values in memory.
// A split is a number to go on from, so resuming is exact by construction.

import { z } from 'zod'
import type { SubtaskIndex, CheckpointId } from '../base/ids.ts'
import type { Timer } from '../base/environment.ts'
import type { TypeInfo } from '../record/contract.ts'
import type {
  EnumeratorContext,
  PollStatus,
  ReaderContext,
  Source,
  SourceOutput,
  SourceReader,
  SplitEnumerator,
} from './contract.ts'
import { connectorError } from './errors.ts'
import { jsonCodec } from './json-codec.ts'

export interface NumberedSplit {
  /** 0 ≤ index < of. */
  readonly index: number
  /** How many splits the source had when the job first started; it stays so at any parallelism. */
  readonly of: number
  /** The next record's number within the split, from 0. */
  readonly next: number
}

const numberedSplitSchema = z.object({
  index: z.number().int().min(0),
  of: z.number().int().min(1),
  next: z.number().int().min(0),
})

export interface NumberedEnumeratorState {
  readonly waiting: readonly NumberedSplit[]
  /** Whether the splits were made; they are made once in the life of the job. */
  readonly made: boolean
}

export interface NumberedSourceOptions<T> {
  readonly name: string
  readonly bounded: boolean
  readonly output: TypeInfo<T>
  /** Default: the parallelism of the job's first start. */
  readonly splits?: number | undefined
  /** Records of one split; undefined: endless. */
  countOf(split: NumberedSplit): number | undefined
  /** Over all splits; undefined: as fast as they are taken. */
  readonly ratePerSecond?: number | undefined
  recordOf(split: NumberedSplit, n: number): T
  timestampOf(split: NumberedSplit, n: number): number
}

export type NumberedSource<T> = Source<T, NumberedSplit, NumberedEnumeratorState>

const splitId = (split: NumberedSplit): string => String(split.index)

/** Throws MR-N06 for options that cannot work. */
export function numberedSource<T>(options: NumberedSourceOptions<T>): NumberedSource<T> {
  const { splits, ratePerSecond, name } = options
  if (splits !== undefined && (!Number.isSafeInteger(splits) || splits < 1))
    throw connectorError('MR-N06', `${name}: splits is ${splits}; it must be an integer ≥ 1.`)
  if (ratePerSecond !== undefined && !(Number.isFinite(ratePerSecond) && ratePerSecond > 0))
    throw connectorError('MR-N06', `${name}: ratePerSecond is ${ratePerSecond}; it must be above 0.`)
  return {
    name,
    bounded: options.bounded,
    output: options.output,
    splitCodec: jsonCodec<NumberedSplit>('numbered split', 1, numberedSplitSchema),
    enumeratorCodec: jsonCodec<NumberedEnumeratorState>(
      'numbered enumerator',
      1,
      z.object({ waiting: z.array(numberedSplitSchema), made: z.boolean() }),
    ),
    splitId,
    createEnumerator: (context, restored) => new NumberedEnumerator(context, splits, restored),
    createReader: (context) => new NumberedReader(context, options),
  }
}

/** Deals its splits out for good: they may be endless, so a reader gets all of its share at its first request. */
class NumberedEnumerator implements SplitEnumerator<NumberedSplit, NumberedEnumeratorState> {
  readonly #context: EnumeratorContext<NumberedSplit>
  readonly #splits: number | undefined
  #made: boolean
  #waiting: { readonly split: NumberedSplit; readonly owner: number }[]

  constructor(
    context: EnumeratorContext<NumberedSplit>,
    splits: number | undefined,
    restored: NumberedEnumeratorState | undefined,
  ) {
    this.#context = context
    this.#splits = splits
    this.#made = restored?.made ?? false
    this.#waiting = (restored?.waiting ?? []).map((split) => this.#dealt(split))
  }

  async start(): Promise<void> {
    this.#make()
  }

  addReader(): void {
    // It will ask.
  }

  requestSplit(subtask: SubtaskIndex): void {
    this.#make()
    const share = this.#waiting.filter(({ owner }) => owner === subtask).map(({ split }) => split)
    this.#waiting = this.#waiting.filter(({ owner }) => owner !== subtask)
    if (share.length > 0) this.#context.assign(subtask, share)
    this.#context.signalNoMoreSplits(subtask)
  }

  /** The restarted reader gets its own back. */
  addSplitsBack(splits: readonly NumberedSplit[], subtask: SubtaskIndex): void {
    this.#waiting = [...splits.map((split) => ({ split, owner: Number(subtask) })), ...this.#waiting]
  }

  snapshot(): NumberedEnumeratorState {
    return { waiting: this.#waiting.map(({ split }) => split), made: this.#made }
  }

  get splitsWait(): boolean {
    return !this.#made || this.#waiting.length > 0
  }

  reconcile(owned: ReadonlyMap<SubtaskIndex, readonly NumberedSplit[]>, finished: readonly string[]): void {
    this.#make()
    const taken = new Set(finished)
    for (const splits of owned.values()) for (const split of splits) taken.add(splitId(split))
    this.#waiting = this.#waiting.filter(({ split }) => !taken.has(splitId(split)))
  }

  close(): void {
    this.#waiting = []
  }

  #make(): void {
    if (this.#made) return
    this.#made = true
    const of = this.#splits ?? this.#context.parallelism
    this.#waiting = Array.from({ length: of }, (_, index) => this.#dealt({ index, of, next: 0 }))
  }

  #dealt(split: NumberedSplit): { readonly split: NumberedSplit; readonly owner: number } {
    return { split, owner: split.index % this.#context.parallelism }
  }
}

/** After a pause (backpressure, a frozen process) at most this much is made up for at full speed; then the rate goes on from there. */
const CATCH_UP_MS_MAX = 1_000

interface OwnedSplit {
  readonly split: NumberedSplit
  readonly id: string
  readonly count: number | undefined
  next: number
  /** When record `next` is due, ms of the monotonic clock. */
  dueMs: number
}

class NumberedReader<T> implements SourceReader<T, NumberedSplit> {
  readonly #context: ReaderContext
  readonly #options: NumberedSourceOptions<T>
  #owned: OwnedSplit[] = []
  #ids: readonly string[] = []
  /** Splits take turns: `turn` is the one to be asked next. */
  #turn = 0
  #noMore = false
  #timer: Timer | undefined
  #closed = false

  constructor(context: ReaderContext, options: NumberedSourceOptions<T>) {
    this.#context = context
    this.#options = options
  }

  /** Also with restored splits: the enumerator deals out by parallelism, and more may wait for this reader. */
  start(): void {
    this.#context.requestSplit()
  }

  addSplits(splits: readonly NumberedSplit[]): void {
    const dueMs = this.#context.environment.clock.nowMs()
    for (const split of splits) {
      const count = this.#options.countOf(split)
      this.#owned.push({ split, id: splitId(split), count, next: split.next, dueMs })
    }
    this.#recountIds()
    this.#context.wake()
  }

  noMoreSplits(): void {
    this.#noMore = true
    this.#context.wake()
  }

  poll(output: SourceOutput<T>): PollStatus {
    // Its whole share must be here before it reads: after a restore at another parallelism it may own some splits, while others, still
    // at their beginning, wait for it. Event time would not wait for those, and their records would be late.
    if (!this.#noMore) return 'nothing'
    const limited = this.#options.ratePerSecond !== undefined
    const nowMs = limited ? this.#context.environment.clock.nowMs() : 0
    let earliestMs = Infinity
    for (let asked = 0; asked < this.#owned.length; asked++) {
      const owned = this.#owned[this.#turn]!
      if (owned.count !== undefined && owned.next >= owned.count) {
        this.#finish(owned)
        return 'more'
      }
      if (++this.#turn === this.#owned.length) this.#turn = 0
      if (limited && owned.dueMs > nowMs) {
        earliestMs = Math.min(earliestMs, owned.dueMs)
        continue
      }
      this.#emit(owned, nowMs, output)
      return 'more'
    }
    if (this.#owned.length === 0) return this.#noMore ? 'end' : 'nothing'
    this.#wakeIn(earliestMs - nowMs)
    return 'nothing'
  }

  snapshot(_checkpoint: CheckpointId): readonly NumberedSplit[] {
    return this.#owned.map(({ split, next }) => ({ ...split, next }))
  }

  ownedSplits(): readonly string[] {
    return this.#ids
  }

  hasPending(id: string): boolean {
    const owned = this.#owned.find((one) => one.id === id)
    return owned !== undefined && owned.dueMs <= this.#context.environment.clock.nowMs()
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
    this.#owned = []
    this.#ids = []
  }

  #emit(owned: OwnedSplit, nowMs: number, output: SourceOutput<T>): void {
    const { split, next } = owned
    const value = this.#options.recordOf(split, next)
    owned.next = next + 1
    if (this.#options.ratePerSecond !== undefined) {
      const intervalMs = (1_000 * split.of) / this.#options.ratePerSecond
      owned.dueMs = Math.max(owned.dueMs + intervalMs, nowMs - CATCH_UP_MS_MAX)
    }
    output.emit(value, this.#options.timestampOf(split, next), owned.id)
  }

  #finish(owned: OwnedSplit): void {
    this.#owned = this.#owned.filter((one) => one !== owned)
    this.#turn = 0
    this.#recountIds()
    this.#context.splitFinished(owned.id)
  }

  #recountIds(): void {
    this.#ids = this.#owned.map(({ id }) => id)
  }

  #wakeIn(delayMs: number): void {
    if (this.#timer !== undefined) return
    this.#timer = this.#context.environment.clock.timer(delayMs, () => {
      this.#timer = undefined
      if (!this.#closed) this.#context.wake()
    })
  }
}
