// A cluster that is there already, by its kubeconfig: nothing of it is started or ended, and only namespaces of ours are removed.

import { clusterAccess, ownLabel } from './access.ts'
import type { Cluster } from './contract.ts'
import { run } from './run.ts'
import { step } from './step.ts'

const loadDeadlineMs = 600_000
const removeDeadlineMs = 180_000

export interface ExistingOptions {
  readonly kubeconfig: string
  /**
   * A command that puts a docker archive onto the nodes; the archive's path is added: ['minikube', 'image', 'load']. Without it images must be there
   * already, or be pulled.
   */
  readonly load?: readonly string[]
}

export function existingCluster({ kubeconfig, load }: ExistingOptions): Cluster {
  const access = clusterAccess(kubeconfig)
  const removeOwnNamespaces = async (): Promise<void> => {
    const timeout = `--timeout=${removeDeadlineMs / 1000}s`
    await access.kubectl(['delete', 'namespace', '--selector', `${ownLabel}=true`, timeout], {
      deadlineMs: removeDeadlineMs + 10_000,
    })
  }
  const cannot = (what: string) => async (): Promise<never> => {
    throw new Error(`${what} is only possible on a cluster of the provider kind`)
  }
  return {
    ...access,
    provider: 'existing',
    kubeconfig,
    can: { kill: false },
    up: async () => {
      const { stdout } = await access.kubectl(['get', '--raw', '/version'])
      console.log(`[cluster] existing cluster: ${(JSON.parse(stdout) as { readonly gitVersion: string }).gitVersion}`)
      await step('remove what an earlier run left', removeOwnNamespaces)
    },
    down: () => step('remove our namespaces', removeOwnNamespaces),
    downKept: async () => {
      const { stdout } = await access.kubectl(['get', 'namespaces', '--selector', `${ownLabel}=true`, '-o', 'name'])
      await step('remove our namespaces', removeOwnNamespaces)
      return stdout.trim() !== ''
    },
    loadImage: async (archive) => {
      const [command, ...args] = load ?? []
      if (command === undefined)
        throw new Error(
          `the image in ${archive} must be on the nodes: give the command that puts it there with --load, as in --load 'minikube image load'`,
        )
      await run(command, [...args, archive], { deadlineMs: loadDeadlineMs })
    },
    killNode: cannot('killing a node'),
    startNode: cannot('starting a node'),
    killContainer: cannot('killing a container from its node'),
  }
}
