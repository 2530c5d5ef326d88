// What the pods of a job have in common: an account that can do nothing, no privilege, a read-only root file system, and files for config,
// code and secrets. A pod gets the secrets that it needs and no others.

import type { EffectiveSpec } from '../contract.ts'
import type { ClusterFacts } from './cluster-facts.ts'
import { labelsOf } from './labels.ts'
import { accessName, accountName, codeName, configName } from './names.ts'
import type { Component, OwnerJob } from './objects.ts'
import { accessKeys, folders } from './process-config.ts'

export type Json = Readonly<Record<string, unknown>>

/** A revision of a job, as its pods are rendered from it. */
export interface RenderedJob extends ClusterFacts {
  readonly job: OwnerJob
  readonly revision: string
  readonly spec: EffectiveSpec
  readonly image: string
  /** undefined: the code is in the image. */
  readonly code: { readonly hash: string; readonly key: string } | undefined
}

/** A lost node's pods are given up after so long; the default is five minutes. */
const nodeLostSeconds = 30

export const volumeNames = {
  config: 'config',
  code: 'code',
  access: 'access',
  s3: 's3-credentials',
  nats: 'nats-credentials',
  temporary: 'tmp',
} as const

type AccessKey = (typeof accessKeys)[keyof typeof accessKeys]

export interface PodOptions {
  readonly component: Component
  readonly start: string
  /** Keys of the access Secret that its container may read, besides the NATS credentials of the job. */
  readonly access: readonly AccessKey[]
  readonly graceSeconds: number
  readonly container: Json & { readonly name: string }
}

/** What Kubernetes' restricted profile asks for, and no more writing than /tmp. */
export const hardened = {
  pod: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  container: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
} as const

/** A pod template. Where other things are to hold, the user's podTemplate says so. */
export function podTemplate(
  rendered: RenderedJob,
  { component, start, access, graceSeconds, container }: PodOptions,
): Json {
  const { job, revision, spec } = rendered
  const volumes = volumesOf(rendered, start, access)
  return {
    metadata: { labels: labelsOf(job, component, { revision, start }) },
    spec: {
      serviceAccountName: spec.serviceAccountName ?? accountName(job),
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: graceSeconds,
      securityContext: hardened.pod,
      tolerations: ['not-ready', 'unreachable'].map((state) => ({
        key: `node.kubernetes.io/${state}`,
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: nodeLostSeconds,
      })),
      containers: [
        {
          image: rendered.image,
          terminationMessagePolicy: 'FallbackToLogsOnError',
          securityContext: hardened.container,
          volumeMounts: volumes.map(({ name, mountPath }) => ({
            name,
            mountPath,
            ...(name !== volumeNames.temporary && { readOnly: true }),
          })),
          ...container,
        },
      ],
      volumes: volumes.map(({ name, source }) => ({ name, ...source })),
    },
  }
}

interface MountedVolume {
  readonly name: string
  readonly mountPath: string
  readonly source: Json
}

function volumesOf(rendered: RenderedJob, start: string, access: readonly AccessKey[]): readonly MountedVolume[] {
  const { job, spec, code, natsCredentials } = rendered
  const s3Secret = spec.storage?.s3?.credentialsSecret
  const natsSecret = natsCredentials.kind === 'secret' ? natsCredentials.name : undefined
  const keys = natsCredentials.kind === 'of the job' ? [...access, accessKeys.natsCredentials] : access
  const { config, access: accessFolder, code: codeFolder, s3, nats } = folders
  return [
    { name: volumeNames.config, mountPath: config, source: { configMap: { name: configName(job, start) } } },
    {
      name: volumeNames.access,
      mountPath: accessFolder,
      source: { secret: { secretName: accessName(job), items: keys.map((key) => ({ key, path: key })) } },
    },
    ...(code === undefined
      ? []
      : [{ name: volumeNames.code, mountPath: codeFolder, source: { configMap: { name: codeName(job, code.hash) } } }]),
    ...(s3Secret === undefined
      ? []
      : [{ name: volumeNames.s3, mountPath: s3, source: { secret: { secretName: s3Secret } } }]),
    ...(natsSecret === undefined
      ? []
      : [{ name: volumeNames.nats, mountPath: nats, source: { secret: { secretName: natsSecret } } }]),
    { name: volumeNames.temporary, mountPath: '/tmp', source: { emptyDir: {} } },
  ]
}
