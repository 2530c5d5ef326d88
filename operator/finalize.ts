// Our finalizer: set only where deletion has work that garbage collection cannot do. Others' stay as they are.

import { FINALIZER } from './contract.ts'
import type { KubeClient, KubeObject } from './kubernetes/contract.ts'
import { typeOf } from './kubernetes/types.ts'

/** undefined: it is gone, as nothing held it any more, or there was nothing to change. */
export async function setFinalizer(
  client: Pick<KubeClient, 'patch'>,
  object: KubeObject,
  wanted: boolean,
): Promise<KubeObject | undefined> {
  const { namespace, name, uid, resourceVersion, finalizers = [] } = object.metadata
  if (finalizers.includes(FINALIZER) === wanted) return undefined
  const rest = finalizers.filter((finalizer) => finalizer !== FINALIZER)
  // A merge patch replaces the list: the version sees to it that no other's is lost.
  return client.patch(
    typeOf(object)!,
    { ...(namespace !== undefined && { namespace }), name },
    { metadata: { uid, resourceVersion, finalizers: wanted ? [...rest, FINALIZER] : rest } },
  )
}
