// Codecs for what the runtime itself keeps: JSON values (splits, enumerators) and bytes.

import type { Codec, CodecDescription } from './contract.ts'
import { recordError } from './errors.ts'

const jsonDescription: CodecDescription = { version: 1, kind: 'json', fingerprint: 'json', layout: null }
const bytesDescription: CodecDescription = { version: 1, kind: 'bytes', fingerprint: 'bytes', layout: null }

/** Values that JSON carries exactly. `parse` checks what was read (a zod schema's parse, say); without it, it is taken as T. */
export function jsonCodec<T>(parse?: (value: unknown) => T): Codec<T> {
  const codec: Codec<T> = {
    description: jsonDescription,
    encode: (value, writer) => {
      const text = JSON.stringify(value) as string | undefined
      if (text === undefined) throw recordError('MR-R04', 'JSON has no form for it.')
      writer.string(text)
    },
    decode: (reader) => {
      const text = reader.string()
      let value: unknown
      try {
        value = JSON.parse(text)
      } catch (cause) {
        throw recordError('MR-R01', 'The text is no JSON.', cause)
      }
      return parse === undefined ? (value as T) : parse(value)
    },
    readerOf: (stored) =>
      stored.kind === 'json' ? { codec } : { refused: `The data was written as ${stored.kind}, not as JSON.` },
  }
  return codec
}

export const bytesCodec: Codec<Uint8Array> = {
  description: bytesDescription,
  encode: (value, writer) => writer.blob(value),
  decode: (reader) => new Uint8Array(reader.blob()),
  readerOf: (stored) =>
    stored.kind === 'bytes'
      ? { codec: bytesCodec }
      : { refused: `The data was written as ${stored.kind}, not as bytes.` },
}
