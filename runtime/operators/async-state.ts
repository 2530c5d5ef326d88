// Records in flight as operator state. They are stored as they came in, since what their function would have answered is not known; a
// restore begins with their calls. Each item: version, event time, value by the codec of the stream.

import { MillraceError } from '../base/errors.ts'
import { createReader, createWriter } from '../record/bytes.ts'
import type { Codec } from '../record/contract.ts'
import { stateError } from '../state/errors.ts'
import type { OperatorStatePart, RestoredOperatorState } from './contract.ts'

export const IN_FLIGHT_STATE = 'in-flight'

const VERSION = 1

export interface InFlight {
  readonly value: unknown
  /** NO_TIMESTAMP: none. */
  readonly timestamp: number
}

/** In order. Without any there is no state: an operator that holds nothing may leave the job. */
export function inFlightState(flights: readonly InFlight[], codec: Codec<unknown>): OperatorStatePart {
  if (flights.length === 0) return {}
  const items = flights.map(({ value, timestamp }) => {
    const writer = createWriter()
    writer.u8(VERSION)
    writer.i53(timestamp)
    codec.encode(value, writer)
    return writer.take()
  })
  return { operatorState: { [IN_FLIGHT_STATE]: { redistribution: 'split', codec: codec.description, items } } }
}

/** In order. `where` names the operator. Throws MR-T02 for records of a type that today's cannot be read from, MR-T03 and MR-T05 for others. */
export function restoredInFlight(
  restored: RestoredOperatorState | undefined,
  today: Codec<unknown>,
  where: string,
): InFlight[] {
  const state = `Records in flight in ${where}`
  const codecs = new Map<string, Codec<unknown>>()
  return (restored?.items ?? []).map(({ bytes, codec: stored }) => {
    const known = `${stored.kind} ${stored.version} ${stored.fingerprint}`
    let codec = codecs.get(known)
    if (codec === undefined) {
      const answer = today.readerOf(stored)
      if ('refused' in answer) throw stateError('MR-T02', `${state}: ${answer.refused}.`)
      codec = answer.codec
      codecs.set(known, codec)
    }
    return decodeItem(bytes, codec, state)
  })
}

function decodeItem(bytes: Uint8Array, codec: Codec<unknown>, state: string): InFlight {
  try {
    const reader = createReader(bytes)
    const version = reader.u8()
    if (version !== VERSION) throw stateError('MR-T05', `${state} have version ${version}; this one reads ${VERSION}.`)
    const timestamp = reader.i53()
    return { timestamp, value: codec.decode(reader) }
  } catch (cause) {
    if (cause instanceof MillraceError && cause.code.startsWith('MR-T')) throw cause
    throw stateError('MR-T03', `${state}.`, cause)
  }
}
