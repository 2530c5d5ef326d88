import { describe, expect, it } from 'vitest'
import { checkpointId } from '../base/ids.ts'
import { Metrics } from '../base/metrics.ts'
import type { Source, SourceReader } from '../connectors/contract.ts'
import { untypedCodec } from '../record/untyped.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { SourceInput } from './source-input.ts'
import type { InputHost } from './task-input.ts'

function subject() {
  const owned: string[] = ['a', 'b', 'c']
  const reader: SourceReader<unknown, unknown> = {
    start: () => undefined,
    addSplits: () => undefined,
    noMoreSplits: () => undefined,
    poll: () => 'nothing',
    snapshot: () => owned,
    ownedSplits: () => owned,
    hasPending: () => false,
    close: () => undefined,
  }
  const host = { snapshot: () => undefined } as unknown as InputHost
  const input = new SourceInput({
    source: { bounded: true, splitCodec: untypedCodec } as unknown as Source<unknown, unknown, unknown>,
    strategy: { createGenerator: undefined },
    reader,
    newestKnown: checkpointId(10),
    output: { emit: () => undefined, emitTo: () => undefined },
    host,
    environment: manualEnvironment(),
    metrics: new Metrics(),
  })
  return {
    input,
    finish: (split: string) => {
      owned.splice(owned.indexOf(split), 1)
      input.splitFinished(split)
    },
    trigger: (id: number) =>
      input.trigger({ id: checkpointId(id), kind: 'checkpoint', triggeredAtMs: 0, alignedMs: 0 }),
  }
}

describe('a source, for the coordinator that adopts its reader (rule 20)', () => {
  it('remembers the splits that were read to their end until a checkpoint that holds that has completed', () => {
    const { input, finish, trigger } = subject()
    finish('a')
    trigger(11)
    finish('b')
    expect(input.splits()).toMatchObject({ finished: ['a', 'b'] })
    // An older one than that in whose time it ended holds it as owned.
    input.completed(checkpointId(10))
    expect(input.splits()).toMatchObject({ finished: ['a', 'b'] })
    input.completed(checkpointId(11))
    expect(input.splits()).toMatchObject({ finished: ['b'] })
    trigger(12)
    input.completed(checkpointId(12))
    expect(input.splits()).toMatchObject({ finished: [] })
    expect(input.splits().owned).toHaveLength(1)
  })

  it('says whether its reader waits for an answer', () => {
    const { input } = subject()
    expect(input.splits().asks).toBe(false)
    input.splitRequested()
    expect(input.splits().asks).toBe(true)
    input.addSplits([], () => undefined)
    expect(input.splits().asks).toBe(false)
    input.splitRequested()
    input.noMoreSplits()
    expect(input.splits().asks).toBe(false)
  })

  it('takes no snapshot of an id that is over', () => {
    const { input, trigger, finish } = subject()
    input.forget(checkpointId(1_000))
    trigger(999)
    finish('a')
    input.completed(checkpointId(1_000))
    expect(input.splits().finished).toEqual(['a'])
  })
})
