import { describe, expect, it } from 'vitest'
import { checkpointId, incarnation, jobId, start, subtaskIndex, taskKey, vertexId } from '../base/ids.ts'
import type { TaskId, TaskKey } from '../base/ids.ts'
import type { Committable } from '../checkpoint/contract.ts'
import type { CollectedSnapshot } from '../checkpoint/core-contract.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import { collectedOf, subtaskSnapshot, transaction } from '../checkpoint/test-snapshots.ts'
import type { Sink } from '../connectors/contract.ts'
import type { JobGraph } from '../job/contract.ts'
import { completeCheckpoint, newJob, reserveIds } from '../storage/head.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { MemoryHeadStore } from '../storage/memory-store.ts'
import { manifestKey, transactionName } from '../storage/paths.ts'
import type { HeadStore } from '../storage/contract.ts'
import { manualEnvironment, settlePromises } from '../testkit/manual-clock.ts'
import { Commits } from './commits.ts'
import { Execution } from './execution.ts'
import { placeTasks } from './placement.ts'
import type { RestorePlan } from './restore.ts'

const job = jobId('job')
const sinkTask = (subtask: number): TaskId => ({ vertex: vertexId('sink'), subtask: subtaskIndex(subtask) })
const key = (subtask: number): TaskKey => taskKey(sinkTask(subtask))

interface External {
  existing: string[]
  readonly committed: string[]
  readonly aborted: string[]
}

function graphWith(external: External): JobGraph {
  const sink: Sink<unknown> = {
    name: 'external',
    createWriter: () => {
      throw new Error('no writer here')
    },
    createCommitter: () => ({
      commit: async (committables) =>
        void external.committed.push(...committables.map(({ transaction: name }) => name)),
      list: async () => external.existing,
      abort: async (names) => void external.aborted.push(...names),
    }),
  }
  const graph = graphOf({
    vertices: [
      { id: 'source', parallelism: 1 },
      { id: 'sink', parallelism: 2 },
    ],
    edges: [['source', 'hash', 'sink']],
  })
  const vertices = graph.vertices.map((vertex) =>
    vertex.id === 'sink'
      ? {
          ...vertex,
          chain: [
            {
              ...vertex.chain[0]!,
              factory: { kind: 'operator' as const, create: () => ({ open() {}, process() {} }), twoPhase: true, sink },
            },
          ],
        }
      : vertex,
  )
  return { ...graph, vertices }
}

async function subject(options: { readonly store?: (store: HeadStore) => HeadStore } = {}) {
  const environment = manualEnvironment()
  const memory = new MemoryHeadStore()
  const keeper = await HeadKeeper.open(options.store?.(memory) ?? memory, environment)
  await keeper.begin(() => newJob({ job, start: start(1), parallelism: 2, maxParallelism: 8 }))
  await keeper.update((head) => reserveIds(head, 1000).head)
  const external: External = { existing: [], committed: [], aborted: [] }
  const graph = graphWith(external)
  const story: string[] = []
  const another = () =>
    new Commits({
      graph,
      job,
      environment,
      files: new MemoryFiles(),
      keeper,
      onAllConfirmed: () => story.push('all confirmed'),
      onOvertaken: ({ outcome }) => story.push(outcome),
      onBroken: (error) => story.push(String(error)),
    })
  const commits = another()
  const unconfirmed = async () => (await keeper.read())?.unconfirmed?.id
  /** Checkpoint `id` completes; `pending[i]`: sink i has something to commit in it. */
  const complete = async (id: number, ...pending: boolean[]): Promise<void> => {
    const collected: CollectedSnapshot = {
      ...collectedOf(graph, (vertex, index) =>
        subtaskSnapshot(
          vertex === 'sink' && pending[index] === true
            ? { sink: { committables: [transaction(`t${index}`, id)] } }
            : {},
        ),
      ),
      id: checkpointId(id),
    }
    const manifest = {
      id: checkpointId(id),
      kind: 'checkpoint' as const,
      path: manifestKey(checkpointId(id), 'checkpoint'),
      start: start(1),
      completedAtMs: 0,
      bytes: 0,
    }
    await keeper.update((head) =>
      completeCheckpoint(head, { manifest, retainedMax: 2, commitsPending: pending.includes(true) }),
    )
    commits.permitted(collected)
    await settlePromises()
  }
  const planOf = (from: number | undefined, committables: readonly (readonly Committable[])[]): RestorePlan => ({
    id: from === undefined ? undefined : checkpointId(from),
    subtasks: new Map(
      committables.map((list, index) => [
        key(index),
        { finishedBefore: false, restored: { operators: { sink: { committables: list } } } },
      ]),
    ),
    finishedVertices: new Set(),
    finals: new Map(),
    enumerators: new Map(),
    committablesWithoutWriter: new Map(),
  })
  const placement = placeTasks(graph)
  const execution = new Execution({
    graph,
    job,
    incarnation: incarnation(1),
    rescaledTo: undefined,
    environment,
    placement,
    slots: {
      start: () => {
        throw new Error('no slots here')
      },
      terminate: async () => undefined,
    },
    onMessage: () => undefined,
    onFailure: () => undefined,
  })
  execution.renew(placement.tasks.map(({ task }) => task))
  return {
    commits,
    another,
    keeper,
    story,
    complete,
    unconfirmed,
    planOf,
    external,
    environment,
    execution,
    graph,
    memory,
  }
}

describe('confirming commits', () => {
  it('waits for every subtask that has something to commit, and for nobody else', async () => {
    const { commits, complete, unconfirmed, story } = await subject()
    await complete(5, true, true)
    expect([await unconfirmed(), commits.allConfirmed]).toEqual([5, false])
    commits.committed(key(0), checkpointId(5))
    commits.committed(key(1), checkpointId(4))
    await settlePromises()
    expect(await unconfirmed()).toBe(5)
    commits.committed(key(1), checkpointId(5))
    await settlePromises()
    expect([await unconfirmed(), commits.allConfirmed, story]).toEqual([undefined, true, ['all confirmed']])
  })

  it('that was made while a restart read its restore point is made again where the HEAD read for it still asks for it', async () => {
    const { commits, keeper, complete, planOf, unconfirmed, story } = await subject()
    await complete(5, true, false)
    const read = await keeper.read()
    commits.committed(key(0), checkpointId(5))
    await settlePromises()
    expect([await unconfirmed(), story]).toEqual([undefined, ['all confirmed']])
    commits.restoring([sinkTask(1)], read!, planOf(5, [[transaction('t0', 5)], []]))
    await settlePromises()
    expect([commits.allConfirmed, story]).toEqual([true, ['all confirmed', 'all confirmed']])
    expect(await unconfirmed()).toBe(undefined)
  })

  it('of an older checkpoint leaves the newer one open', async () => {
    const { commits, complete, unconfirmed } = await subject()
    await complete(5, true, false)
    commits.committed(key(0), checkpointId(5))
    await complete(6, true, true)
    expect(await unconfirmed()).toBe(6)
    commits.committed(key(0), checkpointId(6))
    commits.committed(key(1), checkpointId(6))
    await settlePromises()
    expect([await unconfirmed(), commits.allConfirmed]).toEqual([undefined, true])
  })

  it('follows from a checkpoint in which nobody has anything left, though the word about the one before is missing', async () => {
    const { commits, complete, unconfirmed } = await subject()
    await complete(5, true, true)
    await complete(6, false, false)
    expect([await unconfirmed(), commits.allConfirmed]).toEqual([undefined, true])
  })

  it('counts a subtask that has finished as having committed all, also what it had listed for a later checkpoint', async () => {
    const { commits, complete, unconfirmed } = await subject()
    commits.finished(key(0))
    await complete(6, true, false)
    expect([await unconfirmed(), commits.allConfirmed]).toEqual([undefined, true])
  })

  it('forgets that when the subtask has to run again', async () => {
    const { commits, complete, planOf, unconfirmed, keeper } = await subject()
    commits.finished(key(0))
    commits.restoring([sinkTask(0)], (await keeper.read())!, planOf(undefined, []))
    await complete(6, true, false)
    expect(await unconfirmed()).toBe(6)
  })

  it('takes over what a coordinator before had permitted: all that hold something must run, nobody else', async () => {
    const { another, planOf, unconfirmed, complete, keeper } = await subject()
    await complete(5, true, true)
    const commits = another()
    commits.restoring([sinkTask(0), sinkTask(1)], (await keeper.read())!, planOf(5, [[transaction('t0', 5)], []]))
    commits.committed(key(1), checkpointId(5))
    await settlePromises()
    expect(await unconfirmed()).toBe(5)
    commits.committed(key(0), checkpointId(5))
    await settlePromises()
    expect(await unconfirmed()).toBeUndefined()
  })

  it('is tried again until HEAD answers: a job that is to end waits for it', async () => {
    let broken = false
    const { commits, complete, unconfirmed, environment } = await subject({
      store: (store) => ({
        read: () => store.read(),
        swap: async (expected, bytes) => (broken ? { outcome: 'unclear', cause: 'down' } : store.swap(expected, bytes)),
      }),
    })
    await complete(5, true, false)
    broken = true
    commits.committed(key(0), checkpointId(5))
    await environment.clock.advanceSettled(70_000)
    expect(commits.allConfirmed).toBe(false)
    broken = false
    await environment.clock.advanceSettled(10_000)
    expect([await unconfirmed(), commits.allConfirmed]).toEqual([undefined, true])
  })

  it('says so when HEAD belongs to another incarnation', async () => {
    const { commits, complete, story, memory, environment } = await subject()
    await complete(5, true, false)
    const other = await HeadKeeper.open(memory, environment)
    await other.begin((head) => ({ ...head!, incarnation: incarnation(2) }))
    commits.committed(key(0), checkpointId(5))
    await settlePromises()
    expect([story, commits.allConfirmed]).toEqual([['fenced'], false])
  })

  it('of an ended start, after a later one began elsewhere, leaves that one’s open, though its id is smaller', async () => {
    const { commits, keeper, unconfirmed } = await subject()
    const ref = (id: number) => {
      const path = manifestKey(checkpointId(id), 'savepoint')
      return { id: checkpointId(id), kind: 'savepoint' as const, path, start: start(1), completedAtMs: 0, bytes: 0 }
    }
    await keeper.amend((head) => ({ ...head, unconfirmed: ref(7) }))
    await commits.confirmAmending(ref(500))
    expect(await unconfirmed()).toBe(7)
    await commits.confirmAmending(ref(7))
    expect(await unconfirmed()).toBeUndefined()
  })

  it('without writers commits what it is given, and refuses transactions of a sink that is not there', async () => {
    const { commits, external } = await subject()
    await commits.commitWithoutWriters(new Map([['sink', [transaction('a'), transaction('b')]]]))
    expect(external.committed).toEqual(['a', 'b'])
    await expect(commits.commitWithoutWriters(new Map([['gone', [transaction('c')]]]))).rejects.toThrow(/MR-C12/)
  })
})

describe('the sweep of transactions (rule 24)', () => {
  const nameOf = (attempt: number, subtask = 0, of: { job?: string; uid?: string; incarnation?: number } = {}) =>
    transactionName({
      job: jobId(of.job ?? 'job'),
      uid: of.uid ?? 'sink',
      subtask: subtaskIndex(subtask),
      attempt: { incarnation: incarnation(of.incarnation ?? 1), number: attempt },
      checkpoint: checkpointId(7),
    })

  it('aborts what exists, less what HEAD keeps, what current attempts own, and what is not of this job and sink', async () => {
    const { commits, execution, external } = await subject()
    // Attempts 1 (source), 2 and 3 (sink) are current.
    const current = [nameOf(2, 0), nameOf(3, 1)]
    const [kept, old] = [nameOf(2, 0, { incarnation: 0 }), nameOf(9, 1, { incarnation: 0 })]
    const foreign = [nameOf(9, 0, { job: 'other' }), nameOf(9, 0, { uid: 'another' }), 'no name of ours']
    external.existing = [...current, kept, old, ...foreign]
    await commits.sweep('sink', async () => new Set([kept]), execution)
    expect(external.aborted).toEqual([old])
  })

  it('asks what is kept only after it has listed, and spares an attempt that became current meanwhile', async () => {
    const { commits, execution, external } = await subject()
    external.existing = [nameOf(4, 0), nameOf(8, 0, { incarnation: 0 })]
    let asked = 0
    await commits.sweep(
      'sink',
      async () => {
        asked++
        execution.renew([sinkTask(0)])
        return new Set()
      },
      execution,
    )
    expect([asked, external.aborted]).toEqual([1, [nameOf(8, 0, { incarnation: 0 })]])
  })

  it('spares an attempt that is given up until HEAD says so: the next coordinator might still adopt it', async () => {
    const { commits, execution, external } = await subject()
    execution.givenUp()
    const former = nameOf(2, 0)
    external.existing = [former]
    execution.renew([sinkTask(0)])
    await commits.sweep('sink', async () => new Set(), execution)
    expect(external.aborted).toEqual([])
    // It fails again before that: the attempt in between never ran.
    execution.renew([sinkTask(0)])
    await commits.sweep('sink', async () => new Set(), execution)
    expect(external.aborted).toEqual([])
    execution.givenUp()
    await commits.sweep('sink', async () => new Set(), execution)
    expect(external.aborted).toEqual([former])
  })

  it('aborts nothing when HEAD is not ours any more', async () => {
    const { commits, execution, external } = await subject()
    external.existing = [nameOf(9)]
    await commits.sweep('sink', async () => undefined, execution)
    expect(external.aborted).toEqual([])
  })
})
