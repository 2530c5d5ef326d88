import { describe, expect, it } from 'vitest'
import { checkpointId } from '../base/ids.ts'
import { MemoryObjectStore } from '../storage/memory-store.ts'
import { manualEnvironment, settlePromises } from '../testkit/manual-clock.ts'
import { SnapshotDownloader } from './snapshot-reader.ts'
import {
  INLINE_CHARACTERS_TOTAL_MAX,
  OBJECT_BYTES_MAX,
  OBJECT_OPEN_MS,
  SnapshotUploader,
  UPLOADS_MAX,
  UPLOAD_DEADLINE_MS,
} from './snapshot-writer.ts'

const seven = checkpointId(7)

function place(writers = 1) {
  const environment = manualEnvironment()
  const store = new MemoryObjectStore()
  return {
    environment,
    store,
    uploader: new SnapshotUploader({ store, environment, writers }),
    downloader: new SnapshotDownloader({ store, environment }),
  }
}

function filled(byteCount: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(byteCount)
  for (let index = 0; index < byteCount; index++) bytes[index] = index * 7 + seed
  return bytes
}

it('of savepoints goes to their own place, if they have one', async () => {
  const { environment, store } = place()
  const savepoints = new MemoryObjectStore()
  const uploader = new SnapshotUploader({ store, savepoints: { objects: savepoints }, environment, writers: 1 })
  const written = ['checkpoint', 'savepoint'] as const
  const handles = Promise.all(written.map((kind) => uploader.ofKind(kind).write(seven, filled(4_000))))
  await environment.clock.advanceSettled(OBJECT_OPEN_MS)
  // Named as in its own folder: a savepoint may be copied.
  expect(await handles).toMatchObject([
    { object: expect.stringMatching(/^chk-7\//) },
    { object: expect.stringMatching(/^savepoint-7\//) },
  ])
  expect([await store.list(''), await savepoints.list('')]).toEqual([
    [expect.stringMatching(/^chk-7\//)],
    [expect.stringMatching(/^savepoint-7\//)],
  ])
})

describe('small state', () => {
  it('comes back inline at once and reads back', async () => {
    const { store, uploader, downloader } = place()
    const handle = await uploader.write(seven, filled(1024))
    expect(handle.kind).toBe('inline')
    expect(store.size).toBe(0)
    expect(await downloader.read(handle)).toEqual(filled(1024))
    expect(await downloader.read(await uploader.write(seven, new Uint8Array(0)))).toEqual(new Uint8Array(0))
  })

  it('is inlined only as far as the manifest has room, shared by all writers; each snapshot has its own', async () => {
    const writers = 4
    const { environment, uploader } = place(writers)
    const handles = Array.from({ length: 400 }, (_, index) => uploader.write(seven, filled(900, index)))
    await environment.clock.advanceSettled(OBJECT_OPEN_MS)
    const inlined = (await Promise.all(handles)).reduce(
      (total, handle) => total + (handle.kind === 'inline' ? handle.base64.length : 0),
      0,
    )
    expect(inlined).toBeLessThanOrEqual(INLINE_CHARACTERS_TOTAL_MAX / writers)
    expect(inlined).toBeGreaterThan(INLINE_CHARACTERS_TOTAL_MAX / writers - 2000)
    expect((await uploader.write(checkpointId(8), filled(900))).kind).toBe('inline')
  })

  it('of a snapshot older than all that are counted is not inlined', async () => {
    const { environment, uploader } = place()
    for (let id = 10; id < 30; id++) await uploader.write(checkpointId(id), filled(10))
    const late = uploader.write(checkpointId(9), filled(10))
    await environment.clock.advanceSettled(OBJECT_OPEN_MS)
    expect((await late).kind).toBe('object')
  })
})

describe('larger state', () => {
  it('of many callers within 50 ms shares one object', async () => {
    const { environment, store, uploader, downloader } = place()
    const first = uploader.write(seven, filled(2000, 1))
    await environment.clock.advanceSettled(OBJECT_OPEN_MS - 1)
    const second = uploader.write(seven, filled(3000, 2))
    expect(store.size).toBe(0)
    await environment.clock.advanceSettled(1)
    const handles = [await first, await second]
    expect(store.size).toBe(1)
    expect(handles).toMatchObject([
      { offset: 0, length: 2000 },
      { offset: 2000, length: 3000 },
    ])
    expect(await downloader.read(handles[0]!)).toEqual(filled(2000, 1))
    expect(await downloader.read(handles[1]!)).toEqual(filled(3000, 2))
    expect(environment.clock.waiting).toBe(0)
  })

  it('closes an object at 8 MiB without waiting, and gives what is larger one of its own', async () => {
    const { store, uploader } = place()
    const half = filled(OBJECT_BYTES_MAX / 2)
    const handles = [uploader.write(seven, half), uploader.write(seven, half)]
    expect(await Promise.all(handles)).toMatchObject([{ offset: 0 }, { offset: OBJECT_BYTES_MAX / 2 }])
    expect(await uploader.write(seven, filled(OBJECT_BYTES_MAX + 5))).toMatchObject({
      offset: 0,
      length: OBJECT_BYTES_MAX + 5,
    })
    expect(store.size).toBe(2)
  })

  it('may be changed as soon as it was handed over, whatever size an object grows to', async () => {
    const { environment, uploader, downloader } = place()
    const lengths = [2_000, 20_000, 500_000, 1_500_000, 7_000_000, 1_100, OBJECT_BYTES_MAX, 3_000_000]
    const shared = new Uint8Array(OBJECT_BYTES_MAX)
    for (const checkpoint of [1, 2, 3]) {
      const writes = lengths.map((length, index) => {
        const bytes = shared.subarray(0, length)
        bytes.set(filled(length, index * checkpoint))
        const write = uploader.write(checkpointId(checkpoint), bytes)
        bytes.fill(255)
        return write
      })
      await environment.clock.advanceSettled(OBJECT_OPEN_MS)
      const read = await Promise.all((await Promise.all(writes)).map((handle) => downloader.read(handle)))
      for (const [index, bytes] of read.entries())
        expect(Buffer.compare(bytes, filled(lengths[index]!, index * checkpoint)), `${lengths[index]}`).toBe(0)
    }
  })

  it('is put together in memory that is used again once the store is done with it', async () => {
    const { store, uploader } = place()
    const create = store.create.bind(store)
    const seen: ArrayBufferLike[] = []
    store.create = (key, bytes) => {
      seen.push(bytes.buffer)
      return create(key, bytes)
    }
    for (let id = 1; id <= 5; id++) await uploader.write(checkpointId(id), filled(OBJECT_BYTES_MAX))
    expect(new Set(seen).size).toBe(1)
    await Promise.all([6, 7, 8, 9, 10].map((id) => uploader.write(checkpointId(id), filled(OBJECT_BYTES_MAX))))
    const first = new Set(seen)
    expect(first.size).toBe(5)
    seen.length = 0
    await Promise.all([11, 12, 13, 14, 15].map((id) => uploader.write(checkpointId(id), filled(OBJECT_BYTES_MAX))))
    // Three are kept.
    expect(new Set(seen).difference(first).size).toBe(2)
  })

  it('without a byte, beyond what may be inlined, is an object of its own and harms no other', async () => {
    const { environment, uploader, downloader } = place()
    for (let id = 10; id < 30; id++) await uploader.write(checkpointId(id), filled(10))
    for (const length of [0, 0, 2_000]) {
      const write = uploader.write(checkpointId(9), filled(length))
      await environment.clock.advanceSettled(OBJECT_OPEN_MS)
      const handle = await write
      expect(handle.kind).toBe('object')
      expect(await downloader.read(handle)).toEqual(filled(length))
    }
  })

  it('is put into few and full objects behind a slow store', async () => {
    const { environment, store, uploader } = place()
    const create = store.create.bind(store)
    const answers: (() => void)[] = []
    store.create = async (key, bytes) => {
      await new Promise<void>((resolve) => answers.push(resolve))
      return create(key, bytes)
    }
    const writes: Promise<unknown>[] = []
    for (let index = 0; index < 20; index++) {
      writes.push(uploader.write(seven, filled(2_000_000)))
      await environment.clock.advanceSettled(OBJECT_OPEN_MS)
    }
    // One open for 50 ms is uploaded while there is room; the rest gather in the next ones.
    expect(answers).toHaveLength(UPLOADS_MAX)
    while (store.size < 8) {
      for (const answer of answers.splice(0)) answer()
      await environment.clock.advanceSettled(OBJECT_OPEN_MS)
    }
    await Promise.all(writes)
    expect(store.size).toBe(UPLOADS_MAX + 4)
  })

  it('of different snapshots never shares an object, and lies in the folder of its snapshot', async () => {
    const { environment, store, uploader } = place()
    const writes = [
      uploader.write(seven, filled(2000)),
      uploader.write(checkpointId(8), filled(2000)),
      uploader.ofKind('savepoint').write(checkpointId(9), filled(2000)),
    ]
    await environment.clock.advanceSettled(OBJECT_OPEN_MS)
    await Promise.all(writes)
    expect((await store.list('')).map((key) => key.split('/')[0])).toEqual(['chk-7', 'chk-8', 'savepoint-9'])
  })

  it('uploads a few objects at a time', async () => {
    const { environment, store, uploader } = place()
    let running = 0
    let most = 0
    const create = store.create.bind(store)
    store.create = async (key, bytes) => {
      most = Math.max(most, ++running)
      await settlePromises(5)
      running--
      return create(key, bytes)
    }
    await Promise.all(Array.from({ length: 10 }, () => uploader.write(seven, filled(OBJECT_BYTES_MAX))))
    expect(most).toBe(UPLOADS_MAX)
    expect(environment.clock.waiting).toBe(0)
  })
})

describe('an upload that fails', () => {
  it('rejects exactly the writes in its object', async () => {
    const { environment, store, uploader } = place()
    const create = store.create.bind(store)
    store.create = (key, bytes) => (key.startsWith('chk-7') ? Promise.reject(new Error('503')) : create(key, bytes))
    const writes = [
      uploader.write(seven, filled(2000)),
      uploader.write(checkpointId(8), filled(2000)),
      uploader.write(seven, filled(3000)),
    ]
    const answers = Promise.allSettled(writes)
    await environment.clock.advanceSettled(OBJECT_OPEN_MS)
    expect((await answers).map((answer) => answer.status)).toEqual(['rejected', 'fulfilled', 'rejected'])
    store.create = create
    const again = uploader.write(seven, filled(2000))
    await environment.clock.advanceSettled(OBJECT_OPEN_MS)
    expect((await again).kind).toBe('object')
  })

  it('leaves its memory alone: the bytes may still be on their way', async () => {
    const { store, uploader } = place()
    const create = store.create.bind(store)
    let failed: Uint8Array | undefined
    store.create = async (_, bytes) => {
      failed = bytes
      throw new Error('no answer')
    }
    await expect(uploader.write(seven, filled(OBJECT_BYTES_MAX, 1))).rejects.toThrow('no answer')
    store.create = create
    await uploader.write(checkpointId(8), filled(OBJECT_BYTES_MAX, 2))
    expect(Buffer.compare(failed!, filled(OBJECT_BYTES_MAX, 1))).toBe(0)
  })

  it('by taking too long fails at its deadline and makes room for the next', async () => {
    const { environment, store, uploader } = place()
    const create = store.create.bind(store)
    store.create = () => new Promise(() => undefined)
    const stuck = Promise.allSettled(
      Array.from({ length: UPLOADS_MAX }, () => uploader.write(seven, filled(OBJECT_BYTES_MAX))),
    )
    await settlePromises()
    store.create = create
    const next = uploader.write(checkpointId(8), filled(OBJECT_BYTES_MAX))
    await environment.clock.advanceSettled(UPLOAD_DEADLINE_MS)
    for (const answer of await stuck)
      expect(answer).toMatchObject({ status: 'rejected', reason: { code: 'MR-C53', retry: true } })
    expect((await next).kind).toBe('object')
  })

  it('since its name was taken never counts as written', async () => {
    const { environment, store, uploader } = place()
    store.create = async () => 'exists'
    const write = uploader.write(seven, filled(2000))
    const refused = expect(write).rejects.toMatchObject({ code: 'MR-S07' })
    await environment.clock.advanceSettled(OBJECT_OPEN_MS)
    await refused
  })
})
