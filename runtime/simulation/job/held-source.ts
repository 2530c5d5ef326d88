// A numbered source whose splits stay owned and silent after their last record, until a gate lets them end.

import type { PollStatus, ReaderContext, SourceOutput, SourceReader } from '../../connectors/contract.ts'
import type { NumberedSource, NumberedSplit } from '../../connectors/numbered-source.ts'
import type { CheckpointId } from '../../base/ids.ts'
import type { GateHandle } from './gate.ts'

export interface HeldOptions {
  /** Records of a split. */
  readonly countOf: (split: number) => number
  readonly gate: GateHandle
}

export function heldSource<T>(source: NumberedSource<T>, options: HeldOptions): NumberedSource<T> {
  return { ...source, createReader: (context) => new HeldReader(context, source, options) }
}

class HeldReader<T> implements SourceReader<T, NumberedSplit> {
  readonly #context: ReaderContext
  readonly #options: HeldOptions
  readonly #inner: SourceReader<T, NumberedSplit>
  readonly #of = new Map<string, NumberedSplit>()
  #held: NumberedSplit[] = []

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
  }

  noMoreSplits(): void {
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
    return status === 'end' && this.#held.length > 0 ? 'nothing' : status
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
  }
}
