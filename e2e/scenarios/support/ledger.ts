// The ledger server as a pod of the scenario's own namespace: outside of Millrace, NATS and S3, beside the control plane, killed by nobody.

import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Cluster, Forward } from '../../cluster/contract.ts'
import { LedgerClient } from '../../harness/ledger-client.ts'

const harness = fileURLToPath(new URL('../../harness/', import.meta.url))
const port = 7070
const readyDeadlineS = 90

export interface LedgerPod {
  readonly client: LedgerClient
  readonly close: () => Promise<void>
}

/** Answers at http://ledger:7070 in that namespace. */
export async function startLedger(cluster: Cluster, namespace: string, image: string): Promise<LedgerPod> {
  await cluster.apply([await code(), pod(image, cluster.can.kill), service], { namespace })
  const wait = ['wait', '--for=condition=Ready', 'pod/ledger', `--timeout=${readyDeadlineS}s`]
  await cluster.kubectl(['--namespace', namespace, ...wait], { deadlineMs: (readyDeadlineS + 10) * 1000 })
  const way: Forward = await cluster.forward({ namespace, target: 'pod/ledger', port })
  return { client: new LedgerClient(way.url), close: () => way.close() }
}

/** It needs nothing but Node and its own files. */
async function code(): Promise<object> {
  const names = (await readdir(harness)).filter((name) => /^ledger-[^.]+\.ts$/.test(name))
  const data = Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await readFile(`${harness}${name}`, 'utf8')] as const)),
  )
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'ledger-server' }, data }
}

const labels = { app: 'ledger' }

const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'ledger' },
  spec: { selector: labels, ports: [{ port, targetPort: port, protocol: 'TCP' }] },
}

const pod = (image: string, beside: boolean): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'ledger', labels },
  spec: {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 2,
    ...(beside && {
      nodeSelector: { 'node-role.kubernetes.io/control-plane': '' },
      tolerations: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' }],
    }),
    securityContext: { runAsNonRoot: true, fsGroup: 10_001, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'ledger',
        image,
        imagePullPolicy: 'IfNotPresent',
        command: [
          'node',
          '/opt/ledger/ledger-server.ts',
          '--folder',
          '/data',
          '--port',
          `${port}`,
          '--host',
          '0.0.0.0',
        ],
        readinessProbe: { httpGet: { path: '/health', port }, periodSeconds: 1 },
        resources: { requests: { cpu: '50m', memory: '96Mi' } },
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        volumeMounts: [
          { name: 'code', mountPath: '/opt/ledger', readOnly: true },
          { name: 'data', mountPath: '/data' },
        ],
      },
    ],
    volumes: [
      { name: 'code', configMap: { name: 'ledger-server' } },
      { name: 'data', emptyDir: {} },
    ],
  },
})
