import { expect, it } from 'vitest'
import { disposalPod } from './disposal-pod.ts'
import { job, revisionOf, specOf } from './harness.ts'
import { originTemplate } from './origin-template.ts'
import { completedBy, originOfJob } from './savepoint-origin.ts'

const secretRef = { secretKeyRef: { name: 'store', key: 'token' } }
const podTemplate = {
  metadata: { labels: { team: 'a' } },
  spec: {
    imagePullSecrets: [{ name: 'registry' }],
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'jobs', operator: 'Exists' }],
    affinity: { nodeAffinity: { rule: 1 }, podAffinity: { rule: 2 } },
    securityContext: { fsGroup: 1000 },
    priorityClassName: 'high',
    initContainers: [{ name: 'warm', image: 'busybox' }],
    containers: [
      { name: 'sidecar', image: 'proxy' },
      {
        name: 'coordinator',
        imagePullPolicy: 'Always',
        resources: { limits: { memory: '4Gi' } },
        env: [
          { name: 'NODE_EXTRA_CA_CERTS', value: '/ca/ca.crt' },
          { name: 'AWS_ENDPOINT_URL_STS', value: 'https://sts.local' },
          { name: 'AWS_SECRET_ACCESS_KEY', value: 'plain-text' },
          { name: 'HTTPS_PROXY', value: 'http://me:plain-text@proxy' },
          { name: 'TOKEN', valueFrom: secretRef },
        ],
        envFrom: [{ secretRef: { name: 'more' } }],
        volumeMounts: [
          { name: 'ca', mountPath: '/ca' },
          { name: 'data', mountPath: '/data' },
          { name: 'code', mountPath: '/elsewhere' },
        ],
      },
    ],
    volumes: [
      { name: 'ca', projected: { sources: [{ configMap: { name: 'ca' } }] } },
      { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
      { name: 'of-the-sidecar', emptyDir: {} },
    ],
  },
}
const kept = {
  spec: {
    imagePullSecrets: [{ name: 'registry' }],
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'jobs', operator: 'Exists' }],
    securityContext: { fsGroup: 1000 },
    affinity: { nodeAffinity: { rule: 1 } },
    volumes: [
      { name: 'ca', projected: { sources: [{ configMap: { name: 'ca', optional: true } }] } },
      { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
    ],
    containers: [
      {
        name: 'command',
        imagePullPolicy: 'Always',
        env: [
          { name: 'NODE_EXTRA_CA_CERTS', value: '/ca/ca.crt' },
          { name: 'AWS_ENDPOINT_URL_STS', value: 'https://sts.local' },
          { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'store', key: 'token', optional: true } } },
        ],
        envFrom: [{ secretRef: { name: 'more', optional: true } }],
        volumeMounts: [
          { name: 'ca', mountPath: '/ca' },
          { name: 'data', mountPath: '/data' },
        ],
      },
    ],
  },
}

it('keeps what a short pod needs, Secrets by name, and no value that may be one', () => {
  expect(originTemplate(podTemplate)).toEqual(kept)
  expect(JSON.stringify(originTemplate(podTemplate))).not.toContain('plain-text')
})

it.each<[string, Readonly<Record<string, unknown>> | undefined]>([
  ['no podTemplate', undefined],
  ['labels alone', { metadata: { labels: { team: 'a' } } }],
  [
    'values that may be secrets alone',
    { spec: { containers: [{ name: 'coordinator', env: [{ name: 'A', value: 'b' }] }] } },
  ],
  [
    'what is taken away',
    { spec: { affinity: null, containers: [{ name: 'coordinator', env: null, volumeMounts: null }] } },
  ],
])('of %s there is nothing to be kept', (_, template) => {
  expect(originTemplate(template)).toBeUndefined()
})

const spec = specOf({ coordinator: { podTemplate } })
const origin = originOfJob(job, { ...revisionOf(spec, undefined) } as Parameters<typeof originOfJob>[1])!

it('the pod that takes the files away pulls, trusts and mounts what the job does', () => {
  expect(origin.podTemplate).toEqual(kept)
  const pod = disposalPod({
    savepoint: { namespace: 'analytics', name: 'before', uid: 'u-9' },
    origin,
    arguments: ['admin', 'dispose', 's3://a/b', '--yes'],
  })
  expect(pod).toMatchObject({
    metadata: { name: expect.stringContaining('dispose') as string, ownerReferences: [{ uid: 'u-9' }] },
    spec: {
      imagePullSecrets: [{ name: 'registry' }],
      restartPolicy: 'Never',
      securityContext: { runAsNonRoot: true, fsGroup: 1000 },
      containers: [
        { name: 'command', image: 'millrace/runtime:0.1.0', securityContext: { readOnlyRootFilesystem: true } },
      ],
    },
  })
  const { containers, volumes } = pod['spec'] as {
    containers: { env: { name: string }[]; volumeMounts: { mountPath: string }[] }[]
    volumes: { name: string }[]
  }
  expect(containers).toHaveLength(1)
  expect(containers[0]!.env.map(({ name }) => name)).toEqual([
    'AWS_ACCESS_KEY_ID',
    'AWS_SECRET_ACCESS_KEY',
    'NODE_EXTRA_CA_CERTS',
    'AWS_ENDPOINT_URL_STS',
    'TOKEN',
  ])
  expect(containers[0]!.volumeMounts.map(({ mountPath }) => mountPath)).toEqual(['/tmp', '/ca', '/data'])
  expect(volumes.map(({ name }) => name)).toEqual(['tmp', 'ca', 'data'])
})

it("an origin that was written without it gets the job's while that is there, and no other's", () => {
  const { podTemplate: _, ...old } = origin
  expect(completedBy(old, origin)).toEqual(origin)
  expect(completedBy(old, undefined)).toEqual(old)
  expect(completedBy(old, { ...origin, jobId: 'another' })).toEqual(old)
  const own = { ...origin, podTemplate: { spec: { nodeSelector: {} } } }
  expect(completedBy(own, origin)).toEqual(own)
})
