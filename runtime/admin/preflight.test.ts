import { describe, expect, it } from 'vitest'
import { graphOf } from '../checkpoint/test-graph.ts'
import type { GraphShape } from '../checkpoint/test-graph.ts'
import { jobError } from '../job/errors.ts'
import type { JobGraph } from '../job/contract.ts'
import type { ObjectKey } from '../storage/contract.ts'
import { storageError } from '../storage/errors.ts'
import { preflight } from './preflight.ts'
import type { PreflightRequest } from './preflight.ts'
import { graphWith, nameOf, subjectOf } from './harness.ts'
import type { Subject } from './harness.ts'

const request = (graph: JobGraph, more: Partial<PreflightRequest> = {}): PreflightRequest => ({
  load: async () => graph,
  against: undefined,
  restore: { allowNonRestoredState: false, allowDrained: false },
  ...more,
})

async function asked(subject: Subject, given: PreflightRequest) {
  const answer = preflight(subject.world, given)
  await subject.environment.clock.advanceSettled(600_000)
  return answer
}

const sinkless: GraphShape = { vertices: [{ id: 'sums', parallelism: 3 }] }
const codesOf = ({ reasons }: { readonly reasons: readonly { readonly code: string | undefined }[] }) =>
  reasons.map(({ code }) => code)

describe('a preflight', () => {
  it('of a revision that fits says yes, with what the job needs', async () => {
    const subject = await subjectOf()
    const manifest = await subject.complete({ id: 5, transactions: [nameOf(5)] })
    const graph = graphWith(subject.external)
    expect(await asked(subject, request(graph))).toEqual({
      answer: 'yes',
      reasons: [],
      graph,
      slotsNeeded: 1,
      against: manifest,
    })
  })

  it('needs the sink of unconfirmed commits only where the new start would have to make them', async () => {
    const subject = await subjectOf()
    await subject.complete({ id: 5, transactions: [nameOf(5)] })
    expect(await asked(subject, request(graphOf(sinkless)))).toMatchObject({ answer: 'yes', slotsNeeded: 3 })
    const against = 'file:///store/objects/chk-5/_metadata' as ObjectKey
    const foreign = {
      read: () => subject.objects.read('chk-5/_metadata' as ObjectKey),
      readRange: async () => new Uint8Array(1),
    }
    const world = { ...subject.world, stores: { ...subject.world.stores, foreign } }
    const elsewhere = await asked({ ...subject, world }, request(graphOf(sinkless), { against }))
    expect(elsewhere).toMatchObject({ answer: 'no', against: { id: 5 } })
    expect(codesOf(elsewhere)).toEqual(['MR-C12'])
  })

  it('says no where there is no HEAD of a job that goes on', async () => {
    const subject = await subjectOf()
    subject.heads.remove()
    const restore = { goesOn: true, allowNonRestoredState: false, allowDrained: false }
    const graph = graphWith(subject.external)
    const refused = await asked(subject, request(graph, { restore }))
    expect({ answer: refused.answer, codes: codesOf(refused) }).toEqual({ answer: 'no', codes: ['MR-S19'] })
    expect(await asked(subject, request(graph))).toMatchObject({ answer: 'yes', against: undefined })
  })

  it('names every reason for a no', async () => {
    const subject = await subjectOf()
    await subject.complete({ id: 5, transactions: [nameOf(5)] })
    await subject.objects.delete(['chk-5/data' as ObjectKey])
    const graph = graphOf({ vertices: [{ id: 'renamed', uids: ['renamed', 'sink', 'renamed'] }] })
    const answer = await asked(subject, request(graph))
    expect(answer.answer).toBe('no')
    expect(codesOf(answer)).toEqual(['MR-C13', 'MR-C11', 'MR-C54'])
  })

  it('says no for a job that is wrong, and what is wrong', async () => {
    const subject = await subjectOf()
    const load = () => Promise.reject(jobError('MR-J11', 'It is async.'))
    expect(await asked(subject, { ...request(graphOf(sinkless)), load })).toMatchObject({
      answer: 'no',
      reasons: [{ code: 'MR-J11' }],
      graph: undefined,
      slotsNeeded: undefined,
    })
  })

  it('could not run where the job is never loaded, or the store does not answer', async () => {
    const subject = await subjectOf()
    const load = () => new Promise<JobGraph>(() => undefined)
    const hanging = await asked(subject, { ...request(graphOf(sinkless)), load })
    expect(hanging).toMatchObject({ answer: 'could not run', reasons: [{ code: 'MR-J14' }] })
    await subject.complete({ id: 5 })
    subject.objects.read = () => Promise.reject(new Error('down'))
    const silent = await asked(subject, request(graphWith(subject.external)))
    expect(silent).toMatchObject({ answer: 'could not run', reasons: [{ message: 'Error: down' }] })
  })

  it('says no where the place for savepoints is no bucket, or another job has it; could not run where it is away', async () => {
    for (const [code, answer] of [
      ['MR-S32', 'no'],
      ['MR-S40', 'no'],
      ['MR-S01', 'could not run'],
    ] as const) {
      const subject = await subjectOf({ place: true })
      await subject.complete({ id: 5 })
      const { savepoints, ...stores } = subject.world.stores
      const isClaimed = async (): Promise<boolean> => Promise.reject(storageError(code, 'There.'))
      const world = { ...subject.world, stores: { ...stores, savepoints: { ...savepoints!, isClaimed } } }
      const found = await asked({ ...subject, world }, request(graphWith(subject.external)))
      expect(found).toMatchObject({ answer, against: { id: 5 } })
      expect(codesOf(found)).toEqual([code])
    }
  })

  it('holds it against nothing where the job begins from nothing', async () => {
    const fresh = await subjectOf({ begun: false })
    expect(await asked(fresh, request(graphOf(sinkless)))).toMatchObject({ answer: 'yes', against: undefined })
    const subject = await subjectOf()
    await subject.complete({ id: 5 })
    const renamed = graphOf({ vertices: [{ id: 'renamed' }] })
    const empty = { empty: true, allowNonRestoredState: false, allowDrained: false }
    expect(await asked(subject, request(renamed, { restore: empty }))).toMatchObject({ answer: 'yes' })
    expect(await asked(subject, request(renamed))).toMatchObject({ answer: 'no' })
    const allowed = { allowNonRestoredState: true, allowDrained: false }
    expect(await asked(subject, request(renamed, { restore: allowed }))).toMatchObject({ answer: 'yes' })
  })

  it('asks again when the running job has dropped what it was held against', async () => {
    const subject = await subjectOf()
    await subject.complete({ id: 5 })
    const { objects } = subject
    const read = objects.readRange.bind(objects)
    objects.readRange = async (key, offset, length) => {
      if (key === 'chk-5/data') {
        await subject.complete({ id: 6 })
        await objects.delete([key])
      }
      return read(key, offset, length)
    }
    expect(await asked(subject, request(graphWith(subject.external)))).toMatchObject({
      answer: 'yes',
      against: { id: 6 },
    })
  })
})
