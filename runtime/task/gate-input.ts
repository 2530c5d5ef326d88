// Reads the channels of a subtask's producers: records one by one, events in their place.

import type { Clock, Failpoints } from '../base/environment.ts'
import { unreachable } from '../base/errors.ts'
import type { CheckpointId } from '../base/ids.ts'
import type { MetricGroup } from '../base/metrics.ts'
import type { Barrier, RecordBatch, StreamEvent } from '../record/element.ts'
import type { BarrierAction, BarrierHandler } from './barrier-handler.ts'
import type { InputGate } from './input-gate.ts'
import type { InputHost, ReadOutcome, TaskInput } from './task-input.ts'
import { WatermarkValve } from './watermark-valve.ts'
import type { ValveOutput } from './watermark-valve.ts'

export interface GateInputOptions {
  readonly gate: InputGate
  /** By channel: whether it feeds the operator's second input. */
  readonly second: readonly boolean[]
  readonly handler: BarrierHandler
  readonly host: InputHost
  readonly clock: Clock
  readonly metrics: MetricGroup
  readonly failpoints: Failpoints
}

export class GateInput implements TaskInput {
  readonly tickMs = undefined
  readonly #options: GateInputOptions
  readonly #valve: WatermarkValve
  #batch: RecordBatch | undefined
  #batchIsSecond = false
  #index = 0
  /** Records of the batch before this one are announced. */
  #announced = 0
  #openChannels: number

  constructor(options: GateInputOptions) {
    this.#options = options
    this.#openChannels = options.gate.channels.length
    this.#valve = new WatermarkValve(this.#openChannels)
  }

  start(): void {
    this.#options.gate.open()
  }

  read(): ReadOutcome {
    const { gate, host } = this.#options
    for (;;) {
      if (this.#batch !== undefined && !this.#finishBatch(this.#batch)) return 'more'
      const item = gate.next()
      if (item === undefined) return this.#openChannels === 0 ? 'ended' : 'nothing'
      if (item.kind === 'records') {
        this.#batch = item
        this.#batchIsSecond = this.#options.second[gate.lastChannel]!
        this.#index = 0
        this.#announced = 0
      } else {
        this.#handle(item, gate.lastChannel)
        if (host.shouldStop()) return 'more'
      }
    }
  }

  trigger(barrier: Barrier): void {
    this.#apply(this.#options.handler.trigger(barrier, this.#options.clock.nowMs()))
  }

  abort(id: CheckpointId): void {
    this.#apply(this.#options.handler.abort(id))
  }

  forget(newestKnown: CheckpointId): void {
    this.#apply(this.#options.handler.forget(newestKnown))
  }

  get aligning(): CheckpointId | undefined {
    return this.#options.handler.pendingId
  }

  completed(): void {
    // Channels hold nothing that a checkpoint frees.
  }

  splits(): undefined {
    return undefined
  }

  snapshot(): undefined {
    return undefined
  }

  drain(): void {
    // Its producers' last watermarks came before their barriers.
  }

  backpressured(): void {
    // Channels need no telling: what is not read gives no credit.
  }

  close(): void {
    // The channels stay until the subtask has reported its end: its producers must hear that their end of data arrived (rule 19).
  }

  /** False when it stopped in the middle of the batch. */
  #finishBatch(batch: RecordBatch): boolean {
    const { host, metrics, failpoints } = this.#options
    const { values, timestamps } = batch
    failpoints.hit('task.process')
    const second = this.#batchIsSecond
    const first = this.#index
    let index = first
    let stopped = false
    // The place moves before the record is processed: one that fails the task is never processed twice by this attempt.
    while (index < values.length && !stopped) {
      if (index >= this.#announced) this.#announced = index + host.announce(values, index, second ? 1 : 0)
      this.#index = index + 1
      if (second) host.processSecond(values[index], timestamps[index]!)
      else host.process(values[index], timestamps[index]!)
      index++
      stopped = host.shouldStop()
    }
    metrics.add('records_in_total', index - first)
    if (index === values.length) this.#batch = undefined
    return !stopped
  }

  #handle(event: StreamEvent, channel: number): void {
    const { handler, clock } = this.#options
    switch (event.kind) {
      case 'watermark':
        return this.#time(this.#valve.watermark(channel, event.timestamp))
      case 'status':
        return this.#time(this.#valve.status(channel, event.idle))
      case 'barrier':
        return this.#apply(handler.barrier(channel, event.barrier, clock.nowMs()))
      case 'end':
        this.#openChannels--
        this.#time(this.#valve.end(channel))
        return this.#apply(handler.end(channel, clock.nowMs()))
      default:
        return unreachable(event)
    }
  }

  #time(output: ValveOutput): void {
    const { host } = this.#options
    if (output.watermark !== undefined) host.advanceWatermark(output.watermark)
    if (output.idle !== undefined) host.idleness(output.idle)
  }

  #apply(actions: readonly BarrierAction[]): void {
    const { gate, host } = this.#options
    for (const action of actions) {
      if (action.type === 'block') gate.channels[action.channel]!.block()
      else if (action.type === 'unblockAll') gate.unblockAll()
      else host.snapshot(action.barrier, action.alignmentMs)
    }
  }
}
