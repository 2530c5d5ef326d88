import { crc32 } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { checkpointId } from '../base/ids.ts'
import { storageError } from '../storage/errors.ts'
import { MemoryObjectStore } from '../storage/memory-store.ts'
import { snapshotDataKey } from '../storage/paths.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import type { ManualEnvironment } from '../testkit/manual-clock.ts'
import { READ_DEADLINE_MS, READ_TRIES_MAX, SnapshotDownloader } from './snapshot-reader.ts'

const key = snapshotDataKey(checkpointId(7), 'checkpoint', 'data')
const content = new TextEncoder().encode('header|the state|')
const handle = { kind: 'object', object: key, offset: 7, length: 9, crc: crc32('the state') } as const

async function place() {
  const environment = manualEnvironment()
  const store = new MemoryObjectStore()
  await store.create(key, content)
  const readRange = store.readRange.bind(store)
  return { environment, store, readRange, downloader: new SnapshotDownloader({ store, environment }) }
}

/** Lets the back-off pass. */
async function outcome(
  environment: ManualEnvironment,
  call: Promise<Uint8Array>,
): Promise<PromiseSettledResult<Uint8Array>> {
  const settled = Promise.allSettled([call])
  await environment.clock.advanceSettled(READ_DEADLINE_MS * READ_TRIES_MAX + 60_000)
  return (await settled)[0]
}

describe('reading state', () => {
  it('gives the bytes of the handle', async () => {
    const { downloader } = await place()
    expect(new TextDecoder().decode(await downloader.read(handle))).toBe('the state')
  })

  it('that is missing fails at once, since the store is sure', async () => {
    const { environment, store, downloader } = await place()
    await store.delete([key])
    await expect(downloader.read(handle)).rejects.toMatchObject({ code: 'MR-C50', retry: false })
    expect(environment.clock.nowMs()).toBe(0)
  })

  it('that is short fails', async () => {
    const { store, downloader } = await place()
    store.overwrite(key, content.slice(0, 10))
    await expect(downloader.read(handle)).rejects.toMatchObject({ code: 'MR-S03' })
  })

  it('with a flipped bit in the store fails after a few tries', async () => {
    const { environment, store, downloader } = await place()
    const bad = content.slice()
    bad[9]! ^= 4
    store.overwrite(key, bad)
    expect(await outcome(environment, downloader.read(handle))).toMatchObject({
      status: 'rejected',
      reason: { code: 'MR-C51', retry: false },
    })
    expect(environment.lines).toHaveLength(READ_TRIES_MAX - 1)
  })

  it('with a flipped bit on the way passes at the next try', async () => {
    const { environment, store, readRange, downloader } = await place()
    let calls = 0
    store.readRange = async (asked, offset, length) => {
      const bytes = await readRange(asked, offset, length)
      if (calls++ === 0) bytes![0]! ^= 1
      return bytes
    }
    expect(await outcome(environment, downloader.read(handle))).toMatchObject({ status: 'fulfilled' })
    expect(calls).toBe(2)
  })

  it.each<[string, () => Promise<Uint8Array>]>([
    ['errors that may pass', () => Promise.reject(storageError('MR-S01', 'reading'))],
    ['calls that never answer', () => new Promise(() => undefined)],
  ])('repeats %s, and passes when they pass', async (_, failing) => {
    const { environment, store, readRange, downloader } = await place()
    let calls = 0
    store.readRange = (asked, offset, length) =>
      calls++ < READ_TRIES_MAX - 1 ? failing() : readRange(asked, offset, length)
    expect(await outcome(environment, downloader.read(handle))).toMatchObject({ status: 'fulfilled' })
    calls = -100
    expect(await outcome(environment, downloader.read(handle))).toMatchObject({
      status: 'rejected',
      reason: { code: 'MR-C52', retry: true },
    })
  })

  it('does not repeat what no repeat mends', async () => {
    const { environment, store, downloader } = await place()
    store.readRange = () => Promise.reject(storageError('MR-S08', 'reading'))
    await expect(downloader.read(handle)).rejects.toMatchObject({ code: 'MR-S08' })
    await expect(downloader.read({ ...handle, object: 's3://elsewhere/x' })).rejects.toMatchObject({ code: 'MR-S04' })
    expect(environment.clock.nowMs()).toBe(0)
  })

  it('inline checks the bytes too', async () => {
    const { downloader } = await place()
    const inline = { kind: 'inline', base64: Buffer.from('state').toString('base64'), crc: crc32('state') } as const
    expect(await downloader.read(inline)).toEqual(new TextEncoder().encode('state'))
    await expect(downloader.read({ ...inline, crc: 1 })).rejects.toMatchObject({ code: 'MR-C51' })
  })
})
