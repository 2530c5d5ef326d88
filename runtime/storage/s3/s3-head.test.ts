import { describe, expect, it } from 'vitest'
import { jobId, start } from '../../base/ids.ts'
import { manualEnvironment } from '../../testkit/manual-clock.ts'
import { headStoreClaims } from '../conformance.ts'
import { bytesOf } from '../conformance-support.ts'
import { newJob } from '../head.ts'
import { HEAD_BACKOFF_MS, HEAD_CALL_DEADLINE_MS, HeadKeeper } from '../head-keeper.ts'
import { Calls } from './calls.ts'
import { HEAD_TRY_DEADLINE_MS, S3Head } from './s3-head.ts'
import { FakeRequests } from './test-requests.ts'

const at = { bucket: 'bucket', key: 'jobs/one/head' }
const stored = 'bucket/jobs/one/head'

function makeHead() {
  const environment = manualEnvironment()
  const fake = new FakeRequests(environment.clock)
  const open = () => new S3Head({ calls: new Calls({ requests: fake, environment }), at, environment })
  return { environment, fake, head: open(), open }
}

async function begun() {
  const made = makeHead()
  const answer = await made.head.swap(undefined, bytesOf('1'))
  if (answer.outcome !== 'won') throw new Error(answer.outcome)
  made.fake.asked.length = 0
  return { ...made, version: answer.version }
}

describe('a fake of S3 as a store of HEAD', () => {
  const make = async () => {
    const { open } = makeHead()
    return { one: open(), other: open() }
  }
  for (const { claim, holds } of headStoreClaims) it(claim, () => holds(make))
})

describe('a swap', () => {
  for (const kind of ['unclear', 'conflict', 'unreachable', 'denied', 'full', 'refused'] as const)
    it(`is unclear after an answer that is none (${kind}), and is not repeated`, async () => {
      const { fake, head, version } = await begun()
      fake.next('put', { fails: kind })
      expect(await head.swap(version, bytesOf('2'))).toMatchObject({
        outcome: 'unclear',
        cause: { name: 'MillraceError' },
      })
      expect(fake.asked).toEqual(['put'])
    })

  it('is unclear when there is no answer in time, before the keeper gives up', async () => {
    const { environment, fake, head, version } = await begun()
    fake.next('put', { silent: true, landed: true })
    const swap = head.swap(version, bytesOf('2'))
    await environment.clock.advanceSettled(HEAD_TRY_DEADLINE_MS + 1)
    expect(await swap).toMatchObject({ outcome: 'unclear' })
    expect(fake.asked).toEqual(['put'])
    expect((await head.read())?.bytes).toEqual(bytesOf('2'))
    expect(2 * HEAD_TRY_DEADLINE_MS).toBeLessThan(HEAD_CALL_DEADLINE_MS)
  })

  it('that was refused is unclear when its own write is there', async () => {
    const { fake, head, version } = await begun()
    fake.next('put', { fails: 'precondition', landed: true })
    expect(await head.swap(version, bytesOf('2'))).toMatchObject({ outcome: 'unclear' })
    expect((await head.read())?.bytes).toEqual(bytesOf('2'))
  })

  it('that was refused is unclear when what it was to replace is still there', async () => {
    const { fake, head, version } = await begun()
    fake.next('put', { fails: 'precondition' })
    expect(await head.swap(version, bytesOf('2'))).toMatchObject({ outcome: 'unclear' })
  })

  it('that was refused is unclear when what is there cannot be read', async () => {
    const { fake, head, open, version } = await begun()
    expect(await open().swap(version, bytesOf('other'))).toMatchObject({ outcome: 'won' })
    fake.next('get', { fails: 'denied' })
    expect(await head.swap(version, bytesOf('2'))).toMatchObject({ outcome: 'unclear', cause: { code: 'MR-S08' } })
  })

  it('of a HEAD that is gone is lost', async () => {
    const { fake, head, version } = await begun()
    fake.objects.delete(stored)
    expect(await head.swap(version, bytesOf('2'))).toEqual({ outcome: 'lost' })
    expect(await head.read()).toBeUndefined()
  })

  it('takes expired credentials anew for the next one', async () => {
    const { fake, head, version } = await begun()
    fake.next('put', { fails: 'expired' })
    expect(await head.swap(version, bytesOf('2'))).toMatchObject({ outcome: 'unclear', cause: { code: 'MR-S31' } })
    expect(fake.asked).toEqual(['put', 'refreshCredentials'])
  })
})

describe('reading', () => {
  it('is repeated as long as there is time', async () => {
    const { environment, fake, head } = await begun()
    fake.next('get', { fails: 'unclear' }, { fails: 'checksum' })
    const reading = head.read()
    await environment.clock.advanceSettled(1_000)
    expect((await reading)?.bytes).toEqual(bytesOf('1'))
  })

  it('of what no swap wrote is an error', async () => {
    const { fake, head } = await begun()
    fake.objects.set(stored, { ...fake.objects.get(stored)!, bytes: bytesOf('{}') })
    await expect(head.read()).rejects.toMatchObject({ code: 'MR-S10' })
  })
})

describe('a keeper on S3', () => {
  it('settles a swap that landed and whose answer was lost', async () => {
    const { environment, fake, open } = makeHead()
    const keeper = await HeadKeeper.open(open(), environment)
    fake.next('put', { silent: true, landed: true })
    const beginning = keeper.begin(
      (head) => head ?? newJob({ job: jobId('one'), start: start(1), parallelism: 1, maxParallelism: 128 }),
    )
    // The swap's deadline, and the pause before what is there is read.
    await environment.clock.advanceSettled(HEAD_TRY_DEADLINE_MS + HEAD_BACKOFF_MS.first)
    expect(await beginning).toMatchObject({ outcome: 'won', head: { job: 'one', incarnation: 1 } })
    expect(fake.count('put')).toBe(1)
    await keeper.settled()
  })
})
