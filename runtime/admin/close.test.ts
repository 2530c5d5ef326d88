import { describe, expect, it } from 'vitest'
import { start } from '../base/ids.ts'
import { beginStart, close, fail, finish, reserveIds, stop } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import type { HeadStore } from '../storage/contract.ts'
import { requestId } from '../base/ids.ts'
import { closeJob } from './close.ts'
import { killedAtEach, subjectOf } from './harness.ts'

const suspend = { start: undefined, deleted: false, apply: true }

function nextStart(head: Head): Head {
  const { parallelism, maxParallelism } = head
  return beginStart(head, {
    start: start(head.start + 1),
    restoredFrom: { kind: 'empty' },
    commitsPending: false,
    parallelism,
    maxParallelism,
  })
}

describe('closing a job', () => {
  it('says what it would do, and writes nothing before it is told to', async () => {
    const { world, heads } = await subjectOf()
    const before = await heads.read()
    expect(await closeJob(world, { ...suspend, apply: false })).toMatchObject({
      outcome: 'would do',
      head: { end: { kind: 'none' } },
      next: { end: { kind: 'suspended' } },
    })
    expect(await heads.read()).toEqual(before)
  })

  it('ends the start in HEAD; the coordinator that still runs loses its next swap, and nothing is permitted any more', async () => {
    const { world, keeper, write } = await subjectOf()
    expect(await closeJob(world, suspend)).toMatchObject({ outcome: 'done', head: { end: { kind: 'suspended' } } })
    await write({ id: 5 })
    expect(await keeper.update((head) => reserveIds(head, 1).head)).toMatchObject({ outcome: 'ended' })
  })

  it('again does nothing, and answers the same end', async () => {
    const { world, heads } = await subjectOf()
    await closeJob(world, suspend)
    const once = await heads.read()
    expect(await closeJob(world, suspend)).toMatchObject({
      outcome: 'nothing to do',
      head: { end: { kind: 'suspended' } },
    })
    expect(await heads.read()).toEqual(once)
  })

  it('leaves an end that is set, and only a delete writes over it', async () => {
    const { world, keeper } = await subjectOf()
    await keeper.update((head) => fail(head, 'why'))
    expect(await closeJob(world, suspend)).toMatchObject({
      outcome: 'nothing to do',
      head: { end: { kind: 'failed' } },
    })
    const deleted = { ...suspend, deleted: true }
    expect(await closeJob(world, deleted)).toMatchObject({ outcome: 'done', head: { end: { kind: 'cancelled' } } })
    expect(await closeJob(world, deleted)).toMatchObject({ outcome: 'nothing to do' })
    expect(await closeJob(world, suspend)).toMatchObject({
      outcome: 'nothing to do',
      head: { end: { kind: 'cancelled' } },
    })
  })

  describe('that is deleted', () => {
    const deleted = { ...suspend, deleted: true }
    /** HEAD retains 5 and drops 4; 6 and 7 never completed, of 7 the manifest was written; 8 is a savepoint that never completed. */
    async function withLeftovers() {
      const subject = await subjectOf()
      for (const id of [4, 5]) await subject.complete({ id })
      await subject.put('chk-6/data')
      await subject.write({ id: 7 })
      await subject.put('savepoint-8/data')
      return subject
    }
    const stays = ['chk-5/_metadata', 'chk-5/data', 'savepoint-8/data']

    it('takes away what no checkpoint holds, and tells the same', async () => {
      const { world, objects, head } = await withLeftovers()
      const closed = await closeJob(world, deleted)
      expect(closed).toMatchObject({ outcome: 'done', head: { end: { kind: 'cancelled' } } })
      expect((await objects.list('')).toSorted()).toEqual(stays)
      expect((await head()).discarding).toEqual([])
    })

    it('leaves them when it is not told to do it, and where another start may follow', async () => {
      const { world, objects } = await withLeftovers()
      const before = await objects.list('')
      await closeJob(world, { ...deleted, apply: false })
      await closeJob(world, suspend)
      expect(await objects.list('')).toEqual(before)
    })

    it('leaves nothing more when it is killed at any change, and done again', async () => {
      const killed = await killedAtEach(
        withLeftovers,
        (world) => closeJob(world, deleted),
        async ({ objects, head }) => {
          expect((await objects.list('')).toSorted()).toEqual(stays)
          expect(await head()).toMatchObject({ end: { kind: 'cancelled' }, discarding: [] })
        },
      )
      expect(killed).toBeGreaterThan(4)
    })

    it('waits ten seconds for a store that does not answer, and has ended the job all the same', async () => {
      const { world, environment } = await withLeftovers()
      const objects = { ...world.stores.objects, list: () => new Promise<never>(() => undefined) }
      const before = environment.clock.nowMs()
      const closing = closeJob({ ...world, stores: { ...world.stores, objects } }, deleted)
      await environment.clock.advanceSettled(10_000)
      expect(await closing).toMatchObject({ outcome: 'done', head: { end: { kind: 'cancelled' } } })
      expect(environment.clock.nowMs() - before).toBe(10_000)
    })
  })

  it('refuses another start than the one that is named', async () => {
    const { world, heads } = await subjectOf()
    const before = await heads.read()
    await expect(closeJob(world, { ...suspend, start: start(2) })).rejects.toThrow(/^MR-A01 .*start 1 \(none\), not 2/)
    expect(await heads.read()).toEqual(before)
    expect(await closeJob(world, { ...suspend, start: start(1) })).toMatchObject({ outcome: 'done' })
  })

  it('of a job that has no HEAD says so, but not where its HEAD is lost', async () => {
    const { world, put } = await subjectOf({ begun: false })
    expect(await closeJob(world, suspend)).toEqual({ outcome: 'none' })
    await put('chk-3/_metadata')
    await expect(closeJob(world, suspend)).rejects.toThrow(/^MR-S16 .*chk-3\/_metadata/)
  })

  it("refuses another job's HEAD", async () => {
    const { world } = await subjectOf()
    await expect(closeJob({ ...world, job: 'other' as never }, suspend)).rejects.toThrow(
      /^MR-O17 .*of job, this is other/,
    )
  })

  it('that cannot tell whether there is a HEAD is an error, and no answer', async () => {
    const { world, environment } = await subjectOf({ begun: false })
    const head: HeadStore = { ...world.stores.head, read: () => Promise.reject(new Error('down')) }
    const closing = closeJob({ ...world, stores: { ...world.stores, head } }, suspend)
    const outcome = closing.catch((error: unknown) => String(error))
    await environment.clock.advanceSettled(120_000)
    expect(await outcome).toMatch(/MR-S12 .*down/)
  })
})

describe('closing while somebody else changes HEAD', () => {
  /** Between what the command reads and its first swap, `meanwhile` happens. */
  async function interrupted(meanwhile: (head: Head) => Head) {
    const subject = await subjectOf()
    let first = true
    const { world, heads, keeper } = subject
    const head: HeadStore = {
      read: () => heads.read(),
      swap: async (expected, bytes) => {
        if (first) {
          first = false
          if (meanwhile(await subject.head()).incarnation === 1) await keeper.amend(meanwhile)
          else await keeper.begin((now) => meanwhile(now!))
        }
        return heads.swap(expected, bytes)
      },
    }
    return { ...subject, world: { ...world, stores: { ...world.stores, head } } }
  }

  it('is done on top of what the coordinator wrote', async () => {
    const { world, head } = await interrupted((now) => reserveIds(now, 10).head)
    expect(await closeJob(world, suspend)).toMatchObject({ outcome: 'done' })
    expect(await head()).toMatchObject({ end: { kind: 'suspended' }, reservedIds: 1_010 })
  })

  it('leaves the end that the coordinator wrote first', async () => {
    const { world } = await interrupted(finish)
    expect(await closeJob(world, suspend)).toMatchObject({ outcome: 'done', head: { end: { kind: 'finished' } } })
  })

  it('leaves the savepoint that a stop completed with', async () => {
    const request = requestId('r')
    const subject = await interrupted((now) => stop(now, { request, manifest: savepoint, commitsPending: false }))
    const savepoint = await subject.write({ id: 4, kind: 'savepoint' })
    expect(await closeJob(subject.world, suspend)).toMatchObject({
      head: { end: { kind: 'stopped', savepoint: { id: 4 } } },
    })
  })

  it('does not close the start that begins meanwhile, when its own was named', async () => {
    const { world, head } = await interrupted(nextStart)
    await expect(closeJob(world, { ...suspend, start: start(1) })).rejects.toThrow(/^MR-A01 .*start 2/)
    expect(await head()).toMatchObject({ start: 2, end: { kind: 'none' } })
  })

  it('twice at once ends it once', async () => {
    const { world, head } = await subjectOf()
    const [one, other] = await Promise.all([closeJob(world, suspend), closeJob(world, { ...suspend, deleted: true })])
    expect([one.outcome, other.outcome]).toEqual(['done', 'done'])
    expect((await head()).end).toEqual({ kind: 'cancelled' })
  })

  it('killed after its write, and given again, is done', async () => {
    const kills = await killedAtEach(
      () => subjectOf(),
      (world) => closeJob(world, suspend),
      async ({ head }) => expect((await head()).end).toEqual({ kind: 'suspended' }),
    )
    expect(kills).toBe(1)
  })

  it('and closing what is closed stays so', async () => {
    const { keeper, world } = await subjectOf()
    await keeper.update(close)
    expect(await closeJob(world, suspend)).toMatchObject({ outcome: 'nothing to do' })
  })
})
