// The input of a source that had wholly finished in the restore point: time and data end at once (rule 19).

import { MAX_WATERMARK } from '../record/element.ts'
import type { Barrier } from '../record/element.ts'
import type { InputHost, ReadOutcome, TaskInput } from './task-input.ts'

export class FinishedInput implements TaskInput {
  readonly tickMs = undefined
  readonly #host: InputHost

  constructor(host: InputHost) {
    this.#host = host
  }

  start(): void {
    // Nothing to start.
  }

  read(): ReadOutcome {
    this.#host.advanceWatermark(MAX_WATERMARK)
    return 'ended'
  }

  trigger(barrier: Barrier): void {
    this.#host.snapshot(barrier, 0)
  }

  abort(): void {
    // Nothing aligns.
  }

  forget(): void {
    // Nothing aligns.
  }

  get aligning(): undefined {
    return undefined
  }

  completed(): void {
    // No split is left to remember.
  }

  splits(): undefined {
    return undefined
  }

  snapshot(): undefined {
    return undefined
  }

  drain(): void {
    this.#host.advanceWatermark(MAX_WATERMARK)
  }

  backpressured(): void {
    // Nothing is read.
  }

  close(): void {
    // Nothing was opened.
  }
}
