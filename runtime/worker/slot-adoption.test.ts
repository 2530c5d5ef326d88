import { describe, expect, it } from 'vitest'
import { checkpointId, incarnation, jobId, slotId, subtaskIndex } from '../base/ids.ts'
import type { Sink } from '../connectors/contract.ts'
import { sequence } from '../connectors/sequence.ts'
import type { SequenceRecord } from '../connectors/sequence.ts'
import { monotonic } from '../connectors/watermarks.ts'
import { CONTROL_VERSION } from '../control/contract.ts'
import type { ControlLink, FromSlot, ToSlot } from '../control/contract.ts'
import { buildGraph } from '../job/build-graph.ts'
import { defineJob } from '../job/define-job.ts'
import type { FrameTransport } from '../network/contract.ts'
import { creditAddress, dataAddress } from '../network/subjects.ts'
import { createReader, createWriter } from '../record/bytes.ts'
import { MemorySnapshots } from '../state/conformance-harness.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { Slot } from './slot.ts'
import { numbersJob } from './test-numbers-job.ts'

class FakeLink implements ControlLink<FromSlot, ToSlot> {
  readonly sent: FromSlot[] = []
  closed = false
  saysBegin = true
  tell: (message: ToSlot) => void = () => undefined
  lose: (reason: string) => void = () => undefined

  /** What runs here is all of the job, as the coordinator says at once. */
  send(message: FromSlot): void {
    this.sent.push(message)
    if (message.type === 'running' && this.saysBegin) this.tell({ type: 'begin' })
  }

  onMessage(callback: (message: ToSlot) => void): void {
    this.tell = callback
  }

  onLost(callback: (reason: string) => void): void {
    this.lose = callback
  }

  close(): void {
    this.closed = true
  }

  get types(): string[] {
    return this.sent.map(({ type }) => type).filter((type) => type !== 'report')
  }
}

/** One slot that outlives its coordinators, with one chained subtask that reads a numbered source of five records. */
function subject(options: { readonly onRecord?: (n: number) => void; readonly waits?: boolean } = {}) {
  const environment = manualEnvironment()
  const { graph, read } = numbersJob(options.onRecord)
  const first = new FakeLink()
  first.saysBegin = options.waits !== true
  const snapshots = new MemorySnapshots()
  const slot = new Slot({
    slot: slotId('0#1.1'),
    job: jobId('slot'),
    graph,
    environment,
    files: new MemoryFiles(),
    transport: { subscribe: () => ({ close: () => undefined }), send: () => undefined },
    control: first,
    outlivesCoordinator: true,
    snapshotWriters: { ofKind: () => snapshots },
    snapshotReader: snapshots,
  })
  const task = { vertex: graph.vertices[0]!.id, subtask: subtaskIndex(0) }
  const attempt = { incarnation: incarnation(1), number: 7 }
  first.tell({
    type: 'deploy',
    tasks: [
      {
        task,
        attempt,
        inputs: [],
        outputs: [],
        restored: undefined,
        newestKnownCheckpoint: checkpointId(0),
        finishedBefore: false,
      },
    ],
  })
  const { factory } = graph.vertices[0]!.chain[0]!
  if (factory.kind !== 'source') throw new Error('the chain begins with its source')
  const { splitCodec } = factory.source
  const assign = (): ToSlot => {
    const writer = createWriter()
    splitCodec.encode({ index: 0, of: 1, next: 0 }, writer)
    return { type: 'assign', task, attempt, splits: [writer.take()], noMore: true }
  }
  const settle = () => environment.executor.runAllSettled()
  const attach = (): FakeLink => {
    const link = new FakeLink()
    slot.attach(link)
    return link
  }
  const decode = (bytes: Uint8Array): unknown => splitCodec.decode(createReader(bytes))
  return { environment, read, first, slot, task, attempt, assign, settle, attach, decode }
}

describe('a slot that outlives its coordinator (rule 25)', () => {
  it('runs on without one, and tells the next what runs and what has been asked', async () => {
    const { first, settle, attach, task, attempt } = subject()
    await settle()
    first.lose('its process was killed')
    await settle()
    const next = attach()
    await settle()
    expect(next.sent).toEqual([
      {
        type: 'registered',
        version: CONTROL_VERSION,
        slot: '0#1.1',
        graphHash: expect.any(String),
        tasks: [
          {
            task,
            attempt,
            inputs: [],
            outputs: [],
            status: 'running',
            final: undefined,
            waitsForCheckpoint: false,
            splits: { owned: [], finished: [], asks: true },
          },
        ],
      },
    ])
  })

  it('reports what was read, and the final state, that the coordinator before never heard of', async () => {
    const { first, settle, attach, assign, read } = subject()
    await settle()
    first.tell(assign())
    first.lose('its process was killed')
    await settle()
    expect(read).toEqual([0, 1, 2, 3, 4])
    expect(first.types).toEqual(['registered', 'running', 'requestSplit'])
    const next = attach()
    await settle()
    expect(next.types).toEqual(['registered'])
    // No checkpoint says that the split is read, and the next enumerator would deal it again.
    const splits = { owned: [], finished: ['0'], asks: false }
    expect(next.sent[0]).toMatchObject({ tasks: [{ status: 'finished', final: { finished: true }, splits }] })
  })

  it('reports an assignment that was on its way when the coordinator was lost as owned', async () => {
    const { first, settle, attach, assign, decode } = subject()
    await settle()
    first.tell(assign())
    const next = attach()
    await settle()
    const { tasks } = next.sent[0] as Extract<FromSlot, { type: 'registered' }>
    expect(tasks[0]!.splits!.owned.map(decode)).toEqual([{ index: 0, of: 1, next: 0 }])
    expect(tasks[0]!.splits!.asks).toBe(false)
    // What it says after it was asked follows.
    expect(next.types).toEqual(['registered', 'finished'])
  })

  it('hears nothing more of a coordinator that another has followed', async () => {
    const { first, settle, attach, assign, read } = subject()
    await settle()
    attach()
    await settle()
    expect(first.closed).toBe(true)
    first.tell(assign())
    first.lose('late')
    await settle()
    expect(read).toEqual([])
  })

  it('takes no snapshot of an id that is over by the word of the coordinator that adopts it', async () => {
    const { first, settle, attach, task, attempt } = subject()
    await settle()
    first.lose('gone')
    const next = attach()
    await settle()
    next.tell({ type: 'adopt', newestKnown: checkpointId(1000) })
    const trigger = (id: number): ToSlot => ({
      type: 'trigger',
      id: checkpointId(id),
      kind: 'checkpoint',
      triggeredAtMs: 0,
      task,
      attempt,
    })
    next.tell(trigger(1000))
    next.tell(trigger(1001))
    await settle()
    expect(next.sent.filter(({ type }) => type === 'acknowledged')).toMatchObject([{ id: 1001 }])
  })

  it('tells every coordinator of a failure, and of nothing else then', async () => {
    const { first, settle, attach, assign } = subject({
      onRecord: () => {
        throw new Error('bad record')
      },
    })
    await settle()
    first.tell(assign())
    first.lose('gone')
    await settle()
    const next = attach()
    await settle()
    expect(next.sent).toMatchObject([
      { type: 'registered', tasks: [] },
      { type: 'failed', error: { message: expect.stringContaining('bad record') } },
    ])
  })

  it('whose coordinator died before it said that all have restored waits for the word of the next, and loses nothing that was assigned', async () => {
    const { first, settle, attach, assign, decode, read, environment } = subject({ waits: true })
    await settle()
    first.tell(assign())
    await settle()
    first.lose('its process was killed')
    await environment.clock.advanceSettled(60_000)
    const next = attach()
    await settle()
    // It has restored: its state is to be taken over, and its split is to be dealt to nobody else.
    const { tasks } = next.sent[0] as Extract<FromSlot, { type: 'registered' }>
    expect(tasks).toMatchObject([{ status: 'running', final: undefined, splits: { finished: [], asks: false } }])
    expect(tasks[0]!.splits!.owned.map(decode)).toEqual([{ index: 0, of: 1, next: 0 }])
    next.tell({ type: 'adopt', newestKnown: checkpointId(3) })
    await settle()
    expect(read).toEqual([])
    next.tell({ type: 'begin' })
    await settle()
    expect(read).toEqual([0, 1, 2, 3, 4])
  })

  it('that runs already, and is told by the next coordinator to begin, runs on', async () => {
    const { first, settle, attach, assign, read, task, attempt } = subject()
    await settle()
    first.lose('its process was killed')
    const next = attach()
    await settle()
    next.tell({ type: 'adopt', newestKnown: checkpointId(0) })
    next.tell({ type: 'begin' })
    next.tell(assign())
    await settle()
    next.tell({ type: 'begin' })
    await settle()
    expect(read).toEqual([0, 1, 2, 3, 4])
    expect(next.types.filter((type) => type === 'requestSplit' || type === 'running')).toEqual([])
    expect(next.sent.at(-1)).toMatchObject({ type: 'finished', task, attempt })
  })

  it('drops an alignment that begins long after the loss too: a barrier may have been held up on its way', async () => {
    const environment = manualEnvironment()
    const read: number[] = []
    const sink: Sink<SequenceRecord> = {
      name: 'read',
      createWriter: () => ({
        open: async () => undefined,
        write: ({ split }) => void read.push(split),
        prepareCommit: async () => [],
        close: () => undefined,
      }),
    }
    const job = defineJob((env) => {
      env
        .source(sequence({ splits: 2, perSplit: 1_000, ratePerSecond: 4 }), { uid: 'numbers', watermarks: monotonic() })
        .rebalance()
        .sinkTo(sink)
        .uid('read')
    })
    const graph = buildGraph(job, { name: 'slot', parallelism: 2 })
    const [source, target] = graph.vertices
    const subscribers = new Map<string, (bytes: Uint8Array) => void>()
    let cut = false
    const transport: FrameTransport = {
      subscribe: (subject, onMessage) => {
        subscribers.set(subject, onMessage)
        return { close: () => subscribers.delete(subject) }
      },
      send: ({ subject }, bytes) => {
        const copy = bytes.slice()
        if (!cut) environment.executor.post(() => subscribers.get(subject)?.(copy))
      },
    }
    const id = jobId('slot')
    const link = new FakeLink()
    const snapshots = new MemorySnapshots()
    const slot = new Slot({
      slot: slotId('0#1.1'),
      job: id,
      graph,
      environment,
      files: new MemoryFiles(),
      transport,
      control: link,
      outlivesCoordinator: true,
      snapshotWriters: { ofKind: () => snapshots },
      snapshotReader: snapshots,
    })
    const attempt = { incarnation: incarnation(1), number: 1 }
    const both = [subtaskIndex(0), subtaskIndex(1)]
    const elsewhere = slotId('1#1.1')
    const channel = (producer: (typeof both)[number], consumer: (typeof both)[number]) => ({
      channel: { edge: graph.edges[0]!.id, producer, consumer },
      attempt,
    })
    const common = {
      attempt,
      restored: undefined,
      newestKnownCheckpoint: checkpointId(0),
      finishedBefore: false,
    }
    link.tell({
      type: 'deploy',
      tasks: both.flatMap((subtask) => [
        {
          ...common,
          task: { vertex: source!.id, subtask },
          inputs: [],
          outputs: both.map((consumer) => ({
            ...channel(subtask, consumer),
            address: dataAddress(id, elsewhere, { task: { vertex: target!.id, subtask: consumer }, attempt }),
          })),
        },
        {
          ...common,
          task: { vertex: target!.id, subtask },
          outputs: [],
          inputs: both.map((producer) => ({
            ...channel(producer, subtask),
            address: creditAddress(id, elsewhere, { task: { vertex: source!.id, subtask: producer }, attempt }),
          })),
        },
      ]),
    })
    const pass = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 100) {
        await environment.executor.runAllSettled()
        await environment.clock.advanceSettled(100)
      }
      await environment.executor.runAllSettled()
    }
    await pass(100)
    const { factory } = source!.chain[0]!
    if (factory.kind !== 'source') throw new Error('the chain begins with its source')
    for (const subtask of both) {
      const writer = createWriter()
      factory.source.splitCodec.encode({ index: subtask, of: 2, next: 0 }, writer)
      const task = { vertex: source!.id, subtask }
      link.tell({ type: 'assign', task, attempt, splits: [writer.take()], noMore: true })
    }
    await pass(3_000)
    expect(new Set(read)).toEqual(new Set([0, 1]))
    // One source has put its barrier on the way; the trigger for the other was not sent any more.
    cut = true
    const task = { vertex: source!.id, subtask: both[0]! }
    link.tell({ type: 'trigger', id: checkpointId(1), kind: 'checkpoint', triggeredAtMs: 0, task, attempt })
    await pass(100)
    link.lose('its process was killed')
    await pass(6_000)
    cut = false
    await pass(12_000)
    read.length = 0
    await pass(5_000)
    expect(new Set(read)).toEqual(new Set([0, 1]))
    const next = new FakeLink()
    slot.attach(next)
    await environment.executor.runAllSettled()
    expect(next.types).toEqual(['registered'])
  })
})
