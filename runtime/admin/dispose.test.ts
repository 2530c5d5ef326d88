import { describe, expect, it } from 'vitest'
import { checkpointId, requestId, start } from '../base/ids.ts'
import type { ObjectKey } from '../storage/contract.ts'
import { addPin, beginStart, cancel, close, completeSavepoint, newJob, reserveIds, stop } from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { MemoryHeadStore } from '../storage/memory-store.ts'
import type { AdminWorld } from './admin-world.ts'
import { disposeCheckpoints, disposeSavepoint } from './dispose.ts'
import type { DisposeRequest, SavepointPlace } from './dispose.ts'
import { job, killedAtEach, nameOf, subjectOf } from './harness.ts'
import type { Subject } from './harness.ts'
import { restorePoint } from './restore-point.ts'
import { sweepJob } from './sweep.ts'

const own = (name: string, { objects }: Pick<Subject, 'objects'>): SavepointPlace => ({
  folder: `/store/objects/${name}`,
  name,
  objects,
  owner: 'this job',
})
const request = (place: SavepointPlace, more: Partial<DisposeRequest> = {}): DisposeRequest => ({
  place,
  foreign: false,
  apply: true,
  ...more,
})

/** Savepoint 4 that was taken, then checkpoint 6, then the end. */
async function ended(change: (head: Head) => Head = close): Promise<Subject & { readonly savepoint: ManifestRef }> {
  const subject = await subjectOf()
  const savepoint = await subject.write({ id: 4, kind: 'savepoint', objects: ['savepoint-4/more'] })
  await subject.keeper.update((head) => completeSavepoint(head, { request: requestId('r'), manifest: savepoint }))
  await subject.complete({ id: 6 })
  await subject.keeper.update(change)
  return { ...subject, savepoint }
}

/** Start 2, which begins at `manifest`. */
function begunFrom(manifest: ManifestRef, head: Head): Head {
  return beginStart(head, {
    start: start(2),
    restoredFrom: { kind: 'manifest', manifest },
    commitsPending: false,
    parallelism: 1,
    maxParallelism: 8,
  })
}

describe('a savepoint', () => {
  it('is taken away whole, and nothing else is; again, there is nothing to do', async () => {
    const subject = await ended()
    await subject.put('savepoint-40/data')
    expect(await disposeSavepoint(subject.world, request(own('savepoint-4', subject)))).toEqual({
      outcome: 'done',
      objects: ['savepoint-4/_metadata', 'savepoint-4/data', 'savepoint-4/more'],
    })
    expect(await subject.objects.list('')).toEqual(['chk-6/_metadata', 'chk-6/data', 'savepoint-40/data'])
    expect(await disposeSavepoint(subject.world, request(own('savepoint-4', subject)))).toEqual({
      outcome: 'nothing to do',
    })
  })

  it('is only looked at before the command is told to', async () => {
    const subject = await ended()
    const outcome = await disposeSavepoint(subject.world, request(own('savepoint-4', subject), { apply: false }))
    expect(outcome).toMatchObject({ outcome: 'would do', objects: { length: 3 } })
    expect(subject.objects.size).toBe(5)
  })

  it('loses its manifest last: killed anywhere, the same command finishes it', async () => {
    const dispose = (world: AdminWorld) =>
      disposeSavepoint(world, request(own('savepoint-4', { objects: world.stores.objects as never })))
    const orders: (readonly string[])[] = []
    const kills = await killedAtEach(ended, dispose, async ({ objects }) => {
      orders.push(await objects.list(''))
    })
    expect(kills).toBe(3)
    expect(orders).toEqual(Array.from({ length: 4 }, () => ['chk-6/_metadata', 'chk-6/data']))
    const cut = await ended()
    const { world, killed } = cut.killedAfter(2)
    await Promise.race([dispose(world), killed])
    expect(await cut.objects.list('savepoint-')).toEqual(['savepoint-4/_metadata'])
  })

  it.each<[string, (head: Head, savepoint: ManifestRef) => Head, RegExp]>([
    [
      'its job was stopped with it',
      (head, manifest) => stop(head, { request: requestId('s'), manifest, commitsPending: false }),
      /MR-A04 .*its restore point.*stopped/,
    ],
    [
      'it is being read',
      (head, manifest) => close(addPin(head, { manifest, reason: 'savepoint being read' })),
      /MR-A04 .*pinned \(savepoint being read\)/,
    ],
    [
      'a start began from it and has completed nothing',
      (head, manifest) =>
        close(
          beginStart(close(head), {
            start: start(2),
            restoredFrom: { kind: 'manifest', manifest },
            commitsPending: false,
            parallelism: 1,
            maxParallelism: 8,
          }),
        ),
      /MR-A04 .*its restore point.*start 2/,
    ],
    [
      'HEAD permits its commits',
      (head, manifest) =>
        cancel(stop(head, { request: requestId('s'), manifest, commitsPending: true }), { deleted: true }),
      /MR-A04 .*what it permits to commit/,
    ],
  ])('stays while %s', async (_, change, message) => {
    const subject = await subjectOf()
    const savepoint = await subject.write({ id: 4, kind: 'savepoint' })
    await subject.keeper.begin((head) => {
      const next = change(head!, savepoint)
      return { ...next, incarnation: (head!.incarnation + 1) as Head['incarnation'] }
    })
    await expect(disposeSavepoint(subject.world, request(own('savepoint-4', subject)))).rejects.toThrow(message)
    expect(subject.objects.size).toBe(2)
  })

  it('goes once the start that began from it has completed a checkpoint', async () => {
    const subject = await subjectOf()
    const manifest = await subject.write({ id: 4, kind: 'savepoint' })
    await subject.keeper.begin((head) => begunFrom(manifest, head!))
    await subject.complete({ id: 7, start: 2, incarnation: 2 })
    expect(await disposeSavepoint(subject.world, request(own('savepoint-4', subject)))).toMatchObject({
      outcome: 'done',
    })
  })

  it('goes when the job that was stopped with it is cancelled, and what is left can still be swept', async () => {
    const subject = await subjectOf()
    await subject.complete({ id: 3 })
    const manifest = await subject.write({ id: 4, kind: 'savepoint' })
    await subject.keeper.update((head) => stop(head, { request: requestId('s'), manifest, commitsPending: false }))
    await subject.keeper.amend((head) => cancel(head, { deleted: true }))
    expect(await disposeSavepoint(subject.world, request(own('savepoint-4', subject)))).toMatchObject({
      outcome: 'done',
    })
    await subject.put('chk-9/data')
    expect(await sweepJob(subject.world, { jobIsDown: false, code: undefined, apply: true })).toMatchObject({
      outcome: 'done',
      garbage: { objects: ['chk-9/data'] },
    })
    // Where nothing is any more nobody begins, nor at an older checkpoint instead.
    const point = restorePoint(subject.world, { deep: false }).catch((error: unknown) => String(error))
    await subject.environment.clock.advanceSettled(600_000)
    expect(await point).toMatch(/MR-O20 .*savepoint-4/)
  })

  it('stays while a running job may yet complete it, and goes when a newer one has completed without it', async () => {
    const subject = await subjectOf()
    await subject.complete({ id: 3 })
    await subject.write({ id: 4, kind: 'savepoint' })
    const dispose = () => disposeSavepoint(subject.world, request(own('savepoint-4', subject)))
    await expect(dispose()).rejects.toThrow(/MR-A04 .*about to complete/)
    await subject.complete({ id: 5 })
    expect(await dispose()).toMatchObject({ outcome: 'done' })
  })

  it('that is damaged goes all the same, from the store of its job', async () => {
    const subject = await ended()
    subject.objects.overwrite('savepoint-4/_metadata' as ObjectKey, new Uint8Array(3))
    expect(await disposeSavepoint(subject.world, request(own('savepoint-4', subject)))).toMatchObject({
      outcome: 'done',
    })
  })

  it('is no checkpoint, no other folder, and not what has no manifest', async () => {
    const subject = await ended()
    await subject.put('savepoint-9/data', 'shared/a')
    for (const name of ['chk-6', 'savepoint-9', 'shared'])
      await expect(disposeSavepoint(subject.world, request(own(name, subject)))).rejects.toThrow(/^MR-A06 /)
    const copy: SavepointPlace = { folder: '/copies/six', name: 'chk-6', objects: subject.objects, owner: 'none' }
    await expect(disposeSavepoint(subject.world, request(copy))).rejects.toThrow(/^MR-A06 .*checkpoint 6 of job/)
    expect(subject.objects.size).toBe(7)
  })
})

describe('a savepoint outside of the store of the job', () => {
  it('goes when the job made it, as a copy does; that of another job only when that is said', async () => {
    const subject = await ended()
    const copies = await subjectOf({ begun: false })
    await copies.write({ id: 4, kind: 'savepoint' })
    const place: SavepointPlace = {
      folder: '/copies/mine',
      name: 'savepoint-4',
      objects: copies.objects,
      owner: 'none',
    }
    expect(await disposeSavepoint(subject.world, request(place))).toMatchObject({ outcome: 'done' })
    await copies.write({ id: 4, kind: 'savepoint', job: 'other' })
    await expect(disposeSavepoint(subject.world, request(place))).rejects.toThrow(/^MR-A05 .*is of other; this is job/)
    expect(copies.objects.size).toBe(2)
    expect(await disposeSavepoint(subject.world, request(place, { foreign: true }))).toMatchObject({ outcome: 'done' })
  })

  it('stays while the other job needs it, whatever is said', async () => {
    const subject = await ended()
    const other = await subjectOf({ begun: false })
    const manifest = await other.write({ id: 4, kind: 'savepoint', job: 'other' })
    const heads = new MemoryHeadStore()
    const keeper = await HeadKeeper.open(heads, other.environment)
    await keeper.begin(() => newJob({ job: 'other' as typeof job, start: start(1), parallelism: 1, maxParallelism: 8 }))
    await keeper.update((head) => reserveIds(head, 10).head)
    await keeper.update((head) => stop(head, { request: requestId('r'), manifest, commitsPending: false }))
    const place: SavepointPlace = {
      folder: '/other/objects/savepoint-4',
      name: 'savepoint-4',
      objects: other.objects,
      owner: { head: heads, isPlace: false },
    }
    await expect(disposeSavepoint(subject.world, request(place, { foreign: true }))).rejects.toThrow(
      /^MR-A04 .*its restore point, says HEAD of other/,
    )
    expect(other.objects.size).toBe(2)
  })

  it('stays in the place for savepoints while its job needs it, by whatever name that place is reached', async () => {
    const subject = await subjectOf({ place: true })
    const manifest = await subject.write({ id: 4, kind: 'savepoint' })
    const plain = await subject.write({ id: 3, kind: 'savepoint' })
    await subject.keeper.update((head) => completeSavepoint(head, { request: requestId('p'), manifest: plain }))
    await subject.keeper.update((head) => stop(head, { request: requestId('r'), manifest, commitsPending: false }))
    const at = (folder: string, id: number): SavepointPlace => ({
      folder: `${folder}/objects/savepoint-${id}`,
      name: `savepoint-${id}`,
      objects: subject.place,
      owner: { head: subject.heads, isPlace: true },
    })
    for (const folder of ['/place', '/link/to/it']) {
      await expect(disposeSavepoint(subject.world, request(at(folder, 4)))).rejects.toThrow(
        /^MR-A04 .*its restore point/,
      )
      // As from the job's pod when the job is gone, which knows nothing of the place.
      const stores = { ...subject.world.stores, savepoints: undefined }
      await expect(disposeSavepoint({ ...subject.world, stores }, request(at(folder, 4)))).rejects.toThrow(/^MR-A04 /)
    }
    expect(await disposeSavepoint(subject.world, request(at('/link/to/it', 3)))).toMatchObject({ outcome: 'done' })
    expect(await subject.place.list('')).toEqual(['savepoint-4/_metadata', 'savepoint-4/data'])
  })

  it('stays while this job begins from it', async () => {
    const subject = await subjectOf()
    const copies = await subjectOf({ begun: false })
    const written = await copies.write({ id: 4, kind: 'savepoint', job: 'other' })
    const manifest = { ...written, path: 'file:///copies/theirs/_metadata' as ObjectKey }
    await subject.keeper.begin((head) => begunFrom(manifest, head!))
    const place: SavepointPlace = {
      folder: '/copies/theirs',
      name: 'savepoint-4',
      objects: copies.objects,
      owner: 'none',
    }
    await expect(disposeSavepoint(subject.world, request(place, { foreign: true }))).rejects.toThrow(/^MR-A04 /)
  })
})

describe('the checkpoints of a job that is deleted', () => {
  async function cancelled(commits = false): Promise<Subject> {
    const subject = await subjectOf()
    await subject.write({ id: 4, kind: 'savepoint' })
    await subject.complete({ id: 5 }, 2)
    await subject.complete({ id: 6, transactions: commits ? [nameOf(6)] : [] }, 2)
    await subject.keeper.update((head) => cancel(head, { deleted: true }))
    return subject
  }

  it('are taken away, and its savepoints stay', async () => {
    const { world, objects } = await cancelled()
    expect(await disposeCheckpoints(world, { apply: false })).toMatchObject({ outcome: 'would do', ids: [5, 6] })
    expect(objects.size).toBe(6)
    expect(await disposeCheckpoints(world, { apply: true })).toMatchObject({
      outcome: 'done',
      ids: [5, 6],
      head: { retained: [], discarding: [], restoredFrom: { kind: 'empty' } },
    })
    expect(await objects.list('')).toEqual(['savepoint-4/_metadata', 'savepoint-4/data'])
    expect(await disposeCheckpoints(world, { apply: true })).toMatchObject({ outcome: 'nothing to do' })
  })

  it('stay unless it is over for good, and all is committed', async () => {
    const suspended = await ended()
    await expect(disposeCheckpoints(suspended.world, { apply: true })).rejects.toThrow(/^MR-A07 .*\(suspended\)/)
    const pending = await cancelled(true)
    await expect(disposeCheckpoints(pending.world, { apply: true })).rejects.toThrow(/^MR-A07 .*chk-6.* not confirmed/)
    expect((await pending.head()).retained.map(({ id }) => id)).toEqual([5, 6])
  })

  it('are all gone after a kill at any write and the same command again', async () => {
    const dispose = (world: AdminWorld) => disposeCheckpoints(world, { apply: true })
    const kills = await killedAtEach(cancelled, dispose, async ({ objects, head }) => {
      expect(await objects.list('chk-')).toEqual([])
      expect(await head()).toMatchObject({ retained: [], discarding: [] })
    })
    expect(kills).toBe(6)
  })

  it('that cannot be deleted are named, and stay in HEAD', async () => {
    const { world, objects, head } = await cancelled()
    objects.delete = () => Promise.reject(new Error('down'))
    await expect(disposeCheckpoints(world, { apply: true })).rejects.toThrow(/^MR-A08 .*chk-5\/_metadata, chk-6/)
    expect((await head()).discarding.map(({ id }) => id)).toEqual([checkpointId(5), checkpointId(6)])
  })
})
