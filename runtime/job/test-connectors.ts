// A source and sinks for graph tests: their shape matters, they never run.

import type { Sink, Source } from '../connectors/contract.ts'
import { typeOfSchema } from '../operators/stream-schema.ts'
import type { StreamSchema } from '../operators/stream-schema.ts'

function never(): never {
  throw new Error('this connector never runs')
}

export function stillSource<T>(name: string, schema?: StreamSchema<T>): Source<T, string, string> {
  const codec = typeOfSchema<string>('split', undefined).row
  return {
    name,
    bounded: true,
    output: typeOfSchema(name, schema),
    splitCodec: codec,
    enumeratorCodec: codec,
    splitId: (split) => split,
    createEnumerator: never,
    createReader: never,
  }
}

export function plainSink<T>(name = 'plain'): Sink<T> {
  return { name, createWriter: never }
}

export function twoPhaseSink<T>(name = 'two-phase'): Sink<T> {
  return { name, createWriter: never, createCommitter: never }
}
