import { describe, expect, it } from 'vitest'
import { requestId } from '../base/ids.ts'
import { RequestQueue, rememberedRequestsMax, waitingRequestsMax } from './requests.ts'
import { decideTrigger, finalRetryDelayMs, nextPeriodicDue } from './triggering.ts'
import type { TriggerFacts } from './triggering.ts'

const nothing: TriggerFacts = {
  request: undefined,
  finalNotBeforeMs: undefined,
  periodicDueMs: undefined,
  lastEndMs: undefined,
  minPauseMs: 500,
}
const request = { kind: 'savepoint', request: requestId('r'), deadlineMs: 9999 } as const

describe('what starts now, at 1000', () => {
  const table: readonly (readonly [string, Partial<TriggerFacts>, unknown])[] = [
    ['nothing to do', {}, { start: undefined, waitUntilMs: undefined }],
    ['due', { periodicDueMs: 1000 }, { start: 'periodic' }],
    ['not yet due', { periodicDueMs: 1001 }, { start: undefined, waitUntilMs: 1001 }],
    ['due, pausing', { periodicDueMs: 900, lastEndMs: 501 }, { start: undefined, waitUntilMs: 1001 }],
    ['due, pause over', { periodicDueMs: 900, lastEndMs: 500 }, { start: 'periodic' }],
    [
      'not due, pause over later still',
      { periodicDueMs: 1200, lastEndMs: 900 },
      { start: undefined, waitUntilMs: 1400 },
    ],
    ['asked for while pausing', { request, lastEndMs: 999 }, { start: 'request', request }],
    ['asked for while due', { request, periodicDueMs: 900 }, { start: 'request', request }],
    ['asked for while a final one is due', { request, finalNotBeforeMs: 900 }, { start: 'request', request }],
    ['final while pausing', { finalNotBeforeMs: 1000, lastEndMs: 999 }, { start: 'final' }],
    [
      'final after its back-off',
      { finalNotBeforeMs: 1050, periodicDueMs: 2000 },
      { start: undefined, waitUntilMs: 1050 },
    ],
    [
      'periodic before the back-off of a final one',
      { finalNotBeforeMs: 3000, periodicDueMs: 1000 },
      { start: 'periodic' },
    ],
  ]
  for (const [name, facts, decision] of table)
    it(name, () => expect(decideTrigger({ ...nothing, ...facts }, 1000)).toEqual(decision))
})

describe('the grid of the interval', () => {
  it('goes on behind a start that was late', () => {
    expect([
      nextPeriodicDue(1000, 1000, 999),
      nextPeriodicDue(1000, 1000, 1000),
      nextPeriodicDue(1000, 1000, 1003),
    ]).toEqual([1000, 2000, 2000])
  })
  it('leaves out what was missed', () => {
    expect(nextPeriodicDue(1000, 1000, 4500)).toBe(5000)
  })
})

it('the back-off of a final checkpoint doubles up to ten seconds', () => {
  expect([0, 1, 2, 3, 8, 100].map(finalRetryDelayMs)).toEqual([0, 100, 200, 400, 10_000, 10_000])
})

describe('waiting requests', () => {
  const entry = (name: string, kind: 'savepoint' | 'checkpoint' = 'savepoint') => ({
    kind,
    request: requestId(name),
    deadlineMs: 100,
  })

  it('are bounded', () => {
    const queue = new RequestQueue()
    for (let index = 0; index < waitingRequestsMax; index++) expect(queue.add(entry(`r${index}`))).toBe('added')
    expect(queue.add(entry('one more'))).toBe('full')
  })

  it('that nobody wants an answer to collapse into one', () => {
    const queue = new RequestQueue()
    const anonymous = { kind: 'checkpoint', request: undefined, deadlineMs: 100 } as const
    expect([queue.add(anonymous), queue.add(anonymous)]).toEqual(['added', 'known'])
  })

  it('are known while they wait, run, and as long as their answer is remembered', () => {
    const queue = new RequestQueue()
    queue.add(entry('r'))
    expect(queue.add(entry('r'))).toBe('known')
    queue.take(queue.next!)
    expect(queue.add(entry('r'))).toBe('known')
    queue.answered(requestId('r'))
    expect(queue.add(entry('r'))).toBe('known')
    for (let index = 0; index < rememberedRequestsMax; index++) queue.answered(requestId(`later-${index}`))
    expect(queue.add(entry('r'))).toBe('added')
  })

  it('are given up at their deadline', () => {
    const queue = new RequestQueue()
    queue.add(entry('r'))
    expect(queue.giveUp({ dueAtMs: 99 })).toEqual([])
    expect(queue.earliestDeadlineMs).toBe(100)
    expect(queue.giveUp({ dueAtMs: 100 })).toEqual([entry('r')])
    expect(queue.next).toBeUndefined()
  })
})
