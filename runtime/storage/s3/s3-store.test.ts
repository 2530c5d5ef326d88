import { describe, expect, it } from 'vitest'
import { InvariantError } from '../../base/errors.ts'
import { manualEnvironment, settlePromises } from '../../testkit/manual-clock.ts'
import { objectStoreClaims } from '../conformance.ts'
import { bytesOf } from '../conformance-support.ts'
import { sharedDataKey } from '../paths.ts'
import {
  AWAY_LOG_MS,
  BYTES_PER_MS,
  CALL_DEADLINE_MS,
  Calls,
  DELETIONS_MAX,
  PAUSE_MS,
  REQUESTS_MAX,
  TRY_DEADLINE_MS,
} from './calls.ts'
import { S3Store } from './s3-store.ts'
import { FakeRequests } from './test-requests.ts'
import { SINGLE_BYTES_MAX } from './upload.ts'

const key = sharedDataKey('a')
const stored = 'bucket/jobs/one/objects/shared/a'
const large = new Uint8Array(SINGLE_BYTES_MAX + 5).map((_, index) => index >> 8)

function makeStore() {
  const environment = manualEnvironment()
  const fake = new FakeRequests(environment.clock)
  const calls = new Calls({ requests: fake, environment })
  const open = () => new S3Store({ calls, bucket: 'bucket', prefix: 'jobs/one', environment })
  return { environment, fake, calls, store: open(), open }
}

/** Moves the time on until the call has settled. */
async function settle<T>(call: Promise<T>, { clock }: ReturnType<typeof manualEnvironment>): Promise<T> {
  const state = { settled: false }
  const done = () => {
    state.settled = true
  }
  call.then(done, done)
  await settlePromises()
  for (let steps = 0; !state.settled; steps++) {
    if (steps === 1000 || clock.untilNextMs === undefined) throw new Error('the call does not settle')
    await clock.advanceSettled(clock.untilNextMs)
  }
  return call
}

describe('a fake of S3 as an object store', () => {
  const make = async () => {
    const { open } = makeStore()
    return { one: open(), other: open() }
  }
  for (const { claim, holds } of objectStoreClaims) it(claim, () => holds(make))
})

describe('creating', () => {
  it('after a try that landed and whose answer was lost has created', async () => {
    const { environment, fake, store } = makeStore()
    fake.next('put', { fails: 'unclear', landed: true })
    expect(await settle(store.create(key, bytesOf('mine')), environment)).toBe('created')
    expect(fake.count('put')).toBe(2)
    expect(fake.objects.get(stored)?.bytes).toEqual(bytesOf('mine'))
  })

  it('after a lost try finds the equal object of somebody else taken', async () => {
    const { environment, fake, store, open } = makeStore()
    await open().create(key, bytesOf('same'))
    fake.next('put', { fails: 'unclear' })
    expect(await settle(store.create(key, bytesOf('same')), environment)).toBe('exists')
  })

  it('of an empty object finds its own lost try', async () => {
    const { environment, fake, store } = makeStore()
    fake.next('put', { silent: true, landed: true })
    expect(await settle(store.create(key, new Uint8Array(0)), environment)).toBe('created')
  })

  it('is asked again after a conflict, and then says who was first', async () => {
    const { environment, fake, store } = makeStore()
    fake.next('put', { fails: 'conflict' })
    expect(await settle(store.create(key, bytesOf('mine')), environment)).toBe('created')
  })

  it('asks again when a try is silent, and gives up at the deadline', async () => {
    const { environment, fake, store } = makeStore()
    fake.next('put', { silent: true })
    expect(await settle(store.create(key, bytesOf('mine')), environment)).toBe('created')
    expect(environment.clock.nowMs()).toBeGreaterThan(TRY_DEADLINE_MS - 1)
    expect(environment.clock.nowMs()).toBeLessThan(TRY_DEADLINE_MS + PAUSE_MS.first + 1)

    const beganMs = environment.clock.nowMs()
    fake.next('put', ...Array.from({ length: 20 }, () => ({ silent: true }) as const))
    const failed = settle(store.create(sharedDataKey('b'), bytesOf('mine')), environment)
    await expect(failed).rejects.toMatchObject({ code: 'MR-S01', retry: true })
    await expect(failed).rejects.toThrow(/Creating s3:\/\/bucket\/jobs\/one\/objects\/shared\/b .*no answer within/)
    expect(environment.clock.nowMs() - beganMs).toBeLessThan(CALL_DEADLINE_MS + 1)
  })

  it('says that the store is away while it goes on trying, for all calls together', async () => {
    const { environment, fake, store } = makeStore()
    fake.next('put', ...Array.from({ length: 200 }, () => ({ fails: 'unreachable' }) as const))
    const calls = ['b', 'c'].map((name) => store.create(sharedDataKey(name), bytesOf('mine')))
    await expect(settle(Promise.all(calls), environment)).rejects.toMatchObject({ code: 'MR-S34' })
    const said = environment.lines.filter(({ message }) => message.startsWith('the object store does not do'))
    expect(said.length).toBeGreaterThan(2)
    expect(said.length).toBeLessThanOrEqual(CALL_DEADLINE_MS / AWAY_LOG_MS)
    expect(said[0]?.fields?.['error']).toMatch(/MR-S34 .*Creating s3:\/\/bucket\/jobs\/one\/objects\/shared\/[bc]/)
  })

  it('has more time for more bytes', async () => {
    const { environment, fake, store } = makeStore()
    const bytes = new Uint8Array(8_000_000)
    fake.next('put', { silent: true })
    const created = store.create(key, bytes)
    await environment.clock.advanceSettled(TRY_DEADLINE_MS + bytes.length / BYTES_PER_MS - 1)
    expect(fake.count('put')).toBe(1)
    await environment.clock.advanceSettled(PAUSE_MS.first + 1)
    expect(fake.count('put')).toBe(2)
    expect(await created).toBe('created')
  })

  const lasting = [
    ['credentials', 'MR-S30', 2],
    ['denied', 'MR-S08', 1],
    ['bucket', 'MR-S32', 1],
    ['region', 'MR-S33', 1],
    ['certificate', 'MR-S35', 1],
    ['clock', 'MR-S36', 2],
    ['unsupported', 'MR-S06', 1],
    ['refused', 'MR-S38', 1],
  ] as const
  for (const [kind, code, tries] of lasting)
    it(`is not asked for ever when it is a matter of ${kind}`, async () => {
      const { environment, fake, store } = makeStore()
      fake.next('put', ...Array.from({ length: 5 }, () => ({ fails: kind })))
      await expect(settle(store.create(key, bytesOf('mine')), environment)).rejects.toMatchObject({
        code,
        retry: false,
      })
      expect(fake.count('put')).toBe(tries)
      expect(fake.objects.size).toBe(0)
    })

  const passing = [
    ['unreachable', 'MR-S34'],
    ['expired', 'MR-S31'],
    ['full', 'MR-S02'],
    ['unclear', 'MR-S01'],
  ] as const
  for (const [kind, code] of passing)
    it(`goes on until the deadline when it is a matter of ${kind}, and may be asked again later`, async () => {
      const { environment, fake, store } = makeStore()
      fake.next('put', ...Array.from({ length: 100 }, () => ({ fails: kind })))
      await expect(settle(store.create(key, bytesOf('mine')), environment)).rejects.toMatchObject({ code, retry: true })
      expect(fake.count('put')).toBeGreaterThan(5)
      expect(fake.count('put')).toBeLessThan(100)
    })

  it('takes expired credentials anew before it asks again', async () => {
    const { environment, fake, store } = makeStore()
    fake.next('put', { fails: 'expired' })
    expect(await settle(store.create(key, bytesOf('mine')), environment)).toBe('created')
    expect(fake.asked).toEqual(['put', 'refreshCredentials', 'put'])
  })

  it('says once why credentials cannot be renewed, and again when it is another reason or happens again', async () => {
    const { environment, fake, store } = makeStore()
    const renewals = ['no such file', 'no such file', 'not readable', undefined, 'not readable']
    fake.refreshCredentials = () => {
      const reason = renewals.shift()
      return reason === undefined ? Promise.resolve() : Promise.reject(new Error(reason))
    }
    fake.next('put', ...Array.from({ length: 5 }, () => ({ fails: 'expired' }) as const))
    expect(await settle(store.create(key, bytesOf('mine')), environment)).toBe('created')
    const said = environment.lines.filter(({ message }) => message.includes('could not be renewed'))
    expect(said.map(({ fields }) => fields?.['error'])).toEqual([
      'Error: no such file',
      'Error: not readable',
      'Error: not readable',
    ])
  })

  it('never has more requests under way than it may', async () => {
    const { fake, store } = makeStore()
    const keys = Array.from({ length: 100 }, (_, index) => sharedDataKey(`k${index}`))
    await Promise.all(keys.map((one) => store.create(one, bytesOf(one))))
    expect(fake.underWayMost).toBe(REQUESTS_MAX)
    expect(await store.list('shared/')).toEqual(keys.toSorted())
  })

  it('has room for what checkpoints need while the store does not answer deletions', async () => {
    const { fake, store } = makeStore()
    fake.deleteMany = () => {
      fake.asked.push('deleteMany')
      return new Promise(() => undefined)
    }
    for (let n = 0; n < 2 * REQUESTS_MAX; n++) store.delete([sharedDataKey(`k${n}`)]).catch(() => undefined)
    await settlePromises()
    expect(fake.count('deleteMany')).toBe(DELETIONS_MAX)
    expect(await store.create(key, bytesOf('mine'))).toBe('created')
    expect(await store.read(key)).toEqual(bytesOf('mine'))
  })

  it('passes on what is our own fault', async () => {
    const { fake, store } = makeStore()
    fake.put = () => Promise.reject(new InvariantError('ours'))
    await expect(store.create(key, bytesOf('mine'))).rejects.toThrow('ours')
  })
})

describe('creating in parts', () => {
  it('writes what a single request would', async () => {
    const { fake, store } = makeStore()
    expect(await store.create(key, large)).toBe('created')
    expect(fake.count('uploadPart')).toBe(3)
    expect(fake.count('put')).toBe(0)
    expect(Buffer.compare((await store.read(key))!, large)).toBe(0)
    expect(fake.uploads.size).toBe(0)
  })

  it('asks again for a part that failed', async () => {
    const { environment, fake, store } = makeStore()
    fake.next('uploadPart', undefined, { fails: 'unclear' }, { silent: true })
    expect(await settle(store.create(key, large), environment)).toBe('created')
    expect(Buffer.compare((await store.read(key))!, large)).toBe(0)
  })

  it('aborts the upload when the name is taken', async () => {
    const { fake, store } = makeStore()
    await store.create(key, bytesOf('first'))
    expect(await store.create(key, large)).toBe('exists')
    expect(fake.uploads.size).toBe(0)
    expect(await store.read(key)).toEqual(bytesOf('first'))
  })

  it('aborts the upload after a failure, once no part is under way', async () => {
    const { environment, fake, store } = makeStore()
    fake.next('uploadPart', { fails: 'denied' }, { silent: true })
    await expect(settle(store.create(key, large), environment)).rejects.toMatchObject({ code: 'MR-S08' })
    expect(fake.asked.at(-1)).toBe('abortUpload')
    expect(fake.uploads.size).toBe(0)
    expect(fake.objects.size).toBe(0)
  })

  it('has created when the answer to its last request was lost', async () => {
    const { environment, fake, store } = makeStore()
    fake.next('completeUpload', { fails: 'unclear', landed: true })
    expect(await settle(store.create(key, large), environment)).toBe('created')
  })

  it('is done again when the store says that it is done, and it is not', async () => {
    const { fake, store } = makeStore()
    fake.next('completeUpload', { pretends: true })
    expect(await store.create(key, large)).toBe('created')
    expect(Buffer.compare((await store.read(key))!, large)).toBe(0)
    expect(fake.count('beginUpload')).toBe(2)
  })

  it('is done again when the upload is gone, and is an error when that goes on', async () => {
    const { environment, fake, store } = makeStore()
    fake.next('completeUpload', { fails: 'upload gone' })
    expect(await settle(store.create(key, large), environment)).toBe('created')
    fake.next('completeUpload', { fails: 'upload gone' }, { pretends: true }, { fails: 'precondition' })
    await expect(settle(store.create(sharedDataKey('b'), large), environment)).rejects.toMatchObject({ code: 'MR-S01' })
  })
})

describe('reading', () => {
  it('a missing bucket is no missing object', async () => {
    const { fake, store } = makeStore()
    fake.next('get', { fails: 'bucket' }, { fails: 'bucket' }, { fails: 'bucket' })
    await expect(store.read(key)).rejects.toMatchObject({ code: 'MR-S32' })
    await expect(store.readRange(key, 0, 1)).rejects.toMatchObject({ code: 'MR-S32' })
    await expect(store.readRange(key, 0, 0)).rejects.toMatchObject({ code: 'MR-S32' })
  })

  it('asks again for what came damaged, and says so when it stays damaged', async () => {
    const { environment, fake, store } = makeStore()
    await store.create(key, bytesOf('state'))
    fake.next('get', { fails: 'checksum' })
    expect(await settle(store.read(key), environment)).toEqual(bytesOf('state'))
    fake.next('get', { fails: 'checksum' }, { fails: 'checksum' }, { fails: 'checksum' })
    await expect(settle(store.read(key), environment)).rejects.toMatchObject({ code: 'MR-S37', retry: false })
  })
})

describe('listing', () => {
  it('goes over pages, and leaves out what is no object of a job', async () => {
    const { fake, store } = makeStore()
    fake.pageSize = 3
    const keys = Array.from({ length: 10 }, (_, index) => sharedDataKey(`k${index}`))
    for (const one of keys) await store.create(one, bytesOf(one))
    const alien = fake.objects.get('bucket/jobs/one/objects/shared/k0')!
    for (const name of ['shared/', 'shared/a b', 'shared/.hidden'])
      fake.objects.set(`bucket/jobs/one/objects/${name}`, alien)
    fake.objects.set('bucket/jobs/one2/objects/shared/k0', alien)
    expect(await store.list('')).toEqual(keys)
  })
})

describe('deleting', () => {
  it('goes by the thousand', async () => {
    const { fake, store } = makeStore()
    await store.delete(Array.from({ length: 2_500 }, (_, index) => sharedDataKey(`k${index}`)))
    expect(fake.count('deleteMany')).toBe(3)
  })

  it('names an object that the store does not delete', async () => {
    const { environment, fake, store } = makeStore()
    await store.create(key, bytesOf('state'))
    fake.undeletable.set('jobs/one/objects/shared/a', 'AccessDenied')
    const deleting = settle(store.delete([key, sharedDataKey('b')]), environment)
    await expect(deleting).rejects.toMatchObject({ code: 'MR-S08' })
    await expect(deleting).rejects.toThrow('s3://bucket/jobs/one/objects/shared/a')
  })

  it('asks again for those that it could not delete just now', async () => {
    const { environment, fake, store } = makeStore()
    await store.create(key, bytesOf('state'))
    fake.undeletable.set('jobs/one/objects/shared/a', 'InternalError')
    const deleting = store.delete([key])
    await settlePromises()
    fake.undeletable.clear()
    await settle(deleting, environment)
    expect(await store.read(key)).toBeUndefined()
  })
})

describe('closing', () => {
  it('ends what is under way, and what is asked later', async () => {
    const { fake, calls, store } = makeStore()
    fake.next('get', { silent: true })
    const reading = store.read(key)
    await settlePromises()
    calls.close()
    await expect(reading).rejects.toThrow('the store was closed')
    await expect(store.read(key)).rejects.toThrow('the store was closed')
    expect(fake.closed).toBe(true)
  })
})
