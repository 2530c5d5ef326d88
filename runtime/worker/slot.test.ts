import { describe, expect, it } from 'vitest'
import { checkpointId, incarnation, jobId, slotId, subtaskIndex } from '../base/ids.ts'
import type { Attempt } from '../base/ids.ts'
import { MillraceError } from '../base/errors.ts'
import { CONTROL_VERSION } from '../control/contract.ts'
import type { ControlLink, FromSlot, TaskDeployment, ToSlot } from '../control/contract.ts'
import { createWriter } from '../record/bytes.ts'
import { MemorySnapshots } from '../state/conformance-harness.ts'
import { encodeItems } from '../state/operator-state.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { serializeError } from '../control/serialized-error.ts'
import { Slot } from './slot.ts'
import { numbersJob } from './test-numbers-job.ts'

/** One slot with one chained subtask that reads a numbered source; the coordinator is the test. */
function subject(options: { readonly onRecord?: (n: number) => void; readonly waits?: boolean } = {}) {
  const environment = manualEnvironment()
  const { graph, read } = numbersJob(options.onRecord)
  const sent: FromSlot[] = []
  let receive: (message: ToSlot) => void = () => undefined
  let lose: (reason: string) => void = () => undefined
  const control: ControlLink<FromSlot, ToSlot> = {
    send: (message) => {
      sent.push(message)
      // There is no other subtask to wait for.
      if (message.type === 'running' && options.waits !== true) receive({ type: 'begin' })
    },
    onMessage: (callback) => void (receive = callback),
    onLost: (callback) => void (lose = callback),
    close: () => undefined,
  }
  const snapshots = new MemorySnapshots()
  const slot = new Slot({
    slot: slotId('0#1.1'),
    job: jobId('slot'),
    graph,
    environment,
    files: new MemoryFiles(),
    transport: { subscribe: () => ({ close: () => undefined }), send: () => undefined },
    control,
    snapshotWriters: { ofKind: () => snapshots },
    snapshotReader: snapshots,
  })
  const task = { vertex: graph.vertices[0]!.id, subtask: subtaskIndex(0) }
  const attempt: Attempt = { incarnation: incarnation(1), number: 7 }
  const deployment: TaskDeployment = {
    task,
    attempt,
    inputs: [],
    outputs: [],
    restored: undefined,
    newestKnownCheckpoint: checkpointId(0),
    finishedBefore: false,
  }
  const { factory } = graph.vertices[0]!.chain[0]!
  if (factory.kind !== 'source') throw new Error('the chain begins with its source')
  const codec = factory.source.splitCodec
  const encode = (next: number): Uint8Array => {
    const writer = createWriter()
    codec.encode({ index: 0, of: 1, next }, writer)
    return writer.take()
  }
  return {
    slot,
    sent,
    read,
    task,
    attempt,
    codec,
    encode,
    snapshots,
    environment,
    tell: (message: ToSlot) => receive(message),
    lose: (reason: string) => lose(reason),
    deploy: (change: Partial<TaskDeployment> = {}) =>
      receive({ type: 'deploy', tasks: [{ ...deployment, ...change }] }),
    assign: (next: number, of: Attempt = attempt) =>
      receive({ type: 'assign', task, attempt: of, splits: [encode(next)], noMore: true }),
    settle: () => environment.executor.runAllSettled(),
    types: () => sent.map(({ type }) => type).filter((type) => type !== 'report'),
  }
}

describe('a slot', () => {
  it('registers, deploys, runs what it is told to, and reports the end', async () => {
    const { deploy, assign, settle, types, sent, read } = subject()
    expect(sent).toEqual([
      { type: 'registered', version: CONTROL_VERSION, slot: '0#1.1', graphHash: expect.any(String), tasks: [] },
    ])
    deploy()
    await settle()
    assign(0)
    await settle()
    expect(read).toEqual([0, 1, 2, 3, 4])
    expect(types()).toEqual(['registered', 'running', 'requestSplit', 'finished'])
  })

  it('reads nothing, and asks for nothing, before it is told that all have restored', async () => {
    const { deploy, assign, settle, read, tell, types } = subject({ waits: true })
    deploy()
    // Not its word: it has not restored.
    tell({ type: 'begin' })
    await settle()
    assign(2)
    await settle()
    expect([types(), read]).toEqual([['registered', 'running'], []])
    tell({ type: 'begin' })
    await settle()
    expect(read).toEqual([2, 3, 4])
    expect(types()).toEqual(['registered', 'running', 'requestSplit', 'finished'])
  })

  it('keeps assignments that come while the reader is being restored, in their order with the triggers (rule 20)', async () => {
    const early = subject()
    early.deploy()
    early.assign(3)
    await early.settle()
    expect(early.read).toEqual([3, 4])
    const again = subject()
    const { task, attempt } = again
    again.deploy()
    await again.settle()
    // Trigger first: what is assigned behind it is not in the snapshot.
    again.tell({ type: 'trigger', id: checkpointId(1), kind: 'checkpoint', triggeredAtMs: 0, task, attempt })
    again.assign(0)
    await again.settle()
    const acknowledged = again.sent.find((message) => message.type === 'acknowledged')
    expect(acknowledged).toMatchObject({
      id: 1,
      snapshot: { operators: { numbers: { operatorState: { splits: { count: 0 } } } } },
    })
  })

  it('hears nothing that is for another attempt', async () => {
    const { deploy, assign, settle, read, tell, task, attempt, types } = subject()
    deploy()
    await settle()
    const stale = { ...attempt, number: 6 }
    assign(0, stale)
    assign(0, { ...attempt, incarnation: incarnation(0) })
    tell({ type: 'trigger', id: checkpointId(1), kind: 'checkpoint', triggeredAtMs: 0, task, attempt: stale })
    tell({ type: 'splitsWait', task, attempt: stale, waiting: false })
    await settle()
    expect(read).toEqual([])
    expect(types()).toEqual(['registered', 'running', 'requestSplit'])
  })

  it('stops as a whole at the first failure, says so once, and nothing more', async () => {
    const { deploy, assign, settle, sent, types, tell, environment, slot } = subject({
      onRecord: (n) => {
        if (n === 2) throw new Error('bad record')
      },
    })
    deploy()
    assign(0)
    await settle()
    slot.fail(new Error('later'))
    tell({ type: 'complete', id: checkpointId(1) })
    environment.clock.advance(10_000)
    await settle()
    expect(types()).toEqual(['registered', 'running', 'requestSplit', 'failed'])
    expect(sent.at(-1)).toMatchObject({
      attempt: { number: 7 },
      error: { message: expect.stringContaining('bad record'), retry: true },
    })
    expect(environment.clock.waiting).toBe(0)
  })

  it('fails with an error, and not in its link, when it is told what it cannot do', async () => {
    const { deploy, types } = subject()
    deploy({ task: { vertex: 'nowhere' as never, subtask: subtaskIndex(0) } })
    expect(types()).toEqual(['registered', 'failed'])
  })

  it('stops when its coordinator is gone', async () => {
    const { deploy, assign, settle, read, lose, types } = subject()
    deploy()
    await settle()
    lose('silent')
    assign(0)
    await settle()
    expect(read).toEqual([])
    expect(types()).toEqual(['registered', 'running', 'requestSplit'])
  })

  it("reads restored splits with the codec they were written with, and refuses those that today's source cannot read", async () => {
    const restoredOf = async (
      of: ReturnType<typeof subject>,
      codec: ReturnType<typeof subject>['codec']['description'],
    ) => {
      const items = await of.snapshots.write(1, encodeItems([of.encode(4)]))
      return {
        operators: {
          numbers: {
            operatorState: { splits: [{ redistribution: 'split' as const, codec, items, count: 1, from: 0, to: 1 }] },
          },
        },
      }
    }
    const known = subject()
    known.deploy({ restored: await restoredOf(known, known.codec.description) })
    await known.settle()
    known.tell({ type: 'assign', task: known.task, attempt: known.attempt, splits: [], noMore: true })
    await known.settle()
    expect(known.read).toEqual([4])
    const other = subject()
    other.deploy({ restored: await restoredOf(other, { ...other.codec.description, kind: 'schema' }) })
    await other.settle()
    expect(other.sent.at(-1)).toMatchObject({ type: 'failed', error: { code: 'MR-T02', retry: false } })
    expect(other.read).toEqual([])
  })

  it('re-emits the end of data of a source that had finished, and asks for nothing (rule 19)', async () => {
    const { deploy, settle, types, read } = subject()
    deploy({ finishedBefore: true })
    await settle()
    expect(read).toEqual([])
    expect(types()).toEqual(['registered', 'running', 'finished'])
  })
})

describe('an error on its way to the coordinator', () => {
  it('keeps its code and whether a restart may help; one without a row may be restarted', () => {
    const row = { meaning: 'm', who: 'user' as const, retry: false, remedy: 'r' }
    expect(serializeError(new MillraceError('MR-X01', row, 'detail'))).toMatchObject({ code: 'MR-X01', retry: false })
    expect(serializeError(new TypeError('why'))).toMatchObject({
      name: 'TypeError',
      message: 'why',
      code: undefined,
      retry: true,
    })
    const place = 'parse → count, subtask 1'
    expect(serializeError(new MillraceError('MR-R01', row, 'detail'), place).message).toContain(place)
    expect(serializeError(new MillraceError('MR-X01', row, 'detail'), place).message).not.toContain(place)
    expect(serializeError('text')).toMatchObject({ message: 'text', retry: true })
  })
})
