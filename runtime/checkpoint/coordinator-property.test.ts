// Whatever happens in whatever order, the coordinator keeps what the protocol rests on.

import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkpointId, incarnation, requestId, subtaskIndex, taskKey, vertexId } from '../base/ids.ts'
import type { Attempt, CheckpointId, RequestId, TaskId, TaskKey } from '../base/ids.ts'
import type { SubtaskSnapshot } from './contract.ts'
import type { CheckpointEvent, Topology } from './core-contract.ts'
import { createCheckpointCoordinator } from './coordinator.ts'

const [source, map, sink, log] = ['source', 'map', 'sink', 'log'].map(vertexId)
const topology: Topology = {
  vertices: [
    { id: source!, parallelism: 2, producers: [] },
    { id: map!, parallelism: 2, producers: [source!], forwardProducers: [source!] },
    { id: sink!, parallelism: 2, producers: [map!] },
    { id: log!, parallelism: 1, producers: [source!, map!] },
  ],
}
const tasks: TaskId[] = topology.vertices.flatMap(({ id, parallelism }) =>
  Array.from({ length: parallelism }, (_, index) => ({ vertex: id, subtask: subtaskIndex(index) })),
)
const settings = {
  intervalMs: 1000,
  timeoutMs: 3000,
  minPauseMs: 500,
  firstAtOnce: true,
  savepointTimeoutMs: 5000,
  tolerableFailures: 3,
} as const

interface Choice {
  readonly what: number
  readonly who: number
  readonly delayMs: number
}

const choices = fc.array(
  fc.record({ what: fc.nat(99), who: fc.nat(tasks.length - 1), delayMs: fc.constantFrom(0, 1, 50, 700, 3100) }),
  {
    maxLength: 120,
  },
)

/** A world that chooses among what may happen next, and watches what comes out. */
class World {
  readonly machine = createCheckpointCoordinator(topology, settings, { next: () => checkpointId(++this.lastId) })
  lastId = 0
  nowMs = 0
  readonly attempts = new Map<TaskKey, Attempt>(
    tasks.map((task) => [taskKey(task), { incarnation: incarnation(1), number: 1 }]),
  )
  readonly ended = new Set<TaskKey>()
  readonly finished = new Set<TaskKey>()
  readonly triggered = new Map<CheckpointId, Set<TaskKey>>()
  readonly sentBarrier = new Set<TaskKey>()
  readonly over = new Map<CheckpointId, 'aborted' | 'complete'>()
  readonly swapsWon = new Set<CheckpointId>()
  readonly notified = new Set<CheckpointId>()
  readonly asked = new Set<RequestId>()
  readonly answered = new Set<RequestId>()
  outstanding: { readonly type: 'manifest' | 'copies' | 'swap'; readonly id: CheckpointId } | undefined
  newestTriggered = 0

  choose({ what, who, delayMs }: Choice): void {
    this.nowMs += delayMs
    const task = tasks[who]!
    const key = taskKey(task)
    const attempt = this.attempts.get(key)!
    const stale: Attempt = { incarnation: incarnation(1), number: 0 }
    const id = this.machine.pending?.id ?? checkpointId(Math.max(1, this.lastId))
    if (what < 40 && !this.finished.has(key)) {
      // A subtask takes its snapshot only if a trigger or a barrier reached it.
      this.sentBarrier.add(key)
      this.step({ type: 'acknowledged', id, task, attempt, snapshot: snapshotOf(false) })
    } else if (what < 45)
      this.step({
        type: 'acknowledged',
        id: checkpointId(who),
        task,
        attempt: what % 2 ? stale : attempt,
        snapshot: snapshotOf(false),
      })
    else if (what < 49)
      this.step({ type: 'declined', id, task, attempt: what % 2 ? stale : attempt, reason: 'for a reason' })
    else if (what < 54) this.finish(task, attempt)
    else if (what < 58 && (task.vertex === sink || task.vertex === map)) {
      this.ended.add(key)
      this.step({ type: 'waitsForCheckpoint', task, attempt })
    } else if (what < 60) {
      this.lose(task)
      this.step({ type: 'allRunning', attempts: new Map(this.attempts) })
    } else if (what < 66) {
      const request = requestId(`request-${who}-${what}-${this.asked.size}`)
      this.asked.add(request)
      this.step(what % 2 ? { type: 'savepointRequested', request } : { type: 'checkpointRequested', request })
    } else if (what < 68) this.step({ type: 'triggerFailed', id, reason: 'enumerator' })
    else if (what < 90) this.settle(what < 86)
    else if (what < 93) this.copy()
    else this.step({ type: 'tick' })
  }

  finish(task: TaskId, attempt: Attempt): void {
    const key = taskKey(task)
    if (this.finished.has(key)) return
    this.finished.add(key)
    this.ended.add(key)
    this.step({ type: 'finished', task, attempt, snapshot: snapshotOf(true) })
  }

  lose(task: TaskId): void {
    const key = taskKey(task)
    this.step({ type: 'subtasksLost', tasks: [task] })
    this.attempts.set(key, { incarnation: incarnation(1), number: this.attempts.get(key)!.number + 1 })
    this.finished.delete(key)
    this.ended.delete(key)
  }

  /** Begins to copy for a manifest, or has copied. */
  copy(): void {
    const { outstanding } = this
    if (outstanding === undefined || outstanding.type === 'swap') return
    const { type, id } = outstanding
    if (type === 'copies' && this.machine.pending?.kind === 'savepoint') this.step({ type: 'copyProgressed', id })
    this.outstanding = { type: type === 'copies' ? 'manifest' : 'copies', id }
    this.step({ type: type === 'copies' ? 'copied' : 'copyBegun', id })
  }

  settle(well: boolean): void {
    if (well && this.outstanding?.type === 'copies') this.copy()
    const { outstanding } = this
    if (outstanding === undefined) return
    const { type, id } = outstanding
    // One that stays unclear waits on: the shell settles it (rule 4).
    if (type === 'swap' && !well) return
    this.outstanding = undefined
    if (type !== 'swap')
      return this.step(well ? { type: 'manifestWritten', id } : { type: 'manifestFailed', id, reason: 'store' })
    this.swapsWon.add(id)
    this.step({ type: 'swapWon', id })
    this.end(id, 'complete')
  }

  step(event: CheckpointEvent): void {
    for (const action of this.machine.step(event, this.nowMs)) {
      switch (action.type) {
        case 'trigger':
          expect(action.id).toBeGreaterThan(this.newestTriggered)
          expect([...this.triggered.keys()].filter((id) => !this.over.has(id))).toEqual(
            [...this.triggered.keys()].filter((id) => id === this.justWon(event)),
          )
          expect(action.tasks.length).toBeGreaterThan(0)
          this.newestTriggered = action.id
          this.triggered.set(action.id, new Set(action.tasks.map(taskKey)))
          this.sentBarrier.clear()
          break
        case 'triggerMore':
          for (const key of action.tasks.map(taskKey)) {
            expect(this.triggered.get(action.id)!.has(key), `${key} is triggered once`).toBe(false)
            this.triggered.get(action.id)!.add(key)
          }
          break
        case 'abort':
          this.end(action.id, 'aborted')
          if (this.outstanding?.id === action.id) {
            expect(this.outstanding.type, 'a write that can complete it goes on').toBe('copies')
            this.outstanding = undefined
          }
          break
        case 'writeManifest':
          expect(action.snapshot.subtasks.size).toBe(tasks.length)
          this.outstanding = { type: 'manifest', id: action.snapshot.id }
          break
        case 'swap':
          this.outstanding = { type: 'swap', id: action.snapshot.id }
          break
        case 'notifyComplete':
          expect(this.swapsWon.has(action.id), 'complete only after the swap').toBe(true)
          expect(this.notified.has(action.id)).toBe(false)
          this.notified.add(action.id)
          break
        case 'savepointAnswered':
          expect(this.asked.has(action.request)).toBe(true)
          expect(this.answered.has(action.request), 'answered once').toBe(false)
          this.answered.add(action.request)
          break
        case 'discard':
          expect([...this.machine.finished.values()], 'a final state in use is kept').not.toContain(action.snapshot)
          break
        case 'wakeIn':
          expect(action.delayMs).toBeGreaterThan(0)
          break
        case 'restartHalted':
        case 'failJob':
          break
        default:
          action satisfies never
      }
    }
    this.expectAllReachable()
  }

  justWon(event: CheckpointEvent): CheckpointId | undefined {
    return event.type === 'swapWon' ? event.id : undefined
  }

  end(id: CheckpointId, how: 'aborted' | 'complete'): void {
    expect(this.over.has(id), `${id} ends once`).toBe(false)
    this.over.set(id, how)
  }

  /** Everybody whose acknowledgement is missing was triggered, or has a producer that will, or did, send the barrier. */
  expectAllReachable(): void {
    const { pending } = this.machine
    if (pending?.phase !== 'collecting') return
    for (const task of tasks) {
      const key = taskKey(task)
      if (!pending.missing.has(key) || this.triggered.get(pending.id)!.has(key)) continue
      const producers = producersOf(task).map(taskKey)
      const carried = producers.some((producer) => !this.ended.has(producer) || this.sentBarrier.has(producer))
      expect(carried, `${key} hears of ${pending.id}`).toBe(true)
    }
  }
}

function snapshotOf(finished: boolean): SubtaskSnapshot {
  return { operators: {}, finished, bytes: 0, syncMs: 0, asyncMs: 0, alignmentMs: 0 }
}

function producersOf({ vertex, subtask }: TaskId): TaskId[] {
  const shape = topology.vertices.find(({ id }) => id === vertex)!
  return tasks.filter(
    (task) =>
      shape.producers.includes(task.vertex) &&
      (shape.forwardProducers?.includes(task.vertex) !== true || task.subtask === subtask),
  )
}

describe('the checkpoint coordinator under random events', () => {
  it('keeps ids rising, at most one snapshot pending, one end per id, commits behind swaps, and one answer per request', () => {
    fc.assert(
      fc.property(choices, (list) => {
        const world = new World()
        world.step({ type: 'allRunning', attempts: new Map(world.attempts) })
        for (const choice of list) world.choose(choice)
      }),
      { numRuns: 400 },
    )
  })

  // 2 s alone: 200 rounds after each list; the machine may be busy.
  it('completes a checkpoint and answers every request once the trouble stops', { timeout: 120_000 }, () => {
    fc.assert(
      fc.property(choices, (list) => {
        const world = new World()
        world.step({ type: 'allRunning', attempts: new Map(world.attempts) })
        for (const choice of list) world.choose(choice)
        for (const task of tasks) world.lose(task)
        world.step({ type: 'allRunning', attempts: new Map(world.attempts) })
        const completedBefore = world.machine.lastCompleted ?? 0
        for (let round = 0; round < 200; round++) {
          world.settle(true)
          world.settle(true)
          const { pending } = world.machine
          if (pending?.phase === 'collecting') {
            for (const task of tasks) {
              const attempt = world.attempts.get(taskKey(task))!
              world.step({ type: 'acknowledged', id: pending.id, task, attempt, snapshot: snapshotOf(false) })
            }
          } else {
            world.nowMs += 1000
            world.step({ type: 'tick' })
          }
        }
        expect(world.machine.lastCompleted ?? 0).toBeGreaterThan(completedBefore)
        expect(world.answered).toEqual(world.asked)
      }),
      { numRuns: 100 },
    )
  })
})
