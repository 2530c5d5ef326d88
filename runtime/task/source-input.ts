// Reads a source: its reader makes the records, the driver their event time.

import type { Environment } from '../base/environment.ts'
import type { CheckpointId } from '../base/ids.ts'
import type { MetricGroup } from '../base/metrics.ts'
import { SourceDriver } from '../connectors/source-driver.ts'
import type { Source, SourceReader, WatermarkStrategy } from '../connectors/contract.ts'
import type { Output, OperatorStatePart } from '../operators/contract.ts'
import { createWriter } from '../record/bytes.ts'
import { MAX_WATERMARK, MIN_WATERMARK } from '../record/element.ts'
import type { Barrier } from '../record/element.ts'
import type { InputHost, ReadOutcome, TaskInput } from './task-input.ts'

export const splitsStateName = 'splits'

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
  #watermark = MIN_WATERMARK
  #idle = false
  #lastProgressMs: number
  #ended = false

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
    this.#options.reader.addSplits(splits.map(decode))
  }

  noMoreSplits(): void {
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
      const status = this.#driver.poll(output)
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

  snapshot(id: CheckpointId): OperatorStatePart {
    const { reader, source } = this.#options
    const codec = source.splitCodec
    const items = reader.snapshot(id).map((split) => {
      const writer = createWriter()
      codec.encode(split, writer)
      return writer.take()
    })
    return { operatorState: { [splitsStateName]: { redistribution: 'split', codec: codec.description, items } } }
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

  /** Bounded input is over: time is over too. */
  #end(): void {
    this.#ended = true
    const { host } = this.#options
    if (this.#idle) host.idleness(false)
    host.advanceWatermark(MAX_WATERMARK)
  }
}
