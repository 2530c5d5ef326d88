// Savepoint objects that the operator makes. They have no owner: they outlive their job.

import type { Observed } from './contract.ts'
import type { KubeObject } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'

/** Label and value of them all; their names say which job made them. */
export const madeByOperator = ['app.kubernetes.io/managed-by', 'millrace'] as const

/** Without a path one is triggered, and its files go with the object: retention deletes objects. */
export function savepointObject(
  { namespace, name: job }: Pick<Observed['job'], 'namespace' | 'name'>,
  { name, path }: { readonly name: string; readonly path?: string },
): KubeObject {
  const [label, value] = madeByOperator
  return {
    apiVersion: types.savepoint.apiVersion,
    kind: types.savepoint.kind,
    metadata: { name, namespace, labels: { 'app.kubernetes.io/name': 'millrace', [label]: value } },
    spec: {
      job: { name: job },
      ...(path !== undefined && { path }),
      disposal: path === undefined ? 'delete' : 'retain',
    },
  }
}
