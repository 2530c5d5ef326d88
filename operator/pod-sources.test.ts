import { describe, expect, it } from 'vitest'
import { manualEnvironment } from '../runtime/testkit/manual-clock.ts'
import type { GetOptions, KubeObject, Place, ResourceType } from './kubernetes/contract.ts'
import { KubeError } from './kubernetes/contract.ts'
import { PodSources } from './pod-sources.ts'

const spec = {
  nodeName: 'a',
  volumes: [
    { name: 's3-credentials', secret: { secretName: 's3' } },
    { name: 'config', configMap: { name: 'config' } },
    { name: 'maybe', secret: { secretName: 'maybe', optional: true } },
    { name: 'both', projected: { sources: [{ secret: { name: 'part' } }, { configMap: { name: 'part' } }] } },
    { name: 'tmp', emptyDir: {} },
  ],
  initContainers: [{ name: 'first', envFrom: [{ secretRef: { name: 'all' } }, { configMapRef: { name: 'all' } }] }],
  containers: [
    {
      name: 'worker',
      env: [
        { name: 'A', value: 'a' },
        { name: 'B', valueFrom: { secretKeyRef: { name: 'one', key: 'b' } } },
        { name: 'C', valueFrom: { configMapKeyRef: { name: 'one', key: 'c', optional: true } } },
      ],
    },
  ],
}

function pod(more: { spec?: object; status?: object; metadata?: object } = {}): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'n', uid: 'u', ...more.metadata },
    spec: more.spec ?? spec,
    status: more.status ?? { phase: 'Pending' },
  }
}

function subject(isThere: (key: string) => boolean, cached: readonly string[] = []) {
  const { clock } = manualEnvironment()
  const asked: string[] = []
  const client = {
    get: async ({ kind, apiVersion }: ResourceType, { namespace, name }: Place, options?: GetOptions) => {
      expect(options).toEqual({ metadataOnly: true })
      const key = `${kind}/${name}`
      asked.push(key)
      return isThere(key) ? { apiVersion, kind, metadata: { namespace: namespace!, name } } : undefined
    },
  }
  const caches = {
    get: ({ kind, apiVersion }: ResourceType, namespace: string, name: string) =>
      cached.includes(`${kind}/${name}`) ? { apiVersion, kind, metadata: { namespace, name } } : undefined,
  }
  return { sources: new PodSources(client, caches, clock), clock, asked }
}

describe('what a pod cannot begin without', () => {
  it.each([
    'Secret/s3',
    'ConfigMap/config',
    'Secret/part',
    'ConfigMap/part',
    'Secret/all',
    'ConfigMap/all',
    'Secret/one',
  ])('is named when it is missing: %s', async (missing) => {
    const [kind, name] = missing.split('/')
    expect(await subject((key) => key !== missing).sources.missingOf(pod())).toEqual({
      reason: `${kind}Missing`,
      message: `namespace n has no ${kind} ${name}, which the pod needs; make it in that namespace, or name another in the spec`,
    })
  })

  it('does not hold what is optional', async () => {
    const { sources, asked } = subject(() => true)
    expect(await sources.missingOf(pod())).toBeUndefined()
    expect(asked).toHaveLength(7)
    expect(asked).not.toContain('Secret/maybe')
    expect(asked).not.toContain('ConfigMap/one')
  })

  it('is looked for only while the pod waits on its node, and not at every look', async () => {
    const { sources, clock, asked } = subject(() => false)
    const { nodeName: _, ...unscheduled } = spec
    for (const other of [
      pod({ status: { phase: 'Running' } }),
      pod({ status: { phase: 'Failed' } }),
      pod({ spec: unscheduled }),
      pod({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }),
    ])
      expect(await sources.missingOf(other)).toBeUndefined()
    expect(asked).toEqual([])
    await sources.missingOf(pod())
    await sources.missingOf(pod())
    expect(asked).toHaveLength(7)
    clock.advance(5_000)
    await sources.missingOf(pod())
    expect(asked).toHaveLength(14)
  })

  it('is not asked for where the caches have it', async () => {
    const { sources, asked } = subject(() => true, ['ConfigMap/config', 'Secret/one'])
    expect(await sources.missingOf(pod())).toBeUndefined()
    expect(asked).toHaveLength(5)
    expect(asked).not.toContain('ConfigMap/config')
    expect(asked).not.toContain('Secret/one')
  })

  it('is not missing where it cannot be read', async () => {
    const { sources } = subject(() => {
      throw new KubeError(403, 'Forbidden', 'no rights')
    })
    expect(await sources.missingOf(pod())).toBeUndefined()
  })
})
