import { describe, expect, it } from 'vitest'
import { checkpointId, jobId, start } from '../base/ids.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import type { ObjectKey } from './contract.ts'
import { discardFiles } from './garbage.ts'
import { completeCheckpoint, discarded, newJob, reserveIds } from './head.ts'
import type { Head } from './head-contract.ts'
import { MemoryObjectStore } from './memory-store.ts'
import { snapshotDataKey, sharedDataKey } from './paths.ts'
import { checkpointRef as manifest } from './test-refs.ts'

const data = (id: number, name = 'data') => snapshotDataKey(checkpointId(id), 'checkpoint', name)
const objectsOf = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes)) as ObjectKey[]

const mayGoOn = () => true

/** Checkpoints 1, 2 and 3 in the store, of which HEAD retains the last. */
async function place() {
  const store = new MemoryObjectStore()
  let head: Head = reserveIds(
    newJob({ job: jobId('job'), start: start(1), parallelism: 1, maxParallelism: 128 }),
    10,
  ).head
  for (const id of [1, 2, 3]) {
    const objects = [data(id), sharedDataKey('base'), sharedDataKey(`of-${id}`)]
    for (const key of objects) await store.create(key, new Uint8Array(1))
    await store.create(manifest(id).path, new TextEncoder().encode(JSON.stringify(objects)))
    head = completeCheckpoint(head, { manifest: manifest(id), retainedMax: 1, commitsPending: false })
  }
  await store.create(data(1, 'abandoned'), new Uint8Array(1))
  const environment = manualEnvironment()
  return { store, head, environment, stillUsed: new Set([data(3), sharedDataKey('base'), sharedDataKey('of-3')]) }
}

describe('discarding', () => {
  it('deletes what dropped checkpoints named, and their folders, but nothing that is still used', async () => {
    const { store, head, environment, stillUsed } = await place()
    expect(await discardFiles({ head, store, objectsOf, stillUsed, mayGoOn, environment })).toEqual([1, 2])
    expect(await store.list('')).toEqual(
      [manifest(3).path, data(3), sharedDataKey('base'), sharedDataKey('of-3')].toSorted(),
    )
  })

  it('deletes data first and the manifest last, so that a crash between can be finished', async () => {
    for (let stepsMax = 0; stepsMax < 6; stepsMax++) {
      const { store, head, environment, stillUsed } = await place()
      let steps = 0
      const dying = Object.assign(Object.create(store) as MemoryObjectStore, {
        read: (key: ObjectKey) => store.read(key),
        list: (prefix: string) => store.list(prefix),
        delete: async (keys: readonly ObjectKey[]) => {
          for (const key of keys) {
            if (steps++ >= stepsMax) throw new Error('died')
            await store.delete([key])
          }
        },
      })
      await discardFiles({ head, store: dying, objectsOf, stillUsed, mayGoOn, environment })
      for (const id of [1, 2]) {
        const left = (await store.list('')).filter(
          (key) => key.startsWith(`chk-${id}/`) || key === sharedDataKey(`of-${id}`),
        )
        if (left.length > 0) expect(left).toContain(manifest(id).path)
      }
      expect(await discardFiles({ head, store, objectsOf, stillUsed, mayGoOn, environment })).toEqual([1, 2])
      expect(await store.list('chk-1')).toEqual([])
      expect(await store.list('chk-2')).toEqual([])
    }
  })

  it('is done for a checkpoint whose files are gone already', async () => {
    const { store, head, environment, stillUsed } = await place()
    await discardFiles({ head, store, objectsOf, stillUsed, mayGoOn, environment })
    expect(await discardFiles({ head, store, objectsOf, stillUsed, mayGoOn, environment })).toEqual([1, 2])
    expect(
      await discardFiles({
        head: discarded(head, [checkpointId(1), checkpointId(2)]),
        store,
        objectsOf,
        stillUsed,
        mayGoOn,
        environment,
      }),
    ).toEqual([])
  })

  it('leaves everything of a manifest that it cannot read, says so, and goes on with the others', async () => {
    const { store, head, environment, stillUsed } = await place()
    store.overwrite(manifest(1).path, new TextEncoder().encode('torn'))
    expect(await discardFiles({ head, store, objectsOf, stillUsed, mayGoOn, environment })).toEqual([2])
    expect(await store.list('chk-1')).toEqual([manifest(1).path, data(1), data(1, 'abandoned')].toSorted())
    expect(environment.lines).toMatchObject([{ level: 'warn', fields: { manifest: 'chk-1/_metadata' } }])
  })

  it('begins with none for which there is no time', async () => {
    const { store, head, environment, stillUsed } = await place()
    let asked = 0
    const once = () => ++asked === 1
    expect(await discardFiles({ head, store, objectsOf, stillUsed, mayGoOn: once, environment })).toEqual([1])
    expect(await store.list('chk-2')).toEqual([manifest(2).path, data(2)].toSorted())
  })

  it('never touches a restore point or a savepoint', async () => {
    const { store, head, environment, stillUsed } = await place()
    await expect(
      discardFiles({ head: { ...head, discarding: [manifest(3)] }, store, objectsOf, stillUsed, mayGoOn, environment }),
    ).rejects.toThrow(/is needed/)
    await expect(
      discardFiles({
        head: { ...head, discarding: [{ ...manifest(2), kind: 'savepoint' }] },
        store,
        objectsOf,
        stillUsed,
        mayGoOn,
        environment,
      }),
    ).rejects.toThrow(/belongs to the user/)
  })
})
