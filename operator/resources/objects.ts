// Kubernetes objects as they are built here: plain JSON, ready for server-side apply.

export interface ObjectMetadata {
  readonly name: string
  readonly namespace: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly ownerReferences?: readonly OwnerReference[]
}

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller: true
  readonly blockOwnerDeletion: true
}

export interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMetadata
  readonly [field: string]: unknown
}

/** How children are told apart in a rendering and in what is observed. */
export function keyOf({ kind, metadata }: KubernetesObject): string {
  return `${kind}/${metadata.name}`
}

export type Component =
  | 'coordinator'
  | 'worker'
  | 'admin'
  | 'preflight'
  | 'revision'
  | 'code'
  | 'config'
  | 'access'
  | 'account'

/** A StreamJob as its children know it. */
export interface OwnerJob {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}
