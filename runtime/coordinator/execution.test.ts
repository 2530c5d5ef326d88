import { describe, expect, it } from 'vitest'
import { incarnation, jobId, subtaskIndex, vertexId } from '../base/ids.ts'
import type { TaskId } from '../base/ids.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import { CONTROL_VERSION } from '../control/contract.ts'
import type { ControlLink, FromSlot, TaskDeployment, ToSlot } from '../control/contract.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { Execution, registrationDeadlineMs } from './execution.ts'
import type { Failure } from './execution.ts'
import { placeTasks } from './placement.ts'

const graph = graphOf({
  vertices: [
    { id: 'a', parallelism: 2 },
    { id: 'b', parallelism: 2 },
  ],
  edges: [['a', 'forward', 'b']],
})

class FakeSlot implements ControlLink<ToSlot, FromSlot> {
  readonly got: ToSlot[] = []
  closed = false
  say: (message: FromSlot) => void = () => undefined
  lose: (reason: string) => void = () => undefined

  send(message: ToSlot): void {
    this.got.push(message)
  }

  onMessage(callback: (message: FromSlot) => void): void {
    this.say = callback
  }

  onLost(callback: (reason: string) => void): void {
    this.lose = callback
  }

  close(): void {
    this.closed = true
  }
}

function subject() {
  const environment = manualEnvironment()
  const slots = new Map<string, FakeSlot>()
  const terminated: string[] = []
  const messages: FromSlot[] = []
  const failures: Failure[] = []
  const placement = placeTasks(graph)
  const execution = new Execution({
    graph,
    job: jobId('job'),
    incarnation: incarnation(2),
    rescaledTo: undefined,
    environment,
    placement,
    slots: {
      start: (slot) => {
        const fake = new FakeSlot()
        slots.set(slot, fake)
        return fake
      },
      terminate: async (slot) => void terminated.push(slot),
    },
    onMessage: (message) => messages.push(message),
    onFailure: (failure) => failures.push(failure),
  })
  const tasks = placement.tasks.map(({ task }) => task)
  const deploy = (of: readonly TaskId[]) =>
    execution.deploy(of.map((task) => ({ task, attempt: execution.attemptOf(task) }) as TaskDeployment))
  execution.renew(tasks)
  deploy(tasks)
  const register = (slot: string, change: Partial<Extract<FromSlot, { type: 'registered' }>> = {}) =>
    slots.get(slot)!.say({
      type: 'registered',
      version: CONTROL_VERSION,
      slot: slot as never,
      graphHash: graph.hash,
      tasks: [],
      ...change,
    })
  const run = (slot: string, task: TaskId, attempt = execution.attemptOf(task)) =>
    slots.get(slot)!.say({ type: 'running', task, attempt })
  return { execution, environment, slots, terminated, messages, failures, tasks, deploy, register, run }
}

const task = (vertex: string, subtask: number): TaskId => ({ vertex: vertexId(vertex), subtask: subtaskIndex(subtask) })

describe('an execution', () => {
  it('deploys to each slot what it hosts, once it has registered', () => {
    const { slots, register, execution } = subject()
    expect([...slots.keys()]).toEqual(['0#2.1', '1#2.1'])
    expect(slots.get('0#2.1')!.got).toEqual([])
    register('0#2.1')
    expect(slots.get('0#2.1')!.got).toMatchObject([
      { type: 'deploy', tasks: [{ task: task('a', 0) }, { task: task('b', 0) }] },
    ])
    execution.broadcast({ type: 'abort', id: 1 as never })
    expect(slots.get('1#2.1')!.got).toEqual([])
  })

  it('refuses a slot of another version or with another graph, and one that does not come', () => {
    const { register, failures, environment, slots } = subject()
    register('0#2.1', { graphHash: 'other' })
    expect(failures[0]!.error).toMatchObject({ code: 'MR-O14', retry: false })
    environment.clock.advance(registrationDeadlineMs)
    expect(failures[1]!.error).toMatchObject({ code: 'MR-O12', retry: true })
    // It comes after all: given up is given up.
    register('1#2.1')
    expect(slots.get('1#2.1')!.got).toEqual([])
    const again = subject()
    again.register('0#2.1', { version: CONTROL_VERSION + 1 })
    expect(again.failures[0]!.error).toMatchObject({ code: 'MR-O13' })
  })

  it('runs when every subtask does, and is finished when every subtask is', () => {
    const { execution, register, run, tasks, slots } = subject()
    register('0#2.1')
    register('1#2.1')
    for (const one of tasks.slice(1)) run(execution.slotOf(one), one)
    expect(execution.allRunning).toBe(false)
    expect(execution.someDeploying([tasks[1]!])).toBe(false)
    expect(execution.someDeploying(tasks)).toBe(true)
    run('0#2.1', tasks[0]!)
    expect([execution.allRunning, execution.allFinished]).toEqual([true, false])
    const snapshot = { operators: {}, finished: true, bytes: 0, syncMs: 0, asyncMs: 0, alignmentMs: 0 }
    for (const one of tasks)
      slots
        .get(execution.slotOf(one))!
        .say({ type: 'finished', task: one, attempt: execution.attemptOf(one), snapshot })
    expect([execution.allRunning, execution.allFinished]).toEqual([true, true])
  })

  it('counts a lost or failing slot once, with all that it hosts, and hears it no more', () => {
    const { slots, failures, messages, run, register } = subject()
    register('0#2.1')
    slots.get('0#2.1')!.lose('its thread ended')
    slots.get('0#2.1')!.say({
      type: 'failed',
      task: undefined,
      attempt: undefined,
      error: { name: 'Error', message: 'late', stack: undefined, code: undefined, retry: true },
    })
    run('0#2.1', task('a', 0))
    expect(failures).toHaveLength(1)
    expect(failures[0]).toMatchObject({ tasks: [task('a', 0), task('b', 0)], error: { code: 'MR-O11' } })
    expect(messages).toEqual([])
  })

  it('starts fresh slots for a restart; what an earlier attempt still says is not heard', async () => {
    const { execution, slots, terminated, tasks, deploy, register, run, messages } = subject()
    register('0#2.1')
    register('1#2.1')
    const old = execution.attemptOf(task('a', 0))
    const oldSlot = slots.get('0#2.1')!
    const again = tasks.filter(({ subtask }) => subtask === 0)
    execution.renew(again)
    await execution.terminate([0])
    deploy(again)
    expect([terminated, oldSlot.closed, execution.slotOf(task('a', 0))]).toEqual([['0#2.1'], true, '0#2.2'])
    oldSlot.say({ type: 'running', task: task('a', 0), attempt: old })
    run('1#2.1', task('a', 0), old)
    expect(messages).toEqual([])
    register('0#2.2')
    run('0#2.2', task('a', 0))
    expect(messages).toHaveLength(1)
    expect(execution.slotOf(task('a', 1))).toBe('1#2.1')
    await execution.close()
    expect(terminated).toEqual(['0#2.1', '1#2.1', '0#2.2'])
  })

  it('keeps the newest report of each current attempt', () => {
    const { execution, slots, register } = subject()
    register('0#2.1')
    const attempt = execution.attemptOf(task('a', 0))
    const say = (number: number, records: number) =>
      slots.get('0#2.1')!.say({
        type: 'report',
        tasks: [{ task: task('a', 0), attempt: { ...attempt, number }, metrics: { records_in_total: records } }],
      })
    say(attempt.number, 5)
    say(attempt.number + 7, 9)
    expect([...execution.tasks.values()][0]!.report?.metrics).toEqual({ records_in_total: 5 })
  })
})
