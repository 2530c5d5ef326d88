// The stores on a real S3 server.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { checkpointId, jobId, start } from '../../runtime/base/ids.ts'
import { NodeFiles } from '../../runtime/local/platform/node-files.ts'
import { realEnvironment } from '../../runtime/local/platform/real-environment.ts'
import { bytesOf, range } from '../../runtime/storage/conformance-support.ts'
import { headStoreClaims, objectStoreClaims } from '../../runtime/storage/conformance.ts'
import { countRestart, newJob } from '../../runtime/storage/head.ts'
import { HeadKeeper } from '../../runtime/storage/head-keeper.ts'
import { openStores } from '../../runtime/storage/open-stores.ts'
import type { OpenedStores } from '../../runtime/storage/contract.ts'
import { manifestKey, s3Key, sharedDataKey } from '../../runtime/storage/paths.ts'
import { buildDeadlineMs } from './support/go-tool.ts'
import { startProxy } from './support/proxy.ts'
import type { TcpProxy } from './support/proxy.ts'
import { startS3Server } from './support/s3-server.ts'
import type { S3Server } from './support/s3-server.ts'
import { until } from './support/server-process.ts'

const files = new NodeFiles()
const environment = realEnvironment({ log: () => undefined })
let server: S3Server
let bucket: string
let prefixes = 0
const opened: OpenedStores[] = []

beforeAll(async () => {
  server = await startS3Server()
  bucket = await server.makeBucket()
}, buildDeadlineMs)

afterAll(async () => {
  for (const stores of opened) await stores.close()
  await server?.stop()
})

async function open(prefix: string, { probe = false, port }: { probe?: boolean; port?: number } = {}) {
  const stores = await openStores({ storage: server.storage(bucket, prefix, port), files, environment, probe })
  opened.push(stores)
  return stores
}

/** Two processes' handles of a prefix of its own. */
async function openPair() {
  const prefix = `jobs/conformance-${++prefixes}`
  return { one: await open(prefix), other: await open(prefix) }
}

describe('objects', () => {
  for (const { claim, holds } of objectStoreClaims)
    it(claim, () =>
      holds(async () => {
        const { one, other } = await openPair()
        return { one: one.objects, other: other.objects }
      }),
    )

  it('of many megabytes go in parts, and under a name that is taken not at all', async () => {
    const { one, other } = await openPair()
    const large = new Uint8Array(20_000_000)
    for (let index = 0; index < large.length; index++) large[index] = (index * 31) >> 3
    const key = sharedDataKey('large')
    expect(await one.objects.create(key, large)).toBe('created')
    expect(Buffer.compare((await other.objects.read(key))!, large)).toBe(0)
    expect(await other.objects.create(key, large.slice(1))).toBe('exists')
    expect(await other.objects.create(key, new Uint8Array(3))).toBe('exists')
    expect(Buffer.compare((await other.objects.read(key))!, large)).toBe(0)
  })

  it('are listed and deleted by the thousand', async () => {
    const { one, other } = await openPair()
    const keys = Array.from({ length: 1_200 }, (_, index) => sharedDataKey(`object-${String(index).padStart(5, '0')}`))
    await Promise.all(keys.map((key) => one.objects.create(key, new Uint8Array(1))))
    expect(await other.objects.list('shared/')).toEqual(keys)
    await other.objects.delete(keys)
    expect(await one.objects.list('')).toEqual([])
  })
})

describe('HEAD', () => {
  for (const { claim, holds } of headStoreClaims)
    it(claim, () =>
      holds(async () => {
        const { one, other } = await openPair()
        return { one: one.head, other: other.head }
      }),
    )
})

describe('opening', () => {
  it('probes and leaves nothing behind', async () => {
    const stores = await open('jobs/probed', { probe: true })
    expect(await stores.objects.list('')).toEqual([])
    expect(await stores.head.read()).toBeUndefined()
    await stores.ping()
    await stores.removeLeftovers()
  })

  it('says what is wrong with bucket, credentials and place', async () => {
    const config = server.config()
    const opening = (checkpoints: string, s3: object) =>
      openStores({ storage: { checkpoints, s3: { ...config, ...s3 } }, files, environment, probe: true })
    await expect(opening('s3://no-such-bucket/jobs/one', {})).rejects.toMatchObject({ code: 'MR-S32' })
    const foreign = { secretAccessKeyFile: config.accessKeyIdFile! }
    await expect(opening(`s3://${bucket}/jobs/one`, foreign)).rejects.toMatchObject({ code: 'MR-S30' })
    const nobody = { accessKeyIdFile: config.secretAccessKeyFile! }
    await expect(opening(`s3://${bucket}/jobs/one`, nobody)).rejects.toMatchObject({ code: 'MR-S30' })
  })

  it('takes savepoints to another bucket, and says of a missing one which field names it', async () => {
    const other = await server.makeBucket()
    const opening = async (savepoints: string, prefix = 'jobs/apart') => {
      const storage = { ...server.storage(bucket, prefix), savepoints }
      const stores = await openStores({ storage, files, environment, probe: true })
      opened.push(stores)
      return stores
    }
    const { objects, savepoints, foreign } = await opening(`s3://${other}/kept/one`)
    const key = manifestKey(checkpointId(7), 'savepoint')
    await savepoints!.objects.create(key, bytesOf('a savepoint'))
    expect(await objects.list('')).toEqual([])
    expect(savepoints!.nameOf(key)).toBe(`s3://${other}/kept/one/objects/savepoint-7/_metadata`)
    expect(await foreign.read(savepoints!.nameOf(key))).toEqual(bytesOf('a savepoint'))
    await expect(opening('s3://no-such-bucket/kept')).rejects.toThrow(/^MR-S32 .*storage\.savepoints, s3:\/\/no-such-/)
    await expect(opening(`s3://${other}/kept/one`, 'jobs/two')).rejects.toMatchObject({ code: 'MR-S40' })
    expect(await savepoints!.objects.list('')).toEqual(['owner', key])
  })

  it('reads what another job wrote to another bucket', async () => {
    const other = await server.makeBucket()
    const theirs = await openStores({ storage: server.storage(other, 'jobs/two'), files, environment, probe: false })
    opened.push(theirs)
    await theirs.objects.create(sharedDataKey('a'), bytesOf('theirs'))
    const { foreign } = await open('jobs/one')
    const key = s3Key({ bucket: other, key: 'jobs/two/objects/shared/a' })
    expect(await foreign.read(key)).toEqual(bytesOf('theirs'))
    expect(await foreign.readRange(key, 2, 3)).toEqual(bytesOf('eir'))
    expect(await foreign.read(s3Key({ bucket: other, key: 'jobs/two/none' }))).toBeUndefined()
  })
})

describe('a server that is killed', () => {
  it('between requests is no matter once it is back', async () => {
    const { objects, head } = await open('jobs/killed-between')
    expect(await objects.create(sharedDataKey('before'), bytesOf('before'))).toBe('created')
    const won = await head.swap(undefined, bytesOf('1'))
    await server.process.restart()
    expect(await objects.read(sharedDataKey('before'))).toEqual(bytesOf('before'))
    expect(await objects.create(sharedDataKey('after'), bytesOf('after'))).toBe('created')
    expect(await head.read()).toEqual({ version: won.outcome === 'won' && won.version, bytes: bytesOf('1') })
  })

  it('while it is away fails what cannot wait, and calls succeed once it is back', async () => {
    const stores = await open('jobs/killed-away')
    const { objects, head } = stores
    await objects.create(sharedDataKey('before'), bytesOf('before'))
    await server.process.kill()
    await expect(stores.ping()).rejects.toMatchObject({ code: 'MR-S34', retry: true })
    expect(await head.swap(undefined, bytesOf('1'))).toMatchObject({ outcome: 'unclear' })
    const waiting = Promise.all([
      objects.create(sharedDataKey('during'), bytesOf('during')),
      objects.read(sharedDataKey('before')),
      objects.list(''),
    ])
    await server.process.start()
    const [created, read, listed] = await waiting
    expect(created).toBe('created')
    expect(read).toEqual(bytesOf('before'))
    expect(listed).toContain(sharedDataKey('before'))
  })

  it('during requests loses none that was said to be done, and doubles none', async () => {
    const { objects } = await open('jobs/killed-during')
    const keys = range(200).map((index) => sharedDataKey(`object-${index}`))
    let created = 0
    const creating = keys.map(async (key) => {
      expect(await objects.create(key, bytesOf(`${key} `.repeat(1000)))).toBe('created')
      created++
    })
    const all = Promise.all(creating)
    for (const share of [20, 80, 140]) {
      await until(`${share} are created`, () => created >= share)
      await server.process.restart()
    }
    await all
    expect(await objects.list('')).toEqual(keys.toSorted())
    for (const key of keys) expect(await objects.read(key)).toEqual(bytesOf(`${key} `.repeat(1000)))
  })

  it('during uploads in parts leaves whole objects, whatever it was doing', async () => {
    const { objects } = await open('jobs/killed-parts')
    const large = new Uint8Array(40_000_000).map((_, index) => index >> 7)
    // The later ones meet the request that puts the parts together: then a server may say afterwards that it did, and it did not.
    for (const delayMs of [100, 300, 450, 500, 550, 600]) {
      const key = sharedDataKey(`large-${delayMs}`)
      const beganMs = performance.now()
      const creating = objects.create(key, large)
      await until('the kill', () => performance.now() - beganMs > delayMs)
      await server.process.restart()
      expect(await creating).toBe('created')
      expect(Buffer.compare((await objects.read(key))!, large)).toBe(0)
      await objects.delete([key])
    }
  })
})

describe('a bad network', () => {
  let proxy: TcpProxy
  beforeAll(async () => {
    proxy = await startProxy({ port: server.process.port })
  })
  afterEach(() => proxy.clear())
  afterAll(() => proxy?.close())

  it('that answers late leaves a swap unclear, which the keeper settles', async () => {
    const { head } = await open('jobs/late', { port: proxy.port })
    const { head: direct } = await open('jobs/late')
    const keeper = await HeadKeeper.open(head, environment)
    await keeper.begin(
      (before) => before ?? newJob({ job: jobId('late'), start: start(1), parallelism: 1, maxParallelism: 128 }),
    )
    const before = await direct.read()
    const connections = proxy.accepted
    proxy.weather({ kind: 'hold' }, 'toClient')
    const updating = keeper.update(countRestart)
    await until('the swap has landed', async () => (await direct.read())?.version.token !== before?.version.token)
    // The answer stays away until the swap is given up: reading takes a new connection.
    await until('HEAD is read', () => proxy.accepted > connections)
    proxy.clear()
    expect(await updating).toMatchObject({ outcome: 'won', head: { restarts: 1 } })
    await keeper.settled()
    expect(await keeper.readBegun()).toMatchObject({ restarts: 1 })
  })

  it('that delivers a swap after its deadline does not deceive the keeper', async () => {
    const { head } = await open('jobs/delayed', { port: proxy.port })
    const keeper = await HeadKeeper.open(head, environment)
    await keeper.begin(
      (before) => before ?? newJob({ job: jobId('delayed'), start: start(1), parallelism: 1, maxParallelism: 128 }),
    )
    const connections = proxy.accepted
    proxy.weatherOfOpen({ kind: 'hold' }, 'toServer')
    expect(await keeper.update(countRestart)).toMatchObject({ outcome: 'won', head: { restarts: 1 } })
    expect(proxy.accepted).toBeGreaterThan(connections)
    const settled = await head.read()
    // Now the swap that was given up reaches the server.
    expect(proxy.waiting('toServer')).toBeGreaterThan(500)
    const { open: connectionsOpen } = proxy
    proxy.clear()
    await until('it has arrived and its connection is over', () => proxy.open < connectionsOpen)
    expect(await head.read()).toEqual(settled)
    expect(await keeper.update(countRestart)).toMatchObject({ outcome: 'won', head: { restarts: 2 } })
  })

  it('that cuts connections costs tries', async () => {
    const { objects } = await open('jobs/cut', { port: proxy.port })
    const keys = range(60).map((index) => sharedDataKey(`object-${index}`))
    let created = 0
    const creating = Promise.all(
      keys.map(async (key) => {
        expect(await objects.create(key, new Uint8Array(100_000).fill(7))).toBe('created')
        created++
      }),
    )
    for (const share of [5, 20, 40]) {
      await until(`${share} are created`, () => created >= share)
      proxy.cut(share === 20 ? 'end' : 'reset')
    }
    await creating
    expect(await objects.list('')).toEqual(keys.toSorted())
  })

  it('that loses the answer to a creation does not make it somebody else’s', async () => {
    const { objects } = await open('jobs/lost', { port: proxy.port })
    const { objects: direct } = await open('jobs/lost')
    proxy.weather({ kind: 'hold' }, 'toClient')
    const creating = objects.create(sharedDataKey('a'), bytesOf('state'))
    await until('it has landed', async () => (await direct.list('')).length === 1)
    proxy.cut()
    proxy.clear()
    expect(await creating).toBe('created')
  })

  it('that swallows everything is a store that does not answer', async () => {
    proxy.accepts = 'silent'
    const swallowed = await open('jobs/swallowed', { port: proxy.port })
    await expect(swallowed.ping()).rejects.toMatchObject({ code: 'MR-S01', retry: true })
  })
})

describe('a server that freezes', () => {
  it('answers what was asked meanwhile once it goes on', async () => {
    const { objects } = await open('jobs/frozen')
    server.process.freeze()
    const creating = objects.create(sharedDataKey('a'), bytesOf('state'))
    const frozenMs = performance.now()
    await until('a second has passed', () => performance.now() - frozenMs > 1_000)
    expect(await Promise.race([creating, Promise.resolve('waiting')])).toBe('waiting')
    server.process.thaw()
    expect(await creating).toBe('created')
  })
})
