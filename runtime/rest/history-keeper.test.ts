import { describe, expect, it } from 'vitest'
import { checkpointId, incarnation, jobId, start, subtaskIndex, taskKey, vertexId } from '../base/ids.ts'
import type { ObjectKey, ObjectStore } from '../storage/contract.ts'
import { newJob } from '../storage/head.ts'
import { MemoryObjectStore } from '../storage/memory-store.ts'
import { historyKey } from '../storage/paths.ts'
import { manualEnvironment, settlePromises } from '../testkit/manual-clock.ts'
import { HistoryKeeper, lastWriteDeadlineMs, writePauseMs } from './history-keeper.ts'
import {
  JobHistory,
  failuresRemembered,
  messageLengthMax,
  snapshotsRemembered,
  subtaskLinesMax,
} from './job-history.ts'
import { checkpointRef } from './test-job.ts'

const firstWriteAfterMs = 1_000
const firstHead = newJob({ job: jobId('orders'), start: start(1), parallelism: 1, maxParallelism: 8 })

/** A life of a coordinator. */
function live(store: ObjectStore, by: number) {
  const environment = manualEnvironment()
  const history = new JobHistory(environment.clock)
  const keeper = new HistoryKeeper({ history, store, environment, firstWriteAfterMs })
  const { observer } = history
  return {
    ...environment,
    history,
    keeper,
    begin: async (of = 1) => {
      await keeper.load()
      observer.began?.({ ...firstHead, start: start(of), incarnation: incarnation(by) }, { kind: 'empty' })
    },
    fails: (message: string) => observer.restarting?.({ message, inMs: 5, tasks: 2 }),
    runs: () => observer.running?.(),
    completes: (id: number, subtasks = 1) => observer.checkpointCompleted?.(completed(id, subtasks)),
    misses: (id: number) =>
      observer.checkpointFailed?.({ id: checkpointId(id), kind: 'checkpoint', reason: 'expired', detail: 'late' }),
    warnings: () => environment.lines.filter(({ level }) => level === 'warn').map(({ message }) => message),
  }
}

function completed(id: number, subtasks: number) {
  const manifest = checkpointRef(id)
  const figures = { operators: {}, finished: false, bytes: 7, syncMs: 1, asyncMs: 2, alignmentMs: 3, startDelayMs: 4 }
  const tasks = Array.from({ length: subtasks }, (_, index) => ({
    vertex: vertexId('v'),
    subtask: subtaskIndex(index),
  }))
  const acknowledged = new Map(tasks.map((task) => [taskKey(task), { task, snapshot: figures }]))
  const collected = {
    id: manifest.id,
    kind: 'checkpoint',
    triggeredAtMs: 0,
    subtasks: acknowledged,
    request: undefined,
  } as const
  return { manifest, durationMs: 12, collected }
}

const messagesOf = (history: JobHistory): string[] => history.remembered.exceptions.map(({ message }) => message)
const keysIn = (store: ObjectStore): Promise<ObjectKey[]> => store.list('')

describe('what is remembered of a job', () => {
  it('outlives its coordinator: failures, restarts, completed and failed checkpoints', async () => {
    const store = new MemoryObjectStore()
    const first = live(store, 1)
    await first.begin()
    first.completes(1)
    first.misses(2)
    first.fails('a slot was lost')
    first.clock.advance(300)
    first.runs()
    await first.clock.advanceSettled(firstWriteAfterMs)
    // It dies here.
    const second = live(store, 2)
    await second.begin()
    expect(second.history.remembered).toEqual(first.history.remembered)
    expect(second.history.lastFailure?.message).toBe('a slot was lost')
    // It was of another start.
    const later = live(store, 2)
    await later.begin(2)
    expect(later.history.lastFailure).toBeNull()
    second.fails('another one')
    second.completes(3)
    await second.keeper.close()
    const third = live(store, 3)
    await third.begin()
    expect(third.history.remembered.exceptions.map(({ message, incarnation: by }) => [message, by])).toEqual([
      ['a slot was lost', 1],
    ])
    await second.clock.advanceSettled(firstWriteAfterMs)
    expect(await keysIn(store)).toEqual([historyKey(incarnation(1), 1)])
  })

  it('is written at the end, unless the job ended at once', async () => {
    const store = new MemoryObjectStore()
    const short = live(store, 1)
    await short.begin()
    short.fails('x')
    await short.keeper.close()
    expect(await keysIn(store)).toEqual([])
    const long = live(store, 2)
    await long.begin()
    await long.clock.advanceSettled(firstWriteAfterMs)
    long.fails('y')
    await long.keeper.close()
    const next = live(store, 3)
    await next.begin()
    expect(messagesOf(next.history)).toEqual(['y'])
  })

  it('is written at most every so often, and only when something is new; the older object goes after the newer is there', async () => {
    const memory = new MemoryObjectStore()
    const calls: string[] = []
    const store: ObjectStore = {
      ...delegated(memory),
      create: (key, bytes) => {
        calls.push(`create ${key}`)
        return memory.create(key, bytes)
      },
      delete: (keys) => {
        if (keys.length > 0) calls.push(`delete ${keys.join()}`)
        return memory.delete(keys)
      },
    }
    const life = live(store, 4)
    await life.begin()
    for (let second = 0; second < 25; second++) {
      life.fails(`failure ${second}`)
      await life.clock.advanceSettled(1_000)
    }
    await life.clock.advanceSettled(10 * writePauseMs)
    expect(calls).toEqual([
      'create history/4-1',
      'create history/4-2',
      'delete history/4-1',
      'create history/4-3',
      'delete history/4-2',
      'create history/4-4',
      'delete history/4-3',
    ])
  })

  it('is bounded, whatever happens: entries, characters, lines of subtasks', async () => {
    const life = live(new MemoryObjectStore(), 1)
    await life.begin()
    for (let index = 0; index < failuresRemembered + 5; index++) life.fails(`${index} ${'x'.repeat(10_000)}`)
    const lines = subtaskLinesMax / 4
    for (let id = 1; id <= snapshotsRemembered + 5; id++) life.completes(id, lines)
    const { exceptions, restarts, completed: snapshots } = life.history.remembered
    expect([exceptions.length, restarts.length, snapshots.length]).toEqual([
      failuresRemembered,
      failuresRemembered,
      snapshotsRemembered,
    ])
    expect(exceptions[0]!.message.startsWith('5 ')).toBe(true)
    expect(exceptions[0]!.message).toHaveLength(messageLengthMax)
    expect(snapshots.map(({ subtasks }) => subtasks?.length ?? null).slice(-6)).toEqual([
      null,
      null,
      lines,
      lines,
      lines,
      lines,
    ])
  })
})

describe('a history that cannot be read', () => {
  it('is logged, and an older one counts, or none; the job goes on', async () => {
    const store = new MemoryObjectStore()
    const first = live(store, 1)
    await first.begin()
    first.fails('readable')
    await first.clock.advanceSettled(firstWriteAfterMs)
    for (const [number, text] of ['{', '{"format":2}', '{"format":1,"completed":[]}', '\u0000'].entries())
      await store.create(historyKey(incarnation(2), number + 1), new TextEncoder().encode(text))
    const third = live(store, 3)
    await third.begin()
    expect(messagesOf(third.history)).toEqual(['readable'])
    expect(third.lines.map(({ fields }) => String(fields?.['error']))).toEqual([
      expect.stringMatching(/^MR-H09 .*history\/2-4/),
      expect.stringMatching(/^MR-H09 .*history\/2-3/),
      expect.stringMatching(/^MR-H09 .*history\/2-2/),
      expect.stringMatching(/^MR-H09 .*history\/2-1/),
    ])
    third.fails('new')
    await third.clock.advanceSettled(firstWriteAfterMs)
    expect(await keysIn(store)).toEqual([historyKey(incarnation(3), 1)])
  })

  it('because the store is away is not taken for none: it is looked for again before anything takes its place', async () => {
    const memory = new MemoryObjectStore()
    const first = live(memory, 1)
    await first.begin()
    first.fails('before')
    await first.clock.advanceSettled(firstWriteAfterMs)
    let away = true
    const store: ObjectStore = {
      ...delegated(memory),
      list: (prefix) => (away ? Promise.reject(new Error('503')) : memory.list(prefix)),
    }
    const second = live(store, 2)
    await second.begin()
    second.fails('after')
    await second.clock.advanceSettled(firstWriteAfterMs)
    expect(await keysIn(memory)).toEqual([historyKey(incarnation(1), 1)])
    away = false
    await second.clock.advanceSettled(writePauseMs)
    expect(messagesOf(second.history)).toEqual(['before', 'after'])
    expect(await keysIn(memory)).toEqual([historyKey(incarnation(2), 1)])
  })
})

describe('a store that fails', () => {
  it('is tried again later under another name: what had no answer may still land', async () => {
    const memory = new MemoryObjectStore()
    let failing = true
    const store: ObjectStore = {
      ...delegated(memory),
      create: async (key, bytes) => {
        const answer = await memory.create(key, bytes)
        if (failing) throw new Error('no answer')
        return answer
      },
    }
    const life = live(store, 1)
    await life.begin()
    life.fails('x')
    await life.clock.advanceSettled(firstWriteAfterMs)
    expect(life.warnings()).toHaveLength(1)
    failing = false
    await life.clock.advanceSettled(writePauseMs)
    expect(await keysIn(memory)).toEqual([historyKey(incarnation(1), 2)])
  })

  it('does not hold up the end', async () => {
    const memory = new MemoryObjectStore()
    const life = live({ ...delegated(memory), create: () => new Promise(() => undefined) }, 1)
    await life.begin()
    await life.clock.advanceSettled(firstWriteAfterMs)
    life.fails('x')
    let closed = false
    const closing = life.keeper.close().then(() => (closed = true))
    await settlePromises()
    expect(closed).toBe(false)
    await life.clock.advanceSettled(lastWriteDeadlineMs)
    await closing
    expect(life.warnings()).toEqual(['the history of the job was not written at its end'])
    expect(life.clock.waiting).toBe(0)
  })
})

/** The methods of a class do not spread. */
function delegated(store: ObjectStore): ObjectStore {
  return {
    create: (key, bytes) => store.create(key, bytes),
    read: (key) => store.read(key),
    readRange: (key, offset, length) => store.readRange(key, offset, length),
    delete: (keys) => store.delete(keys),
    list: (prefix) => store.list(prefix),
  }
}
