// What a savepoint's origin keeps of its job's podTemplate, in a form that is merged over the pod which takes the files away when the job is
// gone. Whoever reads Savepoints may read no StreamJob: Secrets are named, and of values that stand in the template themselves only those are
// kept that are known to be no secrets.

import type { Json } from './pod-parts.ts'
import { volumeNames } from './pod-parts.ts'

/** How the container of short pods is called. */
export const shortContainer = 'command'

/** Not what other pods or classes must be there for: it is to run when all of the job is gone. */
const podFields = [
  'imagePullSecrets',
  'nodeSelector',
  'tolerations',
  'securityContext',
  'hostNetwork',
  'hostAliases',
  'dnsPolicy',
  'dnsConfig',
]
const containerFields = ['image', 'imagePullPolicy', 'securityContext']

/** Where the store is, and whom to trust. */
const plainVariables: ReadonlySet<unknown> = new Set([
  'NODE_EXTRA_CA_CERTS',
  'AWS_REGION',
  'AWS_DEFAULT_REGION',
  'AWS_ENDPOINT_URL',
  'AWS_ENDPOINT_URL_S3',
  'AWS_ENDPOINT_URL_STS',
  'AWS_ROLE_ARN',
  'AWS_WEB_IDENTITY_TOKEN_FILE',
])

/** Of the coordinator's, as its short pods are that pod; no larger than it. undefined: there is nothing to be kept. */
export function originTemplate(podTemplate: Json | undefined): Json | undefined {
  const spec = (podTemplate?.['spec'] ?? {}) as Json
  const container = listOf(spec['containers']).find(({ name }) => name === 'coordinator') ?? {}
  const own = listOf(spec['volumes'])
  const mounts = listOf(container['volumeMounts']).filter(
    (mount) => mount['name'] === volumeNames.temporary || own.some(({ name }) => name === mount['name']),
  )
  const volumes = own.filter(
    ({ name }) => name === volumeNames.temporary || mounts.some((mount) => mount['name'] === name),
  )
  const env = listOf(container['env']).filter(
    ({ name, valueFrom }) => (valueFrom !== undefined && valueFrom !== null) || plainVariables.has(name),
  )
  const { nodeAffinity } = (spec['affinity'] ?? {}) as Json
  const keptOfContainer = {
    ...picked(container, containerFields),
    ...(env.length > 0 && { env: optional(env, ['secretKeyRef', 'configMapKeyRef']) }),
    ...(Array.isArray(container['envFrom']) && {
      envFrom: optional(container['envFrom'], ['secretRef', 'configMapRef']),
    }),
    ...(mounts.length > 0 && { volumeMounts: mounts }),
  }
  const kept = {
    ...picked(spec, podFields),
    ...(nodeAffinity !== undefined && { affinity: { nodeAffinity } }),
    ...(volumes.length > 0 && { volumes: optional(volumes, ['secret', 'configMap']) }),
    ...(Object.keys(keptOfContainer).length > 0 && { containers: [{ name: shortContainer, ...keptOfContainer }] }),
  }
  return Object.keys(kept).length === 0 ? undefined : { spec: kept }
}

function picked(from: Json, names: readonly string[]): Json {
  return Object.fromEntries(names.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]])))
}

/** What of it went with the job keeps no pod from beginning: without what it does need, it says what. */
function optional(value: unknown, references: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((inner) => optional(inner, references))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]: [string, unknown]) => [
      name,
      references.includes(name) && typeof inner === 'object' && inner !== null
        ? { ...inner, optional: true }
        : optional(inner, references),
    ]),
  )
}

/** What lists hold was checked by validate-pod-template.ts in part only. */
function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value)
    ? (value as readonly unknown[]).filter((entry): entry is Json => typeof entry === 'object' && entry !== null)
    : []
}
