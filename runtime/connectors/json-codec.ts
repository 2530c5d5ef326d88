// Splits and enumerator states are small and read by people in a manifest: JSON, checked by a schema when read.

import type { ZodType } from 'zod'
import type { Codec } from '../record/contract.ts'
import { connectorError, messageOf } from './errors.ts'

const JSON_CODEC_VERSION = 1

/** `name` and `version` say what the JSON means; another name or version is refused by that name. */
export function jsonCodec<T>(name: string, version: number, schema: ZodType<T>): Codec<T> {
  const codec: Codec<T> = {
    description: { version: JSON_CODEC_VERSION, kind: 'json', fingerprint: `${name}:${version}`, layout: name },
    encode: (value, writer) => writer.string(JSON.stringify(value)),
    decode: (reader) => {
      const text = reader.string()
      try {
        return schema.parse(JSON.parse(text))
      } catch (error) {
        throw connectorError('MR-N17', `Reading ${name}: ${messageOf(error)}`, error)
      }
    },
    readerOf: (stored) =>
      stored.kind === 'json' && stored.fingerprint === codec.description.fingerprint
        ? { codec }
        : {
            refused: `it was written as ${stored.kind} ${stored.fingerprint} and is read as json ${name}:${version}`,
          },
  }
  return codec
}
