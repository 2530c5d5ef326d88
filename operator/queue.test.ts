import { describe, expect, it } from 'vitest'
import { manualEnvironment } from '../runtime/testkit/manual-clock.ts'
import { WorkQueue } from './queue.ts'

function subject(options: { readonly workers?: number } = {}) {
  const { clock, random, executor } = manualEnvironment()
  const started: string[] = []
  const running = new Map<string, PromiseWithResolvers<number | undefined>>()
  const errors: string[] = []
  let most = 0
  const queue = new WorkQueue({
    clock,
    random,
    workers: options.workers ?? 2,
    work: (key) => {
      started.push(key)
      const work = Promise.withResolvers<number | undefined>()
      running.set(key, work)
      most = Math.max(most, running.size)
      return work.promise.finally(() => running.delete(key))
    },
    onError: (key, error, retryInMs) => errors.push(`${key}: ${String(error)} in ${Math.round(retryInMs)}`),
  })
  return {
    queue,
    started,
    errors,
    most: () => most,
    end: async (key: string, again?: number) => {
      running.get(key)!.resolve(again)
      await executor.runAllSettled()
    },
    fail: async (key: string) => {
      running.get(key)!.reject(new Error('no'))
      await executor.runAllSettled()
    },
    pass: (ms: number) => clock.advanceSettled(ms),
  }
}

describe('the work queue', () => {
  it('works on one key at a time, on several keys at once, and on no more than it may', async () => {
    const { queue, started, end, most } = subject()
    for (const key of ['a', 'b', 'c', 'a', 'a']) queue.add(key)
    expect(started).toEqual(['a', 'b'])
    await end('a')
    // What was wanted while it ran is done once more, behind those that wait.
    expect(started).toEqual(['a', 'b', 'c'])
    await end('b')
    expect(started).toEqual(['a', 'b', 'c', 'a'])
    await end('a')
    await end('c')
    expect(started).toEqual(['a', 'b', 'c', 'a'])
    expect(most()).toBe(2)
  })

  it('comes back after the time that was asked for, or at once when something changes', async () => {
    const { queue, started, end, pass } = subject()
    queue.add('a')
    await end('a', 1_000)
    await pass(999)
    expect(started).toHaveLength(1)
    await pass(1)
    expect(started).toHaveLength(2)
    await end('a', 1_000)
    queue.add('a')
    expect(started).toHaveLength(3)
    await end('a')
    await pass(10_000)
    expect(started).toHaveLength(3)
  })

  it('waits longer with each failure, whatever changes meanwhile, and forgets that after a success', async () => {
    const { queue, started, errors, fail, end, pass } = subject()
    queue.add('a')
    await fail('a')
    queue.add('a')
    expect(started).toHaveLength(1)
    await pass(240)
    expect(started).toHaveLength(2)
    await fail('a')
    await pass(240)
    expect(started).toHaveLength(2)
    await pass(240)
    expect(started).toHaveLength(3)
    await end('a')
    queue.add('a')
    expect(started).toHaveLength(4)
    expect(errors).toHaveLength(2)
  })

  it('does nothing more once it is closed', async () => {
    const { queue, started, end, pass } = subject({ workers: 1 })
    queue.add('a')
    queue.add('b')
    queue.close()
    await end('a', 10)
    await pass(1_000)
    expect(started).toEqual(['a'])
  })
})
