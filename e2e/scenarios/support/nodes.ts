// Nodes of a scenario: which of them may be taken away, and how pods come to stand on them.

import type { Cluster } from '../../cluster/contract.ts'
import { killSystemPods, systemBack, systemPods } from './system.ts'

/** All but those of the control plane: nobody takes these away. */
export async function sparedNodes(cluster: Cluster): Promise<readonly string[]> {
  return (await cluster.nodes()).filter(({ controlPlane }) => !controlPlane).map(({ name }) => name)
}

/** Of a spec's worker and coordinator: pods that stay on the nodes that may be taken away. */
export const onSparedNodes = {
  podTemplate: {
    spec: {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'DoesNotExist' }] },
            ],
          },
        },
      },
    },
  },
}

/** No pod comes to these nodes while `work` is done. */
export async function withCordoned<Result>(
  cluster: Cluster,
  nodes: readonly string[],
  work: () => Promise<Result>,
): Promise<Result> {
  await cluster.kubectl(['cordon', ...nodes])
  try {
    return await work()
  } finally {
    await cluster.kubectl(['uncordon', ...nodes])
  }
}

/** Where they were installed: a scenario before may have had them killed, and they came up anywhere. */
export async function serversBesideControlPlane(cluster: Cluster): Promise<void> {
  const spared = await sparedNodes(cluster)
  for (const part of ['nats', 's3', 'operator'] as const) {
    const isAstray = async (): Promise<boolean> =>
      (await systemPods(cluster, part)).some(({ spec }) => spared.includes(spec.nodeName ?? ''))
    if (!(await isAstray())) continue
    await withCordoned(cluster, spared, async () => {
      await killSystemPods(cluster, part)
      await systemBack(cluster, part)
    })
    if (await isAstray()) throw new Error(`${part} does not run beside the control plane`)
  }
}
