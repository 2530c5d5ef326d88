// The kind Savepoint: one savepoint of a job, to be made, or one that exists and is to be known by this name.

import { z } from 'zod'
import { API_VERSION, celRule, metadata, path, resourceName, SNAPSHOT_FOLDER } from './resource.ts'

const noFolder = 'must be the folder of a savepoint, such as s3://bucket/prefix/savepoint-7'

const folder = path
  // CEL's estimate of what a rule may cost needs a bound; a key of S3 ends at 1024 bytes.
  .max(2_048)
  .refine((text) => SNAPSHOT_FOLDER.test(text), { error: ({ input }) => `is ${JSON.stringify(input)}; it ${noFolder}` })
  .meta({
    description: 'Of a savepoint that exists. Left out: one is triggered, once.',
    ...celRule(`self.matches('${SNAPSHOT_FOLDER.source}')`, noFolder),
  })

const spec = z
  .strictObject({
    job: z.strictObject({ name: resourceName.describe('The name of a StreamJob.') }).meta({
      description: 'A StreamJob of the same namespace; it may be gone.',
      ...celRule('self == oldSelf', 'cannot change; make another Savepoint'),
    }),
    path: folder.optional(),
    disposal: z
      .enum(['retain', 'delete'])
      .default('retain')
      .describe('What becomes of its files when this object is deleted.'),
  })
  .meta({
    description: 'What is wanted.',
    ...celRule(
      'has(self.path) == has(oldSelf.path) && (!has(self.path) || self.path == oldSelf.path)',
      'path cannot change; make another Savepoint',
    ),
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
