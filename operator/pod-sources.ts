// Secrets and ConfigMaps that a pod cannot begin without and that are not there. Its containers are not created then, and of a volume only an
// event of the kubelet says why, which the operator may not read; so those that the pod names are looked for. Only of a pod that waits on its
// node, and only metadata is read; of what the caches hold, as the job's own, nothing.

import type { Clock } from '../runtime/base/environment.ts'
import type { PodFact } from './contract.ts'
import type { Caches } from './caches.ts'
import type { KubeClient, KubeObject } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'
import { RecentLooks } from './recent-looks.ts'

interface Source {
  readonly kind: 'Secret' | 'ConfigMap'
  readonly name: string
}

export class PodSources {
  readonly #client: Pick<KubeClient, 'get'>
  readonly #caches: Pick<Caches, 'get'>
  readonly #looks: RecentLooks<boolean>

  constructor(client: Pick<KubeClient, 'get'>, caches: Pick<Caches, 'get'>, clock: Clock) {
    this.#client = client
    this.#caches = caches
    this.#looks = new RecentLooks(clock)
  }

  /** The first that is missing, as the trouble of the pod. Never rejects: what cannot be read is not missing. */
  async missingOf(pod: KubeObject): Promise<PodFact['trouble']> {
    if (!waitsOnItsNode(pod)) return undefined
    const namespace = pod.metadata.namespace!
    const sources = sourcesOf(pod)
    const missing = await Promise.all(sources.map((source) => this.#isMissing(namespace, source)))
    const first = sources.find((_, index) => missing[index])
    return (
      first && {
        reason: `${first.kind}Missing`,
        message: `namespace ${namespace} has no ${first.kind} ${first.name}, which the pod needs; make it in that namespace, or name another in the spec`,
      }
    )
  }

  async #isMissing(namespace: string, { kind, name }: Source): Promise<boolean> {
    const type = kind === 'Secret' ? types.secret : types.configMap
    if (this.#caches.get(type, namespace, name) !== undefined) return false
    return this.#looks.at(`${kind}/${namespace}/${name}`, () =>
      this.#client.get(type, { namespace, name }, { metadataOnly: true }).then(
        (found) => found === undefined,
        () => false,
      ),
    )
  }
}

function waitsOnItsNode({ metadata, spec, status }: KubeObject): boolean {
  const { nodeName } = (spec ?? {}) as { readonly nodeName?: string }
  const { phase } = (status ?? {}) as { readonly phase?: string }
  return metadata.deletionTimestamp === undefined && nodeName !== undefined && (phase ?? 'Pending') === 'Pending'
}

interface Reference {
  readonly name?: string
  readonly optional?: boolean
}

interface Volume {
  /** The one reference to a Secret whose name is not `name`. */
  readonly secret?: { readonly secretName?: string; readonly optional?: boolean }
  readonly configMap?: Reference
  readonly projected?: { readonly sources?: readonly { readonly secret?: Reference; readonly configMap?: Reference }[] }
}

interface PodSpec {
  readonly volumes?: readonly Volume[]
  readonly containers?: readonly Container[]
  readonly initContainers?: readonly Container[]
}

interface Container {
  readonly envFrom?: readonly { readonly secretRef?: Reference; readonly configMapRef?: Reference }[]
  readonly env?: readonly {
    readonly valueFrom?: { readonly secretKeyRef?: Reference; readonly configMapKeyRef?: Reference }
  }[]
}

/** Of volumes first, as the kubelet sees to them first. */
function sourcesOf(pod: KubeObject): readonly Source[] {
  const { volumes = [], containers = [], initContainers = [] } = (pod['spec'] ?? {}) as PodSpec
  const sources = new Map<string, Source>()
  const add = (kind: Source['kind'], name: string | undefined, optional: boolean | undefined): void => {
    if (name !== undefined && optional !== true) sources.set(`${kind}/${name}`, { kind, name })
  }
  const addBoth = (secret: Reference | undefined, configMap: Reference | undefined): void => {
    add('Secret', secret?.name, secret?.optional)
    add('ConfigMap', configMap?.name, configMap?.optional)
  }
  for (const { secret, configMap, projected } of volumes) {
    add('Secret', secret?.secretName, secret?.optional)
    addBoth(undefined, configMap)
    for (const source of projected?.sources ?? []) addBoth(source.secret, source.configMap)
  }
  for (const { envFrom = [], env = [] } of [...initContainers, ...containers]) {
    for (const { secretRef, configMapRef } of envFrom) addBoth(secretRef, configMapRef)
    for (const { valueFrom } of env) addBoth(valueFrom?.secretKeyRef, valueFrom?.configMapKeyRef)
  }
  return [...sources.values()]
}
