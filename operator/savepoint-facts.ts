// A Savepoint object as decisions see it. Pure.

import type { SavepointFact } from './savepoint-contract.ts'
import type { KubeObject } from './kubernetes/contract.ts'
import { madeByOperator } from './savepoint-objects.ts'

export function savepointFact(object: KubeObject): SavepointFact {
  const { metadata } = object
  const spec = (object['spec'] ?? {}) as { readonly path?: string; readonly disposal?: 'retain' | 'delete' }
  const status = object['status'] as SavepointFact['status']
  const [label, value] = madeByOperator
  return {
    kind: 'Savepoint',
    namespace: metadata.namespace!,
    name: metadata.name,
    uid: metadata.uid!,
    resourceVersion: metadata.resourceVersion!,
    path: spec.path,
    disposal: spec.disposal ?? 'retain',
    deleting: metadata.deletionTimestamp !== undefined,
    deletingSince: metadata.deletionTimestamp,
    finalizers: metadata.finalizers ?? [],
    madeBy: metadata.labels?.[label] === value ? 'operator' : 'user',
    createdAt: metadata.creationTimestamp ?? '',
    status: typeof status?.state === 'string' ? status : undefined,
  }
}
