import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkpointId, incarnation, jobId, subtaskIndex, vertexId } from '../base/ids.ts'
import { Metrics } from '../base/metrics.ts'
import { numberedSource } from '../connectors/numbered-source.ts'
import type { NumberedSplit } from '../connectors/numbered-source.ts'
import { createReader, createWriter } from '../record/bytes.ts'
import { MAX_WATERMARK } from '../record/element.ts'
import { typeInfoOf } from '../record/type-info.ts'
import { SPLITS_STATE } from '../connectors/contract.ts'
import type { SourceReader } from '../connectors/contract.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { FinishedInput } from './finished-input.ts'
import { SourceInput } from './source-input.ts'
import type { InputHost } from './task-input.ts'

function hostOf(): InputHost & { readonly watermarks: number[] } {
  const watermarks: number[] = []
  return {
    watermarks,
    shouldStop: () => false,
    process: () => undefined,
    announce: (values) => values.length,
    processSecond: () => undefined,
    advanceWatermark: (watermark) => watermarks.push(watermark),
    idleness: () => undefined,
    snapshot: () => undefined,
  }
}

const numbers = numberedSource<number>({
  name: 'numbers',
  bounded: false,
  output: typeInfoOf('number', z.int()),
  countOf: () => undefined,
  recordOf: (_, n) => n,
  timestampOf: (_, n) => n,
})

function sourceInput() {
  const environment = manualEnvironment()
  const metrics = new Metrics()
  const host = hostOf()
  const reader = numbers.createReader({
    environment,
    files: new MemoryFiles(),
    task: {
      job: jobId('job'),
      vertex: vertexId('numbers'),
      vertexName: 'numbers',
      subtask: subtaskIndex(0),
      parallelism: 1,
      maxParallelism: 8,
      attempt: { incarnation: incarnation(1), number: 1 },
    },
    metrics,
    wake: () => undefined,
    requestSplit: () => undefined,
    splitFinished: () => undefined,
    fail: (error) => {
      throw error
    },
  })
  const input = new SourceInput({
    source: numbers,
    strategy: { createGenerator: undefined },
    reader,
    newestKnown: checkpointId(0),
    output: { emit: () => undefined, emitTo: () => undefined },
    host,
    environment,
    metrics,
  })
  const assign = (split: NumberedSplit): void => {
    const writer = createWriter()
    numbers.splitCodec.encode(split, writer)
    input.addSplits([writer.take()], (bytes) => numbers.splitCodec.decode(createReader(bytes)))
  }
  const splitsAt = (id: number): number =>
    input.snapshot(checkpointId(id)).operatorState?.[SPLITS_STATE]?.items.length ?? 0
  return { input, host, assign, splitsAt }
}

describe('an input that is drained (rule 20, R20)', () => {
  it('of a source ends its time, and a split assigned behind the trigger is not in its part: the enumerator still holds it', () => {
    const { input, host, assign, splitsAt } = sourceInput()
    assign({ index: 0, of: 2, next: 0 })
    expect(splitsAt(1)).toBe(1)
    input.drain()
    assign({ index: 1, of: 2, next: 0 })
    expect(splitsAt(2)).toBe(1)
    expect(host.watermarks).toEqual([MAX_WATERMARK])
  })

  it('of a source that had finished before still ends time: its consumers wait for that', () => {
    const host = hostOf()
    new FinishedInput(host).drain()
    expect(host.watermarks).toEqual([MAX_WATERMARK])
  })
})

describe('a source that was idle (R16)', () => {
  it('is active before its first record, not some time behind it', async () => {
    const story: string[] = []
    const environment = manualEnvironment()
    let hasRecord = false
    const reader: SourceReader<unknown, unknown> = {
      start: () => undefined,
      addSplits: () => undefined,
      noMoreSplits: () => undefined,
      poll: (output) => {
        if (!hasRecord) return 'nothing'
        hasRecord = false
        output.emit('record', 5, 'split')
        return 'more'
      },
      snapshot: () => [],
      ownedSplits: () => ['split'],
      hasPending: () => false,
      close: () => undefined,
    }
    const input = new SourceInput({
      source: numbers,
      strategy: { createGenerator: undefined, idleAfterMs: 100 },
      reader,
      newestKnown: checkpointId(0),
      output: { emit: (value) => story.push(String(value)), emitTo: () => undefined },
      host: { ...hostOf(), idleness: (idle) => story.push(idle ? 'idle' : 'active') },
      environment,
      metrics: new Metrics(),
    })
    input.setSplitsWait(false)
    for (let tick = 0; tick < 8; tick++) {
      input.read()
      await environment.clock.advanceSettled(50)
    }
    hasRecord = true
    input.read()
    expect(story).toEqual(['idle', 'active', 'record'])
  })
})
