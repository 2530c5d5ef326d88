// A numbered source whose splits stay owned and silent after their last record, until a gate lets them end. Dealt: they are given out one
// by one, each reader asks for the next when it has read one.

import type {
  EnumeratorContext,
  PollStatus,
  ReaderContext,
  SourceOutput,
  SourceReader,
  SplitEnumerator,
} from '../../connectors/contract.ts'
import type { NumberedEnumeratorState, NumberedSource, NumberedSplit } from '../../connectors/numbered-source.ts'
import type { CheckpointId, SubtaskIndex } from '../../base/ids.ts'
import type { GateHandle } from './gate.ts'

export interface HeldOptions {
  /** Records of a split. */
  readonly countOf: (split: number) => number
  readonly gate: GateHandle
  /** How many splits are given out one by one; undefined: each reader gets its share at once. */
  readonly dealt: number | undefined
}

export function heldSource<T>(source: NumberedSource<T>, options: HeldOptions): NumberedSource<T> {
  const { dealt } = options
  const held: NumberedSource<T> = { ...source, createReader: (context) => new HeldReader(context, source, options) }
  if (dealt === undefined) return held
  return { ...held, createEnumerator: (context, restored) => new DealingEnumerator(context, dealt, restored) }
}

class DealingEnumerator implements SplitEnumerator<NumberedSplit, NumberedEnumeratorState> {
  readonly #context: EnumeratorContext<NumberedSplit>
  #waiting: readonly NumberedSplit[]

  constructor(context: EnumeratorContext<NumberedSplit>, of: number, restored: NumberedEnumeratorState | undefined) {
    this.#context = context
    this.#waiting = restored?.waiting ?? Array.from({ length: of }, (_, index) => ({ index, of, next: 0 }))
  }

  async start(): Promise<void> {
    // All splits are known.
  }

  addReader(): void {
    // It will ask.
  }

  requestSplit(subtask: SubtaskIndex): void {
    const [next, ...others] = this.#waiting
    if (next === undefined) return this.#context.signalNoMoreSplits(subtask)
    this.#waiting = others
    this.#context.assign(subtask, [next])
  }

  addSplitsBack(splits: readonly NumberedSplit[]): void {
    this.#waiting = [...splits, ...this.#waiting]
  }

  snapshot(): NumberedEnumeratorState {
    return { waiting: this.#waiting, made: true }
  }

  get splitsWait(): boolean {
    return this.#waiting.length > 0
  }

  reconcile(owned: ReadonlyMap<SubtaskIndex, readonly NumberedSplit[]>, finished: readonly string[]): void {
    const taken = new Set(finished)
    for (const splits of owned.values()) for (const { index } of splits) taken.add(String(index))
    this.#waiting = this.#waiting.filter(({ index }) => !taken.has(String(index)))
  }

  close(): void {
    this.#waiting = []
  }
}

class HeldReader<T> implements SourceReader<T, NumberedSplit> {
  readonly #context: ReaderContext
  readonly #options: HeldOptions
  readonly #inner: SourceReader<T, NumberedSplit>
  readonly #of = new Map<string, NumberedSplit>()
  #held: NumberedSplit[] = []
  #noMore = false

  constructor(context: ReaderContext, source: NumberedSource<T>, options: HeldOptions) {
    this.#context = context
    this.#options = options
    this.#inner = source.createReader({ ...context, splitFinished: (id) => this.#hold(this.#of.get(id)!) })
  }

  start(): void {
    this.#inner.start()
  }

  addSplits(splits: readonly NumberedSplit[]): void {
    const going = splits.filter((split) => split.next < this.#options.countOf(split.index))
    for (const split of going) this.#of.set(String(split.index), split)
    for (const split of splits) if (!going.includes(split)) this.#hold(split)
    this.#inner.addSplits(going)
    // What it has of those that are dealt is all that it waits for.
    if (this.#options.dealt !== undefined) this.#inner.noMoreSplits()
  }

  noMoreSplits(): void {
    this.#noMore = true
    this.#inner.noMoreSplits()
  }

  poll(output: SourceOutput<T>): PollStatus {
    const ended = this.#held.find(({ index }) => this.#options.gate.isOpen(index))
    if (ended !== undefined) {
      this.#held = this.#held.filter((split) => split !== ended)
      this.#context.splitFinished(String(ended.index))
      return 'more'
    }
    const status = this.#inner.poll(output)
    return status === 'end' && (this.#held.length > 0 || !this.#noMore) ? 'nothing' : status
  }

  snapshot(checkpoint: CheckpointId): readonly NumberedSplit[] {
    return [...this.#inner.snapshot(checkpoint), ...this.#held]
  }

  ownedSplits(): readonly string[] {
    return [...this.#inner.ownedSplits(), ...this.#held.map(({ index }) => String(index))]
  }

  hasPending(id: string): boolean {
    return this.#held.some(({ index }) => String(index) === id) ? false : this.#inner.hasPending(id)
  }

  close(): void | Promise<void> {
    return this.#inner.close()
  }

  #hold(split: NumberedSplit): void {
    this.#held.push({ ...split, next: this.#options.countOf(split.index) })
    this.#options.gate.onOpen(split.index, () => this.#context.wake())
    if (this.#options.dealt !== undefined && !this.#noMore) this.#context.requestSplit()
  }
}
