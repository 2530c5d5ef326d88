// The types of object that the operator reads or makes.

import { API_VERSION } from '../../crds/resource.ts'
import type { ResourceType } from './contract.ts'

export const types = {
  streamJob: { apiVersion: API_VERSION, kind: 'StreamJob', plural: 'streamjobs' },
  savepoint: { apiVersion: API_VERSION, kind: 'Savepoint', plural: 'savepoints' },
  configMap: { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' },
  secret: { apiVersion: 'v1', kind: 'Secret', plural: 'secrets' },
  service: { apiVersion: 'v1', kind: 'Service', plural: 'services' },
  pod: { apiVersion: 'v1', kind: 'Pod', plural: 'pods' },
  event: { apiVersion: 'events.k8s.io/v1', kind: 'Event', plural: 'events' },
  node: { apiVersion: 'v1', kind: 'Node', plural: 'nodes' },
  namespace: { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces' },
  deployment: { apiVersion: 'apps/v1', kind: 'Deployment', plural: 'deployments' },
  statefulSet: { apiVersion: 'apps/v1', kind: 'StatefulSet', plural: 'statefulsets' },
  controllerRevision: { apiVersion: 'apps/v1', kind: 'ControllerRevision', plural: 'controllerrevisions' },
  serviceAccount: { apiVersion: 'v1', kind: 'ServiceAccount', plural: 'serviceaccounts' },
  podDisruptionBudget: { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', plural: 'poddisruptionbudgets' },
  ingress: { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', plural: 'ingresses' },
  networkPolicy: { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', plural: 'networkpolicies' },
  lease: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', plural: 'leases' },
  validatingWebhook: {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    plural: 'validatingwebhookconfigurations',
  },
} as const satisfies Record<string, ResourceType>

const byKind = new Map<string, ResourceType>(
  Object.values(types).map((type) => [`${type.apiVersion}/${type.kind}`, type]),
)

const byPlainKind = new Map<string, ResourceType>(Object.values(types).map((type) => [type.kind, type]))

/** Of kinds that the operator knows each name stands for one. undefined: it does not know it. */
export function typeOfKind(kind: string): ResourceType | undefined {
  return byPlainKind.get(kind)
}

/** undefined: a kind that the operator does not make. */
export function typeOf(object: { readonly apiVersion: string; readonly kind: string }): ResourceType | undefined {
  return byKind.get(`${object.apiVersion}/${object.kind}`)
}
