// Two slots with channels between them over NATS, and tasks that do nothing but emit and count.

import { edgeId, incarnation, jobId, slotId, subtaskIndex, vertexId } from '../../../runtime/base/ids.ts'
import type { SlotId, TaskId } from '../../../runtime/base/ids.ts'
import type { Environment } from '../../../runtime/base/environment.ts'
import type { MillraceError } from '../../../runtime/base/errors.ts'
import type { MetricGroup } from '../../../runtime/base/metrics.ts'
import { ChannelHub } from '../../../runtime/network/channel-hub.ts'
import type { FrameTransport, InputChannel, OutputChannel } from '../../../runtime/network/contract.ts'
import { creditAddress, dataAddress } from '../../../runtime/network/subjects.ts'
import { plainType } from '../../support/network.ts'

export const job = jobId('job')
export const slots = { producer: slotId('0#0'), consumer: slotId('1#0') }
export const attempt = { incarnation: incarnation(1), number: 1 }

const taskOf = (vertex: string, subtask: number): TaskId => ({
  vertex: vertexId(vertex),
  subtask: subtaskIndex(subtask),
})
/** Producer subtask `index` sends to consumer subtask 0. */
export const producerOf = (index: number) => ({ task: taskOf('producer', index), attempt })
export const consumer = { task: taskOf('consumer', 0), attempt }

export interface HubOptions {
  readonly transport: FrameTransport
  readonly environment: Environment
  readonly deadlineMs: number
  readonly failures: MillraceError[]
  readonly metrics?: MetricGroup
}

export class ProducerSlot {
  readonly hub: ChannelHub
  readonly outputs: OutputChannel[] = []
  readonly #options: HubOptions
  /** Records emitted by each subtask. */
  readonly emitted: number[] = []
  #stopped = false

  constructor(options: HubOptions, channels: number) {
    this.#options = options
    this.hub = hubOf(slots.producer, options)
    for (let index = 0; index < channels; index++) {
      const channel = { edge: edgeId(0), producer: subtaskIndex(index), consumer: subtaskIndex(0) }
      const peer = { channel, attempt, address: dataAddress(job, slots.consumer, consumer) }
      this.outputs.push(this.hub.output(peer, plainType, ownerOf(producerOf(index), options)))
      this.emitted.push(0)
    }
  }

  /** Each subtask emits up to `perTurn` records a turn while its output is ready: their number and some text. */
  run(perTurn: number, textBytes: number): void {
    const text = 'x'.repeat(textBytes)
    const turn = (): void => {
      if (this.#stopped) return
      for (const [index, output] of this.outputs.entries()) {
        for (let count = 0; count < perTurn && output.ready; count++)
          output.emit({ number: this.emitted[index]!++, text }, 0)
        output.flush()
      }
      this.#options.environment.executor.post(turn)
    }
    turn()
  }

  /** Ends all channels behind what was emitted. */
  end(): void {
    this.#stopped = true
    for (const output of this.outputs) output.event({ kind: 'end' })
  }

  get endReceived(): boolean {
    return this.outputs.every((output) => output.endReceived)
  }
}

export class ConsumerSlot {
  readonly hub: ChannelHub
  readonly inputs: InputChannel[] = []
  /** The next number expected from each producer; what is out of order throws. */
  readonly taken: number[] = []
  readonly ended: boolean[] = []

  constructor(options: HubOptions, channels: number) {
    this.hub = hubOf(slots.consumer, options)
    for (let index = 0; index < channels; index++) {
      const channel = { edge: edgeId(0), producer: subtaskIndex(index), consumer: subtaskIndex(0) }
      const peer = { channel, attempt, address: creditAddress(job, slots.producer, producerOf(index)) }
      const input = this.hub.input(peer, plainType, ownerOf(consumer, options))
      this.inputs.push(input)
      this.taken.push(0)
      this.ended.push(false)
      input.onAvailable(() => this.take(index))
    }
  }

  open(): void {
    for (const input of this.inputs) input.open()
  }

  take(index: number): void {
    const input = this.inputs[index]!
    for (let item = input.next(); item !== undefined; item = input.next()) {
      if (item.kind === 'end') this.ended[index] = true
      if (item.kind !== 'records') continue
      for (const value of item.values) {
        const { number } = value as { readonly number: number }
        if (number !== this.taken[index]) throw new Error(`record ${number} came instead of ${this.taken[index]}`)
        this.taken[index]++
      }
    }
  }

  get allEnded(): boolean {
    return this.ended.every(Boolean)
  }
}

function hubOf(slot: SlotId, { transport, environment, deadlineMs }: HubOptions): ChannelHub {
  return new ChannelHub({ job, slot, transport, environment, deadlineMs })
}

function ownerOf(owner: { readonly task: TaskId; readonly attempt: typeof attempt }, options: HubOptions) {
  const { metrics } = options
  return {
    ...owner,
    ...(metrics === undefined ? {} : { metrics }),
    fail: (error: MillraceError) => void options.failures.push(error),
  }
}
