// All children of a job as its revision makes them, kept with the revision: a later operator applies them as they are, with what a start
// adds filled in, whatever its own builders would make today. Of the access Secret and the code it holds only that there must be one: neither
// secrets nor code are in a rendering.

import { invariant } from '../../runtime/base/errors.ts'
import { START_IN_RENDERING } from '../contract.ts'
import type { Revision, StartBegin } from '../contract.ts'
import { accessSecret } from './access-secret.ts'
import type { Access } from './access-secret.ts'
import type { ClusterFacts } from './cluster-facts.ts'
import { codeConfigMap, codeData } from './code-config-map.ts'
import { configConfigMap, processFile } from './config-config-map.ts'
import { coordinatorDeployment } from './coordinator-deployment.ts'
import { coordinatorIngress } from './ingress.ts'
import { componentLabel } from './labels.ts'
import { networkPolicies } from './network-policy.ts'
import { keyOf } from './objects.ts'
import type { Component, KubernetesObject, OwnerJob } from './objects.ts'
import { workerDisruptionBudget } from './pod-disruption-budget.ts'
import type { RenderedJob } from './pod-parts.ts'
import { startedConfig } from './process-config.ts'
import { coordinatorService } from './service.ts'
import { serviceAccount } from './service-account.ts'
import { workerStatefulSet } from './worker-stateful-set.ts'

/** By `Kind/name`, in the order in which they are to be applied. */
export type Rendering = Readonly<Record<string, KubernetesObject>>

/** START_IN_RENDERING stands for the start, in keys too. */
export function render(
  job: OwnerJob,
  { name, spec, image, code }: Pick<Revision, 'name' | 'spec' | 'image' | 'code'>,
  cluster: ClusterFacts,
): Rendering {
  const rendered: RenderedJob = { job, revision: name, spec, image, code, ...cluster }
  const start = START_IN_RENDERING
  const objects = [
    serviceAccount(rendered),
    accessSecret(job, undefined),
    ...(code === undefined ? [] : [codeConfigMap(job, code)]),
    configConfigMap(rendered, start),
    ...networkPolicies(rendered),
    coordinatorService(rendered, start),
    coordinatorIngress(rendered),
    workerDisruptionBudget(rendered),
    coordinatorDeployment(rendered, start),
    workerStatefulSet(rendered, start),
  ]
  return byKey(objects.filter((object) => object !== undefined))
}

export interface StartOptions {
  readonly start: number
  readonly begin: StartBegin
  /** Worker pods. */
  readonly workers: number
}

/** The children of one start, to compare with what is there. */
export function fillIn(
  rendering: Readonly<Record<string, unknown>>,
  { start, begin, workers }: StartOptions,
): Rendering {
  const objects = Object.values(rendering).map((object) => {
    // Its process.json holds the job's own args, which may say anything.
    const { data, ...rest } = object as KubernetesObject
    const isConfig = isOf('config', rest)
    const filled = withStart(isConfig ? rest : object, String(start)) as KubernetesObject
    if (isConfig) return withStartedConfig({ ...filled, data }, start, begin)
    return filled.kind === 'StatefulSet'
      ? { ...filled, spec: { ...(filled['spec'] as object), replicas: workers } }
      : filled
  })
  return byKey(objects)
}

export interface Contents {
  readonly access: Access
  /** Of the revision's very hash; undefined: they are not known, and the ConfigMap is left as it is. */
  readonly files: Readonly<Record<string, string>> | undefined
}

/** The same to be applied, in this order. */
export function toApply(job: OwnerJob, filled: Rendering, { access, files }: Contents): readonly KubernetesObject[] {
  return Object.values(filled).flatMap((object): KubernetesObject[] => {
    if (isOf('access', object)) return [accessSecret(job, access)]
    if (!isOf('code', object)) return [object]
    return files === undefined ? [] : [{ ...object, data: codeData(files) }]
  })
}

/** The process.json of a start. */
export function configTextOf(filled: Rendering): string {
  const config = Object.values(filled).find((object) => isOf('config', object))
  invariant(config !== undefined, 'a rendering without a config')
  return (config['data'] as Readonly<Record<string, string>>)[processFile]!
}

function isOf(component: Component, { metadata }: KubernetesObject): boolean {
  return metadata.labels[componentLabel] === component
}

function byKey(objects: readonly KubernetesObject[]): Rendering {
  return Object.fromEntries(objects.map((object) => [keyOf(object), object]))
}

function withStart(value: unknown, start: string): unknown {
  if (typeof value === 'string') return value.replaceAll(START_IN_RENDERING, start)
  if (Array.isArray(value)) return value.map((inner: unknown) => withStart(inner, start))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withStart(inner, start)]))
}

function withStartedConfig(configMap: KubernetesObject, start: number, begin: StartBegin): KubernetesObject {
  const data = configMap['data'] as Readonly<Record<string, string>>
  const config = JSON.parse(data[processFile]!) as Readonly<Record<string, unknown>>
  return { ...configMap, data: { ...data, [processFile]: JSON.stringify(startedConfig(config, start, begin)) } }
}
