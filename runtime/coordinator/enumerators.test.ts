import { describe, expect, it } from 'vitest'
import { checkpointId, incarnation, subtaskIndex, vertexId } from '../base/ids.ts'
import type { CheckpointId, TaskId } from '../base/ids.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import type { EnumeratorContext, Source, SplitEnumerator } from '../connectors/contract.ts'
import type { SurvivingTask } from '../control/contract.ts'
import type { JobGraph } from '../job/contract.ts'
import { createReader, createWriter } from '../record/bytes.ts'
import { untypedCodec } from '../record/untyped.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { Enumerators, startDeadlineMs } from './enumerators.ts'
import type { TaskMessage } from './enumerators.ts'
import type { RestorePlan } from './restore.ts'

/** Gives its splits out one by one on request; `assign` is the test's for what comes unasked. */
class ListEnumerator implements SplitEnumerator<string, string[]> {
  readonly context: EnumeratorContext<string>
  waiting: string[]
  readonly story: string[] = []
  startsWith: (() => void | Promise<void>) | undefined
  answersWith: ((subtask: never) => void) | undefined
  closesWith: (() => void) | undefined

  constructor(context: EnumeratorContext<string>, restored: string[] | undefined, all: readonly string[]) {
    this.context = context
    this.waiting = [...(restored ?? all)]
  }

  async start(): Promise<void> {
    await this.startsWith?.()
  }

  addReader(subtask: number): void {
    this.story.push(`reader ${subtask}`)
  }

  requestSplit(subtask: never): void {
    if (this.answersWith !== undefined) return this.answersWith(subtask)
    const split = this.waiting.shift()
    if (split === undefined) this.context.signalNoMoreSplits(subtask)
    else this.context.assign(subtask, [split])
  }

  addSplitsBack(splits: readonly string[], subtask: number): void {
    this.story.push(`back of ${subtask}: ${splits.join(' ')}`)
    this.waiting.unshift(...splits)
  }

  snapshot(): string[] {
    return [...this.waiting]
  }

  get splitsWait(): boolean {
    return this.waiting.length > 0
  }

  reconcile(owned: ReadonlyMap<number, readonly string[]>, finished: readonly string[]): void {
    const taken = new Set([...finished, ...[...owned.values()].flat()])
    this.story.push(`taken: ${[...taken].join(' ')}`)
    this.waiting = this.waiting.filter((split) => !taken.has(split))
  }

  close(): void {
    this.story.push('closed')
    this.closesWith?.()
  }
}

function subject(
  options: {
    readonly all?: readonly string[]
    readonly onStart?: (enumerator: ListEnumerator) => void | Promise<void>
  } = {},
) {
  const made: ListEnumerator[] = []
  const source = {
    name: 'list',
    splitCodec: untypedCodec,
    enumeratorCodec: untypedCodec,
    createEnumerator: (context: EnumeratorContext<string>, restored: string[] | undefined) => {
      const enumerator = new ListEnumerator(context, restored, options.all ?? ['a', 'b', 'c', 'd'])
      enumerator.startsWith = () => options.onStart?.(enumerator)
      made.push(enumerator)
      return enumerator
    },
  } as unknown as Source<unknown, unknown, unknown>
  const shape = graphOf({ vertices: [{ id: 'source', parallelism: 2 }] })
  const vertex = shape.vertices[0]!
  const chain = [
    { ...vertex.chain[0]!, factory: { kind: 'source' as const, source, watermarks: { createGenerator: undefined } } },
  ]
  const graph: JobGraph = { ...shape, vertices: [{ ...vertex, chain }] }
  const sent: string[] = []
  const failures: string[] = []
  const environment = manualEnvironment()
  const enumerators = new Enumerators({
    graph,
    environment,
    files: new MemoryFiles(),
    send: (task, message) => sent.push(`${task.subtask} ${words(message)}`),
    fail: (id, error) => failures.push(`${id}: ${String(error)}`),
  })
  const tasks = [0, 1].map((subtask): TaskId => ({ vertex: vertexId('source'), subtask: subtaskIndex(subtask) }))
  return {
    enumerators,
    environment,
    tasks,
    sent,
    failures,
    made,
    newest: () => made.at(-1)!,
    restart: async (subtasks: readonly number[], from: number | undefined, plan: Partial<RestorePlan> = {}) =>
      enumerators.restore(
        subtasks.map((index) => tasks[index]!),
        { ...planOf(from), ...plan },
      ),
    adopt: async (readers: readonly Partial<SurvivingTask>[], plan: Partial<RestorePlan> = {}) =>
      enumerators.adopt(
        readers.map((reader): SurvivingTask => ({
          task: tasks[0]!,
          attempt: { incarnation: incarnation(1), number: 1 },
          status: 'running',
          inputs: [],
          outputs: [],
          final: undefined,
          waitsForCheckpoint: false,
          splits: undefined,
          ...reader,
        })),
        { ...planOf(7), ...plan },
      ),
    run: (...subtasks: number[]) => {
      for (const index of subtasks) enumerators.readerRuns(tasks[index]!)
    },
    ask: (index: number) => enumerators.requestSplit(tasks[index]!),
    snapshot: (id: number) => enumerators.snapshot(checkpointId(id)).get('source')!,
    take: () => sent.splice(0),
  }
}

function planOf(from: number | undefined): RestorePlan {
  return {
    id: from as CheckpointId | undefined,
    subtasks: new Map(),
    finishedVertices: new Set(),
    finals: new Map(),
    enumerators: new Map(),
    committablesWithoutWriter: new Map(),
  }
}

function words(message: TaskMessage): string {
  if (message.type === 'splitsWait') return `waits ${message.waiting}`
  if (message.type !== 'assign') return message.type
  const splits = message.splits.map((bytes) => String(untypedCodec.decode(createReader(bytes)))).join(' ')
  return `gets ${[...(splits === '' ? [] : [splits]), ...(message.noMore ? ['no more'] : [])].join(', ')}`
}

describe('split enumerators in the coordinator', () => {
  it('assign on request, and tell every reader when none waits any more', async () => {
    const { restart, run, ask, take } = subject({ all: ['a'] })
    await restart([0, 1], undefined)
    run(0, 1)
    expect(take()).toEqual(['0 waits true', '1 waits true'])
    ask(1)
    expect(take()).toEqual(['1 gets a', '0 waits false', '1 waits false'])
    ask(0)
    expect(take()).toEqual(['0 gets no more'])
  })

  it('say all that they say to a reader in one turn in one message: a lost coordinator has said it all, or nothing', async () => {
    const { restart, run, ask, take, newest } = subject()
    await restart([0, 1], undefined)
    run(0, 1)
    take()
    const { context } = newest()
    newest().answersWith = (subtask) => {
      context.assign(subtask, ['a'])
      context.assign(subtask, ['b'])
      context.signalNoMoreSplits(subtask)
      context.signalNoMoreSplits(subtaskIndex(1))
    }
    ask(0)
    expect(take()).toEqual(['0 gets a b, no more', '1 gets no more'])
  })

  it('keep what is assigned to a reader that does not run yet, and deliver it before anything else when it does', async () => {
    const { restart, run, take } = subject({
      onStart: ({ context, waiting }) => context.assign(subtaskIndex(1), [waiting.shift()!]),
    })
    await restart([0, 1], undefined)
    expect(take()).toEqual([])
    run(0)
    expect(take()).toEqual(['0 waits true'])
    run(1)
    expect(take()).toEqual(['1 gets a', '1 waits true'])
  })

  it('are part of the checkpoint: an assignment lies before both cuts or behind both (rule 20)', async () => {
    const { restart, run, ask, snapshot, newest, take } = subject()
    await restart([0, 1], undefined)
    run(0, 1)
    ask(0)
    const stored = snapshot(1)
    ask(1)
    expect(untypedCodec.decode(createReader(stored.bytes))).toEqual(['b', 'c', 'd'])
    await restart([0, 1], 1, { enumerators: new Map([['source', stored]]) })
    expect(newest().waiting).toEqual(['b', 'c', 'd'])
    take()
    run(0, 1)
    ask(0)
    expect(take()).toContain('0 gets b')
  })

  it('take back what a failed reader was given after the restored checkpoint, first of all; what the checkpoint holds stays its own', async () => {
    const { restart, run, ask, snapshot, newest, enumerators, take } = subject()
    await restart([0, 1], undefined)
    run(0, 1)
    ask(0)
    snapshot(1)
    enumerators.completed(checkpointId(1))
    ask(0)
    ask(1)
    // Aborted: what was given before its cut is in no completed checkpoint.
    snapshot(2)
    ask(0)
    await restart([0], 1)
    expect(newest().story).toEqual(['reader 0', 'reader 1', 'back of 0: b d'])
    take()
    run(0)
    ask(0)
    expect(take()).toContain('0 gets b')
    // The other reader goes on with what it has.
    await restart([1], 1)
    expect(newest().story.at(-1)).toBe('back of 1: c')
  })

  it('also what was given by a coordinator that itself began from that checkpoint', async () => {
    const before = subject()
    await before.restart([0, 1], undefined)
    const stored = before.snapshot(5)
    const { restart, run, ask, newest } = subject()
    await restart([0, 1], 5, { enumerators: new Map([['source', stored]]) })
    run(0, 1)
    ask(0)
    await restart([0], 5)
    expect(newest().story.at(-1)).toBe('back of 0: a')
    expect(newest().waiting).toEqual(['a', 'b', 'c', 'd'])
  })

  it('give back what was assigned to a reader that had not come to run, once', async () => {
    const { restart, run, ask, newest, take } = subject()
    await restart([0, 1], undefined)
    run(1)
    newest().context.assign(subtaskIndex(0), [newest().waiting.shift()!])
    await restart([0], undefined)
    expect(newest().waiting).toEqual(['a', 'b', 'c', 'd'])
    take()
    run(0)
    ask(0)
    expect(take()).toEqual(['0 waits true', '0 gets a'])
  })

  it('hear nothing of an earlier life, and are heard of no more', async () => {
    const { restart, run, newest, made, take, failures } = subject()
    await restart([0, 1], undefined)
    run(0, 1)
    const earlier = newest()
    await restart([0, 1], undefined)
    run(0, 1)
    take()
    earlier.context.assign(subtaskIndex(0), ['z'])
    earlier.context.fail(new Error('late'))
    expect(take()).toEqual([])
    expect(failures).toEqual([])
    expect([made.length, earlier.story.at(-1)]).toEqual([2, 'closed'])
  })

  it('are over when their close throws: the restart goes on with a new one, and they are not closed again', async () => {
    const { restart, run, ask, enumerators, made, newest, take, environment } = subject()
    await restart([0, 1], undefined)
    newest().closesWith = () => {
      throw new Error('client already closed')
    }
    await restart([0, 1], undefined)
    run(0, 1)
    take()
    ask(0)
    expect(take()).toEqual(['0 gets a'])
    newest().closesWith = made[0]!.closesWith
    enumerators.close()
    enumerators.close()
    expect(made.map(({ story }) => story.filter((word) => word === 'closed').length)).toEqual([1, 1])
    const told = { source: 'source', error: 'Error: client already closed' }
    expect(environment.lines.map(({ fields }) => fields)).toEqual([told, told])
  })

  it('are heard by nobody once they are closed: the run after this one would take it for its own', async () => {
    const { restart, run, enumerators, newest, take, failures } = subject()
    await restart([0, 1], undefined)
    run(0, 1)
    take()
    enumerators.close()
    newest().context.fail(new Error('late'))
    newest().context.assign(subtaskIndex(1), ['z'])
    expect([failures, take()]).toEqual([[], []])
  })

  it('are not made for a source that had wholly finished', async () => {
    const { restart, run, ask, made, take } = subject()
    await restart([0, 1], 4, { finishedVertices: new Set([vertexId('source')]) })
    run(0, 1)
    ask(0)
    expect(made).toEqual([])
    expect(take()).toEqual(['0 waits true', '1 waits true'])
  })

  it('of a source that had wholly finished stand in every later snapshot as they were: in another graph it would begin anew', async () => {
    const first = subject({ all: [] })
    await first.restart([0, 1], undefined)
    const stored = first.snapshot(4)
    const plan = { finishedVertices: new Set([vertexId('source')]), enumerators: new Map([['source', stored]]) }
    for (const begin of [
      ({ restart }: ReturnType<typeof subject>) => restart([0, 1], 4, plan),
      ({ restart }: ReturnType<typeof subject>) => restart([], 4, plan),
      ({ adopt }: ReturnType<typeof subject>) => adopt([], plan),
    ]) {
      const next = subject()
      await begin(next)
      expect(next.made).toEqual([])
      expect(next.snapshot(5)).toEqual(stored)
    }
  })

  it('fail their source, not the coordinator, when they throw', async () => {
    const { restart, run, ask, newest, failures } = subject()
    await restart([0, 1], undefined)
    run(0, 1)
    newest().requestSplit = () => {
      throw new Error('no connection')
    }
    ask(0)
    newest().context.fail(new Error('later'))
    expect(failures).toEqual(['source: Error: no connection', 'source: Error: later'])
  })

  it('fails the source by name where it speaks to a reader that there is not', async () => {
    const { restart, run, ask, newest, failures } = subject()
    await restart([0, 1], undefined)
    run(0, 1)
    for (const reader of [2, -1, 0.5]) {
      newest().answersWith = () => newest().context.assign(reader as never, ['a'])
      ask(0)
    }
    expect(failures).toEqual(
      [2, -1, 0.5].map((reader) =>
        expect.stringMatching(`MR-N21.*source source spoke to reader ${reader}; there are 2`),
      ),
    )
  })

  it('that do not start in time fail the restart: else it would hold up every end of the job', async () => {
    const { restart, environment } = subject({ onStart: () => new Promise(() => {}) })
    let failure: unknown
    const restarted = restart([0, 1], undefined).catch((error: unknown) => (failure = error))
    await environment.clock.advanceSettled(startDeadlineMs - 1)
    expect(failure).toBeUndefined()
    await environment.clock.advanceSettled(1)
    await restarted
    expect(failure).toMatchObject({ code: 'MR-O22', retry: true })
  })

  it("refuse stored state that today's source cannot read", async () => {
    const { restart } = subject()
    const stored = {
      codec: { version: 99, kind: 'json' as const, fingerprint: 'other', layout: null },
      bytes: new Uint8Array(),
    }
    await expect(restart([0, 1], 1, { enumerators: new Map([['source', stored]]) })).rejects.toThrow(/MR-O10/)
  })
})

function encoded(split: string): Uint8Array {
  const writer = createWriter()
  untypedCodec.encode(split, writer)
  return writer.take()
}

describe('the enumerator of readers that run on (rule 20)', () => {
  const asked = (...owned: string[]) => ({ owned: owned.map(encoded), finished: [], asks: true })

  it('begins again from the checkpoint and gives out nothing that they own or have read since', async () => {
    const { adopt, tasks, take, newest, snapshot } = subject()
    await adopt([
      { task: tasks[0]!, splits: { owned: [encoded('b')], finished: ['a'], asks: false } },
      { task: tasks[1]!, splits: asked() },
    ])
    expect(newest().story).toEqual(['taken: a b', 'reader 0', 'reader 1'])
    expect(take()).toEqual(['0 waits true', '1 gets c', '1 waits true'])
    expect(untypedCodec.decode(createReader(snapshot(8).bytes))).toEqual(['d'])
  })

  it('answers a reader whose question was lost with the coordinator, also with "no more"', async () => {
    const { adopt, tasks, take } = subject({ all: ['a'] })
    await adopt([{ task: tasks[0]!, splits: asked('a') }])
    expect(take()).toEqual(['0 waits false', '1 waits false', '0 gets no more', '0 waits false'])
  })

  it('restarts all readers of a source together until a checkpoint holds what was given before', async () => {
    const { adopt, tasks, enumerators, restart, newest } = subject()
    await adopt([{ task: tasks[0]!, splits: asked() }])
    expect(enumerators.bound([tasks[1]!])).toEqual(tasks)
    await restart([1], 7)
    expect(enumerators.bound([tasks[1]!])).toEqual(tasks)
    enumerators.completed(checkpointId(8))
    expect(enumerators.bound([tasks[1]!])).toEqual([])
    expect(newest().story).toContain('reader 0')
  })

  it('asks nothing of readers that have finished', async () => {
    const { adopt, tasks, take, newest } = subject({ all: [] })
    await adopt([{ task: tasks[0]!, status: 'finished' }])
    expect(newest().story).toEqual(['taken: '])
    expect(take()).toEqual(['0 waits false', '1 waits false'])
  })
})
