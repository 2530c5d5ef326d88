// What needs nothing of a cluster but a kubeconfig: kubectl, Helm, namespaces, ways to ports.

import { randomBytes } from 'node:crypto'
import type { Cluster, NodeFacts } from './contract.ts'
import { collect } from './collect.ts'
import { forward } from './forward.ts'
import { helmBinary } from './helm.ts'
import { clusterProgram } from './programs.ts'
import { run } from './run.ts'
import type { RunOptions, RunResult } from './run.ts'

/** On namespaces of ours, so that a later run finds those of a killed one. */
export const ownLabel = 'millrace.dev/e2e'
const removeDeadlineMs = 120_000

export type Access = Pick<
  Cluster,
  'kubectl' | 'get' | 'apply' | 'helm' | 'nodes' | 'makeNamespace' | 'removeNamespace' | 'forward' | 'collect'
>

export function clusterAccess(kubeconfig: string): Access {
  const kubectl = async (args: readonly string[], options: RunOptions = {}): Promise<RunResult> =>
    run(await clusterProgram('kubectl'), ['--kubeconfig', kubeconfig, ...args], options)
  const get = async <Value>(args: readonly string[]): Promise<Value> =>
    JSON.parse((await kubectl([...args, '-o', 'json'])).stdout) as Value
  return {
    kubectl,
    get,
    apply: async (manifest, { namespace } = {}) => {
      const input =
        typeof manifest === 'string' ? manifest : JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifest })
      const where = namespace === undefined ? [] : ['--namespace', namespace]
      await kubectl(['apply', '--server-side', '--field-manager', 'millrace-e2e', ...where, '-f', '-'], { input })
    },
    helm: async (args, options = {}) => run(await helmBinary(), ['--kubeconfig', kubeconfig, ...args], options),
    nodes: async () => (await get<{ readonly items: readonly NodeObject[] }>(['get', 'nodes'])).items.map(factsOf),
    makeNamespace: async (prefix) => {
      const name = `${prefix}-${randomBytes(3).toString('hex')}`
      await kubectl(['create', 'namespace', name])
      await kubectl(['label', 'namespace', name, `${ownLabel}=true`])
      return name
    },
    removeNamespace: async (name, deadlineMs = removeDeadlineMs) => {
      const timeout = `--timeout=${Math.ceil(deadlineMs / 1000)}s`
      await kubectl(['delete', 'namespace', name, '--ignore-not-found', timeout], { deadlineMs: deadlineMs + 10_000 })
    },
    forward: async (options) => forward(await clusterProgram('kubectl'), kubeconfig, options),
    collect: (scenario, namespaces) => collect({ kubectl }, scenario, namespaces),
  }
}

interface NodeObject {
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> }
  readonly spec: { readonly unschedulable?: boolean }
  readonly status: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

const factsOf = ({ metadata, spec, status }: NodeObject): NodeFacts => ({
  name: metadata.name,
  ready: status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false,
  controlPlane: metadata.labels?.['node-role.kubernetes.io/control-plane'] !== undefined,
  unschedulable: spec.unschedulable ?? false,
})
