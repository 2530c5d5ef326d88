// The kinds as the API server is told of them.

import type { z } from 'zod'
import { savepointStatus, streamJobStatus } from './status.ts'
import { savepoint } from './savepoint.ts'
import { streamJob } from './stream-job.ts'
import { structuralSchema } from './structural-schema.ts'

const group = 'millrace.dev'
const version = 'v1alpha1'

interface Column {
  readonly name: string
  readonly type: 'string' | 'integer' | 'date'
  readonly jsonPath: string
  readonly description?: string
  /** 1: shown by `-o wide` only. */
  readonly priority?: 0 | 1
}

interface Kind {
  readonly kind: string
  readonly plural: string
  readonly shortName: string
  readonly description: string
  readonly spec: z.ZodType
  readonly status: z.ZodType
  readonly columns: readonly Column[]
  readonly scale?: {
    readonly specReplicasPath: string
    readonly statusReplicasPath: string
    readonly labelSelectorPath: string
  }
}

const age: Column = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }

const kinds: readonly Kind[] = [
  {
    kind: 'StreamJob',
    plural: 'streamjobs',
    shortName: 'sj',
    description: 'A stateful stream job that is exact after any failure.',
    spec: streamJob.shape.spec,
    status: streamJobStatus,
    columns: [
      { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
      { name: 'Parallelism', type: 'integer', jsonPath: '.status.parallelism' },
      {
        name: 'Last Checkpoint',
        type: 'date',
        jsonPath: '.status.lastCheckpoint.time',
        description: 'How long ago the newest checkpoint was completed.',
      },
      { name: 'Restarts', type: 'integer', jsonPath: '.status.restarts' },
      age,
      { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason', priority: 1 },
      { name: 'Start', type: 'integer', jsonPath: '.status.start', priority: 1 },
      { name: 'Revision', type: 'string', jsonPath: '.status.revision', priority: 1 },
    ],
    scale: {
      specReplicasPath: '.spec.parallelism',
      statusReplicasPath: '.status.parallelism',
      labelSelectorPath: '.status.labelSelector',
    },
  },
  {
    kind: 'Savepoint',
    plural: 'savepoints',
    shortName: 'sp',
    description: 'A savepoint of a StreamJob: one to be made, or one that exists. It outlives its job.',
    spec: savepoint.shape.spec,
    status: savepointStatus,
    columns: [
      { name: 'Job', type: 'string', jsonPath: '.spec.job.name' },
      { name: 'State', type: 'string', jsonPath: '.status.state' },
      age,
      { name: 'Path', type: 'string', jsonPath: '.status.path', priority: 1 },
      { name: 'Detail', type: 'string', jsonPath: '.status.detail', priority: 1 },
    ],
  },
]

export interface CustomResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1'
  readonly kind: 'CustomResourceDefinition'
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> }
  readonly spec: Readonly<Record<string, unknown>>
}

export function customResourceDefinitions(): CustomResourceDefinition[] {
  return kinds.map(definitionOf)
}

function definitionOf({
  kind,
  plural,
  shortName,
  description,
  spec,
  status,
  columns,
  scale,
}: Kind): CustomResourceDefinition {
  const schema = {
    type: 'object',
    description,
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: structuralSchema(spec),
      status: structuralSchema(status),
    },
    required: ['spec'],
  }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: [shortName],
        categories: ['millrace'],
      },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          additionalPrinterColumns: columns,
          schema: { openAPIV3Schema: schema },
          subresources: { status: {}, ...(scale && { scale }) },
        },
      ],
    },
  }
}
