// Keyed state and timers: the user's view, and what a backend must do. One conformance suite holds every backend to this text.

import type { Clock } from '../base/environment.ts'
import type { CheckpointId, KeyGroup } from '../base/ids.ts'
import type { KeyedSnapshot, SnapshotReader, SnapshotWriter } from '../checkpoint/contract.ts'
import type { Key, TypeInfo } from '../record/contract.ts'

export type DeepReadonly<T> = T extends (...args: never[]) => unknown
  ? T
  : T extends readonly (infer Item)[]
    ? readonly DeepReadonly<Item>[]
    : T extends Map<infer K, infer V>
      ? ReadonlyMap<K, DeepReadonly<V>>
      : T extends object
        ? { readonly [Name in keyof T]: DeepReadonly<T[Name]> }
        : T

/** State values are immutable: `update` replaces, `mutate` changes in place and does the bookkeeping. */
export interface ValueState<T> {
  get(): DeepReadonly<T> | undefined
  update(value: T): void
  /** `change` gets the value itself and may change it, or return a replacement; nothing happens when there is none. */
  mutate(change: (value: T) => T | void): void
  clear(): void
}

export interface ListState<T> {
  get(): readonly DeepReadonly<T>[]
  add(value: T): void
  addAll(values: readonly T[]): void
  update(values: readonly T[]): void
  clear(): void
}

export interface MapState<K extends string | number, V> {
  get(key: K): DeepReadonly<V> | undefined
  has(key: K): boolean
  put(key: K, value: V): void
  mutate(key: K, change: (value: V) => V | void): void
  delete(key: K): void
  /** A stable view: entries put or deleted during the walk do not disturb it. */
  entries(): readonly (readonly [K, DeepReadonly<V>])[]
  keys(): readonly K[]
  readonly size: number
  clear(): void
}

export interface ReducingState<T> {
  get(): DeepReadonly<T> | undefined
  add(value: T): void
  clear(): void
}

export interface AggregatingState<In, Out> {
  get(): Out | undefined
  add(value: In): void
  clear(): void
}

/** The accumulator belongs to the state: `add` may change it in place and return it, or return another. */
export interface AggregateFunction<In, Accumulator, Out> {
  create(): Accumulator
  add(accumulator: Accumulator, value: In): Accumulator
  result(accumulator: Accumulator): Out
  /** Needed by merging windows only. */
  merge?(left: Accumulator, right: Accumulator): Accumulator
}

/** How long entries of a state live, by the wall clock of the machine that runs the subtask. */
export interface StateTtl {
  /** Whole milliseconds, more than 0. */
  readonly ms: number
  /** What begins an entry's time anew. */
  readonly refresh: 'on write' | 'on read and write'
  /** Whether a read may still give what has expired. Nothing that has expired gets into a snapshot, either way. */
  readonly expired: 'never returned' | 'returned if not yet cleaned up'
}

interface NamedState {
  readonly name: string
  /** Of a value, reducing or aggregating state per key; of a list per item; of a map per entry. */
  readonly ttl?: StateTtl
}

export type StateDescriptor =
  | (NamedState & { readonly kind: 'value'; readonly value: TypeInfo<unknown> })
  | (NamedState & { readonly kind: 'list'; readonly value: TypeInfo<unknown> })
  | (NamedState & {
      readonly kind: 'map'
      readonly mapKey: 'string' | 'number'
      /** What the keys stand for, where that may change with the type staying the same; stored state of another meaning is refused. */
      readonly mapKeyMeaning?: string
      /** The values are an operator's accumulators, which only it sees and changes in place: they are never frozen. */
      readonly accumulators?: true
      readonly value: TypeInfo<unknown>
    })
  | (NamedState & {
      readonly kind: 'reducing'
      readonly value: TypeInfo<unknown>
      readonly reduce: (left: unknown, right: unknown) => unknown
    })
  | (NamedState & {
      readonly kind: 'aggregating'
      readonly accumulator: TypeInfo<unknown>
      readonly aggregate: AggregateFunction<unknown, unknown, unknown>
    })

/** A descriptor that carries its handle's type; made by valueState(), listState() … of the job API. */
export type TypedDescriptor<Handle> = StateDescriptor & { readonly handle?: Handle }

export type TimeDomain = 'event' | 'processing'

/** Timers of the current key. Registering the same (domain, timestamp, tag) twice is registering it once. */
export interface Timers {
  register(domain: TimeDomain, timestampMs: number, tag?: string): void
  /** Says whether there was one. */
  delete(domain: TimeDomain, timestampMs: number, tag?: string): boolean
}

export interface DueTimer {
  readonly key: Key
  readonly domain: TimeDomain
  readonly timestampMs: number
  readonly tag: string
}

/** All keyed state and timers of one subtask: its range of key groups [first, last]. */
export interface KeyedStateBackend {
  readonly first: KeyGroup
  readonly last: KeyGroup
  /** Sets the key for all state handles and timers. Throws MR-R… on NaN or a non-key, and an InvariantError if its group is not in the range. */
  setKey(key: Key): void
  /**
   * Says that the records from `from` on come next, as far as the batch goes: a hint to fetch their keys' state from memory, which
   * changes nothing and never throws. Returns for how many records it holds, 1 or more; to be asked again after those.
   */
  announce(values: readonly unknown[], from: number, keyOf: (value: unknown) => Key): number
  readonly currentKey: Key
  /** Gives the handle; the same name with another kind is MR-T…. Handles follow the current key. Call before restore is read, or any time after: unread restored state of that name is then decoded. */
  state<Handle>(descriptor: TypedDescriptor<Handle>): Handle
  /**
   * Calls `visit` for each key that this state holds something of, with that key set; in no order. The visit may change the key's state. Of a
   * state with a time to live, what it holds may have expired. Afterwards the current key is any of them.
   */
  forEachKey<Handle>(descriptor: TypedDescriptor<Handle>, visit: (key: Key, handle: Handle) => void): void
  readonly timers: Timers

  /** Removes and returns the earliest timer with timestampMs ≤ upTo, and sets the key to its key; undefined when none is due. */
  takeDue(domain: TimeDomain, upToMs: number): DueTimer | undefined
  /** The earliest timer's timestamp, or undefined. */
  nextTimer(domain: TimeDomain): number | undefined
  /** Stored with each key-group block at the next snapshot (rule 27). */
  setWatermark(watermark: number): void
  /** The watermark restored with the current key's group; a record older than it or the current one is late. MIN_WATERMARK if none. */
  readonly keyWatermark: number
  /** Rule 27: the next timer due within its own block's restored watermark, block by block; undefined when none is left. */
  takeOverdueOfRestore(): DueTimer | undefined
  /** The smallest restored watermark over the range's blocks; MIN_WATERMARK if nothing was restored. */
  readonly restoredWatermark: number

  /**
   * The sync part freezes the state as it is now, in O(states), and returns. The async part writes it while processing goes on
   * (copy on write); `shouldYield` bounds each of its slices and `nextTurn` resumes it in a later turn.
   * At most one snapshot runs at a time per backend; abort() ends it and frees what it held.
   */
  snapshot(
    id: CheckpointId,
    writer: SnapshotWriter,
    slices: Slices,
  ): { readonly done: Promise<KeyedSnapshot>; abort(): void }
  /** Reads only the groups in the range. Before any record. Entries that have expired are left out; those of a state that was stored without a time to live count as written now. States whose descriptor comes later are kept as bytes and snapshotted again. */
  restore(snapshots: readonly KeyedSnapshot[], reader: SnapshotReader): Promise<void>
  /** For gauges. */
  readonly entryCount: number
  close(): void
}

export interface Slices {
  readonly begin: () => void
  readonly shouldYield: () => boolean
  readonly nextTurn: () => Promise<void>
}

export interface KeyedStateBackendOptions {
  readonly uid: string
  readonly first: KeyGroup
  readonly last: KeyGroup
  readonly maxParallelism: number
  /** Its wall time is what states with a time to live go by. */
  readonly clock: Clock
  /** What the operator's timers stand for: stored ones of another meaning are refused. undefined: it has none, and no use for stored ones. */
  readonly timerMeaning?: string | undefined
}
