import { describe, expect, it } from 'vitest'
import { coordinatorFact } from './coordinator-facts.ts'
import type { CoordinatorAnswers } from './coordinator-facts.ts'
import { furtherThan, none } from './progress.ts'

const at = (restarts: number, ...measures: readonly number[]) => ({ restarts, measures })

describe('progress', () => {
  it('is what is beyond the furthest of before, whichever measure it is', () => {
    const first = furtherThan('', at(0, 2, 1, 100))!
    expect(furtherThan(first, at(0, 2, 1, 100))).toBeUndefined()
    expect(furtherThan(first, at(0, 1, 0, 99))).toBeUndefined()
    const second = furtherThan(first, at(0, 1, 2, 99))!
    expect(furtherThan(second, at(0, 2, 2, 100))).toBeUndefined()
    expect(furtherThan(second, at(0, 0, 0, 101))).toBeDefined()
  })

  it('is not lost while the coordinator does not answer, nor made by its answering again', () => {
    const known = furtherThan('', at(1, 2, 2, 100))!
    expect(furtherThan(known, at(0, 2, 2))).toBeUndefined()
    expect(furtherThan(known, at(1, 2, 2, 100))).toBeUndefined()
    expect(furtherThan(furtherThan('', at(0, 2, 2))!, at(0, 2, 2, none))).toBeDefined()
  })

  it('begins anew with a restart, and not with each of a job that restarts for ever', () => {
    let known = furtherThan('', at(0, 100))!
    let times = 0
    for (let restarts = 1; restarts < 50; restarts++) {
      const next = furtherThan(known, at(restarts, 50)) ?? furtherThan(known, at(restarts, 100))
      if (next === undefined) continue
      times++
      known = next
    }
    // The last of the three has room to the furthest of before.
    expect(times).toBe(4)
    // A coordinator that was lost counts from zero.
    expect(furtherThan(known, at(0, 50))).toBeUndefined()
    expect(furtherThan(known, at(60, 101))).toBeDefined()
  })

  it('is measured anew behind what an operator of before has written', () => {
    expect(furtherThan('3/2/9 running 2', at(0, 3, 2))).toBe('0 3 2')
  })
})

describe('how far a start has come, as its coordinator tells it', () => {
  const answers = (
    job: Partial<CoordinatorAnswers['job']>,
    pending: CoordinatorAnswers['checkpoints']['pending'] = null,
  ): CoordinatorAnswers => ({
    job: {
      start: 2,
      incarnation: 1,
      state: 'starting',
      parallelism: 2,
      restarts: 0,
      restorePoint: { kind: 'empty' },
      end: { kind: 'none' },
      unconfirmed: null,
      slotsNeeded: 2,
      slotsOffered: 2,
      restore: null,
      lastFailure: null,
      ...job,
    },
    checkpoints: { intervalMs: 1_000, counters: null, pending, retained: [], completed: [], failed: [] },
    workers: { workers: [] },
    health: undefined,
    requests: {},
    hasInterval: true,
  })
  const told = (...given: Parameters<typeof answers>) => at(0, ...coordinatorFact(answers(...given)).progress)

  it('is further by bytes restored, subtasks and acknowledgements', () => {
    const stages = [
      told({ slotsOffered: 1 }),
      told({}),
      told({ restore: { bytesRead: null, subtasksRestored: 0 } }),
      told({ restore: { bytesRead: 10, subtasksRestored: 0 } }),
      told({ restore: { bytesRead: 11, subtasksRestored: 0 } }),
      told({ restore: { bytesRead: 11, subtasksRestored: 1 } }),
      told({ state: 'running' }),
      told({ state: 'running' }, { id: 8, phase: 'collecting', missing: ['a', 'b'] }),
      told({ state: 'running' }, { id: 8, phase: 'collecting', missing: ['b'] }),
    ]
    let known = ''
    for (const stage of stages) {
      const next = furtherThan(known, stage)
      expect(next, JSON.stringify(stage)).toBeDefined()
      known = next!
    }
    for (const stage of stages) expect(furtherThan(known, stage)).toBeUndefined()
    // The next of a checkpoint that failed, and the next incarnation, are no progress by themselves.
    const next = { id: 9, phase: 'collecting', missing: ['a', 'b'] }
    expect(furtherThan(known, told({ state: 'restarting', incarnation: 2 }, next))).toBeUndefined()
  })
})
