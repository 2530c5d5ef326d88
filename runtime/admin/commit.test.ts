import { describe, expect, it } from 'vitest'
import { checkpointId, requestId, start as startNumber } from '../base/ids.ts'
import { close, confirmCommits, stop } from '../storage/head.ts'
import type { ObjectKey } from '../storage/contract.ts'
import type { AdminWorld } from './admin-world.ts'
import { commitOfJob } from './commit.ts'
import { graphWith, killedAtEach, nameOf, subjectOf } from './harness.ts'
import type { Subject } from './harness.ts'

const names = [nameOf(4), nameOf(5)]

/** A job that was suspended while the commits of checkpoint 5 were on their way. */
async function suspended(): Promise<Subject> {
  const subject = await subjectOf()
  await subject.complete({ id: 5, transactions: names })
  await subject.keeper.update(close)
  return subject
}

const request = ({ external, files }: Subject, settings = {}) => ({
  start: undefined,
  graph: graphWith(external, settings),
  files,
  apply: true,
})

describe('the commits that HEAD permits', () => {
  it('are made by the sinks of the job, without writers, and confirmed', async () => {
    const subject = await suspended()
    expect(await commitOfJob(subject.world, request(subject))).toMatchObject({
      outcome: 'done',
      head: { unconfirmed: undefined },
      sinks: [{ uid: 'sink', transactions: names }],
    })
    expect(subject.external.committed).toEqual(names)
    expect(await commitOfJob(subject.world, request(subject))).toMatchObject({ outcome: 'nothing to do' })
    expect(subject.external.committed).toEqual(names)
  })

  it('are told before they are made', async () => {
    const subject = await suspended()
    const before = await subject.heads.read()
    expect(await commitOfJob(subject.world, { ...request(subject), apply: false })).toMatchObject({
      outcome: 'would do',
      sinks: [{ uid: 'sink', transactions: names }],
    })
    expect(subject.external.committed).toEqual([])
    expect(await subject.heads.read()).toEqual(before)
  })

  it('are none where no job has begun, and where nothing is unconfirmed', async () => {
    const none = await subjectOf({ begun: false })
    expect(await commitOfJob(none.world, request(none))).toEqual({ outcome: 'none' })
    const confirmed = await subjectOf()
    await confirmed.complete({ id: 5 })
    expect(await commitOfJob(confirmed.world, request(confirmed))).toMatchObject({ outcome: 'nothing to do' })
  })

  it('are refused to a job without their sink', async () => {
    const subject = await suspended()
    const { graph, ...rest } = request(subject)
    const without = { ...graph, vertices: graph.vertices.filter(({ id }) => id !== 'sink') }
    await expect(commitOfJob(subject.world, { ...rest, graph: without })).rejects.toThrow(/^MR-C12 .*uid sink/)
    expect((await subject.head()).unconfirmed?.id).toBe(5)
  })

  it('are refused to the code of an earlier start, and made by that of their own and of a later one', async () => {
    const permittedBy = 3
    const of = async (start: number): Promise<Subject> => {
      const subject = await subjectOf({ start: permittedBy })
      await subject.complete({ id: 5, transactions: names, start: permittedBy })
      await subject.keeper.update(close)
      const asked = commitOfJob(subject.world, { ...request(subject), start: startNumber(start) })
      if (start < permittedBy) await expect(asked).rejects.toThrow(/^MR-A09 .*by start 3; .*start 2\./)
      else expect(await asked).toMatchObject({ outcome: 'done' })
      return subject
    }
    expect((await of(permittedBy - 1)).external.committed).toEqual([])
    for (const start of [permittedBy, permittedBy + 1]) expect((await of(start)).external.committed).toEqual(names)
  })

  it('that a start carried over are made by the code of the one that permitted them', async () => {
    const subject = await suspended()
    await subject.keeper.update((head) => ({ ...head, start: startNumber(2) }))
    expect(await commitOfJob(subject.world, { ...request(subject), start: startNumber(1) })).toMatchObject({
      outcome: 'done',
    })
    expect(subject.external.committed).toEqual(names)
  })

  it("of another job's savepoint are made by the start that began with it, whatever the number of that job's start", async () => {
    const subject = await subjectOf()
    const manifest = await subject.write({ id: 5, kind: 'savepoint', transactions: names, start: 7, job: 'theirs' })
    const path = 'file:///theirs/savepoint-5/_metadata' as ObjectKey
    await subject.keeper.update((head) => ({ ...head, unconfirmed: { ...manifest, path } }))
    const bytes = (await subject.objects.read(manifest.path))!
    const { stores } = subject.world
    const foreign = { ...stores.foreign, read: async (key: ObjectKey) => (key === path ? bytes : undefined) }
    const world = { ...subject.world, stores: { ...stores, foreign } }
    expect(await commitOfJob(world, { ...request(subject), start: startNumber(1) })).toMatchObject({ outcome: 'done' })
    expect(subject.external.committed).toEqual(names)
  })

  it('of a stop with drain are refused to the code of an earlier start, though nothing is left to be committed', async () => {
    const subject = await subjectOf({ start: 2 })
    const manifest = await subject.write({ id: 5, kind: 'savepoint', drained: true, start: 2 })
    await subject.keeper.update((head) => stop(head, { request: requestId('r'), manifest, commitsPending: false }))
    const by = (start: number) => commitOfJob(subject.world, { ...request(subject), start: startNumber(start) })
    await expect(by(1)).rejects.toThrow(/^MR-A09 /)
    expect(await by(2)).toMatchObject({ outcome: 'done', head: { end: { kind: 'finished' } } })
  })

  it('stay in HEAD when one was forgotten, unless the user knows that it was committed', async () => {
    const subject = await suspended()
    subject.external.forgotten.add(names[0]!)
    await expect(commitOfJob(subject.world, request(subject))).rejects.toThrow(/^MR-J65 .*MR-N12 .*--assume-committed/s)
    expect((await subject.head()).unconfirmed?.id).toBe(5)
    const assuming = request(subject, { onUnknownCommit: 'assume committed' })
    expect(await commitOfJob(subject.world, assuming)).toMatchObject({ head: { unconfirmed: undefined } })
    expect(subject.external.committed).toEqual([names[1]])
  })

  it('that somebody else has confirmed meanwhile may be forgotten by then', async () => {
    const subject = await suspended()
    subject.external.changing = async (change) => {
      subject.external.forgotten.add(names[0]!)
      await subject.keeper.amend((head) => confirmCommits(head, checkpointId(5)))
      return change()
    }
    expect(await commitOfJob(subject.world, request(subject))).toMatchObject({
      outcome: 'done',
      head: { unconfirmed: undefined },
    })
  })

  it('of a stop with drain finish the job, also when killed after any write and given again', async () => {
    const drained = async (): Promise<Subject> => {
      const subject = await subjectOf()
      const manifest = await subject.write({ id: 5, kind: 'savepoint', transactions: names, drained: true })
      await subject.keeper.update((head) => stop(head, { request: requestId('r'), manifest, commitsPending: true }))
      return subject
    }
    const commit = (world: AdminWorld, subject: Subject) => commitOfJob(world, request(subject))
    const kills = await killedAtEach(drained, commit, async ({ head, external }) => {
      expect(await head()).toMatchObject({ unconfirmed: undefined, end: { kind: 'finished', drained: { id: 5 } } })
      expect(external.committed).toEqual(names)
    })
    expect(kills).toBe(3)
  })

  it('killed after any write, and given again, are each made once', async () => {
    const commit = (world: AdminWorld, subject: Subject) => commitOfJob(world, request(subject))
    const kills = await killedAtEach(suspended, commit, async ({ head, external }) => {
      expect(external.committed).toEqual(names)
      expect((await head()).unconfirmed).toBe(undefined)
    })
    expect(kills).toBe(2)
  })

  it('twice at once are each made once', async () => {
    const subject = await suspended()
    await Promise.all([1, 2].map(() => commitOfJob(subject.world, request(subject))))
    expect(subject.external.committed).toEqual(names)
    expect((await subject.head()).unconfirmed).toBe(undefined)
  })
})
