// A pod that takes a savepoint's files away when its job is gone: it has nothing of the job but what the Savepoint's status says of it. What that
// keeps of the job's podTemplate is merged over ours, as in the job's own pods.

import { API_VERSION } from '../../crds/resource.ts'
import type { SavepointOrigin } from '../savepoint-contract.ts'
import { childName } from '../revision-names.ts'
import { componentLabel, purposeLabel } from './labels.ts'
import { mergePodTemplate } from './merge-pod-template.ts'
import type { KubernetesObject, OwnerJob } from './objects.ts'
import { shortContainer } from './origin-template.ts'
import { hardened, volumeNames } from './pod-parts.ts'
import type { Json } from './pod-parts.ts'
import { s3Keys } from './process-config.ts'
import { shortPodLimits } from './short-pod.ts'

/** Which Savepoint it works for; its uid. */
export const savepointLabel = 'millrace.dev/savepoint'

export interface DisposalOptions {
  /** The Savepoint object: it owns the pod. */
  readonly savepoint: OwnerJob
  readonly origin: SavepointOrigin
  /** After `millrace`, before what says where the store is. */
  readonly arguments: readonly string[]
}

export function disposalPod({ savepoint, origin, arguments: words }: DisposalOptions): KubernetesObject {
  const { namespace, name, uid } = savepoint
  const labels = {
    'app.kubernetes.io/name': 'millrace',
    'app.kubernetes.io/managed-by': 'millrace',
    [componentLabel]: 'admin',
    [purposeLabel]: 'admin-dispose',
    [savepointLabel]: uid,
  }
  const { spec } = mergePodTemplate({ metadata: { labels }, spec: podSpec(origin, words) }, origin.podTemplate)
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: childName(savepoint, 'dispose'),
      namespace,
      labels,
      ownerReferences: [
        {
          apiVersion: API_VERSION,
          kind: 'Savepoint',
          name,
          uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec,
  }
}

function podSpec(origin: SavepointOrigin, words: readonly string[]): Json {
  return {
    ...(origin.serviceAccountName !== undefined && { serviceAccountName: origin.serviceAccountName }),
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    restartPolicy: 'Never',
    activeDeadlineSeconds: shortPodLimits.deadlineSeconds.admin,
    terminationGracePeriodSeconds: shortPodLimits.graceSeconds,
    securityContext: hardened.pod,
    containers: [
      {
        name: shortContainer,
        image: origin.image,
        command: ['millrace', ...words, ...storeWords(origin)],
        env: credentialsOf(origin),
        resources: shortPodLimits.resources,
        terminationMessagePolicy: 'FallbackToLogsOnError',
        securityContext: hardened.container,
        volumeMounts: [{ name: volumeNames.temporary, mountPath: '/tmp' }],
      },
    ],
    volumes: [{ name: volumeNames.temporary, emptyDir: {} }],
  }
}

function storeWords({ jobId, storage, s3 }: SavepointOrigin): readonly string[] {
  return [
    '--storage',
    storage,
    '--job',
    jobId,
    ...(s3?.endpoint === undefined ? [] : ['--s3-endpoint', s3.endpoint]),
    ...(s3?.region === undefined ? [] : ['--s3-region', s3.region]),
    ...(s3?.forcePathStyle === true ? ['--s3-path-style'] : []),
  ]
}

function credentialsOf({ s3 }: SavepointOrigin): readonly object[] {
  const name = s3?.credentialsSecret
  if (name === undefined) return []
  const variables = { AWS_ACCESS_KEY_ID: s3Keys.accessKeyId, AWS_SECRET_ACCESS_KEY: s3Keys.secretAccessKey }
  return Object.entries(variables).map(([variable, key]) => ({
    name: variable,
    valueFrom: { secretKeyRef: { name, key } },
  }))
}
