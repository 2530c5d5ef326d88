// One edge's output of one subtask: which record goes to which channel. Events go to all of them.

import { invariant, unreachable } from '../base/errors.ts'
import { keyGroup } from '../base/ids.ts'
import type { Partitioning } from '../job/contract.ts'
import type { Key } from '../record/contract.ts'
import type { StreamEvent } from '../record/element.ts'
import { keyGroupOf, subtaskOfKeyGroup } from '../record/key-group.ts'
import type { OutputChannel } from './contract.ts'

export interface RecordWriterOptions {
  readonly partitioning: Partitioning
  /** forward: the one to the same subtask; else one to each consumer subtask, in their order. */
  readonly channels: readonly OutputChannel[]
  /** Where round robin begins, so that not all producers begin with the same consumer. */
  readonly subtask: number
  /** For hash. */
  readonly keySelector: ((value: unknown) => Key) | undefined
  /** Of the consuming vertex. */
  readonly maxParallelism: number
}

export interface RecordWriter {
  readonly channels: readonly OutputChannel[]
  emit(value: unknown, timestamp: number): void
  event(event: StreamEvent): void
  flush(): void
  /** Whether all channels have room. */
  readonly ready: boolean
  /** Every consumer has received the end of data (rule 19). */
  readonly endReceived: boolean
  /** Called in a later turn whenever one channel became ready or its end was received. */
  onChange(callback: () => void): void
  close(): void
}

export function createRecordWriter(options: RecordWriterOptions): RecordWriter {
  return new ChannelsWriter(options)
}

/** A class, so that all writers look alike to the engine: `ready` is asked with each record. */
class ChannelsWriter implements RecordWriter {
  readonly channels: readonly OutputChannel[]
  readonly emit: RecordWriter['emit']

  constructor(options: RecordWriterOptions) {
    invariant(options.channels.length > 0, 'an edge without channels')
    this.channels = options.channels
    this.emit = emitterOf(options)
  }

  event(event: StreamEvent): void {
    for (const channel of this.channels) channel.event(event)
  }

  flush(): void {
    for (const channel of this.channels) channel.flush()
  }

  get ready(): boolean {
    const { channels } = this
    for (let index = 0; index < channels.length; index++) if (!channels[index]!.ready) return false
    return true
  }

  get endReceived(): boolean {
    return this.channels.every((channel) => channel.endReceived)
  }

  onChange(callback: () => void): void {
    for (const channel of this.channels) channel.onChange(callback)
  }

  close(): void {
    for (const channel of this.channels) channel.close()
  }
}

function emitterOf(options: RecordWriterOptions): RecordWriter['emit'] {
  const { channels, partitioning } = options
  const only = channels[0]!
  switch (partitioning) {
    case 'forward':
      invariant(channels.length === 1, `a forward edge with ${channels.length} channels`)
      return (value, timestamp) => only.emit(value, timestamp)
    case 'rebalance':
      return roundRobin(channels, options.subtask)
    case 'hash':
      return byKeyGroup(options)
    case 'broadcast':
      return (value, timestamp) => {
        for (const channel of channels) channel.emit(value, timestamp)
      }
    default:
      return unreachable(partitioning)
  }
}

function roundRobin(channels: readonly OutputChannel[], first: number): RecordWriter['emit'] {
  const count = channels.length
  let next = first % count
  return (value, timestamp) => {
    const channel = channels[next]!
    next = next + 1 === count ? 0 : next + 1
    channel.emit(value, timestamp)
  }
}

function byKeyGroup({ channels, keySelector, maxParallelism }: RecordWriterOptions): RecordWriter['emit'] {
  invariant(keySelector !== undefined, 'a hash edge without a key selector')
  const only = channels[0]!
  // Nothing to choose: the consumer asks for the key itself, and says the same of one that is none.
  if (channels.length === 1) return (value, timestamp) => only.emit(value, timestamp)
  const channelOfGroup = Array.from(
    { length: maxParallelism },
    (_, group) => channels[subtaskOfKeyGroup(keyGroup(group), channels.length, maxParallelism)]!,
  )
  return (value, timestamp) => channelOfGroup[keyGroupOf(keySelector(value), maxParallelism)]!.emit(value, timestamp)
}
