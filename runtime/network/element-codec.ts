// Elements of a channel's sequence as bytes: a kind, then records in the edge's batch codec, or an event. Version: the frame's.

import { invariant } from '../base/errors.ts'
import { checkpointId } from '../base/ids.ts'
import { createReader } from '../record/bytes.ts'
import type { BatchCodec, ByteReader, ByteWriter } from '../record/contract.ts'
import type { Barrier, ChannelItem, StreamEvent } from '../record/element.ts'
import { networkError } from './errors.ts'

const records = 0
const watermark = 1
const status = 2
const barrier = 3
const end = 4
/** Places are on the wire: only to be added to. */
const barrierKinds = [
  { kind: 'checkpoint' },
  { kind: 'savepoint' },
  { kind: 'savepoint', halt: 'stop' },
  { kind: 'savepoint', halt: 'drain' },
  { kind: 'checkpoint', halt: 'stop' },
] as const

export interface PendingRecords {
  readonly values: readonly unknown[]
  readonly timestamps: readonly number[]
}

/** Records [from, to) of `pending`. */
export function writeRecords(
  codec: BatchCodec<unknown>,
  pending: PendingRecords,
  from: number,
  to: number,
  writer: ByteWriter,
): void {
  writer.u8(records)
  codec.encodeBatch(pending.values, pending.timestamps, from, to, writer)
}

export function writeEvent(event: StreamEvent, writer: ByteWriter): void {
  switch (event.kind) {
    case 'watermark':
      writer.u8(watermark)
      writer.i53(event.timestamp)
      break
    case 'status':
      writer.u8(status)
      writer.u8(event.idle ? 1 : 0)
      break
    case 'barrier':
      writer.u8(barrier)
      writer.i53(event.barrier.id)
      writer.u8(barrierKindOf(event.barrier))
      writer.f64(event.barrier.triggeredAtMs)
      writer.f64(event.barrier.alignedMs)
      break
    case 'end':
      writer.u8(end)
      break
    default:
      event satisfies never
  }
}

/** Throws MR-W06 for an unknown kind, MR-R… for what the codec cannot read. */
export function readElement(codec: BatchCodec<unknown>, bytes: Uint8Array): ChannelItem {
  const reader = createReader(bytes)
  const kind = reader.u8()
  switch (kind) {
    case records: {
      const { values, timestamps } = codec.decodeBatch(reader)
      return { kind: 'records', values, timestamps }
    }
    case watermark:
      return { kind: 'watermark', timestamp: reader.i53() }
    case status:
      return { kind: 'status', idle: reader.u8() === 1 }
    case barrier:
      return readBarrier(reader)
    case end:
      return { kind: 'end' }
    default:
      throw networkError('MR-W06', `Its kind is ${kind}.`)
  }
}

function readBarrier(reader: ByteReader): StreamEvent {
  const id = checkpointId(reader.i53())
  const kind = barrierKinds[reader.u8()]
  if (kind === undefined) throw networkError('MR-W06', 'It is a barrier of an unknown kind.')
  return { kind: 'barrier', barrier: { id, ...kind, triggeredAtMs: reader.f64(), alignedMs: reader.f64() } }
}

function barrierKindOf({ kind, halt }: Barrier): number {
  const place = barrierKinds.findIndex(
    (entry) => entry.kind === kind && ('halt' in entry ? entry.halt : undefined) === halt,
  )
  invariant(place >= 0, `no barrier of a ${kind} that halts by ${halt} can be written`)
  return place
}
