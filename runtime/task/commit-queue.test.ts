import { describe, expect, it } from 'vitest'
import { checkpointId } from '../base/ids.ts'
import { settlePromises } from '../testkit/manual-clock.ts'
import { CommitQueue } from './commit-queue.ts'
import type { OperatorChain } from './operator-chain.ts'

function queueOf(complete: (name: string, id: number) => Promise<void>) {
  const story: string[] = []
  const operators = ['a', 'b'].map((name) => ({
    operator: {
      complete: async (id: number) => {
        story.push(`${name} begins ${id}`)
        await complete(name, id)
        story.push(`${name} ends ${id}`)
      },
    },
  }))
  const chain = { operators: () => operators } as unknown as OperatorChain
  const queue = new CommitQueue({
    chain,
    committed: (id) => story.push(`committed ${id}`),
    fail: (error) => story.push(`failed: ${String(error)}`),
  })
  return { queue, story }
}

describe('a commit queue', () => {
  it('commits every operator before it says so, and one permit after the other', async () => {
    const { queue, story } = queueOf(async () => undefined)
    queue.permit(checkpointId(1))
    await settlePromises()
    queue.permit(checkpointId(2))
    await settlePromises()
    expect(story).toEqual([
      'a begins 1',
      'a ends 1',
      'b begins 1',
      'b ends 1',
      'committed 1',
      'a begins 2',
      'a ends 2',
      'b begins 2',
      'b ends 2',
      'committed 2',
    ])
  })

  it('covers the permits that came meanwhile with the newest of them', async () => {
    const releases: (() => void)[] = []
    const { queue, story } = queueOf((name) =>
      name === 'a' ? new Promise((resolve) => releases.push(resolve)) : Promise.resolve(),
    )
    queue.permit(checkpointId(1))
    queue.permit(checkpointId(3))
    queue.permit(checkpointId(2))
    releases.shift()!()
    await settlePromises()
    releases.shift()!()
    await settlePromises()
    expect(story.filter((line) => line.startsWith('committed'))).toEqual(['committed 1', 'committed 3'])
  })

  it('fails the task when a commit fails, and confirms nothing', async () => {
    const { queue, story } = queueOf(async (name) => {
      if (name === 'b') throw new Error('refused')
    })
    queue.permit(checkpointId(1))
    await settlePromises()
    expect(story).toEqual(['a begins 1', 'a ends 1', 'b begins 1', 'failed: Error: refused'])
  })
})
