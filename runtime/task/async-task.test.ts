// An asynchronous operator within a task: what waits for its records in flight, and what does not.

import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { AsyncOperator } from '../operators/async-operator.ts'
import type { AsyncWork } from '../operators/async-operator.ts'
import { asyncSettings } from '../operators/async-options.ts'
import type { AsyncOptions } from '../operators/async-options.ts'
import type { Halt } from '../record/element.ts'
import { typeInfoOf } from '../record/type-info.ts'
import { barrier, testTask } from './harness.ts'
import type { TestTaskOptions } from './harness.ts'

const input = typeInfoOf('numbers', z.int()) as AsyncWork['input']

interface Given extends TestTaskOptions {
  readonly async?: Partial<AsyncOptions<never, unknown>>
  /** Where the asynchronous operator stands to the recording one; default: first. */
  readonly place?: 'first' | 'last'
}

/** Answers are the test's, and ten times the record. */
async function subjectOf({ async: options = {}, place = 'first', ...rest }: Given = {}) {
  const open = new Map<number, { answer: () => void; refuse: (error: unknown) => void }>()
  const settings = asyncSettings('the test', { timeoutMs: 1_000, ...options })
  const call = (value: unknown) =>
    new Promise((resolve, reject) => {
      open.set(Number(value), { answer: () => resolve(Number(value) * 10), refuse: reject })
    })
  const operator = new AsyncOperator({ kind: 'mapAsync', call, input, settings })
  const subject = await testTask({ ...rest, [place]: operator })
  return {
    ...subject,
    answer: async (value: number) => {
      open.get(value)!.answer()
      await subject.settle()
    },
    refuse: async (value: number) => {
      open.get(value)!.refuse(new Error('busy'))
      await subject.settle()
    },
    open: () => [...open.keys()],
    send: async (channel: number, ...items: (number | string)[]) => {
      const output = subject.producers[channel]!
      for (const item of items) {
        const [word, number] = String(item).split(' ')
        if (typeof item === 'number') output.emit(item, item)
        else if (item === 'end') output.event({ kind: 'end' })
        else if (item === 'idle') output.event({ kind: 'status', idle: true })
        else if (word === 'watermark') output.event({ kind: 'watermark', timestamp: Number(number) })
        else if (word === 'barrier') output.event({ kind: 'barrier', barrier: barrier(Number(number)) })
        else output.event({ kind: 'barrier', barrier: { ...barrier(Number(number), 'savepoint'), halt: word as Halt } })
      }
      output.flush()
      await subject.settle()
    },
    /** Values in the acknowledged state of the asynchronous operator. */
    acknowledged: () =>
      subject.sent.flatMap((message) => {
        if (message.type !== 'acknowledged') return []
        const state = message.snapshot.operators[place]?.operatorState?.['in-flight']
        return [{ id: message.id, inFlight: state?.count ?? 0 }]
      }),
  }
}

/** Both producers send the same. */
async function sendBoth(subject: Awaited<ReturnType<typeof subjectOf>>, ...items: string[]): Promise<void> {
  for (const channel of [0, 1]) await subject.send(channel, ...items)
}

describe('backpressure of an asynchronous operator', () => {
  it('stops the reading while its capacity is in flight, and an answer makes room', async () => {
    const subject = await subjectOf({ async: { capacity: 2 } })
    await subject.send(0, 1, 2, 3, 4)
    expect(subject.open()).toEqual([1, 2])
    expect(subject.task.run()).toBe('wait')
    await subject.answer(2)
    expect(subject.open()).toEqual([1, 2])
    await subject.answer(1)
    expect(subject.open()).toEqual([1, 2, 3, 4])
    expect(subject.taken()).toEqual([10, 20])
    subject.environment.clock.advance(700)
    await subject.answer(3)
    expect(subject.metrics.values.get('backpressured_ms_total')).toBe(700)
  })

  it('stops timers of the operator in front of it too', async () => {
    const subject = await subjectOf({ async: { capacity: 1 }, place: 'last', withKeys: true })
    await sendBoth(subject, 'watermark 0')
    subject.keyed!.setKey(1)
    for (const time of [5, 6]) subject.keyed!.timers.register('event', time)
    await sendBoth(subject, 'watermark 9')
    expect(subject.operator.story).toEqual(['watermark 0', 'timer event 5'])
    await subject.answer(-5)
    expect(subject.operator.story).toEqual(['watermark 0', 'timer event 5', 'timer event 6'])
    expect(subject.taken()).toEqual(['watermark 0', -50])
    await subject.answer(-6)
    expect(subject.taken()).toEqual([-60, 'watermark 9'])
  })
})

describe('time behind records in flight', () => {
  it('reaches a chained follower and the edge only behind the results that it follows', async () => {
    const subject = await subjectOf()
    await subject.send(0, 1)
    await sendBoth(subject, 'watermark 5')
    await subject.send(0, 7)
    await sendBoth(subject, 'watermark 8')
    await subject.answer(7)
    expect(subject.operator.story).toEqual([])
    await subject.answer(1)
    expect(subject.operator.story).toEqual(['process 10', 'watermark 5', 'process 70', 'watermark 8'])
    expect(subject.taken()).toEqual([10, 'watermark 5', 70, 'watermark 8'])
  })

  it('stands still: the task is idle for its consumers only when nothing is in flight', async () => {
    const subject = await subjectOf()
    await subject.send(0, 1)
    await sendBoth(subject, 'watermark 5', 'idle')
    expect(subject.taken()).toEqual([])
    await subject.answer(1)
    expect(subject.taken()).toEqual([10, 'watermark 5', 'idle'])
  })

  it('is not called idle when the input goes on before the answer', async () => {
    const subject = await subjectOf()
    await subject.send(0, 1)
    await sendBoth(subject, 'idle')
    const [first] = subject.producers
    first!.event({ kind: 'status', idle: false })
    await subject.send(0, 2)
    await subject.answer(1)
    await subject.answer(2)
    expect(subject.taken()).toEqual(['active', 10, 20])
  })
})

describe('a barrier', () => {
  it('goes out before the results in flight, which are in its snapshot', async () => {
    const subject = await subjectOf()
    await subject.send(0, 1, 2)
    await subject.answer(1)
    await subject.send(0, 3)
    await subject.answer(3)
    await sendBoth(subject, 'barrier 1')
    expect(subject.taken()).toEqual([10, 'barrier 1'])
    expect(subject.acknowledged()).toEqual([{ id: 1, inFlight: 2 }])
    await subject.answer(2)
    expect(subject.taken()).toEqual([20, 30])
    await sendBoth(subject, 'barrier 2')
    expect(subject.acknowledged().at(-1)).toEqual({ id: 2, inFlight: 0 })
  })

  it('to stop with is the last thing that goes out: answers, refusals and timeouts behind it are dropped', async () => {
    const subject = await subjectOf({ async: { timeoutMs: 100 } })
    await subject.send(0, 1, 2, 3)
    await sendBoth(subject, 'stop 1')
    expect(subject.taken()).toEqual(['barrier 1'])
    expect(subject.acknowledged()).toEqual([{ id: 1, inFlight: 3 }])
    await subject.answer(1)
    await subject.refuse(2)
    subject.environment.clock.advance(1_000)
    await subject.settle()
    expect([subject.taken(), subject.failures, subject.task.state]).toEqual([[], [], 'halted'])
  })

  it('to drain with waits until everything in flight is out, and followers have finished behind it', async () => {
    const subject = await subjectOf()
    await subject.send(0, 1, 2)
    await sendBoth(subject, 'watermark 9', 'drain 1')
    expect([subject.task.state, subject.taken()]).toEqual(['draining', []])
    await subject.answer(2)
    await subject.answer(1)
    expect(subject.operator.story).toEqual(['process 10', 'process 20', 'watermark 9', 'finish', 'snapshot 1 of 30'])
    expect(subject.taken()).toEqual([10, 20, 'watermark 9', 1030, 'barrier 1'])
    expect(subject.acknowledged()).toEqual([{ id: 1, inFlight: 0 }])
    expect(subject.task.state).toBe('halted')
  })
})

describe('the end of the input', () => {
  it('waits for what is in flight; then followers finish, and the end goes out', async () => {
    const subject = await subjectOf()
    await subject.send(0, 1)
    await sendBoth(subject, 'watermark 5')
    await sendBoth(subject, 'end')
    expect([subject.task.state, subject.taken()]).toEqual(['finishing', []])
    await subject.answer(1)
    expect(subject.operator.story.slice(0, 3)).toEqual(['process 10', 'watermark 5', 'finish'])
    expect(subject.taken()).toEqual([10, 'watermark 5', 1010, 'end'])
  })

  it('does not wait where the operator stands behind one that emits its last record then', async () => {
    const subject = await subjectOf({ place: 'last' })
    await sendBoth(subject, 'end')
    expect(subject.open()).toEqual([1000])
    expect(subject.taken()).toEqual([])
    await subject.answer(1000)
    expect(subject.taken()).toEqual([10_000, 'end'])
  })

  it('takes a checkpoint meanwhile, with what is in flight', async () => {
    const subject = await subjectOf()
    await subject.send(0, 1, 'end')
    await subject.send(1, 'end')
    subject.task.trigger(barrier(1))
    await subject.settle()
    expect(subject.acknowledged()).toEqual([{ id: 1, inFlight: 1 }])
    await subject.answer(1)
    expect(subject.taken()).toEqual(['barrier 1', 10, 1010, 'end'])
  })
})

describe('a failed attempt', () => {
  it('fails once, and neither calls nor emits after it', async () => {
    const subject = await subjectOf({ async: { order: 'unordered' } })
    await subject.send(0, 1, 2, 3)
    await subject.refuse(2)
    expect(subject.failures.map(String)).toEqual([expect.stringMatching(/MR-J50.*mapAsync of operator 'first'.*busy/)])
    await subject.answer(1)
    await subject.refuse(3)
    expect([subject.taken(), subject.failures.length]).toEqual([[], 1])
  })

  it('of another operator ends its timers and tries with it', async () => {
    const subject = await subjectOf({ async: { timeoutMs: 100, retries: { attempts: 9, delayMs: 10 } } })
    await subject.send(0, 1, 2)
    await subject.refuse(2)
    subject.task.close()
    await subject.refuse(1)
    subject.environment.clock.advance(10_000)
    await subject.settle()
    expect([subject.taken(), subject.failures, subject.environment.clock.waiting]).toEqual([[], [], 0])
  })
})
