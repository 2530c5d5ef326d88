import { describe, expect, it } from 'vitest'
import { checkpointId, jobId, requestId, start } from '../base/ids.ts'
import type { SavepointAnswer } from '../coordinator/coordinator-contract.ts'
import { settlePromises } from '../testkit/manual-clock.ts'
import { close, failSavepoint, newJob } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import { manifestKey } from '../storage/paths.ts'
import { Leaving } from './leaving.ts'

function running({ allRunning = true }: { readonly allRunning?: boolean | undefined } = {}) {
  const said: string[] = []
  const asked: string[] = []
  let head: Head = newJob({ job: jobId('orders'), start: start(1), parallelism: 1, maxParallelism: 4 })
  let answer: (answer: SavepointAnswer) => void = () => undefined
  const leaving = new Leaving({
    id: jobId('orders'),
    job: {
      execution: { allRunning },
      stop: ({ drain }) => {
        asked.push(drain ? 'drain' : 'stop')
        return new Promise((resolve) => (answer = resolve))
      },
      suspend: () => void asked.push('suspend'),
    },
    readHead: async () => head,
    random: { next: () => 0, id: () => 'r1' },
    say: (text) => void said.push(text),
  })
  return {
    leaving,
    said,
    asked,
    headBecomes: (next: (head: Head) => Head) => {
      head = next(head)
    },
    answers: async (given: SavepointAnswer) => {
      answer(given)
      await settlePromises()
    },
  }
}

const failed = { outcome: 'failed', detail: 'expired: 600000 ms' } as const

describe('signals to a run', () => {
  it('stop it with a savepoint, then suspend it, then leave', () => {
    const { leaving, said, asked } = running()
    expect(leaving.isLeaving).toBe(false)
    expect([leaving.signal(), leaving.signal(), leaving.signal()]).toEqual([true, true, false])
    expect(asked).toEqual(['stop', 'suspend'])
    expect(said[0]).toMatch(/^Stopping orders with a savepoint\. Once more suspends .* a third time leaves at once\.$/)
    expect(leaving.isLeaving).toBe(true)
  })

  it('suspend at once a job of which not everything runs', () => {
    const { leaving, asked } = running({ allRunning: false })
    expect([leaving.signal(), leaving.signal()]).toEqual([true, false])
    expect(asked).toEqual(['suspend'])
  })

  it('leave it running when its savepoint fails, say so, and suspend it at the next', async () => {
    const { leaving, said, asked, headBecomes, answers } = running()
    leaving.signal()
    headBecomes((head) => failSavepoint(head, { request: requestId('r1'), detail: failed.detail }))
    await answers(failed)
    expect(said.at(-1)).toBe(
      'orders could not be stopped with a savepoint and runs on: expired: 600000 ms. Ctrl-C suspends it.',
    )
    expect(leaving.isLeaving).toBe(false)
    expect([leaving.signal(), leaving.signal()]).toEqual([true, false])
    expect(asked).toEqual(['stop', 'suspend'])
  })

  it('say nothing of a savepoint that failed because the job has ended', async () => {
    const { leaving, said, headBecomes, answers } = running()
    leaving.signal()
    headBecomes(close)
    await answers({ outcome: 'failed', detail: 'the job has ended' })
    expect(said).toHaveLength(1)
  })

  it('say nothing more once the savepoint is there', async () => {
    const { leaving, said, answers } = running()
    leaving.signal()
    const manifest = {
      id: checkpointId(1),
      kind: 'savepoint',
      path: manifestKey(checkpointId(1), 'savepoint'),
      start: start(1),
      completedAtMs: 1,
      bytes: 1,
    } as const
    await answers({ outcome: 'completed', manifest })
    expect(said).toHaveLength(1)
    expect(leaving.isLeaving).toBe(true)
  })
})
