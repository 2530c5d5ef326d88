// Pods by their labels: those that are not on their way out, and how they are killed.

import type { Cluster } from '../../cluster/contract.ts'
import { wait } from './wait.ts'

export interface PodObject {
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly labels: Readonly<Record<string, string>>
    readonly deletionTimestamp?: string
  }
  readonly spec: {
    readonly nodeName?: string
    readonly containers: readonly { readonly name: string; readonly image: string }[]
  }
  readonly status: {
    readonly phase: string
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
    readonly containerStatuses?: readonly { readonly containerID?: string; readonly restartCount: number }[]
  }
}

export interface PodsAt {
  readonly namespace: string
  readonly selector: string
}

/** Those that are not on their way out. */
export async function podsAt(cluster: Cluster, { namespace, selector }: PodsAt): Promise<readonly PodObject[]> {
  const words = ['--namespace', namespace, 'get', 'pods', '--selector', selector]
  const { items } = await cluster.get<{ readonly items: readonly PodObject[] }>(words)
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
}

/** The first so many; rejects with words of /to be killed/ where there is none. */
export async function victimsAt(cluster: Cluster, at: PodsAt, count: number): Promise<readonly PodObject[]> {
  const victims = (await podsAt(cluster, at)).slice(0, count)
  if (victims.length === 0) throw new Error(`in ${at.namespace} no pod is ${at.selector}: none to be killed`)
  return victims
}

/**
 * As a pod's death on its node looks: its processes are gone without a word, then itself. Deleted alone, without grace, a worker still hears
 * SIGTERM, and was once quick enough to leave in order; that is what happens where a cluster lets nobody kill. Resolves when they are gone.
 */
export async function killPodsAt(cluster: Cluster, at: PodsAt, count = Number.POSITIVE_INFINITY): Promise<void> {
  const victims = await victimsAt(cluster, at, count)
  if (cluster.can.kill) await Promise.all(victims.map((victim) => killProcessesOf(cluster, at.namespace, victim)))
  const names = victims.map(({ metadata }) => metadata.name)
  const how = ['--grace-period=0', '--force', '--wait=false', '--ignore-not-found']
  await cluster.kubectl(['--namespace', at.namespace, 'delete', 'pod', ...names, ...how])
  const were = new Set(victims.map(({ metadata }) => metadata.uid))
  await wait(`pods ${names.join()} to be gone`, async () =>
    (await podsAt(cluster, at)).every(({ metadata }) => !were.has(metadata.uid)),
  )
}

async function killProcessesOf(cluster: Cluster, namespace: string, { metadata, spec }: PodObject): Promise<void> {
  for (const { name } of spec.containers) {
    // One that does not run, yet or any more, needs no killing.
    await cluster.killContainer({ namespace, pod: metadata.name, container: name }).catch(() => undefined)
  }
}
