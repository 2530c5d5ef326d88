import { describe, expect, it } from 'vitest'
import { SeededRandom, manualEnvironment } from '../testkit/manual-clock.ts'
import type { HeadStore, ObjectStore } from './contract.ts'
import { FIRST_LOOK_DEADLINE_MS } from './first-look.ts'
import { openLocalStores } from './local-stores.ts'
import { MemoryFiles } from './memory-files.ts'
import { MemoryHeadStore, MemoryObjectStore } from './memory-store.ts'
import { probeStores } from './probe.ts'

const environment = { random: new SeededRandom() }

/** A good store with one thing wrong. */
function objectsWith(wrong: (good: ObjectStore) => Partial<ObjectStore>): ObjectStore {
  const good: ObjectStore = new MemoryObjectStore()
  const bound: ObjectStore = {
    create: (key, bytes) => good.create(key, bytes),
    read: (key) => good.read(key),
    readRange: (key, offset, length) => good.readRange(key, offset, length),
    delete: (keys) => good.delete(keys),
    list: (prefix) => good.list(prefix),
  }
  return { ...bound, ...wrong(good) }
}

function headWith(wrong: (good: HeadStore) => Partial<HeadStore>): HeadStore {
  const good = new MemoryHeadStore()
  return { read: () => good.read(), swap: (expected, bytes) => good.swap(expected, bytes), ...wrong(good) }
}

describe('a probe', () => {
  it('passes a good store and leaves nothing behind', async () => {
    const objects = new MemoryObjectStore()
    await probeStores({ objects, scratchHead: new MemoryHeadStore(), environment })
    expect(objects.size).toBe(0)
  })

  it.each<[string, ObjectStore]>([
    [
      'creates over what is there',
      objectsWith((good) => ({ create: async (key, bytes) => (await good.delete([key]), good.create(key, bytes)) })),
    ],
    ['says that a new name is taken', objectsWith(() => ({ create: async () => 'exists' as const }))],
    ['loses what it took', objectsWith(() => ({ create: async () => 'created' as const }))],
    ['forgets ranges', objectsWith((good) => ({ readRange: (key) => good.read(key) }))],
    ['does not delete', objectsWith(() => ({ delete: async () => undefined }))],
    ['lists nothing', objectsWith(() => ({ list: async () => [] }))],
  ])('refuses an object store that %s', async (_, objects) => {
    await expect(probeStores({ objects, scratchHead: new MemoryHeadStore(), environment })).rejects.toMatchObject({
      code: 'MR-S06',
      retry: false,
    })
  })

  it.each<[string, HeadStore]>([
    [
      'ignores the version',
      headWith((good) => ({
        swap: async (_expected, bytes) => good.swap((await good.read())?.version, bytes),
      })),
    ],
    ['never lets a write through', headWith(() => ({ swap: async () => ({ outcome: 'lost' }) }))],
    [
      'does not keep the newest',
      headWith((good) => ({
        read: async () => (await good.read()) && { version: { token: '9' }, bytes: new Uint8Array(1) },
      })),
    ],
  ])('refuses a store of HEAD that %s', async (_, scratchHead) => {
    await expect(probeStores({ objects: new MemoryObjectStore(), scratchHead, environment })).rejects.toMatchObject({
      code: 'MR-S06',
    })
  })

  it('concludes nothing from an unclear answer', async () => {
    const scratchHead = headWith(() => ({ swap: async () => ({ outcome: 'unclear', cause: new Error('503') }) }))
    await expect(probeStores({ objects: new MemoryObjectStore(), scratchHead, environment })).rejects.toMatchObject({
      code: 'MR-S01',
      retry: true,
    })
  })
})

describe('the stores of a local job', () => {
  it('are probed, and keep nothing of the probe', async () => {
    const files = new MemoryFiles()
    const stores = await openLocalStores({ files, folder: '.millrace/job', environment: manualEnvironment() })
    expect(await stores.objects.list('')).toEqual([])
    expect(await stores.head.read()).toBeUndefined()
    expect((await files.list('.millrace/job')).filter((name) => name.startsWith('probe'))).toEqual([])
  })

  it('opened by two processes at once leave each other’s writes alone, and the owner takes away only what was there before', async () => {
    const files = new MemoryFiles()
    const open = () => openLocalStores({ files, folder: '.millrace/job', environment: manualEnvironment() })
    await open()
    const temporaries = '.millrace/job/objects/.temporary'
    await files.writeNew(`${temporaries}/write-of-the-dead`, new Uint8Array(1))
    const owner = await open()
    await files.writeNew(`${temporaries}/write-of-the-living`, new Uint8Array(1))
    expect(await files.list(temporaries)).toHaveLength(2)
    await owner.removeLeftovers()
    expect(await files.list(temporaries)).toEqual(['write-of-the-living'])
  })

  it('in a folder that never answers are given up, with what stands still', async () => {
    const files = new MemoryFiles()
    files.link = () => new Promise(() => {})
    const environment = manualEnvironment()
    const opening = expect(openLocalStores({ files, folder: '/dead/job', environment })).rejects.toThrow(
      /^MR-S01 .*\/dead\/job/,
    )
    await environment.clock.advanceSettled(FIRST_LOOK_DEADLINE_MS)
    await opening
  })

  it('without hard links are refused with what to do', async () => {
    const files = new MemoryFiles((operation) =>
      operation === 'link' ? { code: 'EACCES', effect: 'none' } : undefined,
    )
    await expect(
      openLocalStores({ files, folder: '.millrace/job', environment: manualEnvironment() }),
    ).rejects.toMatchObject({ code: 'MR-S08' })
  })
})
