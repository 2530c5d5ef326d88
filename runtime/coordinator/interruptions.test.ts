import { describe, expect, it } from 'vitest'
import { ManualClock, settlePromises } from '../testkit/manual-clock.ts'
import type { Failure } from './execution.ts'
import { Interruptions } from './interruptions.ts'
import type { Interruption } from './interruptions.ts'

const failureOf = (...slots: number[]): Interruption => {
  const error = { name: 'Error', message: `slot ${slots.join(' ')}`, stack: undefined, code: undefined, retry: true }
  const failure: Failure = { tasks: [], slots: new Set(slots), error }
  return { type: 'failure', failure }
}

const nameOf = (interruption: Interruption | undefined): string | undefined =>
  interruption?.type === 'failure' ? interruption.failure.error.message : interruption?.type

describe('interruptions', () => {
  it('come one after the other, and wake who waits', async () => {
    const interruptions = new Interruptions()
    const first = interruptions.next()
    await settlePromises()
    interruptions.push(failureOf(0))
    interruptions.push(failureOf(1))
    expect([nameOf(await first), nameOf(await interruptions.next())]).toEqual(['slot 0', 'slot 1'])
  })

  it('an end goes before the failures that were there first', async () => {
    const interruptions = new Interruptions()
    interruptions.push(failureOf(0))
    interruptions.push({ type: 'suspend' })
    expect([nameOf(await interruptions.next()), nameOf(await interruptions.next())]).toEqual(['suspend', 'slot 0'])
  })

  it('failures of slots that were ended since are dropped, unless another slot failed with them', async () => {
    const interruptions = new Interruptions()
    interruptions.push(failureOf(0))
    interruptions.push(failureOf(0, 1))
    interruptions.push(failureOf(2))
    interruptions.dropFailuresOf(new Set([0]))
    expect([nameOf(await interruptions.next()), nameOf(await interruptions.next())]).toEqual(['slot 0 1', 'slot 2'])
  })

  it('an end cuts the delay of a restart short; a failure does not, nor a finish that was said before it', async () => {
    const clock = new ManualClock()
    const interruptions = new Interruptions()
    interruptions.push({ type: 'finished' })
    let ended: string | undefined = 'waiting'
    const waiting = interruptions.waitOut(1000, clock).then((end) => (ended = nameOf(end)))
    interruptions.push(failureOf(0))
    await clock.advanceSettled(500)
    expect(ended).toBe('waiting')
    interruptions.push({ type: 'cancel' })
    await waiting
    expect([ended, clock.waiting]).toEqual(['cancel', 0])
    const over = interruptions.waitOut(1000, clock)
    await clock.advanceSettled(1000)
    expect(await over).toBeUndefined()
    expect(nameOf(await interruptions.next())).toBe('finished')
  })
})
