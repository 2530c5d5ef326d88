// Jobs for the tests of this folder.

import { readDocument } from '../../crds/problems.ts'
import { streamJob } from '../../crds/stream-job.ts'
import type { EffectiveSpec } from '../contract.ts'
import type { ClusterFacts } from './cluster-facts.ts'
import type { OwnerJob } from './objects.ts'

export const job: OwnerJob = {
  namespace: 'analytics',
  name: 'flight-delays',
  uid: '0d6f3a52-91b8-4c38-9d0e-7f1f7a2b6c11',
}

export function specOf(spec: Readonly<Record<string, unknown>>): EffectiveSpec {
  const document = {
    apiVersion: 'millrace.dev/v1alpha1',
    kind: 'StreamJob',
    metadata: { name: job.name },
    spec: {
      program: { module: { path: '/opt/job/job.ts' } },
      storage: {
        checkpoints: 's3://millrace/jobs/',
        s3: { endpoint: 'http://s3:7070', region: 'us-east-1', forcePathStyle: true, credentialsSecret: 'millrace-s3' },
      },
      nats: { url: 'nats://millrace-nats:4222' },
      ...spec,
    },
  }
  const read = readDocument(streamJob, document)
  if (read.kind !== 'fits') throw new Error(read.problems.map(({ message }) => message).join('\n'))
  return read.object.spec
}

export const cluster: ClusterFacts = { natsCredentials: { kind: 'of the job' }, networkPolicy: false }

export const code = { hash: 'c0de'.repeat(16), configMap: 'flight-delays-code', key: 'job.ts' }

export const revisionOf = (spec: EffectiveSpec, codeOrNone: typeof code | undefined) => ({
  name: 'flight-delays-90bcbb1e-r3',
  spec,
  image: spec.program.image ?? 'millrace/runtime:0.1.0',
  code: codeOrNone,
})
