import { describe, expect, it } from 'vitest'
import { requestId } from '../base/ids.ts'
import type { ObjectKey } from '../storage/contract.ts'
import { stop } from '../storage/head.ts'
import { closeJob } from './close.ts'
import { restorePoint } from './restore-point.ts'
import { nameOf, subjectOf } from './harness.ts'
import type { Subject } from './harness.ts'

async function refusal({ world, environment }: Subject, deep = false): Promise<string> {
  const outcome = restorePoint(world, { deep }).then(
    ({ outcome: found }) => found,
    (error: unknown) => String(error),
  )
  await environment.clock.advanceSettled(600_000)
  return outcome
}

describe('the restore point of a job that is down', () => {
  it('is the newest completed checkpoint, with what it holds', async () => {
    const { world, complete } = await subjectOf()
    await complete({ id: 5 }, 3)
    const newest = await complete({ id: 6, objects: ['chk-5/final'], transactions: [nameOf(6)] }, 3)
    expect(await restorePoint(world, { deep: true })).toMatchObject({
      outcome: 'found',
      manifest: newest,
      head: { unconfirmed: newest, end: { kind: 'none' } },
      contents: { objects: 2, pieces: 2, transactions: 1 },
    })
  })

  it('is empty before any completed, and none before the job has begun', async () => {
    const { world } = await subjectOf()
    expect(await restorePoint(world, { deep: false })).toMatchObject({ outcome: 'empty', head: { start: 1 } })
    expect(await restorePoint((await subjectOf({ begun: false })).world, { deep: false })).toEqual({ outcome: 'none' })
  })

  it('of one that was stopped and then deleted is the savepoint that it was stopped with, and no older checkpoint', async () => {
    const { world, keeper, complete, write } = await subjectOf()
    await complete({ id: 5 })
    const manifest = await write({ id: 6, kind: 'savepoint' })
    await keeper.update((head) => stop(head, { request: requestId('s'), manifest, commitsPending: false }))
    expect(await closeJob(world, { start: undefined, deleted: true, apply: true })).toMatchObject({ outcome: 'done' })
    expect(await restorePoint(world, { deep: true })).toMatchObject({
      outcome: 'found',
      manifest,
      head: { end: { kind: 'cancelled' } },
    })
  })

  it('is refused without its manifest, or with a damaged one; never an older one in its place', async () => {
    const subject = await subjectOf()
    await subject.complete({ id: 5 }, 3)
    const { path } = await subject.complete({ id: 6 }, 3)
    const bytes = (await subject.objects.read(path))!
    bytes[bytes.length - 20]! ^= 1
    subject.objects.overwrite(path, bytes)
    expect(await refusal(subject)).toMatch(/MR-O20 .*MR-C02 .*chk-6/)
    await subject.objects.delete([path])
    expect(await refusal(subject)).toMatch(/MR-O20 .*MR-O18 .*chk-6/)
  })

  it('is refused where an object is missing or short; one that is changed is found by reading it', async () => {
    const subject = await subjectOf()
    await subject.complete({ id: 6 })
    const data = 'chk-6/data' as ObjectKey
    const bytes = (await subject.objects.read(data))!
    subject.objects.overwrite(
      data,
      bytes.map((byte) => byte ^ 1),
    )
    expect(await refusal(subject)).toBe('found')
    expect(await refusal(subject, true)).toMatch(/MR-C51 .*chk-6\/data/)
    subject.objects.overwrite(data, bytes.subarray(1))
    expect(await refusal(subject)).toMatch(/MR-C54 .*chk-6\/data/)
    await subject.objects.delete([data])
    expect(await refusal(subject)).toMatch(/MR-C54 .*chk-6\/data is not there/)
  })

  it('is unclear while the store does not answer, and is never taken for absent', async () => {
    const subject = await subjectOf()
    await subject.complete({ id: 6 })
    subject.objects.read = () => Promise.reject(new Error('down'))
    expect(await refusal(subject)).toBe('Error: down')
  })
})
