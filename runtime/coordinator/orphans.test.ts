import { describe, expect, it } from 'vitest'
import { checkpointId } from '../base/ids.ts'
import { MemoryObjectStore } from '../storage/memory-store.ts'
import { snapshotDataKey } from '../storage/paths.ts'
import { Orphans } from './orphans.ts'

async function subject() {
  const store = new MemoryObjectStore()
  const orphans = new Orphans({ store: store })
  const key = (name: string) => snapshotDataKey(checkpointId(4), 'savepoint', name)
  await store.create(key('early'), new Uint8Array(1))
  orphans.aborted(checkpointId(4), 'savepoint')
  const collect = (completed: number) => orphans.collect(checkpointId(completed), new Set(), () => true)
  return { store, orphans, key, collect }
}

describe('the folder of an aborted snapshot', () => {
  it('is emptied once more when late copies land while it is being emptied', async () => {
    const { store, orphans, key, collect } = await subject()
    const remove = store.delete.bind(store)
    store.delete = async (keys) => {
      await remove(keys)
      if (!keys.includes(key('early'))) return
      await store.create(key('late'), new Uint8Array(1))
      orphans.aborted(checkpointId(4), 'savepoint')
    }
    await collect(5)
    await collect(6)
    expect(await store.list('')).toEqual([])
  })

  it.each(['list', 'delete'] as const)('is emptied the next time when a call fails (%s)', async (call) => {
    const { store, collect } = await subject()
    const works = { list: store.list.bind(store), delete: store.delete.bind(store) }
    Object.assign(store, { [call]: () => Promise.reject(new Error('down')) })
    await expect(collect(5)).rejects.toThrow('down')
    Object.assign(store, works)
    await collect(6)
    expect(await store.list('')).toEqual([])
  })
})
