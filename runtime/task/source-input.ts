// Reads a source: its reader makes the records, the driver their event time.

import type { Environment } from '../base/environment.ts'
import type { CheckpointId } from '../base/ids.ts'
import type { MetricGroup } from '../base/metrics.ts'
import { SourceDriver } from '../connectors/source-driver.ts'
import { SPLITS_STATE } from '../connectors/contract.ts'
import type { Source, SourceReader, WatermarkStrategy } from '../connectors/contract.ts'
import type { SurvivingSplits } from '../control/contract.ts'
import type { Output, OperatorStatePart } from '../operators/contract.ts'
import { createWriter } from '../record/bytes.ts'
import { MAX_WATERMARK, MIN_WATERMARK } from '../record/element.ts'
import type { Barrier } from '../record/element.ts'
import type { InputHost, ReadOutcome, TaskInput } from './task-input.ts'

/** Watermarks go out at most this often while records flow: each closes the frames it stands in. */
const watermarkIntervalMs = 50

export interface SourceInputOptions {
  readonly source: Source<unknown, unknown, unknown>
  readonly strategy: WatermarkStrategy<unknown>
  readonly reader: SourceReader<unknown, unknown>
  readonly newestKnown: CheckpointId
  readonly output: Output<unknown>
  readonly host: InputHost
  readonly environment: Environment
  readonly metrics: MetricGroup
}

export class SourceInput implements TaskInput {
  readonly #options: SourceInputOptions
  readonly #driver: SourceDriver<unknown>
  #newestDone: CheckpointId
  /** With the newest checkpoint before; kept until one that holds it is known as completed. */
  readonly #finished: { readonly splitId: string; readonly after: CheckpointId }[] = []
  #asks = false
  #watermark = MIN_WATERMARK
  #idle = false
  #lastProgressMs: number
  #ended = false
  /** Active goes out before the first record after idleness: behind it, another channel's watermark might have passed that record by. */
  readonly #waking: Output<unknown> = {
    emit: (value, timestamp) => {
      this.#wakeUp()
      this.#options.output.emit(value, timestamp)
    },
    emitTo: (tag, value, timestamp) => {
      this.#wakeUp()
      this.#options.output.emitTo(tag, value, timestamp)
    },
  }

  constructor(options: SourceInputOptions) {
    this.#options = options
    this.#newestDone = options.newestKnown
    this.#driver = new SourceDriver({
      strategy: options.strategy,
      reader: options.reader,
      clock: options.environment.clock,
      planted: options.environment.planted,
      bounded: options.source.bounded,
    })
    this.#lastProgressMs = options.environment.clock.nowMs()
  }

  get tickMs(): number | undefined {
    return this.#driver.tickMs
  }

  start(): void {
    this.#options.reader.start()
  }

  addSplits(splits: readonly Uint8Array[], decode: (bytes: Uint8Array) => unknown): void {
    // Behind a barrier to drain: the enumerator's part of the savepoint still holds them, and the reader's is yet to be taken (rule 20).
    this.#asks = false
    if (!this.#ended) this.#options.reader.addSplits(splits.map(decode))
  }

  noMoreSplits(): void {
    this.#asks = false
    this.#options.reader.noMoreSplits()
  }

  setSplitsWait(waiting: boolean): void {
    this.#driver.setSplitsWait(waiting)
  }

  read(): ReadOutcome {
    const { host, output, metrics } = this.#options
    if (this.#ended) return 'ended'
    const before = this.#driver.emitted
    let outcome: ReadOutcome = 'more'
    do {
      const status = this.#driver.poll(this.#idle ? this.#waking : output)
      if (status !== 'more') outcome = status === 'end' ? 'ended' : 'nothing'
    } while (outcome === 'more' && !host.shouldStop())
    metrics.add('records_in_total', this.#driver.emitted - before)
    if (outcome === 'ended') this.#end()
    else this.#progress(outcome === 'nothing')
    return outcome
  }

  /** A source has no producers: its snapshot is taken at once. */
  trigger(barrier: Barrier): void {
    if (barrier.id <= this.#newestDone) return
    this.#newestDone = barrier.id
    this.#options.host.snapshot(barrier, 0)
  }

  abort(id: CheckpointId): void {
    if (id > this.#newestDone) this.#newestDone = id
  }

  forget(newestKnown: CheckpointId): void {
    this.abort(newestKnown)
  }

  get aligning(): undefined {
    return undefined
  }

  splitFinished(splitId: string): void {
    this.#finished.push({ splitId, after: this.#newestDone })
  }

  /** What was finished before its cut is in the enumerator's or reader's part of it. */
  completed(id: CheckpointId): void {
    while (this.#finished.length > 0 && this.#finished[0]!.after < id) this.#finished.shift()
  }

  splits(): SurvivingSplits {
    return {
      owned: this.#encodedSplits(this.#newestDone),
      finished: this.#finished.map(({ splitId }) => splitId),
      asks: this.#asks,
    }
  }

  /** The reader wants a split, and has not been answered yet. */
  splitRequested(): void {
    this.#asks = true
  }

  #encodedSplits(id: CheckpointId): Uint8Array[] {
    const { reader, source } = this.#options
    return reader.snapshot(id).map((split) => {
      const writer = createWriter()
      source.splitCodec.encode(split, writer)
      return writer.take()
    })
  }

  snapshot(id: CheckpointId): OperatorStatePart {
    const codec = this.#options.source.splitCodec
    const items = this.#encodedSplits(id)
    return { operatorState: { [SPLITS_STATE]: { redistribution: 'split', codec: codec.description, items } } }
  }

  drain(): void {
    if (!this.#ended) this.#end()
  }

  backpressured(yes: boolean): void {
    this.#driver.backpressured(yes)
  }

  close(): void | Promise<void> {
    return this.#options.reader.close()
  }

  #progress(now: boolean): void {
    const nowMs = this.#options.environment.clock.nowMs()
    if (!now && nowMs - this.#lastProgressMs < watermarkIntervalMs) return
    this.#lastProgressMs = nowMs
    const { host } = this.#options
    const progress = this.#driver.progress()
    if (progress.watermark > this.#watermark) {
      this.#watermark = progress.watermark
      host.advanceWatermark(progress.watermark)
    }
    if (progress.idle !== this.#idle) {
      this.#idle = progress.idle
      host.idleness(progress.idle)
    }
  }

  #wakeUp(): void {
    if (!this.#idle) return
    this.#idle = false
    this.#options.host.idleness(false)
  }

  /** Bounded input is over: time is over too. */
  #end(): void {
    this.#ended = true
    const { host } = this.#options
    this.#wakeUp()
    host.advanceWatermark(MAX_WATERMARK)
  }
}
