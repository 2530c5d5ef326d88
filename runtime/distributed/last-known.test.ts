import { describe, expect, it } from 'vitest'
import { jobId, start } from '../base/ids.ts'
import { newJob } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import { ManualClock, settlePromises } from '../testkit/manual-clock.ts'
import { headDeadlineMs, lastKnown } from './last-known.ts'

const headOf = (restarts: number): Head => ({
  ...newJob({ job: jobId('job'), start: start(1), parallelism: 1, maxParallelism: 8 }),
  restarts,
})

/** A store whose reads end when the test says so. */
function subject() {
  const clock = new ManualClock()
  const reads: PromiseWithResolvers<Head>[] = []
  const ask = lastKnown(() => {
    const read = Promise.withResolvers<Head>()
    reads.push(read)
    return read.promise
  }, clock)
  const late = async (question: Promise<Head>): Promise<Head> => {
    question.catch(() => undefined)
    await clock.advanceSettled(headDeadlineMs)
    return question
  }
  return { reads, ask, late }
}

describe('HEAD for questions by REST', () => {
  it('is read anew for each, and told as it was last known while the store does not answer', async () => {
    const { reads, ask, late } = subject()
    for (const restarts of [1, 2]) {
      const asked = ask()
      reads.at(-1)!.resolve(headOf(restarts))
      expect((await asked).restarts).toBe(restarts)
    }
    expect((await late(ask())).restarts).toBe(2)
  })

  it('is read once at a time, however many ask and however long it takes: the reads that the job needs are not kept waiting', async () => {
    const { reads, ask, late } = subject()
    for (let question = 0; question < 30; question++)
      await expect(late(ask())).rejects.toMatchObject({ code: 'MR-H12' })
    expect(reads).toHaveLength(1)
    reads[0]!.resolve(headOf(1))
    await settlePromises()
    expect((await late(ask())).restarts).toBe(1)
    expect(reads).toHaveLength(2)
  })

  it('is read again after a read that failed', async () => {
    const { reads, ask } = subject()
    const asked = ask()
    reads[0]!.reject(new Error('503'))
    await expect(asked).rejects.toThrow('503')
    const again = ask()
    reads[1]!.resolve(headOf(1))
    expect((await again).restarts).toBe(1)
  })
})
