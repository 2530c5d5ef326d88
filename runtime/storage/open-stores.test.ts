import { describe, expect, it } from 'vitest'
import { checkpointId } from '../base/ids.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { bytesOf } from './conformance-support.ts'
import type { ObjectKey, S3Config } from './contract.ts'
import { MemoryFiles } from './memory-files.ts'
import { openStores } from './open-stores.ts'
import { fileKey, manifestKey, s3Key, sharedDataKey } from './paths.ts'
import { LEFTOVER_AGE_MS } from './s3/s3-stores.ts'
import { FakeRequests } from './s3/test-requests.ts'

const address = 's3://bucket/jobs/one'

function makePlace() {
  const environment = manualEnvironment()
  const files = new MemoryFiles()
  const requests = new FakeRequests(environment.clock)
  const open = (
    checkpoints: string,
    { probe = false, s3, savepoints }: { probe?: boolean; s3?: S3Config; savepoints?: string } = {},
  ) =>
    openStores({
      storage: { checkpoints, ...(savepoints !== undefined && { savepoints }), ...(s3 !== undefined && { s3 }) },
      files,
      environment,
      probe,
      requests,
    })
  return { environment, files, requests, open }
}

describe('opening a bucket', () => {
  it('probes it and leaves nothing behind', async () => {
    const { requests, open } = makePlace()
    const stores = await open(address, { probe: true })
    expect(requests.objects.size).toBe(0)
    expect(requests.count('put')).toBeGreaterThan(4)
    await stores.ping()
  })

  it('refuses a store that ignores conditions', async () => {
    const { requests, open } = makePlace()
    requests.ignoresConditions = true
    await expect(open(address, { probe: true })).rejects.toMatchObject({ code: 'MR-S06' })
    expect(requests.objects.size).toBe(0)
    expect(requests.closed).toBe(true)
  })

  it('refuses a store that does not know conditions', async () => {
    const { requests, open } = makePlace()
    requests.next('put', { fails: 'unsupported' })
    await expect(open(address, { probe: true })).rejects.toMatchObject({ code: 'MR-S06' })
  })

  it('says what the store says against it', async () => {
    const { environment, requests, open } = makePlace()
    requests.next('put', { fails: 'bucket' })
    requests.next('deleteMany', { fails: 'bucket' })
    await expect(open(address, { probe: true })).rejects.toMatchObject({ code: 'MR-S32' })
    // Once: that the probe cannot be taken away either has the same reason.
    expect(requests.count('deleteMany')).toBe(1)
    expect(environment.lines).toEqual([])
  })

  it('asks nothing without a probe', async () => {
    const { requests, open } = makePlace()
    await open(address)
    expect(requests.asked).toEqual([])
  })

  it('keeps objects and HEAD below the prefix, or in the bucket itself', async () => {
    const { requests, open } = makePlace()
    for (const [where, below] of [
      [address, 'bucket/jobs/one/'],
      ['s3://bucket', 'bucket/'],
    ] as const) {
      const stores = await open(where)
      await stores.objects.create(sharedDataKey('a'), bytesOf('state'))
      await stores.head.swap(undefined, bytesOf('head'))
      expect([...requests.objects.keys()].toSorted()).toEqual([`${below}head`, `${below}objects/shared/a`])
      expect(await stores.objects.list('')).toEqual(['shared/a'])
      requests.objects.clear()
    }
  })

  it('names manifests as a person does', async () => {
    const { open } = makePlace()
    const stores = await open(address)
    expect(stores.locate(manifestKey(checkpointId(7), 'checkpoint'))).toBe('s3://bucket/jobs/one/objects/chk-7')
    expect(stores.locate(s3Key({ bucket: 'other', key: 'copy/savepoint-3/_metadata' }))).toBe(
      's3://other/copy/savepoint-3',
    )
    expect(stores.locate(fileKey('/copy/savepoint-3/_metadata'))).toBe('/copy/savepoint-3')
  })

  it('reads objects of others, in buckets and in files', async () => {
    const { files, open } = makePlace()
    const other = await open('s3://other/jobs/two')
    await other.objects.create(sharedDataKey('a'), bytesOf('theirs'))
    await files.makeDirectory('/copy')
    await files.writeNew('/copy/a', bytesOf('a file'))
    const { foreign } = await open(address)
    const theirs = s3Key({ bucket: 'other', key: 'jobs/two/objects/shared/a' })
    expect(await foreign.read(theirs)).toEqual(bytesOf('theirs'))
    expect(await foreign.readRange(theirs, 1, 3)).toEqual(bytesOf('hei'))
    await expect(foreign.readRange(theirs, 4, 3)).rejects.toMatchObject({ code: 'MR-S03' })
    expect(await foreign.read(s3Key({ bucket: 'other', key: 'none' }))).toBeUndefined()
    expect(await foreign.read(fileKey('/copy/a'))).toEqual(bytesOf('a file'))
    for (const key of ['https://elsewhere/a', 's3://bucket', 's3:///a', 's3://bucket/'])
      await expect(foreign.read(key as ObjectKey)).rejects.toMatchObject({ code: 'MR-S04' })
  })
})

describe('leftovers of a bucket', () => {
  it('are uploads and probes that nobody finished for an hour', async () => {
    const { environment, requests, open } = makePlace()
    const stores = await open(address)
    const begin = async (key: string) =>
      requests.beginUpload(
        { at: { bucket: 'bucket', key }, mark: '' },
        { signal: new AbortController().signal, expect: () => undefined },
      )
    const probes = ['bucket/jobs/one/objects/probe/x', 'bucket/jobs/one/probe-y']
    const stored = { bytes: bytesOf('1'), etag: '"1"', mark: '' }
    const old = await begin('jobs/one/objects/shared/a')
    const others = await begin('jobs/one2/objects/shared/a')
    requests.objects.set(probes[0]!, { ...stored, modifiedMs: environment.clock.wallMs() })
    requests.objects.set('bucket/jobs/one/objects/shared/a', { ...stored, modifiedMs: environment.clock.wallMs() })
    environment.clock.advance(LEFTOVER_AGE_MS + 1)
    const young = await begin('jobs/one/objects/shared/b')
    requests.objects.set(probes[1]!, { ...stored, modifiedMs: environment.clock.wallMs() })
    requests.pageSize = 1
    await stores.removeLeftovers()
    expect([...requests.uploads.keys()]).toEqual([others, young])
    expect(requests.uploads.has(old)).toBe(false)
    expect([...requests.objects.keys()]).toEqual(['bucket/jobs/one/objects/shared/a', probes[1]])
  })

  it('that cannot be removed are said and stop nobody', async () => {
    const { environment, requests, open } = makePlace()
    const stores = await open(address)
    requests.next('listUploads', { fails: 'denied' })
    requests.next('list', { fails: 'denied' })
    await stores.removeLeftovers()
    expect(environment.lines.map(({ level }) => level)).toEqual(['warn', 'warn'])
  })
})

describe('opening a folder', () => {
  it('keeps objects and HEAD in it', async () => {
    const { files, open } = makePlace()
    const stores = await open('file:///jobs/one/', { probe: true })
    await stores.objects.create(sharedDataKey('a'), bytesOf('state'))
    await stores.head.swap(undefined, bytesOf('head'))
    expect(await files.readFile('/jobs/one/objects/shared/a')).toEqual(bytesOf('state'))
    expect(await files.list('/jobs/one')).toEqual(['head', 'objects'])
    expect(stores.locate(manifestKey(checkpointId(7), 'savepoint'))).toBe('/jobs/one/objects/savepoint-7')
    await stores.ping()
    await stores.removeLeftovers()
    await stores.close()
    const again = await open('file:///jobs/one')
    expect(await again.objects.read(sharedDataKey('a'))).toEqual(bytesOf('state'))
    await again.removeLeftovers()
  })

  it('takes away the half-written files of an earlier life', async () => {
    const { files, open } = makePlace()
    await files.makeDirectory('/jobs/one/objects/.temporary')
    await files.writeNew('/jobs/one/objects/.temporary/write-1', bytesOf('half'))
    const stores = await open('file:///jobs/one', { probe: true })
    await stores.removeLeftovers()
    expect(await files.list('/jobs/one/objects/.temporary')).toEqual([])
  })

  it('asks for S3 only when somebody reads there', async () => {
    const { requests, open } = makePlace()
    await (await open(address)).objects.create(sharedDataKey('a'), bytesOf('theirs'))
    const stores = await open('file:///jobs/one')
    await stores.close()
    expect(requests.closed).toBe(false)
    const other = await open('file:///jobs/one')
    const theirs = s3Key({ bucket: 'bucket', key: 'jobs/one/objects/shared/a' })
    expect(await other.foreign.read(theirs)).toEqual(bytesOf('theirs'))
    await other.close()
    expect(requests.closed).toBe(true)
  })
})

describe('a place of their own for savepoints', () => {
  const place = 's3://other/savepoints/one'
  const savepoint = manifestKey(checkpointId(7), 'savepoint')

  it('is a bucket or a folder beside any store, and what lies there is named absolutely', async () => {
    for (const [savepoints, name] of [
      [place, 's3://other/savepoints/one/objects/savepoint-7'],
      ['file:///sp//one/', '/sp/one/objects/savepoint-7'],
    ] as const) {
      const { open } = makePlace()
      const stores = await open(address, { savepoints, probe: true })
      const path = stores.savepoints!.nameOf(savepoint)
      expect(stores.locate(path)).toBe(name)
      await stores.savepoints!.objects.create(savepoint, bytesOf('manifest'))
      expect(await stores.foreign.read(path)).toEqual(bytesOf('manifest'))
      expect(await stores.objects.list('')).toEqual([])
      await stores.removeLeftovers()
      await stores.close()
    }
  })

  it("is the first job's that begins with it: another one is refused, and has written nothing there", async () => {
    const { requests, open } = makePlace()
    const first = await open(address, { savepoints: place, probe: true })
    expect(await first.savepoints!.isClaimed()).toBe(true)
    await open(`${address}/`, { savepoints: `${place}/`, probe: true })
    await expect(open('s3://bucket/jobs/two', { savepoints: place, probe: true })).rejects.toThrow(
      /^MR-S40 .*storage\.savepoints, s3:\/\/other\/savepoints\/one: They are of the job in s3:\/\/bucket\/jobs\/one; this one is in s3:\/\/bucket\/jobs\/two\./,
    )
    expect([...requests.objects.keys()]).toEqual(['other/savepoints/one/objects/owner'])
    const admin = await open('s3://bucket/jobs/two', { savepoints: place })
    await expect(admin.savepoints!.isClaimed()).rejects.toThrow(/^MR-S40 /)
  })

  it('is claimed by those alone who will own the job', async () => {
    const { requests, open } = makePlace()
    const stores = await open(address, { savepoints: place })
    expect(await stores.savepoints!.isClaimed()).toBe(false)
    expect(requests.objects.size).toBe(0)
  })

  it('says in a form that later versions read whose it is, and one that cannot be read is not ours', async () => {
    const { open } = makePlace()
    const { objects, isClaimed } = (await open(address, { savepoints: place })).savepoints!
    const owner = 'owner' as ObjectKey
    await objects.create(owner, bytesOf('{"format":1,"store":"s3://bucket/jobs/one"}'))
    expect(await isClaimed()).toBe(true)
    for (const text of ['', '{"format":2,"store":"s3://bucket/jobs/one"}', 'null']) {
      await objects.delete([owner])
      await objects.create(owner, bytesOf(text))
      await expect(isClaimed()).rejects.toThrow(/^MR-S40 /)
    }
  })

  it('that is where the checkpoints are is none', async () => {
    const { open } = makePlace()
    expect((await open(address, { savepoints: `${address}/` })).savepoints).toBeUndefined()
    expect((await open('file:///a/b', { savepoints: 'file:///a/x/../b/' })).savepoints).toBeUndefined()
  })

  it('that cannot be used is told by its field', async () => {
    const { requests, open } = makePlace()
    await expect(open(address, { savepoints: 'gs://a/b' })).rejects.toThrow(/^MR-S39 .*storage\.savepoints, gs:/)
    const put = requests.put.bind(requests)
    requests.put = (asked, once) => {
      if (asked.at.bucket === 'other') requests.next('put', { fails: 'bucket' })
      return put(asked, once)
    }
    const opening = open(address, { savepoints: place, probe: true })
    await expect(opening).rejects.toThrow(/^MR-S32 .*storage\.savepoints, s3:\/\/other\/savepoints\/one: /)
    await expect(opening).rejects.toMatchObject({ retry: false })
    expect(requests.closed).toBe(true)
  })
})

describe('settings', () => {
  const wrong: readonly (readonly [string, S3Config])[] = [
    ['/folder', {}],
    ['file://folder', {}],
    ['s3://', {}],
    ['s3://B/prefix', {}],
    ['s3://bucket/a//b', {}],
    ['s3://bucket/a b', {}],
    ['s3://bucket/.hidden', {}],
    ['gs://bucket/prefix', {}],
    [address, { endpoint: 'localhost:7070' }],
    [address, { endpoint: 'not an address' }],
    [address, { endpoint: 'http://user:password@host' }],
    [address, { accessKeyIdFile: '/id' }],
    [address, { secretAccessKeyFile: '/secret' }],
    [address, { sessionTokenFile: '/token' }],
  ]
  it('says how long the name of a bucket is', async () => {
    const { open } = makePlace()
    for (const bucket of ['x', 'xy', 'x'.repeat(64)]) {
      await expect(open(`s3://${bucket}/prefix`, { s3: {} })).rejects.toThrow(
        `Storage address "s3://${bucket}/prefix": the name of a bucket has 3 to 63 characters, and "${bucket}" has ${bucket.length}.`,
      )
    }
  })

  it('says that names of buckets are lower case', async () => {
    const { open } = makePlace()
    await expect(open('s3://Bucket/prefix', { s3: {} })).rejects.toThrow(
      'Storage address "s3://Bucket/prefix": names of buckets are lower case, and "Bucket" is not.',
    )
  })

  for (const [checkpoints, s3] of wrong)
    it(`${checkpoints} ${JSON.stringify(s3)} cannot be used`, async () => {
      const { open } = makePlace()
      const opening = open(checkpoints, { s3 })
      await expect(opening).rejects.toMatchObject({ code: 'MR-S39' })
      await expect(opening).rejects.not.toThrow(/user:password/)
    })
})
