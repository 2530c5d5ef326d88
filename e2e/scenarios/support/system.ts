// Pods of the installation: found, killed, and seen to be followed by others.

import { installation } from '../../cluster/installation.ts'
import type { Cluster } from '../../cluster/contract.ts'
import { killPodsAt, podsAt } from './pods.ts'
import type { PodObject, PodsAt } from './pods.ts'
import { wait } from './wait.ts'

export type SystemPart = 'operator' | 'nats' | 's3'

const podsOf = (part: SystemPart): PodsAt => ({
  namespace: installation.namespace,
  selector: `app.kubernetes.io/instance=${installation.release},app.kubernetes.io/component=${part}`,
})

export const systemPods = (cluster: Cluster, part: SystemPart): Promise<readonly PodObject[]> =>
  podsAt(cluster, podsOf(part))

export const killSystemPods = (cluster: Cluster, part: SystemPart): Promise<void> => killPodsAt(cluster, podsOf(part))

const workloads = { operator: 'deployment', nats: 'deployment', s3: 'statefulset' } as const

/** Resolves once so many are there, or none. */
export async function scaleSystem(cluster: Cluster, part: SystemPart, replicas: number): Promise<void> {
  const at = ['--namespace', installation.namespace]
  const workload = `${workloads[part]}/${installation.release}-${part}`
  await cluster.kubectl([...at, 'scale', workload, `--replicas=${replicas}`])
  if (replicas > 0) return systemBack(cluster, part, replicas)
  await wait(`${part} to be gone`, async () => (await systemPods(cluster, part)).length === 0)
}

/** Resolves once as many as there should be are ready. */
export async function systemBack(cluster: Cluster, part: SystemPart, count = 1): Promise<void> {
  await wait(`${count} ready ${part} pods`, async () => {
    const ready = (await systemPods(cluster, part)).filter(({ status }) =>
      status.conditions?.some(({ type, status: word }) => type === 'Ready' && word === 'True'),
    )
    return ready.length === count
  })
}

/** What the one operator pod says at /metrics. */
export async function operatorWords(cluster: Cluster): Promise<string> {
  const [pod] = await systemPods(cluster, 'operator')
  const path = `/api/v1/namespaces/${installation.namespace}/pods/${pod?.metadata.name}:8080/proxy/metrics`
  return (await cluster.kubectl(['get', '--raw', path])).stdout
}
