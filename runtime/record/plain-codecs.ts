// Bytes as they are, for streams and states whose form is somebody else's.

import type { Codec, CodecDescription } from './contract.ts'

const description: CodecDescription = { version: 1, kind: 'bytes', fingerprint: 'bytes', layout: null }

export const bytesCodec: Codec<Uint8Array> = {
  description,
  encode: (value, writer) => writer.blob(value),
  decode: (reader) => new Uint8Array(reader.blob()),
  readerOf: (stored) =>
    stored.kind === 'bytes'
      ? { codec: bytesCodec }
      : { refused: `the data was written as ${stored.kind}, not as bytes` },
}
