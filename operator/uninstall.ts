// Before the chart goes: the operator is taken down, and then our finalizers are, so that jobs run on and a later deletion of a StreamJob or a
// Savepoint ends by garbage collection. The other way round a running operator would set them again.

import type { Clock } from '../runtime/base/environment.ts'
import { errorsOf } from '../runtime/base/errors.ts'
import { FINALIZER } from './contract.ts'
import { operatorErrors } from './errors.ts'
import { setFinalizer } from './finalize.ts'
import { KubeError } from './kubernetes/contract.ts'
import type { KubeClient, KubeObject, ResourceType } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'

const fail = errorsOf(operatorErrors)

export interface UninstallOptions {
  readonly client: Pick<KubeClient, 'get' | 'list' | 'patch'>
  readonly clock: Clock
  /** The operator's own, and its Deployment's name there; undefined: nothing is to be taken down. */
  readonly namespace: string
  readonly deployment: string | undefined
  /** Of StreamJobs; empty: all. */
  readonly namespaces: readonly string[]
  readonly log: (level: 'info' | 'warn', message: string, fields?: Readonly<Record<string, unknown>>) => void
}

/** Longer than the operator's own grace. */
const goneMs = 60_000
const lookMs = 500
/** Others write these objects too. */
const triesMax = 10

/** Rejects with MR-P08 when the operator does not go. */
export async function uninstall(options: UninstallOptions): Promise<void> {
  const { client, namespaces, log } = options
  await takeDown(options)
  const wheres = namespaces.length === 0 ? [{}] : namespaces.map((namespace) => ({ namespace }))
  for (const type of [types.streamJob, types.savepoint])
    for (const where of wheres)
      for (const object of (await client.list(type, where)).items) {
        if (object.metadata.finalizers?.includes(FINALIZER) !== true) continue
        await withoutFinalizer(client, type, object)
        const { namespace, name } = object.metadata
        log('info', "its deletion is the garbage collector's from now on", { kind: type.kind, namespace, name })
      }
}

async function takeDown({ client, clock, namespace, deployment, log }: UninstallOptions): Promise<void> {
  if (deployment === undefined) return
  const at = { namespace, name: deployment }
  const found = await client.get(types.deployment, at)
  if (found === undefined) return
  await client.patch(types.deployment, at, { spec: { replicas: 0 } })
  const { selector } = found['spec'] as {
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> }
  }
  const labelSelector = Object.entries(selector.matchLabels)
    .map(([name, value]) => `${name}=${value}`)
    .join(',')
  const untilMs = clock.nowMs() + goneMs
  for (;;) {
    const { items } = await client.list(types.pod, { namespace, labelSelector })
    if (items.length === 0) return log('info', 'the operator is down', { deployment })
    if (clock.nowMs() > untilMs)
      throw fail('MR-P08', `Pods of Deployment ${namespace}/${deployment}: ${items.map(nameOf).join(', ')}.`)
    await new Promise<void>((resolve) => {
      clock.timer(lookMs, resolve)
    })
  }
}

async function withoutFinalizer(
  client: UninstallOptions['client'],
  type: ResourceType,
  seen: KubeObject,
): Promise<void> {
  let object: KubeObject | undefined = seen
  for (let tries = 1; object !== undefined; tries++)
    try {
      await setFinalizer(client, object, false)
      return
    } catch (error) {
      if (error instanceof KubeError && error.notFound) return
      if (!(error instanceof KubeError && error.conflict) || tries >= triesMax) throw error
      object = await client.get(type, seen.metadata)
    }
}

const nameOf = ({ metadata }: KubeObject): string => metadata.name
