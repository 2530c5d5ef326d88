import { describe, expect, it } from 'vitest'
import { InvariantError } from '../base/errors.ts'
import { checkpointId } from '../base/ids.ts'
import type { StateHandle } from '../checkpoint/contract.ts'
import type { FromSlot } from '../control/contract.ts'
import { MEMORY_RECORDS_MAX } from '../network/limits.ts'
import { MAX_WATERMARK } from '../record/element.ts'
import { recordError } from '../record/errors.ts'
import type { Halt } from '../record/element.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { barrier, testTask } from './harness.ts'
import { closeDeadlineMs, finalDeadlineMsMin } from './task.ts'

type Subject = Awaited<ReturnType<typeof testTask>>

function send(subject: Subject, channel: number, ...items: (number | string)[]): void {
  const output = subject.producers[channel]!
  for (const item of items) {
    if (typeof item === 'number') output.emit(item, item)
    else if (item === 'end') output.event({ kind: 'end' })
    else if (item === 'idle') output.event({ kind: 'status', idle: true })
    else if (item.startsWith('watermark')) output.event({ kind: 'watermark', timestamp: Number(item.slice(10)) })
    else {
      const [word, id] = item.split(' ')
      const halt: { kind?: 'savepoint'; halt?: Halt } =
        word === 'stop' || word === 'drain' ? { kind: 'savepoint', halt: word } : {}
      output.event({ kind: 'barrier', barrier: { ...barrier(Number(id)), ...halt } })
    }
  }
  output.flush()
}

const acknowledged = ({ sent }: Subject) =>
  sent.filter((message) => message.type === 'acknowledged').map(({ id }) => id)
const declined = ({ sent }: Subject) =>
  sent.filter((message) => message.type === 'declined').map(({ id, reason }) => `${id}: ${reason}`)
const lastOf = (subject: Subject, type: FromSlot['type']) => subject.sent.findLast((message) => message.type === type)

describe('alignment in a task (R1)', () => {
  it('keeps what is behind a barrier queued, goes on with the others, and snapshots exactly what lies before both', async () => {
    const subject = await testTask()
    send(subject, 0, 1, 'barrier 1', 10)
    send(subject, 1, 2)
    await subject.settle()
    expect(subject.operator.story).toEqual(['process 1', 'process 2'])
    send(subject, 1, 3, 'barrier 1', 20)
    await subject.settle()
    expect(subject.operator.story).toEqual([
      'process 1',
      'process 2',
      'process 3',
      'snapshot 1 of 6',
      'process 10',
      'process 20',
    ])
    expect(subject.taken()).toEqual([1, 2, 3, 'barrier 1', 10, 20])
    expect(acknowledged(subject)).toEqual([1])
  })

  it('goes on when the checkpoint is aborted, and a late barrier of it aligns nothing', async () => {
    const subject = await testTask()
    send(subject, 0, 'barrier 1', 10)
    await subject.settle()
    subject.task.abort(checkpointId(1))
    await subject.settle()
    expect(subject.operator.story).toEqual(['process 10'])
    send(subject, 1, 'barrier 1', 20)
    await subject.settle()
    expect(subject.operator.story).toEqual(['process 10', 'process 20'])
    expect(subject.types()).toEqual(['running'])
  })
})

describe('a trigger', () => {
  it("is declined while state is being restored, and an abort or a permit is nobody's then", async () => {
    const subject = await testTask({ started: false, twoPhase: true })
    subject.task.trigger(barrier(1))
    subject.task.abort(checkpointId(1))
    subject.task.complete(checkpointId(1))
    await subject.settle()
    expect(declined(subject)).toEqual(['1: its state is still being restored'])
    expect(subject.operator.story).toEqual([])
    subject.start()
    await subject.settle()
    expect(subject.types()).toEqual(['declined', 'running'])
  })

  it('waits behind the end of data of every channel (rule 19)', async () => {
    const subject = await testTask()
    send(subject, 0, 1, 'end')
    subject.task.trigger(barrier(3))
    await subject.settle()
    expect(acknowledged(subject)).toEqual([])
    send(subject, 1, 2, 'end')
    await subject.settle()
    expect(subject.operator.story).toEqual([
      'process 1',
      'process 2',
      'snapshot 3 of 3',
      'finish',
      expect.stringContaining('snapshot'),
      'close',
    ])
    expect(subject.taken()).toEqual([1, 2, 'barrier 3', 1003, 'end'])
  })

  it('of an earlier life, or come twice, does nothing', async () => {
    const subject = await testTask({ newestKnown: 5 })
    send(subject, 0, 'barrier 5', 1)
    subject.task.trigger(barrier(5))
    await subject.settle()
    expect(subject.operator.story).toEqual(['process 1'])
    expect(subject.types()).toEqual(['running'])
  })

  it('is ignored by a subtask that has finished: its final state speaks for it', async () => {
    const subject = await testTask()
    send(subject, 0, 'end')
    send(subject, 1, 'end')
    await subject.settle()
    expect(subject.task.state).toBe('closed')
    subject.task.trigger(barrier(4))
    subject.task.abort(checkpointId(4))
    subject.task.complete(checkpointId(4))
    await subject.settle()
    expect(subject.types()).toEqual(['running', 'finished'])
    expect(subject.failures).toEqual([])
  })
})

describe('an operator that is not ready', () => {
  it('holds its producers back until it is: no record and no barrier reaches it', async () => {
    const subject = await testTask()
    subject.operator.ready = false
    send(subject, 0, 1, 'barrier 1', 2)
    send(subject, 1, 3, 'barrier 1')
    await subject.settle()
    expect(subject.operator.story).toEqual([])
    subject.operator.ready = true
    subject.operator.wake()
    await subject.settle()
    expect(subject.operator.sum).toBe(6)
    expect(acknowledged(subject)).toEqual([1])
  })
})

describe('a snapshot', () => {
  it('is declined when its async part fails, and the task goes on', async () => {
    const subject = await testTask()
    subject.operator.onSnapshot = () => Promise.reject(new Error('disk full'))
    send(subject, 0, 'barrier 1', 1)
    send(subject, 1, 'barrier 1', 2)
    await subject.settle()
    expect(declined(subject)).toEqual(['1: Error: disk full'])
    expect(subject.operator.sum).toBe(3)
    expect(subject.failures).toEqual([])
  })

  it('fails the task when its sync part throws (R7), or when an invariant or a value is broken in its async part', async () => {
    for (const broken of [
      () => {
        throw new Error('sync')
      },
      () => Promise.reject(new InvariantError('async')),
      () => Promise.reject(recordError('MR-R04', 'mean is 0.5, not a whole number.')),
    ]) {
      const subject = await testTask()
      subject.operator.onSnapshot = broken
      send(subject, 0, 'barrier 1', 1)
      send(subject, 1, 'barrier 1')
      await subject.settle()
      expect(subject.failures).toHaveLength(1)
      expect(subject.types()).toEqual(['running'])
    }
  })

  it('whose async part still runs when the next begins is given up, and only the next is acknowledged', async () => {
    let stuck = true
    const writer = {
      write: async (): Promise<StateHandle> =>
        stuck ? new Promise<never>(() => undefined) : { kind: 'inline', base64: '', crc: 0 },
    }
    const subject = await testTask({ withKeys: true, writer })
    subject.operator.keyed!.setKey(1)
    subject.operator.keyed!.timers.register('event', 50)
    send(subject, 0, 'barrier 1')
    send(subject, 1, 'barrier 1')
    await subject.settle()
    expect(subject.types()).toEqual(['running'])
    stuck = false
    send(subject, 0, 'barrier 2')
    send(subject, 1, 'barrier 2')
    await subject.settle()
    expect(acknowledged(subject)).toEqual([2])
    expect(declined(subject)).toEqual([expect.stringMatching(/^1: .*MR-T06/)])
  })

  it('that never gets written does not keep a subtask from its end once it is aborted', async () => {
    const subject = await testTask()
    let calls = 0
    subject.operator.onSnapshot = () => (++calls === 1 ? new Promise<never>(() => undefined) : {})
    send(subject, 0, 'barrier 1', 'end')
    send(subject, 1, 'barrier 1', 'end')
    await subject.settle()
    expect(subject.task.state).toBe('ending')
    subject.task.abort(checkpointId(1))
    await subject.settle()
    expect(subject.types()).toEqual(['running', 'finished'])
  })
})

describe('the end of data', () => {
  it('comes after what finish emits; the acknowledgement goes out before the final state, and everything is closed once', async () => {
    const subject = await testTask()
    send(subject, 0, 1, 'end')
    send(subject, 1, 'barrier 2', 'end')
    await subject.settle()
    expect(subject.taken()).toEqual([1, 'barrier 2', 1001, 'end'])
    expect(subject.types()).toEqual(['running', 'acknowledged', 'finished'])
    expect(subject.closes()).toBe(1)
    expect(lastOf(subject, 'finished')).toMatchObject({ snapshot: { finished: true } })
  })

  it('brings the last watermark and its timers before finish', async () => {
    const subject = await testTask({ withKeys: true })
    subject.operator.keyed!.setKey(7)
    subject.operator.keyed!.timers.register('event', 500)
    send(subject, 0, `watermark ${MAX_WATERMARK}`, 'end')
    send(subject, 1, `watermark ${MAX_WATERMARK}`, 'end')
    await subject.settle()
    expect(subject.operator.story.slice(0, 3)).toEqual(['timer event 500', `watermark ${MAX_WATERMARK}`, 'finish'])
    expect(subject.taken()).toEqual([-500, `watermark ${MAX_WATERMARK}`, 1000, 'end'])
  })

  it('waits in a two-phase subtask until a checkpoint that holds all of it is committed, and goes out only then (rule 3)', async () => {
    const subject = await testTask({ twoPhase: true })
    send(subject, 0, 'barrier 1', 1, 'end')
    send(subject, 1, 'barrier 1', 'end')
    await subject.settle()
    expect(subject.types().toSorted()).toEqual(['acknowledged', 'running', 'waitsForCheckpoint'])
    // Pre-committed before the end of data: its commit does not cover what came after it.
    subject.task.complete(checkpointId(1))
    await subject.settle()
    expect(subject.task.state).toBe('committing')
    subject.task.trigger(barrier(2, 'savepoint'))
    await subject.settle()
    subject.task.complete(checkpointId(2))
    await subject.settle()
    expect(subject.task.state).toBe('committing')
    subject.task.trigger(barrier(3))
    await subject.settle()
    subject.task.abort(checkpointId(3))
    subject.task.trigger(barrier(4))
    await subject.settle()
    expect(subject.taken()).toEqual(['barrier 1', 1, 1001, 'barrier 2', 'barrier 3', 'barrier 4'])
    subject.task.complete(checkpointId(4))
    await subject.settle()
    expect(subject.taken()).toEqual(['end'])
    expect(subject.types().slice(-2)).toEqual(['committed', 'finished'])
  })

  it('goes out once, though a second permit comes while a slow commit still carries out the first', async () => {
    const subject = await testTask({ twoPhase: true })
    let commit!: () => void
    subject.operator.onComplete = (id) => (id === 1 ? new Promise((resolve) => (commit = resolve)) : Promise.resolve())
    send(subject, 0, 'end')
    send(subject, 1, 'end')
    await subject.settle()
    for (const id of [1, 2]) {
      subject.task.trigger(barrier(id))
      await subject.settle()
      subject.task.complete(checkpointId(id))
      await subject.settle()
    }
    commit()
    await subject.settle()
    expect(subject.taken()).toEqual([1000, 'barrier 1', 'barrier 2', 'end'])
  })

  it('answers a trigger behind it with a snapshot, but with no barrier', async () => {
    const subject = await testTask()
    let write!: () => void
    subject.operator.onSnapshot = (id) => (id === 1 ? new Promise((resolve) => (write = () => resolve({}))) : {})
    send(subject, 0, 'barrier 1', 'end')
    send(subject, 1, 'barrier 1', 'end')
    await subject.settle()
    expect(subject.task.state).toBe('ending')
    subject.task.trigger(barrier(2))
    await subject.settle()
    expect(acknowledged(subject)).toEqual([2])
    expect(subject.taken()).toEqual(['barrier 1', 1000, 'end'])
    write()
    await subject.settle()
    expect(subject.task.state).toBe('closed')
  })

  it('fails the slot when closing fails', async () => {
    const subject = await testTask()
    subject.environment.failpoints.throwAt('task.close', new Error('cannot close'))
    send(subject, 0, 'end')
    send(subject, 1, 'end')
    await subject.settle()
    expect(subject.failures).toEqual([new Error('cannot close')])
    expect(subject.types()).toEqual(['running'])
  })
})

describe('a stop barrier (rule 25, R20)', () => {
  it('is the last thing that is read and emitted: what lies behind it stays in the channels', async () => {
    const subject = await testTask()
    send(subject, 0, 1, 'stop 1', 10)
    send(subject, 1, 2, 'stop 1', 20)
    await subject.settle()
    expect(subject.operator.story).toEqual(['process 1', 'process 2', 'snapshot 1 of 3'])
    expect(subject.taken()).toEqual([1, 2, 'barrier 1'])
    expect(acknowledged(subject)).toEqual([1])
    expect(subject.task.state).toBe('halted')
  })

  it('drops what an operator still has to do, carries out permits, and answers no later trigger', async () => {
    const subject = await testTask({ twoPhase: true })
    send(subject, 0, 'stop 3')
    send(subject, 1, 'stop 3')
    await subject.settle()
    subject.task.postOfOperator(() => subject.operator.story.push('mail of the operator'))
    subject.task.complete(checkpointId(3))
    subject.task.trigger(barrier(4))
    subject.task.abort(checkpointId(3))
    await subject.settle()
    expect(subject.operator.story).toEqual(['snapshot 3 of 0', 'complete 3'])
    expect(acknowledged(subject)).toEqual([3])
    expect(subject.task.state).toBe('halted')
  })

  it('fires no timer that comes due behind it', async () => {
    const subject = await testTask({ withKeys: true })
    subject.keyed!.setKey(1)
    subject.keyed!.timers.register('processing', subject.environment.clock.wallMs() + 10)
    send(subject, 0, 'stop 1')
    send(subject, 1, 'stop 1')
    await subject.settle()
    await subject.environment.clock.advanceSettled(100)
    await subject.settle()
    expect(subject.operator.story).toEqual(['snapshot 1 of 0'])
  })

  it('with drain comes behind the last event timers and what finish emits, and all that is in the snapshot; a processing timer still waits', async () => {
    const subject = await testTask({ withKeys: true })
    subject.keyed!.setKey(7)
    subject.keyed!.timers.register('event', 500)
    subject.keyed!.timers.register('processing', subject.environment.clock.wallMs() + 10)
    for (const channel of [0, 1]) send(subject, channel, `watermark ${MAX_WATERMARK}`, 'drain 2')
    await subject.settle()
    expect(subject.operator.story).toEqual([
      'timer event 500',
      `watermark ${MAX_WATERMARK}`,
      'finish',
      'snapshot 2 of 0',
    ])
    expect(subject.taken()).toEqual([-500, `watermark ${MAX_WATERMARK}`, 1000, 'barrier 2'])
    expect(subject.task.state).toBe('halted')
  })

  it('of a subtask at its end of data leaves that end in place: its consumers count on it', async () => {
    const subject = await testTask()
    let write!: () => void
    subject.operator.onSnapshot = (id) => (id === 1 ? new Promise((resolve) => (write = () => resolve({}))) : {})
    send(subject, 0, 'barrier 1', 'end')
    send(subject, 1, 'barrier 1', 'end')
    await subject.settle()
    subject.task.trigger({ ...barrier(2), kind: 'savepoint', halt: 'stop' })
    write()
    await subject.settle()
    expect(acknowledged(subject)).toEqual([1, 2])
    expect(subject.task.state).toBe('closed')
  })
})

describe('a task without credit', () => {
  it('stops reading and goes on when there is room, losing and reordering nothing', async () => {
    const subject = await testTask()
    const count = MEMORY_RECORDS_MAX + 3000
    for (let n = 1; n <= count; n++) subject.producers[0]!.emit(n, n)
    subject.producers[0]!.flush()
    await subject.settle()
    const before = subject.operator.story.length
    expect(before).toBeLessThan(count)
    const words = subject.taken()
    while (words.length < count) {
      await subject.settle()
      const more = subject.taken()
      expect(more.length, 'it goes on').toBeGreaterThan(0)
      words.push(...more)
    }
    expect(words).toEqual(Array.from({ length: count }, (_, index) => index + 1))
    expect(subject.metrics.values.get('records_in_total')).toBe(count)
  })

  it('is not woken again and again by a processing-time timer that is due', async () => {
    const subject = await testTask({ withKeys: true })
    subject.operator.keyed!.setKey(1)
    subject.operator.keyed!.timers.register('processing', subject.environment.clock.wallMs() + 10)
    for (let n = 0; n < 2 * MEMORY_RECORDS_MAX; n++) subject.producers[0]!.emit(n, n)
    subject.producers[0]!.flush()
    await subject.settle()
    subject.environment.clock.advance(20)
    await subject.settle()
    expect(subject.environment.clock.waiting).toBe(0)
    expect(subject.operator.story).not.toContain(expect.stringContaining('timer'))
    subject.taken()
    await subject.settle()
    expect(subject.operator.story.findLast((line) => line.startsWith('timer'))).toContain('timer processing')
  })
})

describe('time in a task', () => {
  it('fires a processing-time timer when it is due though nothing is read', async () => {
    const subject = await testTask({ withKeys: true })
    subject.operator.keyed!.setKey(1)
    const dueMs = subject.environment.clock.wallMs() + 250
    send(subject, 0, 1)
    subject.operator.keyed!.timers.register('processing', dueMs)
    await subject.settle()
    expect(subject.operator.story).toEqual(['process 1'])
    subject.environment.clock.advance(250)
    await subject.settle()
    expect(subject.operator.story).toEqual(['process 1', `timer processing ${dueMs}`])
  })

  it('leaves no timer armed at its end, however many wait', async () => {
    const subject = await testTask({ withKeys: true, twoPhase: true })
    subject.operator.keyed!.setKey(1)
    subject.operator.keyed!.timers.register('processing', subject.environment.clock.wallMs() + 5)
    send(subject, 0, 'end')
    send(subject, 1, 'end')
    await subject.settle()
    expect(subject.task.state).toBe('committing')
    expect(subject.environment.clock.waiting).toBe(0)
  })

  it('lets idleness out only behind the timers and the watermark that came with it', async () => {
    const subject = await testTask({ withKeys: true })
    subject.operator.keyed!.setKey(7)
    subject.operator.keyed!.timers.register('event', 60)
    send(subject, 0, 'watermark 80', 'idle')
    send(subject, 1, 'watermark 50')
    await subject.settle()
    expect(subject.taken()).toEqual(['watermark 50'])
    send(subject, 1, 'idle')
    await subject.settle()
    expect(subject.taken()).toEqual([-60, 'watermark 80', 'idle'])
  })

  it('sends what is buffered when it has nothing to read, and after the buffer timeout while it has', async () => {
    let asked = 0
    // A slice is a few records, so that the task is seen in the middle of its work.
    const budget = { begin: () => void (asked = 0), shouldYield: () => ++asked > 4 }
    const subject = await testTask({ environment: manualEnvironment({ budget }), bufferTimeoutMs: 100 })
    send(subject, 0, ...Array.from({ length: 40 }, (_, index) => index + 1))
    for (let turn = 0; turn < 6; turn++) subject.turn()
    expect(subject.operator.story.length).toBeGreaterThan(0)
    expect(subject.taken()).toEqual([])
    subject.environment.clock.advance(100)
    subject.turn()
    expect(subject.taken().length).toBeGreaterThan(0)
    await subject.settle()
    expect(subject.operator.story).toHaveLength(40)
  })
})

describe('a task that ends before its time', () => {
  it('says nothing more, and what it still writes is not acknowledged', async () => {
    const subject = await testTask()
    let write!: () => void
    subject.operator.onSnapshot = () => new Promise((resolve) => (write = () => resolve({})))
    send(subject, 0, 'barrier 1')
    send(subject, 1, 'barrier 1')
    await subject.settle()
    subject.task.close()
    write()
    send(subject, 0, 1)
    await subject.settle()
    expect(subject.types()).toEqual(['running'])
    expect(subject.operator.sum).toBe(0)
  })

  it('also in the middle of closing', async () => {
    const subject = await testTask()
    let close!: () => void
    subject.operator.onClose = () => new Promise<void>((resolve) => (close = resolve))
    send(subject, 0, 'end')
    send(subject, 1, 'end')
    await subject.settle()
    expect(subject.task.state).toBe('finished')
    subject.task.close()
    close()
    await subject.settle()
    expect(subject.types()).toEqual(['running'])
  })

  it('is failed when an operator does not close within its deadline: the job would never end', async () => {
    const subject = await testTask()
    subject.operator.onClose = () => new Promise(() => {})
    send(subject, 0, 'end')
    send(subject, 1, 'end')
    await subject.settle()
    await subject.environment.clock.advanceSettled(closeDeadlineMs - 1)
    expect(subject.failures).toEqual([])
    await subject.environment.clock.advanceSettled(1)
    expect(subject.failures).toEqual([expect.objectContaining({ code: 'MR-J64', retry: true })])
  })

  it('is failed when its final state is not written within its deadline: behind it stands no timeout of the coordinator', async () => {
    for (const checkpointTimeoutMs of [1_000, 2 * finalDeadlineMsMin]) {
      const subject = await testTask({ checkpointTimeoutMs })
      subject.operator.onSnapshot = () => new Promise(() => {})
      send(subject, 0, 'end')
      send(subject, 1, 'end')
      await subject.settle()
      expect(subject.task.state).toBe('finished')
      await subject.environment.clock.advanceSettled(Math.max(checkpointTimeoutMs, finalDeadlineMsMin) - 1)
      expect(subject.failures).toEqual([])
      await subject.environment.clock.advanceSettled(1)
      expect(subject.failures).toEqual([expect.objectContaining({ code: 'MR-J67', retry: true })])
      expect(subject.types()).toEqual(['running'])
    }
  })

  it('fails with the error of a record, once', async () => {
    const subject = await testTask()
    subject.operator.process = () => {
      throw new Error('bad record')
    }
    send(subject, 0, 1, 2)
    await subject.settle()
    expect(subject.failures).toEqual([new Error('bad record')])
  })
})
