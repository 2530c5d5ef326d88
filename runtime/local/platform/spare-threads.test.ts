import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../testkit/manual-clock.ts'
import { quietBeforeSparesMs, SpareThreads, sparesMax } from './spare-threads.ts'

class Thread {
  readonly #ready = Promise.withResolvers<void>()
  readonly #exited = Promise.withResolvers<void>()
  readonly ready = this.#ready.promise
  readonly exited = this.#exited.promise
  ended = false

  async load(): Promise<void> {
    this.#ready.resolve()
    await turn()
  }

  async die(): Promise<void> {
    this.#exited.resolve()
    await turn()
  }

  async end(): Promise<void> {
    this.ended = true
    await this.die()
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

function subject(slotCount: number, earlyCount = 0) {
  const clock = new ManualClock()
  const threads: Thread[] = Array.from({ length: earlyCount }, () => new Thread())
  const spares = new SpareThreads({
    clock,
    slotCount,
    early: [...threads],
    start: () => {
      const thread = new Thread()
      threads.push(thread)
      return thread
    },
  })
  const numberOf = (thread: Thread) => threads.indexOf(thread)
  return { clock, threads, spares, take: () => numberOf(spares.take()) }
}

describe('spare threads', () => {
  it('start only after no slot was started for a while, one when the one before it has loaded', async () => {
    const { clock, threads, take } = subject(2)
    expect([take(), take()]).toEqual([0, 1])
    clock.advance(quietBeforeSparesMs - 1)
    take()
    clock.advance(quietBeforeSparesMs - 1)
    expect(threads).toHaveLength(3)
    clock.advance(1)
    expect(threads).toHaveLength(4)
    await threads[3]!.load()
    expect(threads).toHaveLength(5)
    await threads[4]!.load()
    expect(threads).toHaveLength(5)
  })

  it('are taken once, the one that has waited longest first, and replaced when it is quiet again', async () => {
    const { clock, threads, take } = subject(2)
    take()
    clock.advance(quietBeforeSparesMs)
    await threads[1]!.load()
    await threads[2]!.load()
    expect([take(), take(), take()]).toEqual([1, 2, 3])
    expect(threads).toHaveLength(4)
    clock.advance(quietBeforeSparesMs)
    expect(threads).toHaveLength(5)
  })

  it('are replaced when they die while they wait', async () => {
    const { clock, threads, take } = subject(1)
    take()
    clock.advance(quietBeforeSparesMs)
    await threads[1]!.load()
    await threads[1]!.die()
    expect(threads).toHaveLength(2)
    clock.advance(quietBeforeSparesMs)
    expect(threads).toHaveLength(3)
    expect(take()).toBe(2)
  })

  it('that were taken are nobody’s spares any more: their end starts none', async () => {
    const { clock, threads, take } = subject(1)
    take()
    clock.advance(quietBeforeSparesMs)
    await threads[1]!.load()
    take()
    clock.advance(quietBeforeSparesMs)
    await threads[2]!.load()
    await threads[1]!.die()
    clock.advance(quietBeforeSparesMs)
    expect(threads).toHaveLength(3)
  })

  it('are bounded for a job of many slots', async () => {
    const { clock, threads, take } = subject(50)
    take()
    clock.advance(quietBeforeSparesMs)
    for (let index = 1; index < threads.length; index++) await threads[index]!.load()
    expect(threads).toHaveLength(1 + sparesMax)
  })

  it('begin with those that were started early; of these too many end', async () => {
    const { clock, threads, take } = subject(2, 5)
    expect(threads.map(({ ended }) => ended)).toEqual([false, false, false, false, true])
    expect([take(), take()]).toEqual([0, 1])
    clock.advance(quietBeforeSparesMs)
    expect(threads).toHaveLength(5)
    await threads[2]!.die()
    clock.advance(quietBeforeSparesMs)
    expect(threads).toHaveLength(6)
    expect([take(), take()]).toEqual([3, 5])
  })

  it('end when the job does, and none is started after that', async () => {
    const { clock, threads, spares, take } = subject(2)
    take()
    clock.advance(quietBeforeSparesMs)
    await threads[1]!.load()
    await spares.close()
    expect(threads.map(({ ended }) => ended)).toEqual([false, true, true])
    clock.advance(quietBeforeSparesMs)
    expect([threads.length, clock.waiting]).toEqual([3, 0])
  })
})
