// The kind Savepoint: one savepoint of a job, to be made, or one that exists and is to be known by this name.

import { z } from 'zod'
import { API_VERSION, metadata, path, resourceName } from './resource.ts'

const spec = z.strictObject({
  /** A StreamJob of the same namespace; it may be gone. */
  job: z.strictObject({ name: resourceName }),
  /** Of a savepoint that exists; without it one is triggered, once. */
  path: path.optional(),
  /** What becomes of its files when this object is deleted. */
  disposal: z.enum(['retain', 'delete']).default('retain'),
})

export const savepoint = z.strictObject({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal('Savepoint'),
  metadata,
  spec,
  /** The operator's: the result. */
  status: z.unknown().optional(),
})

/** With its defaults. */
export type Savepoint = z.output<typeof savepoint>
