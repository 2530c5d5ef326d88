// Codecs and types of streams. Compiled from zod schemas (codec.ts), or self-describing (untyped.ts).

import type { ZodType } from 'zod'

/** Growable output; `position` is the next byte to write. Integers are little-endian. */
export interface ByteWriter {
  readonly bytes: Uint8Array
  readonly position: number
  reserve(byteCount: number): void
  u8(value: number): void
  u16(value: number): void
  u32(value: number): void
  /** Safe integer, 8 bytes. */
  i53(value: number): void
  f64(value: number): void
  varint(value: number): void
  string(value: string): void
  /** Length-prefixed. */
  blob(value: Uint8Array): void
  /** Without length. */
  raw(value: Uint8Array): void
  /** A copy of what was written; the writer may be reused. */
  take(): Uint8Array
  reset(): void
}

/** Throws MR-R… (malformed data) when it would read past the end. */
export interface ByteReader {
  readonly bytes: Uint8Array
  position: number
  readonly end: number
  u8(): number
  u16(): number
  u32(): number
  i53(): number
  f64(): number
  varint(): number
  string(): string
  blob(): Uint8Array
  raw(byteCount: number): Uint8Array
}

/** JSON-able; stored beside the data that was written with it. */
export interface CodecDescription {
  /** Format version of the codec family. */
  readonly version: number
  readonly kind: 'schema' | 'untyped' | 'key' | 'bytes' | 'json'
  /** Changes when and only when the written bytes' layout changes. */
  readonly fingerprint: string
  /** The layout as a tree, enough to read old bytes without the old schema. */
  readonly layout: unknown
}

/** One value ↔ bytes, row-wise: state values, single records. Decoded strings are safe to keep. */
export interface Codec<T> {
  readonly description: CodecDescription
  encode(value: T, writer: ByteWriter): void
  decode(reader: ByteReader): T
  /**
   * A codec that reads bytes written under `stored` as today's T: fields gained with a default, lost, numbers widened.
   * Refused: the reason, as a sentence naming the field.
   */
  readerOf(stored: CodecDescription): { readonly codec: Codec<T> } | { readonly refused: string }
}

/** Many records ↔ bytes, columnar: what goes over an edge. */
export interface BatchCodec<T> {
  /** Encodes values[from, to) with their timestamps. */
  encodeBatch(values: readonly T[], timestamps: readonly number[], from: number, to: number, writer: ByteWriter): void
  /** Decodes to the reader's end. */
  decodeBatch(reader: ByteReader): { values: T[]; timestamps: number[] }
}

/** What a stream or a state holds. */
export interface TypeInfo<T> {
  readonly name: string
  readonly row: Codec<T>
  readonly batch: BatchCodec<T>
  /** Set when it comes from a schema: validates at the edge (sources). */
  readonly schema?: ZodType<T>
}

/** Values a stream may be keyed by. Numbers have one form (-0 is 0; NaN refused). Arrays are tuples of the others. */
export type Key = string | number | bigint | boolean | readonly Key[]
