// What a test does instead of nodes: pods run as soon as they are there, short pods are answered, deleted pods go. With `makesPods` it also does
// what the controllers of Deployments and StatefulSets would do, for an API server that has none.

import { KubeError } from '../kubernetes/contract.ts'
import type { KubeClient, KubeObject } from '../kubernetes/contract.ts'
import { types } from '../kubernetes/types.ts'
import { componentLabel, jobLabel, purposeLabel, startLabel } from '../resources/labels.ts'

export interface StubKubeletOptions {
  readonly client: KubeClient
  readonly namespace: string
  readonly makesPods: boolean
  /** What a short pod prints; undefined: it does not end. */
  readonly answer: (pod: KubeObject) => { readonly output: string; readonly exitCode: number } | undefined
  /** Pods that stay as they are. */
  readonly ignores: (pod: KubeObject) => boolean
}

/** One pass over everything. */
export async function kubeletPass({
  client,
  namespace,
  makesPods,
  answer,
  ignores,
}: StubKubeletOptions): Promise<void> {
  if (makesPods) await controllersPass(client, namespace)
  const { items } = await client.list(types.pod, { namespace, labelSelector: 'app.kubernetes.io/managed-by=millrace' })
  for (const pod of items)
    try {
      if (!ignores(pod)) await onePod(client, pod, answer)
    } catch (error) {
      // Somebody else has changed it: the next pass.
      if (!(error instanceof KubeError && (error.conflict || error.notFound))) throw error
    }
}

async function onePod(client: KubeClient, pod: KubeObject, answer: StubKubeletOptions['answer']): Promise<void> {
  const { metadata } = pod
  const { phase } = (pod['status'] ?? {}) as { readonly phase?: string }
  const at = { ...(metadata.namespace !== undefined && { namespace: metadata.namespace }), name: metadata.name }
  if (metadata.deletionTimestamp !== undefined)
    return void (await client.delete(types.pod, at, { precondition: { uid: metadata.uid! }, gracePeriodSeconds: 0 }))
  if (metadata.labels?.[purposeLabel] !== undefined) {
    if (phase === 'Succeeded' || phase === 'Failed') return undefined
    const answered = answer(pod)
    if (answered === undefined) return undefined
    const { output, exitCode } = answered
    const terminated = { exitCode, reason: exitCode === 0 ? 'Completed' : 'Error', message: output }
    const status = {
      phase: exitCode === 0 ? 'Succeeded' : 'Failed',
      containerStatuses: [containerStatus('command', { terminated }, false)],
    }
    return void (await client.putStatus(types.pod, pod, status))
  }
  if (phase === 'Running') return undefined
  const { containers } = pod['spec'] as { readonly containers: readonly { readonly name: string }[] }
  const status = {
    phase: 'Running',
    conditions: [{ type: 'Ready', status: 'True' }],
    containerStatuses: [
      containerStatus(containers[0]!.name, { running: { startedAt: metadata.creationTimestamp } }, true),
    ],
  }
  return void (await client.putStatus(types.pod, pod, status))
}

function containerStatus(name: string, state: object, ready: boolean): object {
  return { name, state, ready, restartCount: 0, image: 'millrace', imageID: '' }
}

async function controllersPass(client: KubeClient, namespace: string): Promise<void> {
  const { items: pods } = await client.list(types.pod, { namespace })
  for (const type of [types.deployment, types.statefulSet]) {
    const { items } = await client.list(type, { namespace })
    for (const workload of items) await oneWorkload(client, workload, pods)
  }
}

async function oneWorkload(client: KubeClient, workload: KubeObject, pods: readonly KubeObject[]): Promise<void> {
  const { metadata, kind } = workload
  const { replicas = 1, template } = workload['spec'] as {
    readonly replicas?: number
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> }
      readonly spec: object
    }
  }
  const own = pods.filter((pod) => pod.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid))
  const { labels } = template.metadata
  // Recreate: a new template's pod comes when the old one is gone; OnDelete: pods stay.
  const old = kind === 'Deployment' ? own.filter((pod) => pod.metadata.labels?.[startLabel] !== labels[startLabel]) : []
  const wanted = metadata.deletionTimestamp === undefined ? replicas : 0
  const names = Array.from({ length: wanted }, (_, index) =>
    kind === 'Deployment' ? `${metadata.name}-${labels[startLabel]}` : `${metadata.name}-${index}`,
  )
  for (const pod of [
    ...old,
    ...own.filter(({ metadata: { name } }) => kind === 'StatefulSet' && !names.includes(name)),
  ])
    if (pod.metadata.deletionTimestamp === undefined)
      await client.delete(types.pod, namedOf(pod), { precondition: { uid: pod.metadata.uid! } })
  if (old.length > 0) return
  for (const name of names)
    if (!own.some((pod) => pod.metadata.name === name)) {
      const { apiVersion, kind: ownerKind } = workload
      const owner = { apiVersion, kind: ownerKind, name: metadata.name, uid: metadata.uid!, controller: true }
      await client.create(types.pod, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: metadata.namespace!, labels, ownerReferences: [owner] },
        spec: template.spec,
      })
    }
}

function namedOf({ metadata }: KubeObject) {
  return { namespace: metadata.namespace!, name: metadata.name }
}

/** Whose pod it is, and of which start. */
export function placeOf({ metadata }: KubeObject): {
  readonly uid: string
  readonly component: string
  readonly start: number
} {
  const { labels = {} } = metadata
  return { uid: labels[jobLabel] ?? '', component: labels[componentLabel] ?? '', start: Number(labels[startLabel]) }
}
