// Between 'running', which says that a subtask has restored, and the coordinator's word that all have: it does nothing of the job's.

import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkpointId, keyGroup } from '../base/ids.ts'
import { AsyncOperator } from '../operators/async-operator.ts'
import { asyncSettings } from '../operators/async-options.ts'
import { typeInfoOf } from '../record/type-info.ts'
import { MemorySnapshots, snapshotOf } from '../state/conformance-harness.ts'
import { createHeapBackend } from '../state/heap/backend.ts'
import { ManualClock } from '../testkit/manual-clock.ts'
import { barrier, testTask } from './harness.ts'

type Subject = Awaited<ReturnType<typeof testTask>>

function sendAll({ producers }: Subject, ...values: number[]): void {
  for (const output of producers) {
    for (const value of values) output.emit(value, value)
    output.flush()
  }
}

/** What a keyed task leaves that has a timer of each domain, both due long ago. */
async function timersLeft() {
  const snapshots = new MemorySnapshots()
  const clock = new ManualClock()
  const backend = createHeapBackend({
    uid: 'sums',
    timerMeaning: 'timers of sums',
    first: keyGroup(0),
    last: keyGroup(7),
    maxParallelism: 8,
    clock,
  })
  backend.setKey(1)
  backend.timers.register('event', 10)
  backend.timers.register('processing', clock.wallMs() + 5)
  backend.setWatermark(20)
  return { snapshots, restored: [await snapshotOf(backend, snapshots)] }
}

async function passes(subject: Subject, ms: number): Promise<void> {
  await subject.environment.clock.advanceSettled(ms)
  await subject.settle()
}

describe('a subtask that has restored and has not been told to begin', () => {
  it('says that it runs, and takes no record until then', async () => {
    const subject = await testTask({ waits: true })
    sendAll(subject, 1, 2)
    await passes(subject, 60_000)
    expect([subject.types(), subject.operator.story]).toEqual([['running'], []])
    subject.task.begin()
    await subject.settle()
    expect(subject.operator.story).toEqual(['process 1', 'process 2', 'process 1', 'process 2'])
  })

  it('fires no restored timer, of event time or of processing time, until then', async () => {
    const subject = await testTask({ withKeys: true, waits: true, ...(await timersLeft()) })
    await passes(subject, 60_000)
    expect([subject.operator.story, subject.taken()]).toEqual([[], []])
    subject.task.begin()
    await subject.settle()
    expect(subject.operator.story).toEqual([
      'timer event 10',
      'watermark 20',
      expect.stringMatching(/^timer processing \d+$/),
    ])
  })

  it('calls no asynchronous function for what was in flight until then, and for that before any record', async () => {
    const input = typeInfoOf('numbers', z.int()) as never
    const called: unknown[] = []
    const operator = new AsyncOperator({
      kind: 'mapAsync',
      call: (value) => (called.push(value), new Promise(() => undefined)),
      input,
      settings: asyncSettings('the test', { timeoutMs: 1_000_000 }),
    })
    const subject = await testTask({ waits: true, first: operator })
    // As open() does with what it restores.
    subject.task.postOfOperator(() => operator.process(7, 7))
    sendAll(subject, 1)
    await passes(subject, 1_000)
    expect(called).toEqual([])
    subject.task.begin()
    await subject.settle()
    expect(called).toEqual([7, 1, 1])
  })

  it('is known as running to a coordinator that adopts it, hears what that says, and begins with its word', async () => {
    const subject = await testTask({ waits: true, twoPhase: true })
    sendAll(subject, 5)
    const surveys: string[] = []
    subject.task.survey(({ status }) => surveys.push(status))
    subject.task.dropAlignment()
    subject.task.adopt(checkpointId(9))
    subject.task.complete(checkpointId(4))
    subject.task.abort(checkpointId(9))
    await subject.settle()
    expect(surveys).toEqual(['running'])
    expect(subject.operator.story).toEqual(['complete 4'])
    subject.task.begin()
    await subject.settle()
    expect(subject.operator.story).toEqual(['complete 4', 'process 5', 'process 5'])
  })

  it('declines a trigger, which comes behind that word', async () => {
    const subject = await testTask({ waits: true })
    subject.task.trigger(barrier(1))
    await subject.settle()
    expect(subject.sent).toMatchObject([{ type: 'running' }, { type: 'declined', id: 1 }])
    subject.task.begin()
    subject.task.trigger(barrier(2))
    await subject.settle()
    // Behind the end of data of its producers, as ever.
    expect(subject.types()).toEqual(['running', 'declined'])
  })

  it('is ended like one that runs', async () => {
    const subject = await testTask({ waits: true })
    subject.task.close()
    subject.task.begin()
    await subject.settle()
    expect([subject.task.state, subject.closes(), subject.failures]).toEqual(['closed', 1, []])
  })

  it('may be told more than once, and in vain before it has restored', async () => {
    const subject = await testTask({ waits: true, started: false })
    subject.task.begin()
    await subject.settle()
    subject.start()
    sendAll(subject, 3)
    await subject.settle()
    expect(subject.operator.story).toEqual([])
    for (let time = 0; time < 3; time++) subject.task.begin()
    await subject.settle()
    subject.task.begin()
    await subject.settle()
    expect(subject.operator.story).toEqual(['process 3', 'process 3'])
  })
})
