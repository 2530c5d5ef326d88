// A channel inside one thread: batches pass by reference, in order, bounded; nothing can be lost.

import type { Executor } from '../base/environment.ts'
import type { ChannelId } from '../base/ids.ts'
import type { ChannelItem, StreamEvent } from '../record/element.ts'
import type { InputChannel, OutputChannel } from './contract.ts'
import { Fifo } from './fifo.ts'
import { MEMORY_BATCH_RECORDS, MEMORY_RECORDS_MAX } from './limits.ts'
import { TurnSignal } from './turn-signal.ts'

export function memoryChannel(
  id: ChannelId,
  executor: Executor,
): { readonly output: OutputChannel; readonly input: InputChannel } {
  const queue = new MemoryQueue(executor)
  return { output: new MemoryOutput(id, queue), input: new MemoryInput(id, queue) }
}

class MemoryQueue {
  readonly items = new Fifo<ChannelItem>()
  readonly changed: TurnSignal
  readonly ended: TurnSignal
  readonly available: TurnSignal
  records = 0
  blocked = false
  endQueued = false
  inputClosed = false

  constructor(executor: Executor) {
    this.changed = new TurnSignal(executor, true)
    this.ended = new TurnSignal(executor, false)
    this.available = new TurnSignal(executor, false)
  }

  get isAvailable(): boolean {
    return this.items.length > 0 && !this.blocked
  }

  /** The bound is kept by the producer's task, which stops reading; one input record may still emit many. */
  get isReady(): boolean {
    return this.records < MEMORY_RECORDS_MAX && !this.inputClosed
  }

  put(item: ChannelItem): void {
    if (this.inputClosed) return
    this.items.push(item)
    if (item.kind === 'records') this.records += item.values.length
    else if (item.kind === 'end') this.endQueued = true
    this.signal()
  }

  take(): ChannelItem | undefined {
    if (this.blocked) return undefined
    const item = this.items.shift()
    if (item?.kind === 'records') this.records -= item.values.length
    this.signal()
    return item
  }

  signal(): void {
    this.available.update(this.isAvailable)
    this.changed.update(this.isReady)
    this.ended.update(this.endQueued)
  }
}

class MemoryOutput implements OutputChannel {
  readonly id: ChannelId
  readonly #queue: MemoryQueue
  #values: unknown[] = []
  #timestamps: number[] = []

  constructor(id: ChannelId, queue: MemoryQueue) {
    this.id = id
    this.#queue = queue
  }

  get ready(): boolean {
    return this.#queue.isReady
  }

  /** What is queued has arrived: both ends live and die with one thread. */
  get endReceived(): boolean {
    return this.#queue.endQueued
  }

  emit(value: unknown, timestamp: number): void {
    const values = this.#values
    const count = values.length
    // Not by push, which the engine calls here instead of inlining it.
    values[count] = value
    this.#timestamps[count] = timestamp
    if (count + 1 === MEMORY_BATCH_RECORDS) this.flush()
  }

  event(event: StreamEvent): void {
    this.flush()
    this.#queue.put(event)
  }

  flush(): void {
    if (this.#values.length === 0) return
    this.#queue.put({ kind: 'records', values: this.#values, timestamps: this.#timestamps })
    this.#values = []
    this.#timestamps = []
  }

  onChange(callback: () => void): void {
    this.#queue.changed.callback = callback
    this.#queue.ended.callback = callback
  }

  /** What was flushed can still be taken. */
  close(): void {
    this.#values = []
    this.#timestamps = []
    this.#queue.changed.close()
    this.#queue.ended.close()
  }
}

class MemoryInput implements InputChannel {
  readonly id: ChannelId
  readonly #queue: MemoryQueue

  constructor(id: ChannelId, queue: MemoryQueue) {
    this.id = id
    this.#queue = queue
  }

  get available(): boolean {
    return this.#queue.isAvailable
  }

  next(): ChannelItem | undefined {
    return this.#queue.take()
  }

  block(): void {
    this.#queue.blocked = true
    this.#queue.signal()
  }

  unblock(): void {
    this.#queue.blocked = false
    this.#queue.signal()
  }

  onAvailable(callback: () => void): void {
    this.#queue.available.callback = callback
  }

  /** Nothing to grant: the producer sees how much is queued. */
  open(): void {
    this.#queue.signal()
  }

  close(): void {
    this.#queue.inputClosed = true
    this.#queue.items.clear()
    this.#queue.records = 0
    this.#queue.available.close()
  }
}
