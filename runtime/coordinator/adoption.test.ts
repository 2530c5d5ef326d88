import { describe, expect, it } from 'vitest'
import { incarnation, slotId, taskKey } from '../base/ids.ts'
import type { Attempt, SlotId, TaskId } from '../base/ids.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import { CONTROL_VERSION } from '../control/contract.ts'
import type { ControlLink, FromSlot, SurvivingSlot, SurvivingTask, ToSlot } from '../control/contract.ts'
import type { ChannelPeer } from '../network/contract.ts'
import { decideAdoption, isComplete } from './adoption.ts'
import { consumersOf, producersOf } from './deployment.ts'
import { placeTasks } from './placement.ts'

const graph = graphOf({
  vertices: [
    { id: 'source', parallelism: 2 },
    { id: 'sink', parallelism: 2 },
  ],
  edges: [['source', 'hash', 'sink']],
})
/** Each subtask of a pair is a region of its own. */
const pairs = graphOf({
  vertices: [
    { id: 'source', parallelism: 2 },
    { id: 'sink', parallelism: 2 },
  ],
  edges: [['source', 'forward', 'sink']],
})

const attempt: Attempt = { incarnation: incarnation(3), number: 1 }
const link = {} as ControlLink<ToSlot, FromSlot>

type Change = (task: SurvivingTask) => SurvivingTask

/** Slots as incarnation 3 left them, everything running. `change` has the last word on each task. */
function survivors(of = graph, change: Change = (task) => task): SurvivingSlot[] {
  const bySlot = new Map<number, SurvivingTask[]>()
  for (const { task, slot } of placeTasks(of).tasks) {
    const vertex = of.vertices.find(({ id }) => id === task.vertex)!
    const peer = (edge: number, producer: TaskId, consumer: TaskId, at: TaskId): ChannelPeer => ({
      channel: { edge: of.edges[edge]!.id, producer: producer.subtask, consumer: consumer.subtask },
      attempt,
      address: { slot: slotId('any'), subject: taskKey(at) },
    })
    const surviving: SurvivingTask = {
      task,
      attempt,
      status: 'running',
      inputs: vertex.inputs.flatMap((edge) =>
        producersOf(of.edges[edge]!, task.subtask, of).map((other) => peer(edge, other, task, other)),
      ),
      outputs: vertex.outputs.flatMap((edge) =>
        consumersOf(of.edges[edge]!, task.subtask, of).map((other) => peer(edge, task, other, other)),
      ),
      final: undefined,
      waitsForCheckpoint: false,
      splits: undefined,
    }
    bySlot.set(slot, [...(bySlot.get(slot) ?? []), change(surviving)])
  }
  return [...bySlot].map(([number, tasks]) => survivor(`${number}#3.1`, tasks, of.hash))
}

function survivor(slot: string, tasks: readonly SurvivingTask[], graphHash = graph.hash): SurvivingSlot {
  const registered = { type: 'registered', version: CONTROL_VERSION, slot: slotId(slot), graphHash, tasks } as const
  return { slot: slotId(slot), registered, link }
}

function decide(
  found: readonly SurvivingSlot[],
  of = graph,
  strategy: 'region' | 'full' = 'region',
  deployed?: readonly SlotId[],
) {
  const { tasks, restart, given, unfit, slots } = decideAdoption({
    graph: of,
    placement: placeTasks(of),
    strategy,
    deployed,
    survivors: found,
  })
  return {
    adopted: tasks.map(({ task }) => taskKey(task)),
    restart: restart.map(taskKey),
    given: given.map(({ slot }) => slot),
    slots: slots.map(({ number, survivor: { slot } }) => `${number}: ${slot}`),
    unfit: Object.fromEntries(unfit),
  }
}

const all = ['source/0', 'source/1', 'sink/0', 'sink/1']
const isTask = (key: string, { task }: SurvivingTask): boolean => taskKey(task) === key

describe('adoption (rule 25)', () => {
  it('takes everything over when every subtask is reported once, in the attempts that it has', () => {
    expect(decide(survivors())).toEqual({
      adopted: all,
      restart: [],
      given: [],
      slots: ['0: 0#3.1', '1: 1#3.1'],
      unfit: {},
    })
  })

  it('is waited for until every subtask is reported, by whomever', () => {
    const [first, second] = survivors()
    expect(isComplete(placeTasks(graph), [first!], undefined)).toBe(false)
    expect(isComplete(placeTasks(graph), [first!, second!], undefined)).toBe(true)
  })

  it('takes nothing over when nobody reports', () => {
    expect(decide([])).toMatchObject({ adopted: [], restart: all, given: [] })
  })

  const misfits: readonly [string, Change, string, string][] = [
    [
      'that is still being restored',
      (task) => (isTask('sink/1', task) ? { ...task, status: 'restoring' } : task),
      'sink/1',
      'its state is still being restored',
    ],
    [
      'behind a stop barrier',
      (task) => (isTask('sink/0', task) ? { ...task, status: 'halted' } : task),
      'sink/0',
      'it stands behind a stop barrier',
    ],
    [
      'that has finished and lost its final state',
      (task) => (isTask('source/0', task) ? { ...task, status: 'finished' } : task),
      'source/0',
      'its final state is missing',
    ],
    [
      'in an attempt that its neighbours do not know',
      (task) => (isTask('sink/1', task) ? { ...task, attempt: { ...attempt, number: 2 } } : task),
      'source/0',
      'it is connected to attempt 3.1 of sink/1, and 3.2 runs',
    ],
    [
      'without one of its channels',
      (task) => (isTask('sink/1', task) ? { ...task, inputs: task.inputs.slice(1) } : task),
      'sink/1',
      'it has no channel to source/0',
    ],
  ]
  it.each(misfits)('restarts the region of a subtask %s', (_, change, key, why) => {
    const decided = decide(survivors(graph, change))
    expect(decided).toMatchObject({ adopted: [], restart: all, given: ['0#3.1', '1#3.1'] })
    expect(decided.unfit).toMatchObject({ [key]: why })
  })

  it('takes nothing of a slot that was given up: what it runs ran elsewhere meanwhile', () => {
    const [first, second] = survivors(pairs)
    const deployed = [slotId('0#3.1'), slotId('1#3.2')]
    expect(isComplete(placeTasks(pairs), [first!, second!], deployed)).toBe(false)
    const decided = decide([first!, second!], pairs, 'region', deployed)
    expect(decided).toMatchObject({
      adopted: ['source/0', 'sink/0'],
      restart: ['source/1', 'sink/1'],
      given: ['1#3.1'],
    })
    // The life that took its place is there too: that one goes on.
    const next = survivor('1#3.2', second!.registered.tasks, pairs.hash)
    expect(decide([first!, second!, next], pairs, 'region', deployed)).toMatchObject({ restart: [], given: ['1#3.1'] })
  })

  it('restarts only the region that does not fit, and with it whoever shares its slots', () => {
    const restoring: Change = (task) => (isTask('sink/1', task) ? { ...task, status: 'restoring' } : task)
    expect(decide(survivors(pairs, restoring), pairs)).toMatchObject({
      adopted: ['source/0', 'sink/0'],
      restart: ['source/1', 'sink/1'],
      given: ['1#3.1'],
      slots: ['0: 0#3.1'],
    })
    expect(decide(survivors(pairs, restoring), pairs, 'full')).toMatchObject({ adopted: [], restart: all })
  })

  it('takes over what has finished with its final state', () => {
    const final = { operators: {}, finished: true, bytes: 0, syncMs: 0, asyncMs: 0, alignmentMs: 0 }
    const finished: Change = (task) => (isTask('source/0', task) ? { ...task, status: 'finished', final } : task)
    expect(decide(survivors(graph, finished))).toMatchObject({ adopted: all, restart: [] })
  })

  it('takes nothing of a subtask that runs twice: neither is known to be the one that its neighbours hear', () => {
    const [first, second] = survivors(pairs)
    const double = survivor('0#2.9', first!.registered.tasks, pairs.hash)
    const decided = decide([first!, second!, double], pairs)
    expect(decided).toMatchObject({ adopted: ['source/1', 'sink/1'], restart: ['source/0', 'sink/0'] })
    expect(decided.given).toEqual(['0#3.1', '0#2.9'])
    expect(decided.unfit).toEqual({ 'source/0': '2 slots run it', 'sink/0': '2 slots run it' })
  })

  it('takes nothing of a slot of which two lives run one half each', () => {
    const [first, second] = survivors(pairs)
    const [source, sink] = first!.registered.tasks
    const halves = [survivor('0#3.1', [source!], pairs.hash), survivor('0#3.2', [sink!], pairs.hash)]
    expect(decide([...halves, second!], pairs)).toMatchObject({
      adopted: ['source/1', 'sink/1'],
      given: ['0#3.1', '0#3.2'],
      unfit: { 'source/0': 'two lives of slot 0 run on', 'sink/0': 'two lives of slot 0 run on' },
    })
  })

  it('takes nothing of another graph, another version, or a slot in another place', () => {
    const other = survivors().map((slot) => ({ ...slot, registered: { ...slot.registered, graphHash: 'other' } }))
    expect(decide(other)).toMatchObject({ adopted: [], unfit: { 'source/0': 'its slot runs another graph (other)' } })
    const old = survivors().map((slot) => ({ ...slot, registered: { ...slot.registered, version: 0 } }))
    expect(decide(old).unfit).toMatchObject({ 'sink/1': 'its slot speaks version 0 of the control messages' })
    const [first, second] = survivors()
    const elsewhere = decide([survivor('5#3.1', first!.registered.tasks), second!])
    expect(elsewhere).toMatchObject({ adopted: [], unfit: { 'source/0': 'it runs in slot 5#3.1' } })
  })
})
