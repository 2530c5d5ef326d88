import { describe, expect, it } from 'vitest'
import { manualEnvironment } from '../../runtime/testkit/manual-clock.ts'
import { MemoryApi } from '../harness/memory-api.ts'
import type { KubeClient } from './contract.ts'
import { Lease } from './lease.ts'
import { types } from './types.ts'

function subject() {
  const { clock, random, executor } = manualEnvironment()
  const api = new MemoryApi(() => clock.wallMs())
  const told: string[] = []
  const lease = (holder: string, client: KubeClient = api.client()): Lease =>
    new Lease({
      client,
      namespace: 'n',
      name: 'lease',
      holder,
      clock,
      random,
      log: () => undefined,
      onLeading: () => told.push(`${holder} leads`),
      onLost: () => told.push(`${holder} lost`),
    })
  return { api, clock, told, lease, settle: () => executor.runAllSettled() }
}

describe('the lease', () => {
  it('is held by one; when it is given back the next one has it at once', async () => {
    const { lease, told, clock } = subject()
    const [first, second] = [lease('first'), lease('second')]
    expect(first.known).toBe(false)
    first.start()
    await clock.advanceSettled(10)
    second.start()
    await clock.advanceSettled(30_000)
    expect(told).toEqual(['first leads'])
    expect([first.leading, second.leading, first.known, second.known]).toEqual([true, false, true, true])
    await first.release()
    await clock.advanceSettled(3_000)
    expect(told).toEqual(['first leads', 'second leads'])
    expect([first.leading, second.leading]).toEqual([false, true])
  })

  it('is given up by whoever cannot renew it, before another may take it', async () => {
    const { api, lease, told, clock } = subject()
    let isDown = false
    const first = lease(
      'first',
      api.client({
        before: () => {
          if (isDown) throw new Error('down')
        },
      }),
    )
    const second = lease('second')
    first.start()
    await clock.advanceSettled(10)
    second.start()
    await clock.advanceSettled(5_000)
    isDown = true
    await clock.advanceSettled(13_500)
    expect(told).toEqual(['first leads', 'first lost'])
    expect([first.leading, second.leading]).toEqual([false, false])
    await clock.advanceSettled(10_000)
    expect(told.at(-1)).toBe('second leads')
    await first.release()
    await second.release()
  })

  it('is not believed by a process that was frozen, not even until its next turn', async () => {
    const { lease, clock, api } = subject()
    const first = lease('first')
    first.start()
    await clock.advanceSettled(10)
    expect(first.leading).toBe(true)
    // No timer has run: the process stood still.
    const frozen = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(clock), 'nowMs')!.value as () => number
    const wokenMs = frozen.call(clock) + 60_000
    clock.nowMs = () => wokenMs
    expect(first.leading).toBe(false)
    expect(api.all(types.lease)).toHaveLength(1)
    await first.release()
  })
})
