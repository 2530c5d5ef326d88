// A slot whose job awaits: what was in flight is restored and called again, and the job's own metrics reach the coordinator.

import { describe, expect, it } from 'vitest'
import { checkpointId, incarnation, jobId, slotId, subtaskIndex } from '../base/ids.ts'
import { sequence } from '../connectors/sequence.ts'
import { monotonic } from '../connectors/watermarks.ts'
import type { FromSlot, RestoredSubtask, ToSlot } from '../control/contract.ts'
import { buildGraph } from '../job/build-graph.ts'
import { defineJob } from '../job/define-job.ts'
import { createWriter } from '../record/bytes.ts'
import { MemorySnapshots } from '../state/conformance-harness.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { Slot } from './slot.ts'

interface Given {
  readonly snapshots?: MemorySnapshots
  readonly restored?: RestoredSubtask
}

/** One chained subtask: a numbered source, an asynchronous step whose answers are the test's, a counting step, a sink. */
function subject({ snapshots = new MemorySnapshots(), restored }: Given = {}) {
  const environment = manualEnvironment()
  const written: number[] = []
  const calls = new Map<number, () => void>()
  const job = defineJob((env) => {
    env
      .source(sequence({ splits: 1, perSplit: 6 }), { uid: 'numbers', watermarks: monotonic() })
      .mapAsync(({ n }) => new Promise<number>((resolve) => calls.set(n, () => resolve(n * 10))), { timeoutMs: 1_000 })
      .uid('asked')
      .process<number>({
        process(value, { emit, metrics }) {
          metrics.counter('answers').increment()
          emit(value)
        },
      })
      .uid('counted')
      .sinkTo({
        name: 'written',
        createWriter: () => ({
          open: async () => undefined,
          write: (value: number) => void written.push(value),
          prepareCommit: async () => [],
          close: () => undefined,
        }),
      })
      .uid('written')
  })
  const graph = buildGraph(job, { name: 'slot', parallelism: 1 })
  const sent: FromSlot[] = []
  let receive: (message: ToSlot) => void = () => undefined
  void new Slot({
    slot: slotId('0#1.1'),
    job: jobId('slot'),
    graph,
    environment,
    files: new MemoryFiles(),
    transport: { subscribe: () => ({ close: () => undefined }), send: () => undefined },
    control: {
      send: (message: FromSlot) => void sent.push(message),
      onMessage: (callback) => void (receive = callback),
      onLost: () => undefined,
      close: () => undefined,
    },
    snapshotWriters: { ofKind: () => snapshots },
    snapshotReader: snapshots,
  })
  const of = {
    task: { vertex: graph.vertices[0]!.id, subtask: subtaskIndex(0) },
    attempt: { incarnation: incarnation(1), number: 1 },
  }
  const settle = () => environment.executor.runAllSettled()
  const firstOf = <Type extends FromSlot['type']>(type: Type) =>
    sent.find((message): message is Extract<FromSlot, { type: Type }> => message.type === type)
  return {
    written,
    settle,
    firstOf,
    environment,
    called: () => [...calls.keys()],
    deploy: async () => {
      const deployment = {
        ...of,
        inputs: [],
        outputs: [],
        restored,
        newestKnownCheckpoint: checkpointId(0),
        finishedBefore: false,
      }
      receive({ type: 'deploy', tasks: [deployment] })
      await settle()
    },
    begin: async () => {
      receive({ type: 'begin' })
      await settle()
    },
    /** The source's records from `next` on. */
    assign: async (next: number) => {
      const { factory } = graph.vertices[0]!.chain[0]!
      if (factory.kind !== 'source') throw new Error('the chain begins with its source')
      const writer = createWriter()
      factory.source.splitCodec.encode({ index: 0, of: 1, next }, writer)
      receive({ type: 'assign', ...of, splits: [writer.take()], noMore: true })
      await settle()
    },
    answer: async (n: number) => {
      calls.get(n)!()
      await settle()
    },
    snapshot: async () => {
      receive({ type: 'trigger', id: checkpointId(1), kind: 'checkpoint', triggeredAtMs: 0, ...of })
      await settle()
      return firstOf('acknowledged')!.snapshot.operators['asked']!.operatorState!['in-flight']!
    },
  }
}

describe('a slot whose job awaits', () => {
  it('acknowledges what is in flight; a later attempt calls that again first, and no other record twice', async () => {
    const snapshots = new MemorySnapshots()
    const first = subject({ snapshots })
    await first.deploy()
    await first.begin()
    await first.assign(2)
    await first.answer(2)
    await first.answer(4)
    expect(first.written).toEqual([20])
    const list = await first.snapshot()
    expect(list).toMatchObject({ redistribution: 'split', count: 3 })

    // The third fell to another subtask.
    const share = { ...list, from: 0, to: 2 }
    const second = subject({
      snapshots,
      restored: { operators: { asked: { operatorState: { 'in-flight': [share] } } } },
    })
    await second.deploy()
    // Others may fail to restore yet, and what the function does would have been done by then.
    expect([second.firstOf('running') !== undefined, second.called()]).toEqual([true, []])
    await second.begin()
    expect(second.called()).toEqual([3, 4])
    await second.assign(5)
    expect(second.called()).toEqual([3, 4, 5])
    for (const n of [5, 4, 3]) await second.answer(n)
    expect(second.written).toEqual([30, 40, 50])
    expect(second.firstOf('finished')).toBeDefined()
  })

  it("reports the job's own metrics under their operator", async () => {
    const { deploy, begin, assign, answer, firstOf, environment } = subject()
    await deploy()
    await begin()
    await assign(0)
    for (const n of [0, 1]) await answer(n)
    environment.clock.advance(500)
    expect(firstOf('report')!.tasks[0]!.metrics).toMatchObject({ 'user/counted/counter/answers': 2 })
  })
})
