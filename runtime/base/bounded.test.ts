import { describe, expect, it } from 'vitest'
import { settlePromises } from '../testkit/manual-clock.ts'
import { forEachBounded } from './bounded.ts'

describe('work on many things', () => {
  it('takes each once, in their order, and never more than so many at a time', async () => {
    const begun: number[] = []
    let running = 0
    let most = 0
    await forEachBounded([1, 2, 3, 4, 5, 6, 7], 3, async (thing) => {
      begun.push(thing)
      most = Math.max(most, ++running)
      for (let turn = 0; turn < thing; turn++) await Promise.resolve()
      running--
    })
    expect(begun).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(most).toBe(3)
  })

  it('is done at once with nothing, and fails with the first error', async () => {
    await forEachBounded([], 4, () => Promise.reject(new Error('nobody is there')))
    const failing = forEachBounded([1, 2], 1, (thing) => Promise.reject(new Error(`thing ${thing}`)))
    await expect(failing).rejects.toThrow('thing 1')
  })

  it('begins with nothing more behind an error or an abort', async () => {
    const begun: number[] = []
    const failing = forEachBounded([1, 2, 3, 4, 5, 6], 2, async (thing) => {
      begun.push(thing)
      if (thing === 1) throw new Error('thing 1')
      await Promise.resolve()
    })
    await expect(failing).rejects.toThrow('thing 1')
    await settlePromises()
    expect(begun).toEqual([1, 2])
    const stop = new AbortController()
    const never = new Promise<void>(() => undefined)
    const aborted = forEachBounded([3, 4], 1, (thing) => (begun.push(thing), never), { signal: stop.signal })
    stop.abort(new Error('given up'))
    await expect(aborted).rejects.toThrow('given up')
    expect(begun).toEqual([1, 2, 3])
    const late = forEachBounded([5], 1, (thing) => (begun.push(thing), never), { signal: stop.signal })
    await expect(late).rejects.toThrow('given up')
    expect(begun).toEqual([1, 2, 3])
  })
})
