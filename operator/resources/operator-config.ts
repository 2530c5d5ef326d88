// The operator's own config: what the chart writes into a ConfigMap and the operator's process reads. One file, YAML, strict.

import { parse } from 'yaml'
import { z } from 'zod'
import { readDocument } from '../../crds/problems.ts'
import { imageName, logLevel, namespaceName, path, resourceName } from '../../crds/resource.ts'
import { nats, resources, storage } from '../../crds/stream-job.ts'

const port = z.int().min(1).max(65_535)

const schema = z.strictObject({
  version: z.literal(1),
  /** Of the StreamJobs; empty: all. */
  namespaces: z.array(namespaceName),
  /** Beneath every spec. */
  defaults: z.strictObject({
    image: imageName,
    /** Where it is there at all, it says where the state is kept. */
    storage: storage.extend({ checkpoints: path }).optional(),
    nats: nats.optional(),
    serviceAccountName: resourceName.optional(),
    coordinatorResources: resources.optional(),
    workerResources: resources.optional(),
  }),
  /** How jobs that use the default NATS are let in there. */
  natsAccess: z.discriminatedUnion('kind', [
    /** The chart's server: the leader makes its keys and config, once, and a user for each job. */
    z.strictObject({ kind: z.literal('own server'), keysSecret: resourceName, configSecret: resourceName }),
    /** An account's signing key of somebody's server, in this Secret's key `seed`; a user for each job is signed by it. */
    z.strictObject({
      kind: z.literal('signing key'),
      secret: resourceName,
      account: z
        .string()
        .regex(/^A[A-Z2-7]{55}$/, "must be an account's public key: A and 55 capital letters or digits"),
    }),
    /** Whatever the credentials' Secret allows; jobs are not apart from each other. */
    z.strictObject({ kind: z.literal('shared') }),
  ]),
  /** Whether each job gets a NetworkPolicy. */
  networkPolicy: z.boolean(),
  webhook: z
    .strictObject({
      /** Of the ValidatingWebhookConfiguration, whose caBundle the leader patches. */
      configuration: resourceName,
      service: resourceName,
      /** Where the leader keeps its certificate. */
      secret: resourceName,
      port,
    })
    .optional(),
  /** Of the leader election; in the operator's own namespace. */
  lease: resourceName,
  /** Plain HTTP: /metrics, /livez, /readyz. */
  port,
  logLevel,
})

export type OperatorConfig = z.output<typeof schema>

export type ReadConfig =
  | { readonly kind: 'fits'; readonly config: OperatorConfig }
  | { readonly kind: 'does not fit'; readonly problems: readonly string[] }

/** All that is wrong is said at once, by field. */
export function readOperatorConfig(text: string): ReadConfig {
  let document: unknown
  try {
    document = parse(text)
  } catch (error) {
    return { kind: 'does not fit', problems: [`it is no YAML: ${(error as Error).message}`] }
  }
  const read = readDocument(schema, document)
  return read.kind === 'fits'
    ? { kind: 'fits', config: read.object }
    : { kind: 'does not fit', problems: read.problems.map(({ message }) => message) }
}
