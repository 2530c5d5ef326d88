import { describe, expect, it } from 'vitest'
import { storageError } from '../storage/errors.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { AwaitedServices } from './awaited-services.ts'

const away = () => storageError('MR-S34', 'It is away.')

describe('a service that a process cannot begin without', () => {
  it('is asked again, less and less often, until it answers; meanwhile it is told and logged what is waited for', async () => {
    const environment = manualEnvironment({ random: { next: () => 1, id: () => '' } as never })
    const services = new AwaitedServices(environment)
    const triesMs: number[] = []
    const answer = services.answered('the object store', async () => {
      triesMs.push(environment.clock.nowMs())
      if (triesMs.length <= 6) throw away()
      return 'here'
    })
    const nats = Promise.withResolvers<string>()
    void services.waiting('NATS', nats.promise)
    expect(services.waitsFor).toBe('the object store and NATS')
    expect(services.failureOf('the object store')).toBeUndefined()
    await environment.clock.advanceSettled(10_000)
    expect(services.failureOf('the object store')).toContain('MR-S34')
    expect(services.failureOf('NATS')).toBeUndefined()
    await environment.clock.advanceSettled(50_000)
    expect(await answer).toBe('here')
    expect(services.failureOf('the object store')).toBeUndefined()
    expect(triesMs).toEqual([0, 500, 1_500, 3_500, 7_500, 12_500, 17_500])
    expect(environment.lines[0]).toMatchObject({
      level: 'warn',
      message: 'the coordinator waits for the object store',
      fields: { error: expect.stringContaining('MR-S34') },
    })
    expect(services.waitsFor).toBe('NATS')
    nats.resolve('here')
    await environment.clock.advanceSettled(0)
    expect(services.waitsFor).toBe(undefined)
  })

  it('that refuses for good is an error at once, and so is what nobody knows', async () => {
    const services = new AwaitedServices(manualEnvironment())
    for (const error of [storageError('MR-S30', 'No.'), new Error('unknown')])
      await expect(
        services.answered('the object store', async () => {
          throw error
        }),
      ).rejects.toBe(error)
    expect(services.waitsFor).toBe(undefined)
  })

  it('is not asked again by a process that leaves, closed if it opens only then, and heard of no more', async () => {
    const environment = manualEnvironment()
    const services = new AwaitedServices(environment)
    const first = Promise.withResolvers<{ close(): Promise<void> }>()
    const second = Promise.withResolvers<{ close(): Promise<void> }>()
    const opening = services.opened('NATS', () => first.promise)
    const failing = services.opened('the object store', () => second.promise)
    services.close()
    let settled = 0
    for (const one of [opening, failing])
      one.then(
        () => settled++,
        () => settled++,
      )
    let closed = 0
    first.resolve({ close: async () => void closed++ })
    second.reject(away())
    await environment.clock.advanceSettled(60_000)
    expect({ closed, settled }).toEqual({ closed: 1, settled: 0 })
  })
})
