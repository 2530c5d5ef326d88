// How what a cell holds becomes bytes: one value, or a whole list. Values of a state with a time to live follow the time of their last
// refresh (i53), the items of a list each its own.

import type { KeyedStateDescription } from '../../checkpoint/contract.ts'
import type { ByteReader, ByteWriter, Codec, CodecDescription } from '../../record/contract.ts'
import { WITHOUT_VALUES } from '../description.ts'

export interface ValueFormat {
  /** Of the value, or of a list's items. */
  readonly codec: CodecDescription
  encode(value: unknown, writer: ByteWriter): void
  /** Reads what was stored with or without times, and drops them. */
  readerOf(
    stored: KeyedStateDescription,
  ): { readonly decode: (reader: ByteReader) => unknown } | { readonly refused: string }
}

/** A value and the wall time of its last refresh, ms. */
export interface TimedValue {
  readonly value: unknown
  refreshedAtMs: number
}

/** `nowMs`: the time of what was stored without one. */
export type TimedDecoder = (reader: ByteReader, nowMs: number) => TimedValue

export interface TimedFormat {
  readonly codec: CodecDescription
  /** Of a list's items those that `lives` says. */
  encode(timed: TimedValue, writer: ByteWriter, lives: (refreshedAtMs: number) => boolean): void
  readerOf(stored: KeyedStateDescription): { readonly decode: TimedDecoder } | { readonly refused: string }
}

export function singleFormat(codec: Codec<unknown>): ValueFormat {
  return {
    codec: codec.description,
    encode: (value, writer) => codec.encode(value, writer),
    readerOf: (stored) => {
      const answer = readerOf(codec, stored)
      if ('refused' in answer) return answer
      const { codec: reading } = answer
      if (!isTimed(stored)) return { decode: (reader) => reading.decode(reader) }
      return { decode: (reader) => readTimed(reading, reader).value }
    },
  }
}

export function listFormat(codec: Codec<unknown>): ValueFormat {
  return {
    codec: codec.description,
    encode: (value, writer) => {
      const items = value as readonly unknown[]
      writer.varint(items.length)
      for (let index = 0; index < items.length; index++) codec.encode(items[index], writer)
    },
    readerOf: (stored) => {
      const answer = readerOf(codec, stored)
      if ('refused' in answer) return answer
      const { codec: reading } = answer
      if (!isTimed(stored)) return { decode: (reader) => readItems(reader, () => reading.decode(reader)) }
      return { decode: (reader) => readItems(reader, () => readTimed(reading, reader).value) }
    },
  }
}

export function timedSingleFormat(codec: Codec<unknown>): TimedFormat {
  return {
    codec: codec.description,
    encode: (timed, writer) => writeTimed(codec, timed, writer),
    readerOf: (stored) => {
      const answer = readerOf(codec, stored)
      return 'refused' in answer ? answer : { decode: timedDecoder(answer.codec, stored) }
    },
  }
}

/** The value is an array of TimedValue; the time beside it is the newest of theirs. */
export function timedListFormat(codec: Codec<unknown>): TimedFormat {
  return {
    codec: codec.description,
    encode: (timed, writer, lives) => {
      const items = (timed.value as readonly TimedValue[]).filter((item) => lives(item.refreshedAtMs))
      writer.varint(items.length)
      for (const item of items) writeTimed(codec, item, writer)
    },
    readerOf: (stored) => {
      const answer = readerOf(codec, stored)
      if ('refused' in answer) return answer
      const decode = timedDecoder(answer.codec, stored)
      return {
        decode: (reader, nowMs) => {
          const items = readItems(reader, () => decode(reader, nowMs))
          return { value: items, refreshedAtMs: newestOf(items) }
        },
      }
    },
  }
}

/** -Infinity when there is none. */
export function newestOf(items: readonly TimedValue[]): number {
  let newest = -Infinity
  for (const item of items) newest = Math.max(newest, item.refreshedAtMs)
  return newest
}

function timedDecoder(codec: Codec<unknown>, stored: KeyedStateDescription): TimedDecoder {
  if (isTimed(stored)) return (reader) => readTimed(codec, reader)
  return (reader, nowMs) => ({ value: codec.decode(reader), refreshedAtMs: nowMs })
}

function isTimed(stored: KeyedStateDescription): boolean {
  return stored.ttlMs !== undefined
}

function writeTimed(codec: Codec<unknown>, { value, refreshedAtMs }: TimedValue, writer: ByteWriter): void {
  writer.i53(refreshedAtMs)
  codec.encode(value, writer)
}

function readTimed(codec: Codec<unknown>, reader: ByteReader): TimedValue {
  const refreshedAtMs = reader.i53()
  return { value: codec.decode(reader), refreshedAtMs }
}

function readItems<Item>(reader: ByteReader, readItem: () => Item): Item[] {
  const count = reader.varint()
  const items: Item[] = []
  for (let index = 0; index < count; index++) items.push(readItem())
  return items
}

function readerOf(codec: Codec<unknown>, stored: KeyedStateDescription) {
  const { value } = stored.codecs
  return value === undefined ? { refused: WITHOUT_VALUES } : codec.readerOf(value)
}
