// Names of what a StreamJob owns, each in one place. All of them have at most 52 characters and the form of a Service's name (RFC 1035).

import { createHash } from 'node:crypto'
import { START_IN_RENDERING } from '../contract.ts'
import { childName } from '../revision-names.ts'
import type { NamedJob } from '../revision-names.ts'

/** Of Service, Deployment, Ingress and NetworkPolicy. */
export const coordinatorName = (job: NamedJob): string => childName(job, 'coordinator')

/** Of StatefulSet, PodDisruptionBudget and NetworkPolicy; the set's pods are `<name>-<ordinal>`. */
export const workerName = (job: NamedJob): string => childName(job, 'worker')

/** Of the Secret with tokens, certificates and NATS credentials. */
export const accessName = (job: NamedJob): string => childName(job, 'access')

/** Of the account that can do nothing. */
export const accountName = (job: NamedJob): string => childName(job, 'pods')

/** Of the ConfigMap with a start's process.json. `start` as text: in a rendering it is START_IN_RENDERING, which decides how a long name is cut. */
export const configName = (job: NamedJob, start: string): string =>
  childName(job, `config-${START_IN_RENDERING}`).replace(START_IN_RENDERING, start)

/** `hash`: hexadecimal, of the code's files. */
export const codeName = (job: NamedJob, hash: string): string => childName(job, `code-${hash.slice(0, 12)}`)

const shortPodNames = {
  'admin-close': 'close',
  'admin-restore-point': 'restore-point',
  'admin-commit': 'commit',
  'admin-dispose': 'dispose',
  'admin-dispose-checkpoints': 'discard',
  preflight: 'preflight',
} as const

/** Made of purpose and request, so that one request makes one pod. */
export function shortPodName(job: NamedJob, purpose: keyof typeof shortPodNames, request: string): string {
  const hash = createHash('sha256').update(request).digest('hex').slice(0, 8)
  return childName(job, `${shortPodNames[purpose]}-${hash}`)
}
