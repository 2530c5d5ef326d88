// Frames: what two channel machines say to each other, as bytes. Version 1; testdata/frames.json pins it.
//
// A header of 64 bytes, little-endian, then the payload:
//    0 u16 magic   2 u8 version   3 u8 kind   4 u8 flags   5 zeros
//    8 u32 edge   12 u32 producer   16 u32 consumer   20 u32 payload bytes
//   24 u32 producer attempt: incarnation, number   32 u32 consumer attempt: incarnation, number
//   40 f64 sequence | received | highest     48 f64 place | limit     56 u32 element bytes, offset | f64 answered
// Numbers above 32 bits are non-negative safe integers stored as f64.

import { edgeId, incarnation, subtaskIndex } from '../base/ids.ts'
import type { Attempt, ChannelId } from '../base/ids.ts'
import { FRAME_BYTES_MAX, RECORD_BYTES_MAX } from './limits.ts'

const FRAME_VERSION = 1
export const FRAME_HEADER_BYTES = 64

/** Which channel, and which attempts at its ends; a frame of another attempt is refused (rule 8). */
export interface FrameRoute {
  readonly channel: ChannelId
  readonly producerAttempt: Attempt
  readonly consumerAttempt: Attempt
}

/** Producer to consumer: whole elements, each behind its u32 length, or one fragment of an element. */
export interface DataMessage {
  readonly kind: 'data'
  /** Number of the frame in its channel: 1, 2, … */
  readonly sequence: number
  /** Number of the first element in it (1, 2, …), which does not depend on how credit cut the frames. */
  readonly place: number
  /** Size of the whole element for a fragment; 0 for a frame of whole elements. */
  readonly elementBytes: number
  /** Where in the element the fragment begins. */
  readonly elementOffset: number
  /** The consumer answers this frame at once. */
  readonly acknowledge: boolean
  /** The whole frame; its first FRAME_HEADER_BYTES are written by encodeFrame. */
  readonly frame: Uint8Array
}

/** Consumer to producer, cumulative: every frame up to `received` has arrived, `limit` bytes of frames may be sent in all. */
export interface CreditMessage {
  readonly kind: 'credit'
  readonly received: number
  readonly limit: number
  /** The `highest` of the repeat that this answers, 0 if it answers none. */
  readonly answered: number
  /** The first grant, not yet acknowledged: the producer answers it. */
  readonly opening: boolean
  /** A later frame arrived before the next one. */
  readonly gap: boolean
}

/** Producer to consumer: the highest frame sent so far. */
export interface RepeatMessage {
  readonly kind: 'repeat'
  readonly highest: number
}

export type ChannelMessage = DataMessage | CreditMessage | RepeatMessage

export interface Frame {
  readonly route: FrameRoute
  readonly message: ChannelMessage
}

const magic = 0x724d
const kinds = ['data', 'credit', 'repeat'] as const
const flagAcknowledge = 1
const flagOpening = 2
const flagGap = 4

/** For data the message's own frame with its header filled in; for the others new bytes. */
export function encodeFrame(route: FrameRoute, message: ChannelMessage): Uint8Array {
  const bytes = message.kind === 'data' ? message.frame : new Uint8Array(FRAME_HEADER_BYTES)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  view.setUint16(0, magic, true)
  view.setUint8(2, FRAME_VERSION)
  view.setUint8(3, kinds.indexOf(message.kind))
  view.setUint32(4, flagsOf(message), true)
  view.setUint32(8, route.channel.edge, true)
  view.setUint32(12, route.channel.producer, true)
  view.setUint32(16, route.channel.consumer, true)
  view.setUint32(20, bytes.length - FRAME_HEADER_BYTES, true)
  view.setUint32(24, route.producerAttempt.incarnation, true)
  view.setUint32(28, route.producerAttempt.number, true)
  view.setUint32(32, route.consumerAttempt.incarnation, true)
  view.setUint32(36, route.consumerAttempt.number, true)
  switch (message.kind) {
    case 'data':
      view.setFloat64(40, message.sequence, true)
      view.setFloat64(48, message.place, true)
      view.setUint32(56, message.elementBytes, true)
      view.setUint32(60, message.elementOffset, true)
      break
    case 'credit':
      view.setFloat64(40, message.received, true)
      view.setFloat64(48, message.limit, true)
      view.setFloat64(56, message.answered, true)
      break
    case 'repeat':
      view.setFloat64(40, message.highest, true)
      break
    default:
      message satisfies never
  }
  return bytes
}

/** Bytes from the network may be anything: what is no frame comes back as the reason, never as an exception. */
export function decodeFrame(bytes: Uint8Array): Frame | { readonly malformed: string } {
  if (bytes.length < FRAME_HEADER_BYTES) return { malformed: `${bytes.length} bytes are no header` }
  if (bytes.length > FRAME_BYTES_MAX) return { malformed: `${bytes.length} bytes are more than a frame may have` }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  if (view.getUint16(0, true) !== magic) return { malformed: 'it does not begin like a frame' }
  if (view.getUint8(2) !== FRAME_VERSION) return { malformed: `version ${view.getUint8(2)} is not ${FRAME_VERSION}` }
  const payloadBytes = view.getUint32(20, true)
  if (payloadBytes !== bytes.length - FRAME_HEADER_BYTES)
    return { malformed: `it says ${payloadBytes} bytes of payload and has ${bytes.length - FRAME_HEADER_BYTES}` }
  const message = decodeMessage(bytes, view)
  if ('malformed' in message) return message
  return { route: decodeRoute(view), message }
}

function decodeMessage(bytes: Uint8Array, view: DataView): ChannelMessage | { readonly malformed: string } {
  const flags = view.getUint32(4, true)
  const first = view.getFloat64(40, true)
  const second = view.getFloat64(48, true)
  if (!isCount(first) || !isCount(second)) return { malformed: 'its numbers are no counts' }
  switch (kinds[view.getUint8(3)]) {
    case 'data': {
      const elementBytes = view.getUint32(56, true)
      const elementOffset = view.getUint32(60, true)
      const fits = elementOffset + bytes.length - FRAME_HEADER_BYTES <= elementBytes && elementBytes <= RECORD_BYTES_MAX
      if (elementBytes === 0 ? elementOffset !== 0 : !fits)
        return { malformed: 'its fragment does not fit into its element' }
      const acknowledge = (flags & flagAcknowledge) !== 0
      return { kind: 'data', sequence: first, place: second, elementBytes, elementOffset, acknowledge, frame: bytes }
    }
    case 'credit': {
      const answered = view.getFloat64(56, true)
      if (!isCount(answered)) return { malformed: 'its numbers are no counts' }
      const opening = (flags & flagOpening) !== 0
      return { kind: 'credit', received: first, limit: second, answered, opening, gap: (flags & flagGap) !== 0 }
    }
    case 'repeat':
      return { kind: 'repeat', highest: first }
    default:
      return { malformed: `kind ${view.getUint8(3)} is unknown` }
  }
}

function decodeRoute(view: DataView): FrameRoute {
  return {
    channel: {
      edge: edgeId(view.getUint32(8, true)),
      producer: subtaskIndex(view.getUint32(12, true)),
      consumer: subtaskIndex(view.getUint32(16, true)),
    },
    producerAttempt: { incarnation: incarnation(view.getUint32(24, true)), number: view.getUint32(28, true) },
    consumerAttempt: { incarnation: incarnation(view.getUint32(32, true)), number: view.getUint32(36, true) },
  }
}

function flagsOf(message: ChannelMessage): number {
  if (message.kind === 'data') return message.acknowledge ? flagAcknowledge : 0
  if (message.kind === 'credit') return (message.opening ? flagOpening : 0) | (message.gap ? flagGap : 0)
  return 0
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}
