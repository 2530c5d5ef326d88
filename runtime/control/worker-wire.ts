// The direct connection's bytes: each message is a length of four bytes, most significant first, and so many bytes of JSON. Everything
// that comes in is checked against its schema.

import { z } from 'zod'
import { MillraceError } from '../base/errors.ts'
import type { Incarnation, JobId, SlotId } from '../base/ids.ts'
import { WORKER_WIRE_VERSION } from './worker-contract.ts'
import type { FromWorker, ToWorker } from './worker-contract.ts'
import { workerError } from './worker-errors.ts'

/** The largest is a hello with 256 names of slots. */
export const MESSAGE_BYTES_MAX = 64 * 1024
/** Of one worker. */
export const SLOTS_MAX = 256
/** As long as a host's name may be. */
export const WORKER_NAME_MAX = 253

const lengthBytes = 4

/** Throws MR-D01 for one that the other side would refuse. */
export function encodeMessage(message: FromWorker | ToWorker): Uint8Array {
  const json = new TextEncoder().encode(JSON.stringify(message))
  if (json.length > MESSAGE_BYTES_MAX) throw tooLong(json.length)
  const bytes = new Uint8Array(lengthBytes + json.length)
  new DataView(bytes.buffer).setUint32(0, json.length)
  bytes.set(json, lengthBytes)
  return bytes
}

/** Puts messages together from bytes that come in pieces. Holds at most one message of the maximal length and one piece. */
export class MessageReader {
  #bytes: Uint8Array = new Uint8Array(0)

  /** The messages that are whole with these bytes. Throws MR-D01; nothing after it can be understood. */
  push(piece: Uint8Array): unknown[] {
    this.#bytes = this.#bytes.length === 0 ? piece : joined(this.#bytes, piece)
    const messages: unknown[] = []
    let offset = 0
    while (this.#bytes.length - offset >= lengthBytes) {
      const length = new DataView(this.#bytes.buffer, this.#bytes.byteOffset + offset).getUint32(0)
      if (length > MESSAGE_BYTES_MAX) throw tooLong(length)
      const end = offset + lengthBytes + length
      if (this.#bytes.length < end) break
      messages.push(parsed(this.#bytes.subarray(offset + lengthBytes, end)))
      offset = end
    }
    this.#bytes = this.#bytes.slice(offset)
    return messages
  }
}

const slot = z
  .string()
  .min(1)
  .max(200)
  .transform((text) => text as SlotId)
const wholeNumber = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
const incarnation = wholeNumber.transform((value) => value as Incarnation)
const text = z.string().max(16_384)

const heartbeat = z.object({ type: z.literal('heartbeat') })

const fromWorker = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('hello'),
    wireVersion: z.number(),
    runtimeVersion: z.string().max(100),
    build: z.string().max(100).default(''),
    job: z
      .string()
      .max(1_000)
      .transform((value) => value as JobId),
    worker: z.string().min(1).max(1_000),
    instance: z.string().min(1).max(100),
    token: z.string().max(4096),
    slots: z.number(),
    promised: incarnation,
    running: z.array(slot).max(SLOTS_MAX),
  }),
  heartbeat,
  z.object({ type: z.literal('slotEnded'), slot, reason: text }),
  z.object({ type: z.literal('leaving'), graceMs: wholeNumber }),
])

const toWorker = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('welcome'),
    incarnation,
    keep: z.array(slot).max(SLOTS_MAX),
    wallMs: z.number(),
  }),
  z.object({ type: z.literal('refused'), code: text, message: text, final: z.boolean() }),
  heartbeat,
  z.object({
    type: z.literal('startSlot'),
    slot,
    start: z
      .object({ incarnation, parallelism: wholeNumber.optional() })
      .transform(({ incarnation, parallelism }) => ({ incarnation, parallelism })),
  }),
  z.object({ type: z.literal('terminateSlot'), slot }),
  z.object({ type: z.literal('goodbye'), reason: text }),
])

/** Throws MR-D01, or MR-D02 for a hello of another version of the wire. */
export function readFromWorker(value: unknown): FromWorker {
  const version = z.object({ type: z.literal('hello'), wireVersion: z.number() }).safeParse(value)
  if (version.success && version.data.wireVersion !== WORKER_WIRE_VERSION)
    throw workerError(
      'MR-D02',
      `The worker speaks version ${version.data.wireVersion} of the wire, the coordinator ${WORKER_WIRE_VERSION}.`,
    )
  return checked(fromWorker, value)
}

/** Throws MR-D01. */
export function readToWorker(value: unknown): ToWorker {
  return checked(toWorker, value)
}

/** Names fields and what is expected there, never a value: one of them is the token. */
function checked<Message>(schema: z.ZodType<Message>, value: unknown): Message {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw workerError('MR-D01', `At ${issue!.path.join('.') || 'its top'}: ${issue!.code}.`)
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    // The parser's own words quote what it read.
    throw workerError('MR-D01', 'It is no JSON.')
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length)
  both.set(first)
  both.set(second, first.length)
  return both
}

function tooLong(length: number): MillraceError {
  return workerError('MR-D01', `It has ${length} bytes; ${MESSAGE_BYTES_MAX} are the most.`)
}
