import { describe, expect, it } from 'vitest'
import { MemoryApi } from './harness/memory-api.ts'
import type { KubeObject } from './kubernetes/contract.ts'
import { KubeError } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'
import { Writer } from './writer.ts'

async function subject() {
  const api = new MemoryApi(() => 0)
  const client = api.client()
  const made = await client.create(types.configMap, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'map', namespace: 'n' },
    data: { key: 'old' },
  })
  const cache = new Map<string, KubeObject>([['map', made]])
  let leading = true
  const writer = new Writer({
    client,
    leading: () => leading,
    caches: {
      get: (_type, _namespace, name) => cache.get(name),
      wrote: (_type, object) => void cache.set(object.metadata.name, object),
      removed: (_type, { metadata }) => void cache.delete(metadata.name),
    },
  })
  const { uid, resourceVersion } = made.metadata
  const of = { kind: 'ConfigMap', namespace: 'n', name: 'map', uid: uid!, resourceVersion: resourceVersion! }
  return { api, client, cache, writer, of, made, lose: () => (leading = false) }
}

describe('a write', () => {
  it('is seen in the caches at once', async () => {
    const { writer, cache, of } = await subject()
    await writer.patch(of, { data: { key: 'new' } })
    expect(cache.get('map')).toMatchObject({ data: { key: 'new' } })
    const { resourceVersion } = cache.get('map')!.metadata
    await writer.delete({ ...of, resourceVersion: resourceVersion! }, { force: false })
    expect(cache.has('map')).toBe(false)
  })

  it('is not begun by one that does not lead', async () => {
    const { api, writer, of, made, lose } = await subject()
    lose()
    const before = api.writes.length
    for (const attempt of [
      () => writer.patch(of, {}),
      () => writer.status(made, {}),
      () => writer.create(made, () => true),
      () => writer.apply(made, { force: true }),
      () => writer.delete(of, { force: true }),
      () => writer.finalizer(made, true),
    ])
      await expect((async () => attempt())()).rejects.toThrow('MR-P04')
    expect(api.writes.length).toBe(before)
  })

  it('of a version that was overtaken is refused, and the caches show what there is', async () => {
    const { client, writer, cache, of } = await subject()
    await client.patch(types.configMap, { namespace: 'n', name: 'map' }, { data: { key: 'of another' } })
    await expect(writer.patch(of, { data: { key: 'mine' } })).rejects.toThrow(KubeError)
    expect(cache.get('map')).toMatchObject({ data: { key: 'of another' } })
    await expect(writer.delete(of, { force: false })).rejects.toThrow('modified')
    expect(await client.get(types.configMap, { namespace: 'n', name: 'map' })).toBeDefined()
  })

  it('that makes what is there already is done if that is ours, and else says whose name it is', async () => {
    const { writer, cache, made } = await subject()
    cache.clear()
    const { uid: _, resourceVersion: _v, ...metadata } = made.metadata
    const again = { ...made, metadata, data: { key: 'new' } }
    await writer.create(again, ({ metadata: { uid } }) => uid === made.metadata.uid)
    expect(cache.get('map')).toEqual(made)
    cache.clear()
    await expect(writer.create(again, () => false)).rejects.toThrow(/^MR-P06 .* ConfigMap n\/map\./)
    expect(cache.size).toBe(0)
  })

  it('does not touch a namesake', async () => {
    const { client, writer, of, made } = await subject()
    await client.delete(types.configMap, { namespace: 'n', name: 'map' }, { precondition: { uid: of.uid } })
    const { uid: _, resourceVersion: _v, ...metadata } = made.metadata
    await client.create(types.configMap, { ...made, metadata })
    await expect(writer.delete(of, { force: true })).rejects.toThrow('UID')
    await expect(writer.patch(of, { data: { key: 'mine' } })).rejects.toThrow('UID')
  })
})
