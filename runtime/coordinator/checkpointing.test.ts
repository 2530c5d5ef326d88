import { describe, expect, it } from 'vitest'
import { InvariantError } from '../base/errors.ts'
import { checkpointId, incarnation, jobId, requestId, start, subtaskIndex, vertexId } from '../base/ids.ts'
import type { SnapshotReader, StateHandle } from '../checkpoint/contract.ts'
import type { CheckpointAction, CheckpointEvent, CollectedSnapshot } from '../checkpoint/core-contract.ts'
import type { CheckpointCoordinator } from '../checkpoint/coordinator.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import { codec, collectedOf, listOf, subtaskSnapshot, transaction } from '../checkpoint/test-snapshots.ts'
import type { HeadStore, ObjectKey, ObjectStore, SavepointStore } from '../storage/contract.ts'
import { close, newJob, requestSavepoint, reserveIds } from '../storage/head.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { MemoryHeadStore, MemoryObjectStore } from '../storage/memory-store.ts'
import { manualEnvironment, settlePromises } from '../testkit/manual-clock.ts'
import { ReservedIds } from './checkpoint-ids.ts'
import { Checkpointing, manifestDeadlineMs } from './checkpointing.ts'
import type { Enumerators } from './enumerators.ts'
import type { Execution } from './execution.ts'

const graph = graphOf({ vertices: [{ id: 'source' }, { id: 'sink' }], edges: [['source', 'hash', 'sink']] })
const source = { vertex: vertexId('source'), subtask: subtaskIndex(0) }
const id = (value: number) => checkpointId(value)

/** The core is the test's: it answers events with the actions that the test wants, and everything is written down in one story. */
async function subject(
  options: {
    readonly head?: (memory: MemoryHeadStore) => HeadStore
    readonly store?: Partial<ObjectStore>
    readonly ids?: number
    readonly reader?: SnapshotReader
    readonly savepoints?: SavepointStore
  } = {},
) {
  const environment = manualEnvironment()
  const memory = new MemoryHeadStore()
  const keeper = await HeadKeeper.open(options.head?.(memory) ?? memory, environment)
  await keeper.begin(() => newJob({ job: jobId('job'), start: start(1), parallelism: 1, maxParallelism: 8 }))
  await keeper.update((head) => reserveIds(head, 1000).head)
  const story: string[] = []
  const answers = new Map<CheckpointEvent['type'], (event: CheckpointEvent) => readonly CheckpointAction[]>()
  const core = {
    step: (event: CheckpointEvent) => {
      story.push(`event ${event.type}${'reason' in event ? ` (${event.reason})` : ''}`)
      return answers.get(event.type)?.(event) ?? []
    },
  } as unknown as CheckpointCoordinator
  const store = new MemoryObjectStore()
  const create = store.create.bind(store)
  store.create = async (key, bytes) => {
    story.push(`create ${key}`)
    return create(key, bytes)
  }
  const ids = new ReservedIds()
  ids.add({ from: 1, to: options.ids ?? 1000 })
  let snapshotFails = false
  const checkpointing = new Checkpointing({
    core,
    ids,
    keeper,
    store: Object.assign(store, options.store),
    savepoints: options.savepoints,
    writers: { ofKind: () => ({ write: async () => ({ kind: 'inline', base64: '', crc: 0 }) }) },
    reader: options.reader ?? { read: async () => new Uint8Array() },
    environment,
    graph,
    job: jobId('job'),
    start: start(1),
    incarnation: incarnation(1),
    execution: {
      send: (task: typeof source, message: { type: string; id: number; kind: string }) =>
        story.push(`${message.type} ${message.kind} ${message.id} to ${task.vertex}`),
      broadcast: (message: { type: string; id: number }) => story.push(`${message.type} ${message.id} to all`),
    } as unknown as Execution,
    enumerators: {
      snapshot: (of: number) => {
        if (snapshotFails) throw new Error('no snapshot')
        story.push(`enumerators ${of}`)
        return new Map([['source', { codec, bytes: new Uint8Array() }]])
      },
    } as unknown as Enumerators,
    onCompleted: ({ manifest }) => story.push(`completed ${manifest.id}`),
    onOrphan: (of) => story.push(`orphan of ${of}`),
    onAborted: ({ id: of }) => story.push(`aborted ${of}`),
    onLateCopies: (of) => story.push(`late copies of ${of}`),
    onRequestFailed: (request) => story.push(`request ${request} failed`),
    onHaltFailed: () => story.push('halt failed'),
    onStepped: () => undefined,
    onFailJob: (reason) => story.push(`fail: ${reason}`),
    onOvertaken: ({ outcome }) => story.push(outcome),
    onBroken: (error) => story.push(`broken: ${error instanceof InvariantError ? 'invariant' : String(error)}`),
  })
  const collected = (of: number): CollectedSnapshot => ({
    ...collectedOf(graph, (vertex) =>
      subtaskSnapshot(vertex === 'sink' ? { sink: { committables: [transaction('t', of)] } } : {}),
    ),
    id: id(of),
  })
  /** The core does what it does for a snapshot that all have acknowledged. */
  const completes = (of: number, snapshot = collected(of)) => {
    answers.set('acknowledged', () => [{ type: 'writeManifest', snapshot }])
    answers.set('manifestWritten', () => [{ type: 'swap', snapshot }])
    answers.set('swapWon', () => [{ type: 'notifyComplete', id: id(of) }])
    checkpointing.handle({
      type: 'acknowledged',
      id: id(of),
      task: source,
      attempt: { incarnation: incarnation(1), number: 1 },
      snapshot: subtaskSnapshot({}),
    })
  }
  return {
    checkpointing,
    answers,
    story,
    completes,
    collected,
    keeper,
    memory,
    environment,
    store,
    failSnapshots: () => (snapshotFails = true),
  }
}

describe("carrying out the checkpoint coordinator's decisions", () => {
  it('snapshots the enumerators and sends the triggers in one turn (rule 20)', async () => {
    const { checkpointing, answers, story } = await subject()
    answers.set('tick', () => [{ type: 'trigger', id: id(4), kind: 'checkpoint', tasks: [source], request: undefined }])
    checkpointing.handle({ type: 'tick' })
    expect(story).toEqual(['event tick', 'enumerators 4', 'trigger checkpoint 4 to source'])
    expect(checkpointing.newestTriggered).toBe(4)
  })

  it('triggers subtasks whose producers have finished meanwhile for the same kind of snapshot', async () => {
    const { checkpointing, answers, story } = await subject()
    answers.set('tick', () => [{ type: 'triggerMore', id: id(4), kind: 'savepoint', tasks: [source] }])
    checkpointing.handle({ type: 'tick' })
    expect(story).toEqual(['event tick', 'trigger savepoint 4 to source'])
  })

  it('reports a trigger whose enumerators cannot be snapshotted, and triggers nobody', async () => {
    const { checkpointing, answers, story, failSnapshots } = await subject()
    failSnapshots()
    answers.set('tick', () => [{ type: 'trigger', id: id(4), kind: 'checkpoint', tasks: [source], request: undefined }])
    checkpointing.handle({ type: 'tick' })
    expect(story).toEqual(['event tick', 'event triggerFailed (Error: no snapshot)'])
  })

  it('permits commits only after the manifest is durable and the swap is won (rule 3)', async () => {
    const { completes, story, keeper } = await subject()
    completes(4)
    await settlePromises()
    expect(story).toEqual([
      'event acknowledged',
      'create chk-4/_metadata',
      'event manifestWritten',
      'completed 4',
      'event swapWon',
      'complete 4 to all',
    ])
    expect((await keeper.read())!.unconfirmed?.id).toBe(4)
  })

  it('writes the manifest of a savepoint to the place that those have, and its whole address into HEAD', async () => {
    const objects = new MemoryObjectStore()
    const nameOf = (key: ObjectKey): ObjectKey => `s3://kept/one/objects/${key}` as ObjectKey
    const { completes, collected, story, keeper } = await subject({ savepoints: { objects, nameOf } })
    const request = requestId('r')
    await keeper.update((head) => requestSavepoint(head, { request, mode: 'savepoint' }))
    completes(4, { ...collected(4), kind: 'savepoint', request })
    await settlePromises()
    expect(story).toContain('completed 4')
    expect(story).not.toContain('create savepoint-4/_metadata')
    expect(await objects.list('')).toEqual(['savepoint-4/_metadata'])
    const [result] = (await keeper.read())!.savepointResults
    expect(result).toMatchObject({ request, manifest: { path: 's3://kept/one/objects/savepoint-4/_metadata' } })
    completes(5)
    await settlePromises()
    expect(story).toContain('create chk-5/_metadata')
  })

  it('keeps the order of actions when carrying one out makes further events', async () => {
    const { checkpointing, answers, story, failSnapshots } = await subject()
    failSnapshots()
    answers.set('tick', () => [
      { type: 'trigger', id: id(4), kind: 'checkpoint', tasks: [source], request: undefined },
      { type: 'abort', id: id(3), kind: 'checkpoint', reason: 'expired', detail: '' },
    ])
    answers.set('triggerFailed', () => [
      { type: 'abort', id: id(4), kind: 'checkpoint', reason: 'trigger failed', detail: '' },
    ])
    checkpointing.handle({ type: 'tick' })
    expect(story).toEqual([
      'event tick',
      'aborted 3',
      'abort 3 to all',
      'event triggerFailed (Error: no snapshot)',
      'aborted 4',
      'abort 4 to all',
    ])
  })

  it('wakes the core when it wants', async () => {
    const { checkpointing, answers, story, environment } = await subject()
    answers.set('tick', () => [])
    answers.set('allRunning', () => [{ type: 'wakeIn', delayMs: 50 }])
    checkpointing.handle({ type: 'allRunning', attempts: new Map() })
    environment.clock.advance(50)
    expect(story).toEqual(['event allRunning', 'event tick'])
    checkpointing.handle({ type: 'allRunning', attempts: new Map() })
    checkpointing.close()
    expect(environment.clock.waiting).toBe(0)
  })

  it('reports a manifest that cannot be written, exists already, or is not answered in time; nothing is swapped', async () => {
    const creates: readonly [ObjectStore['create'], RegExp][] = [
      [() => Promise.reject(new Error('disk full')), /manifestFailed \(Error: disk full/],
      [async () => 'exists', /manifestFailed \(MillraceError: MR-O19.*used before/],
      [() => new Promise(() => undefined), /manifestFailed \(MillraceError: MR-O19.*no answer/],
    ]
    for (const [create, expected] of creates) {
      const { completes, story, environment, keeper, checkpointing } = await subject({ store: { create } })
      completes(4)
      await environment.clock.advanceSettled(manifestDeadlineMs)
      expect(story).toEqual(['event acknowledged', expect.stringMatching(expected)])
      expect((await keeper.read())!.retained).toEqual([])
      await checkpointing.quiet()
    }
  })

  it('stops at a swap that found another incarnation, or an end: no permit', async () => {
    for (const change of ['fenced', 'ended'] as const) {
      const { completes, story, memory, environment } = await subject()
      const other = await HeadKeeper.open(memory, environment)
      if (change === 'fenced') await other.begin((head) => ({ ...head!, incarnation: incarnation(2) }))
      else await other.amend(close)
      completes(4)
      await settlePromises()
      expect(story.slice(3)).toEqual(['event fenced', change])
    }
  })

  it('ends the coordinator when HEAD stays unclear, and nothing is permitted', async () => {
    let down = false
    const { completes, story, environment } = await subject({
      head: (memory) => ({
        read: () => memory.read(),
        swap: async (expected, bytes) =>
          down ? { outcome: 'unclear', cause: 'timeout' } : memory.swap(expected, bytes),
      }),
    })
    down = true
    completes(4)
    await environment.clock.advanceSettled(100_000)
    expect(story.slice(3)).toEqual([expect.stringMatching(/^broken: .*MR-S12/)])
  })

  it('ends the coordinator when the core is broken or no id is left; slots that called hear nothing of it', async () => {
    const { checkpointing, answers, story } = await subject()
    answers.set('tick', () => {
      throw new InvariantError('core')
    })
    checkpointing.handle({ type: 'tick' })
    checkpointing.handle({ type: 'tick' })
    expect(story).toEqual(['event tick', 'broken: invariant'])
  })

  it('ends the coordinator when a manifest contradicts itself', async () => {
    const { checkpointing, answers, collected, story } = await subject()
    answers.set('tick', () => [{ type: 'writeManifest', snapshot: { ...collected(4), subtasks: new Map() } }])
    checkpointing.handle({ type: 'tick' })
    await settlePromises()
    expect(story).toEqual(['event tick', 'broken: invariant'])
  })

  it('reserves the next block of ids long before the last is used up', async () => {
    const { checkpointing, keeper } = await subject({ ids: 20 })
    checkpointing.handle({ type: 'tick' })
    checkpointing.handle({ type: 'tick' })
    await settlePromises()
    expect((await keeper.read())!.reservedIds).toBe(2000)
  })
})

describe('a snapshot whose final states are copied', () => {
  /** One of them lies in a savepoint, and is read when the test says so. */
  async function copying(options: Parameters<typeof subject>[0] = {}) {
    const read = Promise.withResolvers<Uint8Array>()
    const made = await subject({ ...options, reader: { read: () => read.promise } })
    const sink = { operatorState: { list: listOf('union', 'savepoint-2/final') } }
    const finals = collectedOf(graph, (vertex) => subtaskSnapshot(vertex === 'sink' ? { sink } : {}))
    made.completes(4, { ...finals, id: id(4) })
    await settlePromises()
    return { ...made, read }
  }
  const lost: CheckpointAction = { type: 'abort', id: id(4), kind: 'checkpoint', reason: 'subtask lost', detail: '' }

  it('is said to be, and its manifest is written behind that', async () => {
    const { story, read, checkpointing } = await copying()
    expect(story).toEqual(['event acknowledged', 'event copyBegun'])
    read.resolve(new Uint8Array())
    await checkpointing.quiet()
    expect(story.slice(2)).toEqual([
      'event copied',
      'create chk-4/_metadata',
      'event manifestWritten',
      'completed 4',
      'event swapWon',
      'complete 4 to all',
    ])
  })

  it('tells the core of each piece of a savepoint, until that has given it up; of a checkpoint, which the next one goes on from, it does not', async () => {
    for (const given of [false, true]) {
      const reads = new Map<string, PromiseWithResolvers<Uint8Array>>()
      const read = (handle: StateHandle): Promise<Uint8Array> => {
        const waiting = Promise.withResolvers<Uint8Array>()
        if (handle.kind === 'object') reads.set(handle.object, waiting)
        return waiting.promise
      }
      const { completes, story, checkpointing, answers } = await subject({ reader: { read } })
      const sink = { operatorState: { list: listOf('union', 'chk-2/a'), more: listOf('union', 'chk-2/b') } }
      const finals = collectedOf(graph, (vertex) => subtaskSnapshot(vertex === 'sink' ? { sink } : {}))
      completes(4, { ...finals, id: id(4), kind: 'savepoint', request: requestId('mine') })
      await settlePromises()
      reads.get('chk-2/a')!.resolve(new Uint8Array())
      await settlePromises()
      expect(story).toEqual(['event acknowledged', 'event copyBegun', 'event copyProgressed'])
      if (given) {
        answers.set('tick', () => [{ ...lost, kind: 'savepoint' }])
        checkpointing.handle({ type: 'tick' })
      }
      reads.get('chk-2/b')!.resolve(new Uint8Array())
      await settlePromises()
      expect(story.filter((each) => each === 'event copyProgressed')).toHaveLength(given ? 1 : 2)
    }
  })

  it('fails with a copy that fails', async () => {
    const { story, read, checkpointing } = await copying()
    read.reject(new Error('the state is gone'))
    await checkpointing.quiet()
    expect(story.slice(2, 3)).toEqual(['event manifestFailed (Error: the state is gone)'])
  })

  it('holds no restart up once the core has aborted it, and never gets a manifest', async () => {
    const { story, read, checkpointing, answers, store } = await copying()
    answers.set('subtasksLost', () => [lost])
    checkpointing.handle({ type: 'subtasksLost', tasks: [source] })
    await checkpointing.quiet()
    expect(story.slice(2)).toEqual(['event subtasksLost', 'aborted 4', 'abort 4 to all'])
    read.resolve(new Uint8Array())
    await settlePromises()
    expect(story.slice(5), 'what was written meanwhile is swept').toEqual(['late copies of 4'])
    expect(await store.list('')).toEqual([])
  })

  it('gets a manifest or is aborted, in whatever turn after the last copy subtasks are lost', async () => {
    const ends = new Set<string>()
    for (let turns = 0; turns < 30; turns++) {
      const { story, read, checkpointing, answers } = await copying()
      read.resolve(new Uint8Array())
      await settlePromises(turns)
      const isCopied = story.includes('event copied')
      answers.set('subtasksLost', () => (isCopied ? [] : [lost]))
      checkpointing.handle({ type: 'subtasksLost', tasks: [source] })
      await checkpointing.quiet()
      await settlePromises()
      const [end] = ['create chk-4/_metadata', 'aborted 4'].filter((what) => story.includes(what))
      expect(story.includes('event copied'), `after ${turns} turns`).toBe(isCopied)
      expect(end, `after ${turns} turns`).toBe(isCopied ? 'create chk-4/_metadata' : 'aborted 4')
      ends.add(end!)
    }
    expect(ends.size).toBe(2)
  })

  it('fails or is aborted, never both, in whatever turn after a copy has failed subtasks are lost', async () => {
    const ends = new Set<string>()
    for (let turns = 0; turns < 30; turns++) {
      const { story, read, checkpointing, answers } = await copying()
      read.reject(new Error('the state is gone'))
      for (let turn = 0; turn < turns; turn++) await Promise.resolve()
      const failure = 'event manifestFailed (Error: the state is gone)'
      const hasFailed = story.includes(failure)
      answers.set('subtasksLost', () => (hasFailed ? [] : [lost]))
      checkpointing.handle({ type: 'subtasksLost', tasks: [source] })
      await checkpointing.quiet()
      await settlePromises()
      const said = [failure, 'aborted 4'].filter((what) => story.includes(what))
      expect(said, `after ${turns} turns`).toEqual([hasFailed ? failure : 'aborted 4'])
      ends.add(said[0]!)
    }
    expect(ends.size).toBe(2)
  })

  it('goes no further after close', async () => {
    const { story, read, checkpointing, store } = await copying()
    checkpointing.close()
    await checkpointing.quiet()
    read.resolve(new Uint8Array())
    await settlePromises()
    expect(story).toEqual(['event acknowledged', 'event copyBegun', 'late copies of 4'])
    expect(await store.list('')).toEqual([])
  })
})

describe('quiet', () => {
  it('is only after manifest and swap of what was fully acknowledged, and its permit', async () => {
    const { checkpointing, completes, story } = await subject()
    await checkpointing.quiet()
    completes(4)
    await checkpointing.quiet()
    expect(story.at(-1)).toBe('complete 4 to all')
  })

  it('after close does not wait for a manifest, which leads to no swap any more', async () => {
    let answer!: (outcome: 'created') => void
    const { checkpointing, completes, story, keeper } = await subject({
      store: { create: () => new Promise((resolve) => (answer = resolve)) },
    })
    completes(4)
    const quiet = checkpointing.quiet()
    await settlePromises()
    checkpointing.close()
    await quiet
    answer('created')
    await settlePromises()
    expect(story).toEqual(['event acknowledged'])
    expect((await keeper.read())!.retained).toEqual([])
  })

  it('after close waits for a swap in flight: it may land', async () => {
    let land: (() => void) | undefined
    let hold = false
    const { checkpointing, completes, keeper } = await subject({
      head: (memory) => ({
        read: () => memory.read(),
        swap: async (expected, bytes) => {
          if (hold) await new Promise<void>((resolve) => (land = resolve))
          return memory.swap(expected, bytes)
        },
      }),
    })
    hold = true
    completes(4)
    await settlePromises()
    checkpointing.close()
    let quiet = false
    const waiting = checkpointing.quiet().then(() => (quiet = true))
    await settlePromises()
    expect(quiet).toBe(false)
    land!()
    await waiting
    expect((await keeper.read())!.retained.map((manifest) => manifest.id)).toEqual([4])
  })
})
