import { describe, expect, it } from 'vitest'
import { checkpointId, jobId, start } from '../base/ids.ts'
import { manualEnvironment, SeededRandom } from '../testkit/manual-clock.ts'
import { DirectoryHead, HEADS_KEPT } from './directory-head.ts'
import { DirectoryStore } from './directory-store.ts'
import { close, newJob } from './head.ts'
import { HeadKeeper } from './head-keeper.ts'
import { MemoryFiles } from './memory-files.ts'
import type { FileFaults, FileOperation } from './memory-files.ts'
import { snapshotDataKey, headFile } from './paths.ts'

const key = snapshotDataKey(checkpointId(1), 'checkpoint', 'data')
const text = (bytes: Uint8Array | undefined) => (bytes === undefined ? undefined : new TextDecoder().decode(bytes))
const bytes = (value: string) => new TextEncoder().encode(value)
const environment = (seed = 1) => ({ random: new SeededRandom(seed), log: () => undefined })

function failingFiles() {
  const plan: { faults: FileFaults } = { faults: () => undefined }
  return { files: new MemoryFiles((operation, path) => plan.faults(operation, path)), plan }
}

const operations: readonly FileOperation[] = ['makeDirectory', 'writeNew', 'sync', 'link', 'remove', 'list', 'readFile']

/** Fails the `count`th operation of the kinds given. */
function failOnce(count: number, effect: 'none' | 'half' | 'done'): FileFaults {
  let left = count
  return () => (--left === 0 ? { code: 'EIO', effect } : undefined)
}

describe('objects in a directory', () => {
  it('are whole and there after a power loss once created, and whole or absent before', async () => {
    for (let seed = 1; seed <= 100; seed++) {
      const random = new SeededRandom(seed)
      const { files, plan } = failingFiles()
      const store = new DirectoryStore({ files, root: 'store/objects', environment: environment(seed) })
      plan.faults =
        seed % 4 === 0
          ? () => undefined
          : failOnce(1 + Math.floor(random.next() * 20), (['none', 'half', 'done'] as const)[seed % 3]!)
      const created = await store.create(key, bytes('content')).then(
        (answer) => answer === 'created',
        () => false,
      )
      plan.faults = () => undefined
      files.crash(() => random.next())
      const after = new DirectoryStore({ files, root: 'store/objects', environment: environment(seed + 1000) })
      const content = text(await after.read(key))
      if (created) expect(content).toBe('content')
      else expect([undefined, 'content']).toContain(content)
      expect(await after.list('')).toEqual(content === undefined ? [] : [key])
    }
  })

  it('never show a half-written temporary, and lose it when the owner takes leftovers away', async () => {
    const { files, plan } = failingFiles()
    const store = new DirectoryStore({ files, root: 'store', environment: environment() })
    // The process dies in the middle: neither the link nor the removal happens.
    plan.faults = (operation) =>
      operation === 'link' || operation === 'remove' ? { code: 'EIO', effect: 'none' } : undefined
    await expect(store.create(key, bytes('content'))).rejects.toThrow(/MR-S01/)
    plan.faults = () => undefined
    expect(await store.list('')).toEqual([])
    expect(await files.list('store/.temporary')).toHaveLength(1)
    await store.open()
    const leftovers = await store.temporaries()
    expect(leftovers).toHaveLength(1)
    await store.removeTemporaries(leftovers)
    expect(await files.list('store/.temporary')).toEqual([])
  })

  it('say that the disk is full, and go on once it is not', async () => {
    const { files, plan } = failingFiles()
    const store = new DirectoryStore({ files, root: 'store', environment: environment() })
    plan.faults = (operation) => (operation === 'writeNew' ? { code: 'ENOSPC', effect: 'half' } : undefined)
    await expect(store.create(key, bytes('content'))).rejects.toMatchObject({ code: 'MR-S02', retry: true })
    plan.faults = () => undefined
    expect(await store.read(key)).toBeUndefined()
    expect(await files.list('store/.temporary')).toEqual([])
    expect(await store.create(key, bytes('content'))).toBe('created')
  })

  it('are created again after their folders were taken away from outside', async () => {
    const { files } = failingFiles()
    const store = new DirectoryStore({ files, root: 'store', environment: environment() })
    await store.create(key, bytes('content'))
    for (const path of [`store/${key}`, 'store/chk-1', 'store/.temporary', 'store']) await files.remove(path)
    await expect(store.create(key, bytes('again'))).rejects.toThrow(/MR-S01/)
    expect(await store.create(key, bytes('again'))).toBe('created')
    expect(text(await store.read(key))).toBe('again')
  })

  it('that cannot be read are an error, never absent', async () => {
    const { files, plan } = failingFiles()
    const store = new DirectoryStore({ files, root: 'store', environment: environment() })
    await store.create(key, bytes('content'))
    plan.faults = () => ({ code: 'EIO', effect: 'none' })
    await expect(store.read(key)).rejects.toMatchObject({ code: 'MR-S01', retry: true })
    await expect(store.readRange(key, 0, 1)).rejects.toMatchObject({ code: 'MR-S01' })
    await expect(store.list('')).rejects.toMatchObject({ code: 'MR-S01' })
    await expect(store.delete([key])).rejects.toMatchObject({ code: 'MR-S01' })
    plan.faults = () => ({ code: 'EACCES', effect: 'none' })
    await expect(store.read(key)).rejects.toMatchObject({ code: 'MR-S08', retry: false })
  })
})

describe('HEAD in a directory', () => {
  const open = (files: MemoryFiles, seed = 1) =>
    new DirectoryHead({ files, folder: 'store/head', environment: environment(seed) })

  it('survives a power loss once won, and never goes back', async () => {
    for (let seed = 1; seed <= 100; seed++) {
      const random = new SeededRandom(seed)
      const { files, plan } = failingFiles()
      const head = open(files, seed)
      let newestWon = 0
      for (let round = 1; round <= 4; round++) {
        const before = await head.read()
        plan.faults =
          random.next() < 0.5
            ? () => undefined
            : failOnce(1 + Math.floor(random.next() * 14), (['none', 'half', 'done'] as const)[round % 3]!)
        const answer = await head.swap(before?.version, bytes(String(round)))
        plan.faults = () => undefined
        if (answer.outcome === 'won') newestWon = round
        if (random.next() < 0.5) files.crash(() => random.next())
        expect(Number(text((await head.read())?.bytes) ?? 0)).toBeGreaterThanOrEqual(newestWon)
      }
    }
  })

  /** Linked, and then the folder is not synced: the process fails there, or dies. */
  const unsynced: FileFaults = (operation, path) =>
    operation === 'sync' && path === 'store/head' ? { code: 'EIO', effect: 'none' } : undefined
  const losePower = (files: MemoryFiles) => files.crash(() => 0.9)

  it('that a dead process has linked and not synced survives a power loss once anybody has read it', async () => {
    const { files, plan } = failingFiles()
    const head = open(files)
    await head.swap(undefined, bytes('1'))
    plan.faults = unsynced
    expect((await head.swap({ token: '1' }, bytes('2'))).outcome).toBe('unclear')
    await expect(open(files, 2).read()).rejects.toMatchObject({ code: 'MR-S01', retry: true })
    plan.faults = () => undefined
    expect(text((await open(files, 2).read())?.bytes)).toBe('2')
    losePower(files)
    expect(text((await open(files, 3).read())?.bytes)).toBe('2')
  })

  it('survives a power loss where a read settled that the swap has won (rules 1, 4)', async () => {
    const { files, plan } = failingFiles()
    const { clock, ...rest } = manualEnvironment()
    const keeper = await HeadKeeper.open(open(files), { clock, ...rest })
    await keeper.begin(() => newJob({ job: jobId('job'), start: start(1), parallelism: 1, maxParallelism: 8 }))
    plan.faults = (operation, path) => {
      const fault = unsynced(operation, path)
      if (fault !== undefined) plan.faults = () => undefined
      return fault
    }
    const closing = keeper.update(close)
    await clock.advanceSettled(1_000)
    expect((await closing).outcome).toBe('won')
    losePower(files)
    expect((await (await HeadKeeper.open(open(files, 3), manualEnvironment())).read())?.end.kind).toBe('suspended')
  })

  it('answers unclear, never won or lost, when an operation fails in the middle', async () => {
    for (const operation of operations) {
      const { files, plan } = failingFiles()
      const head = open(files)
      await head.swap(undefined, bytes('1'))
      plan.faults = (asked) =>
        asked === operation && operation !== 'remove' ? { code: 'EIO', effect: 'done' } : undefined
      const answer = await head.swap({ token: '1' }, bytes('2'))
      const untouched = operation === 'makeDirectory' || operation === 'remove' || operation === 'readFile'
      expect([operation, answer.outcome]).toEqual([operation, untouched ? 'won' : 'unclear'])
    }
  })

  it('is written again after the folder of its temporaries was taken away from outside', async () => {
    const { files } = failingFiles()
    const head = open(files)
    await head.swap(undefined, bytes('1'))
    await files.remove('store/head/.temporary')
    expect((await head.swap({ token: '1' }, bytes('2'))).outcome).toBe('unclear')
    expect((await head.swap({ token: '1' }, bytes('2'))).outcome).toBe('won')
  })

  it('is not won by a process that slept while its number was pruned', async () => {
    const { files, plan } = failingFiles()
    const awake = open(files, 2)
    let version = undefined as { readonly token: string } | undefined
    const swapOnce = async () => {
      const answer = await awake.swap(version, bytes('newer'))
      if (answer.outcome === 'won') version = answer.version
    }
    await swapOnce()
    // The sleeper has listed and written its temporary; then others swap on and on.
    let asleep = true
    const sleeper = open(files, 3)
    const sleeping = new Promise<void>((resolve) => {
      const link = files.link.bind(files)
      files.link = async (from, to) => {
        if (asleep) {
          asleep = false
          for (let swaps = 0; swaps < HEADS_KEPT + 5; swaps++) await swapOnce()
          // Its temporary is long gone; put it back, as if nobody had tidied.
          if (!(await files.exists(from))) await files.writeNew(from, bytes('sleeper'))
          resolve()
        }
        return link(from, to)
      }
    })
    const answer = await sleeper.swap({ token: '1' }, bytes('sleeper'))
    await sleeping
    expect(answer.outcome).toBe('unclear')
    expect(text((await sleeper.read())?.bytes)).toBe('newer')
    expect(plan.faults('list', '')).toBeUndefined()
  })

  it('keeps the newest hundred files', async () => {
    const { files } = failingFiles()
    const head = open(files)
    for (let number = 0; number < HEADS_KEPT + 20; number++)
      await head.swap(number === 0 ? undefined : { token: String(number) }, bytes(String(number)))
    const names = (await files.list('store/head')).filter((name) => !name.startsWith('.'))
    expect(names).toHaveLength(HEADS_KEPT)
    expect(names.at(-1)).toBe(headFile(HEADS_KEPT + 20))
  })

  it('that cannot be read is an error, never absent', async () => {
    const { files, plan } = failingFiles()
    const head = open(files)
    await head.swap(undefined, bytes('1'))
    plan.faults = () => ({ code: 'EIO', effect: 'none' })
    await expect(head.read()).rejects.toMatchObject({ code: 'MR-S01', retry: true })
  })
})
