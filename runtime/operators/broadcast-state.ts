// Broadcast state: maps that belong to no key, of which every subtask holds the whole. Operator state, an item an entry.

import { detachString } from '../record/detach.ts'
import { createReader, createWriter } from '../record/bytes.ts'
import type { CodecDescription, Key } from '../record/contract.ts'
import { decodeKey, encodeKey } from '../record/key.ts'
import type { DeepReadonly, MapState, StateDescriptor, TypedDescriptor } from '../state/contract.ts'
import { stateError } from '../state/errors.ts'
import { keepingOf, replacement } from '../state/keeping.ts'
import type { Keeping } from '../state/keeping.ts'
import type { OperatorContext, OperatorStatePart } from './contract.ts'

/** Descriptors by the names under which the context gives their maps. */
export type BroadcastDeclaration = Readonly<Record<string, TypedDescriptor<MapState<string | number, unknown>>>>

export interface ReadonlyMapState<K extends string | number, V> {
  get(key: K): DeepReadonly<V> | undefined
  has(key: K): boolean
  entries(): readonly (readonly [K, DeepReadonly<V>])[]
  keys(): readonly K[]
  readonly size: number
}

export type BroadcastHandles<Broadcast> = {
  readonly [Name in keyof Broadcast]: Broadcast[Name] extends TypedDescriptor<infer Handle> ? Handle : never
}

export type BroadcastViews<Broadcast> = {
  readonly [Name in keyof Broadcast]: Broadcast[Name] extends TypedDescriptor<MapState<infer K, infer V>>
    ? ReadonlyMapState<K, V>
    : never
}

type EntryKey = string | number
type MapDescriptor = Extract<StateDescriptor, { readonly kind: 'map' }>

/** Throws MR-T01 unless these can be kept as broadcast state. */
export function checkBroadcastDeclaration(declared: BroadcastDeclaration): void {
  const names = new Set<string>()
  if (Object.keys(declared).length === 0)
    throw stateError('MR-T01', 'broadcast() was given no state: nothing could be kept of the broadcast records.')
  for (const { kind, name, ttl } of Object.values(declared)) {
    const wrong =
      kind !== 'map'
        ? `is a ${kind} state; broadcast state is made by mapState`
        : ttl !== undefined
          ? 'has a time to live: it would end at another record on each subtask'
          : names.has(name)
            ? 'is declared twice'
            : undefined
    if (wrong !== undefined) throw stateError('MR-T01', `Broadcast state '${name}' ${wrong}.`)
    names.add(name)
  }
}

/** All broadcast states of one operator on one subtask. */
export class BroadcastStates {
  readonly handles: Readonly<Record<string, MapState<EntryKey, unknown>>>
  readonly views: Readonly<Record<string, ReadonlyMapState<EntryKey, unknown>>>
  readonly #states: readonly HeldBroadcastState[]
  /** Of names that are not declared today: kept as they are, for a job that declares them again. */
  readonly #unread: NonNullable<OperatorStatePart['operatorState']>

  constructor(declared: BroadcastDeclaration, context: OperatorContext) {
    const byName = Object.entries(declared).map(
      ([name, descriptor]) => [name, new HeldBroadcastState(descriptor as MapDescriptor, context)] as const,
    )
    this.#states = byName.map(([, state]) => state)
    this.handles = Object.fromEntries(byName)
    this.views = Object.fromEntries(byName.map(([name, state]) => [name, viewOf(state)]))
    const known = new Set(this.#states.map(({ name }) => name))
    this.#unread = unreadOf(context.restored, known)
  }

  snapshot(): OperatorStatePart {
    const states = this.#states.map((state) => [state.name, state.snapshot()] as const)
    return { operatorState: { ...this.#unread, ...Object.fromEntries(states) } }
  }
}

function unreadOf(
  restored: OperatorContext['restored'],
  known: ReadonlySet<string>,
): NonNullable<OperatorStatePart['operatorState']> {
  const unread = [...restored].filter(([name, { items }]) => !known.has(name) && items.length > 0)
  return Object.fromEntries(
    unread.map(([name, { items }]) => {
      const bytes = items.map((item) => item.bytes)
      return [name, { redistribution: 'broadcast' as const, codec: items[0]!.codec, items: bytes }]
    }),
  )
}

/**
 * Values are frozen whatever the job's setting: they are read with each record of the other stream and written seldom, and a change in place
 * would be one of a single subtask.
 */
class HeldBroadcastState implements MapState<EntryKey, unknown> {
  readonly name: string
  readonly #descriptor: MapDescriptor
  readonly #keeping: Keeping
  readonly #entries = new Map<EntryKey, unknown>()

  constructor(descriptor: MapDescriptor, context: OperatorContext) {
    this.name = descriptor.name
    this.#descriptor = descriptor
    this.#keeping = keepingOf(descriptor.value, true)
    this.#restore(context)
  }

  get(key: EntryKey): unknown {
    return this.#entries.get(key)
  }

  has(key: EntryKey): boolean {
    return this.#entries.has(key)
  }

  put(key: EntryKey, value: unknown): void {
    const { mapKey } = this.#descriptor
    if (typeof key !== mapKey || Number.isNaN(key))
      throw stateError(
        'MR-T07',
        `Broadcast state '${this.name}' has ${mapKey} keys and was given ${typeof key} ${key}.`,
      )
    this.#entries.set(typeof key === 'string' ? detachString(key) : key, this.#keeping.keep!(value))
  }

  mutate(key: EntryKey, change: (value: unknown) => unknown): void {
    if (!this.#entries.has(key)) return
    const copy = this.#keeping.copy(this.#entries.get(key))
    const answer = change(copy)
    this.put(key, answer === undefined ? copy : replacement(answer))
  }

  delete(key: EntryKey): void {
    this.#entries.delete(key)
  }

  entries(): readonly (readonly [EntryKey, unknown])[] {
    return [...this.#entries]
  }

  keys(): readonly EntryKey[] {
    return [...this.#entries.keys()]
  }

  get size(): number {
    return this.#entries.size
  }

  clear(): void {
    this.#entries.clear()
  }

  snapshot(): NonNullable<OperatorStatePart['operatorState']>[string] {
    const { row } = this.#descriptor.value
    const writer = createWriter()
    const items: Uint8Array[] = []
    for (const [key, value] of this.#entries) {
      writer.reset()
      encodeKey(key, writer)
      row.encode(value, writer)
      items.push(writer.take())
    }
    return { redistribution: 'broadcast', codec: row.description, items }
  }

  /** The key's bytes depend on the key alone; the value's were written with the codec of then. */
  #restore({ restored, uid }: OperatorContext): void {
    const { mapKey, value } = this.#descriptor
    const decoders = new Map<CodecDescription, ReturnType<typeof value.row.readerOf>>()
    for (const { bytes, codec: stored } of restored.get(this.name)?.items ?? []) {
      const answer = decoders.get(stored) ?? value.row.readerOf(stored)
      decoders.set(stored, answer)
      if ('refused' in answer)
        throw stateError('MR-T02', `Operator '${uid}', broadcast state '${this.name}': ${answer.refused}`)
      const reader = createReader(bytes)
      const key: Key = decodeKey(reader)
      if (typeof key !== mapKey) {
        const change = `its keys were stored as ${typeof key} and are ${mapKey} now`
        throw stateError('MR-T02', `Operator '${uid}', broadcast state '${this.name}': ${change}.`)
      }
      this.put(key as EntryKey, answer.codec.decode(reader))
    }
  }
}

/** An object that cannot write, also for those who look behind the types. */
function viewOf(state: MapState<EntryKey, unknown>): ReadonlyMapState<EntryKey, unknown> {
  return {
    get: (key) => state.get(key),
    has: (key) => state.has(key),
    entries: () => state.entries(),
    keys: () => state.keys(),
    get size() {
      return state.size
    },
  }
}
