import { describe, expect, it } from 'vitest'
import { jobId, start } from '../base/ids.ts'
import { storageError } from '../storage/errors.ts'
import { newJob } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { afterBackOff } from './after-back-off.ts'

const first: Head = {
  ...newJob({ job: jobId('j'), start: start(1), parallelism: 1, maxParallelism: 8 }),
  writer: 'first',
}

/** A coordinator that waits for 15 s, with a worker that comes every two seconds if there is one. */
function waiting({ seeks, read }: { readonly seeks: boolean; readonly read: (nowMs: number) => Head }) {
  const environment = manualEnvironment()
  const { clock } = environment
  const said: string[] = []
  let outcome: Head | undefined | 'waits' | Error = 'waits'
  const watching = afterBackOff({
    keeper: { read: async () => read(clock.nowMs()) },
    slots: {
      sendOn: (onSeeking) => {
        said.push('workers are sent on')
        const come = (): void => {
          onSeeking('a worker')
          clock.timer(2_000, come)
        }
        if (seeks) come()
      },
      letIn: () => said.push('workers are let in'),
    },
    start: start(1),
    backOffMs: 15_000,
    environment,
  })
  watching.then(
    (head) => (outcome = head),
    (error: Error) => (outcome = error),
  )
  return {
    said,
    pass: async (ms: number) => {
      await clock.advanceSettled(ms)
      return outcome
    },
  }
}

describe('the wait of a coordinator that was overtaken', () => {
  it('ends in its turn when HEAD stood still and a worker found nobody; workers are sent on until then', async () => {
    const { said, pass } = waiting({ seeks: true, read: () => first })
    expect(await pass(14_999)).toBe('waits')
    expect(said).toEqual(['workers are sent on'])
    expect(await pass(1)).toBe(undefined)
    expect(said).toEqual(['workers are sent on', 'workers are let in'])
  })

  it('ends in another one when HEAD tells that the other coordinator lives', async () => {
    const other: Head = { ...first, writer: 'other' }
    const { said, pass } = waiting({ seeks: true, read: (nowMs) => (nowMs < 9_000 ? first : other) })
    expect(await pass(14_999)).toBe('waits')
    expect(await pass(1)).toBe(other)
    expect(said).toEqual(['workers are sent on'])
  })

  it('goes on while no worker comes, and while HEAD cannot be read; one that nobody can read is an error', async () => {
    const alone = waiting({ seeks: false, read: () => first })
    expect(await alone.pass(600_000)).toBe('waits')
    const away = waiting({
      seeks: true,
      read: (nowMs) => {
        if (nowMs > 1_000 && nowMs < 60_000) throw storageError('MR-S12', 'No answer.')
        return first
      },
    })
    expect(await away.pass(59_000)).toBe('waits')
    expect(await away.pass(3_000)).toBe(undefined)
    const broken = waiting({
      seeks: true,
      read: () => {
        throw storageError('MR-S10', 'It is no JSON.')
      },
    })
    expect(await broken.pass(0)).toMatchObject({ code: 'MR-S10' })
  })
})
