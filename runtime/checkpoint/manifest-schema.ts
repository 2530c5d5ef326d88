// The shape of a manifest's JSON. Loose objects: fields of a later version are kept.

import { z } from 'zod'

const count = z.int().nonnegative()

const stateHandle = z.discriminatedUnion('kind', [
  z.looseObject({ kind: z.literal('object'), object: z.string().min(1), offset: count, length: count, crc: count }),
  z.looseObject({ kind: z.literal('inline'), base64: z.string(), crc: count }),
])

const codecDescription = z.looseObject({
  version: z.int(),
  kind: z.enum(['schema', 'untyped', 'key', 'bytes', 'json']),
  fingerprint: z.string(),
  layout: z.unknown(),
})

const keyedSnapshot = z.looseObject({
  format: z.int(),
  states: z.array(
    z.looseObject({
      name: z.string(),
      kind: z.enum(['value', 'list', 'map', 'reducing', 'aggregating', 'timers']),
      codecs: z.looseObject({
        key: codecDescription,
        value: codecDescription.optional(),
        mapKey: codecDescription.optional(),
      }),
      ttlMs: z.int().positive().optional(),
      timerMeaning: z.string().optional(),
    }),
  ),
  groups: z.array(
    z.looseObject({
      keyGroup: count,
      watermark: z.number(),
      handle: stateHandle.optional(),
      base: z.array(stateHandle).optional(),
    }),
  ),
})

const operatorSnapshot = z.looseObject({
  keyed: keyedSnapshot.optional(),
  operatorState: z
    .record(
      z.string(),
      z.looseObject({
        redistribution: z.enum(['split', 'union', 'broadcast']),
        codec: codecDescription,
        items: stateHandle,
        count,
      }),
    )
    .optional(),
  committables: z
    .array(z.looseObject({ checkpoint: count, transaction: z.string().min(1), payload: z.unknown() }))
    .optional(),
})

export const manifestSchema = z.looseObject({
  format: z.int(),
  job: z.string().min(1),
  start: z.int(),
  incarnation: z.int(),
  id: z.int().positive(),
  kind: z.enum(['checkpoint', 'savepoint']),
  triggeredAtMs: z.number(),
  graphHash: z.string(),
  maxParallelism: z.int().positive(),
  vertices: z.array(
    z.looseObject({
      id: z.string().min(1),
      parallelism: z.int().positive(),
      maxParallelism: z.int().positive(),
      uids: z.array(z.string().min(1)),
      finished: z.array(z.boolean()),
      operators: z.record(z.string(), z.array(operatorSnapshot.nullable())),
    }),
  ),
  enumerators: z.record(z.string(), z.looseObject({ codec: codecDescription, handle: stateHandle })),
  bytes: count,
  drained: z.literal(true).optional(),
})
