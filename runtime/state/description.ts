// How a declared state is described in snapshots, and whether what is described there can be read as the state of today.

import type { KeyedStateDescription } from '../checkpoint/contract.ts'
import type { CodecDescription, TypeInfo } from '../record/contract.ts'
import { keyCodec } from '../record/key.ts'
import type { StateDescriptor } from './contract.ts'

export function descriptionOf(descriptor: StateDescriptor): KeyedStateDescription {
  const { name, kind, ttl } = descriptor
  const value = typeOf(descriptor).row.description
  const mapKey = descriptor.kind === 'map' && mapKeyDescription(descriptor)
  return {
    name,
    kind,
    codecs: { key: keyCodec.description, value, ...(mapKey !== false && { mapKey }) },
    ...(ttl !== undefined && { ttlMs: ttl.ms }),
  }
}

/** What the state's values are; of a list its items, of a map its entries' values. */
export function typeOf(descriptor: StateDescriptor): TypeInfo<unknown> {
  return descriptor.kind === 'aggregating' ? descriptor.accumulator : descriptor.value
}

/**
 * Why stored state cannot be read as it is declared today, as a sentence; undefined: it can. What each backend holds to at a restore,
 * for whoever must know before one is made. Throws MR-R01 when the description itself is damaged.
 */
export function whyUnreadable(stored: KeyedStateDescription, today: StateDescriptor): string | undefined {
  const refused = whyOtherKind(stored, today.kind) ?? whyOtherKeys(stored, descriptionOf(today))
  if (refused !== undefined) return refused
  const { value } = stored.codecs
  if (value === undefined) return WITHOUT_VALUES
  const answer = typeOf(today).row.readerOf(value)
  return 'refused' in answer ? answer.refused : undefined
}

export const WITHOUT_VALUES = 'it was stored without the description of its values'

export function whyOtherKind(stored: KeyedStateDescription, today: KeyedStateDescription['kind']): string | undefined {
  return stored.kind === today ? undefined : `it was stored as ${stored.kind} and is ${today} now`
}

/** Why keys or map keys that were stored are not those of today; undefined: they are. */
export function whyOtherKeys(stored: KeyedStateDescription, today: KeyedStateDescription): string | undefined {
  const keys = keyCodec.readerOf(stored.codecs.key)
  if ('refused' in keys) return keys.refused
  const then = stored.codecs.mapKey?.fingerprint
  const now = today.codecs.mapKey?.fingerprint
  return then === now ? undefined : `its map keys were stored as ${then ?? 'nothing known'} and are ${now} now`
}

/**
 * Why timers that are stored are none of today's operator, which would take them for its own; undefined: they are. Both are what the
 * timers stand for: of those then undefined if an earlier version wrote them, of today's if the operator has none.
 */
export function whyOtherTimers(then: string | undefined, now: string | undefined): string | undefined {
  if (now === undefined)
    return `they were stored as ${then ?? 'those of an operator that has some'}, and there are none now`
  return then === undefined || then === now ? undefined : `they were stored as ${then} and are ${now} now`
}

/** Map keys are written as keys are; what may change is only their type, and what they stand for. */
function mapKeyDescription({
  mapKey,
  mapKeyMeaning,
}: Extract<StateDescriptor, { readonly kind: 'map' }>): CodecDescription {
  const fingerprint = mapKeyMeaning === undefined ? mapKey : `${mapKey} (${mapKeyMeaning})`
  return { ...keyCodec.description, fingerprint, layout: mapKey }
}
