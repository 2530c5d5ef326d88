// Shows a job's REST at a host name.

import { childMetadata } from './labels.ts'
import { coordinatorName } from './names.ts'
import type { KubernetesObject } from './objects.ts'
import type { RenderedJob } from './pod-parts.ts'

/** The coordinator speaks TLS with a certificate of its own authority, which the controller has to be told. */
const annotations = { 'nginx.ingress.kubernetes.io/backend-protocol': 'HTTPS' }

/** undefined: the spec asks for none. */
export function coordinatorIngress({ job, revision, spec }: RenderedJob): KubernetesObject | undefined {
  if (spec.ingress === undefined) return undefined
  const { host, className, tlsSecret } = spec.ingress
  const name = coordinatorName(job)
  const backend = { service: { name, port: { name: 'rest' } } }
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: childMetadata({ job, component: 'coordinator', name, revision, annotations }),
    spec: {
      ...(className !== undefined && { ingressClassName: className }),
      ...(tlsSecret !== undefined && { tls: [{ hosts: [host], secretName: tlsSecret }] }),
      rules: [{ host, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
    },
  }
}
