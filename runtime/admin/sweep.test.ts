import { describe, expect, it } from 'vitest'
import { requestId, start } from '../base/ids.ts'
import type { HeadStore, ObjectKey } from '../storage/contract.ts'
import {
  addPin,
  beginStart,
  cancel,
  close,
  completeCheckpoint,
  completeSavepoint,
  raiseIncarnation,
  reserveIds,
} from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import type { AdminWorld } from './admin-world.ts'
import { sweepJob } from './sweep.ts'
import type { SweepRequest } from './sweep.ts'
import { graphWith, killedAtEach, nameOf, subjectOf } from './harness.ts'
import type { Subject } from './harness.ts'

const request = ({ external, files }: Subject, more: Partial<SweepRequest> = {}): SweepRequest => ({
  jobIsDown: false,
  code: { graph: graphWith(external), files },
  apply: true,
  ...more,
})

const garbage = [
  // Uploads of a checkpoint that never completed, and one whose swap never won.
  'chk-7/torn',
  // Beside a completed one: an upload whose acknowledgement was lost.
  'chk-6/stray',
  // Of a savepoint that was given up.
  'savepoint-3/data',
  'shared/unnamed',
]
const kept = [
  'chk-5/final',
  'chk-6/_metadata',
  'chk-6/data',
  'history/1-1',
  'probe/somebody',
  'savepoint-4/_metadata',
  'savepoint-4/data',
  'shared/named',
]
const leftTransactions = [nameOf(2), nameOf(7)]

/** Checkpoint 6 is the restore point; after it a coordinator died at all kinds of work. */
async function left(end: (head: Head) => Head = close): Promise<Subject> {
  const subject = await subjectOf()
  const { write, complete, put, external, keeper } = subject
  await write({ id: 4, kind: 'savepoint' })
  await complete({ id: 6, objects: ['chk-5/final', 'shared/named'], transactions: [nameOf(5), nameOf(6)] })
  await write({ id: 8 })
  await put(...garbage, 'history/1-1', 'probe/somebody')
  for (const name of leftTransactions) external.existing.add(name)
  external.existing.add('somebody-elses')
  await keeper.update(end)
  return subject
}

const swept = ['chk-6/stray', 'chk-7/torn', 'chk-8/_metadata', 'chk-8/data', 'savepoint-3/data', 'shared/unnamed']

describe('a sweep of a job that has ended', () => {
  it('takes away what nothing names, and only that', async () => {
    const subject = await left()
    expect(await sweepJob(subject.world, request(subject))).toMatchObject({
      outcome: 'done',
      garbage: { discarding: [], objects: swept, transactions: [{ uid: 'sink', transactions: leftTransactions }] },
    })
    expect(await subject.objects.list('')).toEqual(kept)
    expect([...subject.external.existing]).toEqual([nameOf(5), nameOf(6), 'somebody-elses'])
    expect(await sweepJob(subject.world, request(subject))).toMatchObject({ outcome: 'nothing to do' })
  })

  it('reads each manifest once, though HEAD is read before and after the swap', async () => {
    const subject = await left()
    const { objects } = subject.world.stores
    const read = objects.read.bind(objects)
    const reads: ObjectKey[] = []
    objects.read = (key) => {
      reads.push(key)
      return read(key)
    }
    await sweepJob(subject.world, request(subject))
    // Of the third savepoint no manifest is listed: it is looked for.
    expect(reads).toEqual(['savepoint-3/_metadata', 'chk-6/_metadata', 'savepoint-4/_metadata'])
    expect(await subject.objects.list('')).toEqual(kept)
  })

  it('takes a savepoint whose manifest the list does not show yet for what it is: a list may lag behind', async () => {
    const subject = await left((head) => head)
    const { complete, keeper, external, write } = subject
    // One that HEAD knows of, of which nothing is listed yet, and one of which all but the manifest is.
    const hidden = await write({ id: 12, kind: 'savepoint', transactions: [nameOf(12)] })
    await keeper.update((head) => completeSavepoint(head, { manifest: hidden, request: requestId('one') }))
    await write({ id: 13, kind: 'savepoint', transactions: [nameOf(13)] })
    await complete({ id: 14 })
    await keeper.update(close)
    const { objects } = subject.world.stores
    const list = objects.list.bind(objects)
    objects.list = async (prefix) =>
      (await list(prefix)).filter((key) => !key.startsWith('savepoint-12/') && key !== 'savepoint-13/_metadata')
    expect(await sweepJob(subject.world, request(subject))).toMatchObject({ outcome: 'done' })
    const savepoints = ['12/_metadata', '12/data', '13/_metadata', '13/data', '4/_metadata', '4/data']
    expect(await list('savepoint-')).toEqual(savepoints.map((key) => `savepoint-${key}`))
    expect([nameOf(12), nameOf(13)].every((name) => external.existing.has(name))).toBe(true)
  })

  it('only looks before it is told to', async () => {
    const subject = await left()
    const before = await subject.heads.read()
    expect(await sweepJob(subject.world, request(subject, { apply: false }))).toMatchObject({
      outcome: 'would do',
      garbage: { objects: swept },
    })
    expect(subject.objects.size).toBe(swept.length + kept.length)
    expect(await subject.heads.read()).toEqual(before)
  })

  it('without the code of the job looks at objects alone', async () => {
    const subject = await left()
    await sweepJob(subject.world, request(subject, { code: undefined }))
    expect(await subject.objects.list('')).toEqual(kept)
    expect(subject.external.existing.has(nameOf(7))).toBe(true)
  })

  it('finishes what HEAD was discarding', async () => {
    const subject = await left((head) => head)
    await subject.complete({ id: 9, objects: ['chk-5/final'] })
    await subject.keeper.update(close)
    expect((await subject.head()).discarding.map(({ id }) => id)).toEqual([6])
    expect(await sweepJob(subject.world, request(subject))).toMatchObject({ garbage: { discarding: [6] } })
    expect(await subject.objects.list('chk-')).toEqual(['chk-5/final', 'chk-9/_metadata', 'chk-9/data'])
    expect((await subject.head()).discarding).toEqual([])
  })

  it('is as complete after a kill at any write and the same command again', async () => {
    const discarding = async (): Promise<Subject> => {
      const subject = await left((head) => head)
      await subject.complete({ id: 9, objects: ['chk-5/final'] })
      await subject.keeper.update(close)
      return subject
    }
    const sweep = (world: AdminWorld, subject: Subject) => sweepJob(world, request(subject))
    const kills = await killedAtEach(discarding, sweep, async ({ objects, external, head }) => {
      expect(await objects.list('chk-')).toEqual(['chk-5/final', 'chk-9/_metadata', 'chk-9/data'])
      expect(await objects.list('shared/')).toEqual([])
      expect(external.existing).toEqual(new Set(['somebody-elses']))
      expect((await head()).discarding).toEqual([])
    })
    expect(kills).toBeGreaterThan(10)
  })

  it('keeps what pins and unconfirmed commits need', async () => {
    const subject = await subjectOf()
    const pinned = await subject.write({ id: 3, objects: ['chk-2/a'] })
    await subject.complete({ id: 6, transactions: [nameOf(6)] })
    await subject.keeper.update((head) =>
      cancel(addPin(head, { manifest: pinned, reason: 'upgrade' }), { deleted: true }),
    )
    expect(await sweepJob(subject.world, request(subject))).toMatchObject({ outcome: 'nothing to do' })
    expect(subject.objects.size).toBe(5)
    expect(subject.external.existing.has(nameOf(6))).toBe(true)
  })

  /** Its transactions were pre-committed after checkpoint 6, and the job ended before the next one. */
  async function endedBehindSavepoint(end: (head: Head) => Head = close): Promise<Subject> {
    const subject = await subjectOf()
    await subject.complete({ id: 6 })
    await subject.write({ id: 7, kind: 'savepoint', transactions: [nameOf(6)] })
    subject.external.existing.add(nameOf(5))
    await subject.keeper.update(end)
    return subject
  }

  it.each([
    ['suspended', close],
    ['cancelled', (head: Head) => cancel(head, { deleted: false })],
    ['deleted', (head: Head) => cancel(head, { deleted: true })],
  ])('keeps the transactions of a savepoint for as long as it lies there (%s)', async (_, end) => {
    const subject = await endedBehindSavepoint(end)
    const { world, external, objects } = subject
    const garbage = { objects: [], transactions: [{ uid: 'sink', transactions: [nameOf(5)] }] }
    expect(await sweepJob(world, request(subject, { apply: false }))).toMatchObject({ outcome: 'would do', garbage })
    expect(await sweepJob(world, request(subject))).toMatchObject({ outcome: 'done', garbage })
    expect([...external.existing]).toEqual([nameOf(6)])
    await objects.delete(await objects.list('savepoint-7/'))
    expect(await sweepJob(world, request(subject))).toMatchObject({ outcome: 'done' })
    expect([...external.existing]).toEqual([])
  })

  it.each(['savepoint-monday', 'savepoint-9'])(
    'keeps those of one that was renamed where it lies, too (%s)',
    async (name) => {
      const subject = await endedBehindSavepoint()
      const { objects } = subject
      await objects.create(
        `${name}/_metadata` as ObjectKey,
        (await objects.read('savepoint-7/_metadata' as ObjectKey))!,
      )
      await objects.delete(await objects.list('savepoint-7/'))
      await sweepJob(subject.world, request(subject))
      expect([...subject.external.existing]).toEqual([nameOf(6)])
    },
  )

  it('deletes nothing when a savepoint cannot be read: what it holds is unknown', async () => {
    const subject = await endedBehindSavepoint()
    const { objects, external, environment } = subject
    await subject.put('chk-8/stray')
    await objects.delete(['savepoint-7/_metadata' as ObjectKey])
    await subject.put('savepoint-7/_metadata')
    const sweeping = sweepJob(subject.world, request(subject)).catch((error: unknown) => String(error))
    await environment.clock.advanceSettled(100_000)
    expect(await sweeping).toMatch(/MR-A10 .*savepoint-7/)
    expect([...external.existing]).toEqual([nameOf(6), nameOf(5)])
    expect(await objects.list('chk-8/')).toEqual(['chk-8/stray'])
    // Without the code no transaction is looked at.
    expect(await sweepJob(subject.world, request(subject, { code: undefined }))).toMatchObject({ outcome: 'done' })
    expect(await objects.list('')).toEqual([
      'chk-6/_metadata',
      'chk-6/data',
      'savepoint-7/_metadata',
      'savepoint-7/data',
    ])
  })

  it('deletes nothing when a manifest that HEAD names cannot be read', async () => {
    const subject = await left()
    await subject.objects.delete(['chk-6/_metadata' as never])
    const sweeping = sweepJob(subject.world, request(subject)).catch((error: unknown) => String(error))
    await subject.environment.clock.advanceSettled(100_000)
    expect(await sweeping).toMatch(/MR-O20 .*chk-6/)
    expect(subject.objects.size).toBe(swept.length + kept.length - 1)
  })

  it('of nothing is none, and of a lost HEAD refused', async () => {
    const subject = await subjectOf({ begun: false })
    expect(await sweepJob(subject.world, request(subject))).toEqual({ outcome: 'none' })
    for (const key of ['chk-2/data', 'savepoint-2/_metadata']) {
      await subject.put(key)
      await expect(sweepJob(subject.world, request(subject))).rejects.toThrow(/^MR-S16 /)
      expect(await subject.objects.list('')).toEqual([key])
      await subject.objects.delete([key as ObjectKey])
    }
  })
})

describe('a sweep where savepoints have a place of their own', () => {
  const torn = ['savepoint-3/data', 'savepoint-9/data']

  async function elsewhere(): Promise<Subject> {
    const subject = await subjectOf({ place: true })
    const { write, complete, put, keeper } = subject
    const savepoint = await write({ id: 4, kind: 'savepoint', transactions: [nameOf(4)] })
    await keeper.update((head) => completeSavepoint(head, { request: requestId('r'), manifest: savepoint }))
    await complete({ id: 6 })
    await put(...torn, 'owner')
    // Of before they had one.
    await subject.objects.create('savepoint-2/data' as ObjectKey, new Uint8Array(1))
    await subject.place.create('owner' as ObjectKey, new Uint8Array(1))
    subject.external.existing.add(nameOf(7))
    await keeper.update(close)
    return subject
  }

  it('takes away what failed ones left in both, and keeps the transactions of those that are there', async () => {
    const subject = await elsewhere()
    const swept = await sweepJob(subject.world, request(subject))
    expect(swept).toMatchObject({ garbage: { objects: ['savepoint-2/data'], elsewhere: torn } })
    expect(await subject.place.list('')).toEqual(['owner', 'savepoint-4/_metadata', 'savepoint-4/data'])
    expect([...subject.external.existing]).toEqual([nameOf(4)])
    expect(await sweepJob(subject.world, request(subject))).toMatchObject({ outcome: 'nothing to do' })
  })

  it('keeps the transactions of those in an earlier place, as long as they are there', async () => {
    for (const there of [true, false]) {
      const subject = await elsewhere()
      if (!there) await subject.place.delete(await subject.place.list('savepoint-4/'))
      const stores = { ...subject.world.stores, savepoints: undefined }
      await sweepJob({ ...subject.world, stores }, request(subject))
      expect([...subject.external.existing]).toEqual(there ? [nameOf(4)] : [])
    }
  })

  it("looks at nothing in a place that is not the job's", async () => {
    const subject = await elsewhere()
    const { savepoints, ...stores } = subject.world.stores
    const isClaimed = async (): Promise<boolean> => false
    const world = { ...subject.world, stores: { ...stores, savepoints: { ...savepoints!, isClaimed } } }
    await sweepJob(world, request(subject))
    expect(await subject.place.list('savepoint-9/')).toEqual(['savepoint-9/data'])
    const other = async (): Promise<boolean> => Promise.reject(new Error('MR-S40'))
    const theirs = { ...subject.world, stores: { ...stores, savepoints: { ...savepoints!, isClaimed: other } } }
    await expect(sweepJob(theirs, request(subject))).rejects.toThrow('MR-S40')
  })
})

describe('a sweep of a job that has not ended', () => {
  it('is refused, unless the user knows that nothing of it runs', async () => {
    const subject = await left((head) => head)
    await expect(sweepJob(subject.world, request(subject))).rejects.toThrow(/^MR-A02 .*job, start 1/)
    expect(subject.objects.size).toBe(swept.length + kept.length)
  })

  it('then leaves what workers that run on after all may have acknowledged: all from the newest completed checkpoint on', async () => {
    const subject = await left((head) => head)
    expect(await sweepJob(subject.world, request(subject, { jobIsDown: true }))).toMatchObject({
      outcome: 'done',
      garbage: { objects: ['savepoint-3/data'], transactions: [{ uid: 'sink', transactions: [nameOf(2)] }] },
    })
    // Checkpoint 8 was complete but for its swap: the coordinator was only slow.
    const { objects, keeper, external } = subject
    const manifest = { ...(await subject.head()).retained[0]!, id: 8 as never, path: 'chk-8/_metadata' as never }
    await keeper.update((head) => completeCheckpoint(head, { manifest, retainedMax: 1, commitsPending: false }))
    expect(await objects.list('chk-8')).toEqual(['chk-8/_metadata', 'chk-8/data'])
    expect(external.existing.has(nameOf(7))).toBe(true)
  })

  it('then leaves what an attempt of an earlier version may have open, which named its first transaction by no checkpoint', async () => {
    const subject = await left((head) => head)
    subject.external.existing.add(nameOf(0))
    await sweepJob(subject.world, request(subject, { jobIsDown: true }))
    expect(subject.external.existing.has(nameOf(0))).toBe(true)
    expect(subject.external.existing.has(nameOf(2))).toBe(false)
    await subject.keeper.update(close)
    await sweepJob(subject.world, request(subject))
    expect(subject.external.existing.has(nameOf(0))).toBe(false)
  })

  it('before its first checkpoint leaves everything', async () => {
    const subject = await subjectOf()
    await subject.put('chk-1/data', 'shared/a')
    expect(await sweepJob(subject.world, request(subject, { jobIsDown: true }))).toMatchObject({
      outcome: 'nothing to do',
    })
  })
})

describe('a sweep while a job begins', () => {
  /** `meanwhile` happens once, at the `at`th reading of HEAD or, for 'swap', right before the sweep's own swap. */
  async function meeting(at: number | 'swap', meanwhile: (subject: Subject) => Promise<void>) {
    const subject = await left()
    let reads = 0
    let done = false
    const once = async (): Promise<void> => {
      if (done) return
      done = true
      await meanwhile(subject)
    }
    const head: HeadStore = {
      read: async () => {
        if (++reads === at) await once()
        return subject.heads.read()
      },
      swap: async (expected, bytes) => {
        if (at === 'swap') await once()
        return subject.heads.swap(expected, bytes)
      },
    }
    const world = { ...subject.world, stores: { ...subject.world.stores, head } }
    const outcome = await sweepJob(world, request(subject)).then(
      (swept) => swept.outcome,
      (error: unknown) => String(error),
    )
    expect(done).toBe(true)
    return { ...subject, outcome }
  }

  const nextStart = async ({ keeper, put, external }: Subject): Promise<void> => {
    await keeper.begin((head) =>
      beginStart(head!, {
        start: start(2),
        restoredFrom: { kind: 'manifest', manifest: head!.retained.at(-1)! },
        commitsPending: false,
        parallelism: 1,
        maxParallelism: 8,
      }),
    )
    await keeper.update((head) => reserveIds(head, 1_000).head)
    await put('chk-1000/final-of-a-fast-one', 'chk-1001/data', 'shared/new')
    external.existing.add(nameOf(1_001, 2))
  }

  it.each([3, 4, 'swap' as const])('deletes nothing of it, nor anything (at %s)', async (at) => {
    const { outcome, objects, external } = await meeting(at, nextStart)
    expect(outcome).toMatch(/MR-A03 .*was at incarnation 1 and is at 2/)
    expect(objects.size).toBe(swept.length + kept.length + 3)
    expect(external.existing.has(nameOf(1_001, 2))).toBe(true)
  })

  it('that began before the sweep looked is the running one', async () => {
    const { outcome, objects } = await meeting(1, nextStart)
    expect(outcome).toMatch(/MR-A02 .*start 2/)
    expect(objects.size).toBe(swept.length + kept.length + 3)
  })

  it('goes on over a change of HEAD that begins nothing', async () => {
    const { outcome, objects } = await meeting('swap', async ({ keeper }) => void (await keeper.amend((head) => head)))
    expect(outcome).toBe('done')
    expect(await objects.list('')).toEqual(kept)
  })

  it('twice at once takes the same away', async () => {
    const subject = await left()
    const outcomes = await Promise.all([1, 2].map(() => sweepJob(subject.world, request(subject))))
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['done', 'done'])
    expect(await subject.objects.list('')).toEqual(kept)
  })

  it('is refused by a raised incarnation of the same start, too', async () => {
    const subject = await left((head) => head)
    const head: HeadStore = {
      ...subject.world.stores.head,
      read: () => subject.heads.read(),
      swap: async (expected, bytes) => {
        await subject.keeper.begin((now) => raiseIncarnation(now!))
        return subject.heads.swap(expected, bytes)
      },
    }
    const world = { ...subject.world, stores: { ...subject.world.stores, head } }
    await expect(sweepJob(world, request(subject, { jobIsDown: true }))).rejects.toThrow(/^MR-A03 /)
    expect(subject.objects.size).toBe(swept.length + kept.length)
  })
})
