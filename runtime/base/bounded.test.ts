import { describe, expect, it } from 'vitest'
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

  it('begins with nothing more once one has failed', async () => {
    const begun: number[] = []
    let release = (): void => undefined
    const second = new Promise<void>((resolve) => (release = resolve))
    const failing = forEachBounded([1, 2, 3, 4], 2, (thing) => {
      begun.push(thing)
      return thing === 1 ? Promise.reject(new Error('thing 1')) : second
    })
    await expect(failing).rejects.toThrow('thing 1')
    release()
    await second
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    expect(begun).toEqual([1, 2])
  })
})
