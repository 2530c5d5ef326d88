import { describe, expect, it } from 'vitest'
import { edgeId, subtaskIndex } from '../base/ids.ts'
import { memoryChannel } from '../network/memory-channel.ts'
import { ManualExecutor } from '../testkit/manual-clock.ts'
import { InputGate } from './input-gate.ts'
import { barrier, wordsOf } from './harness.ts'

function gateOf(channels: number) {
  const executor = new ManualExecutor()
  const pairs = Array.from({ length: channels }, (_, producer) =>
    memoryChannel({ edge: edgeId(0), producer: subtaskIndex(producer), consumer: subtaskIndex(0) }, executor),
  )
  let wakes = 0
  const gate = new InputGate(
    pairs.map(({ input }) => input),
    () => wakes++,
  )
  const read = (): string[] => {
    const words: string[] = []
    for (let item = gate.next(); item !== undefined; item = gate.next())
      words.push(`${gate.lastChannel}: ${wordsOf(item).join(' ')}`)
    return words
  }
  return { gate, outputs: pairs.map(({ output }) => output), read, executor, wakes: () => wakes }
}

describe('an input gate', () => {
  it('gives every channel that has something its turn, however much one of them has', () => {
    const { outputs, read } = gateOf(3)
    for (let n = 0; n < 3; n++) {
      outputs[0]!.emit(n, 0)
      outputs[0]!.flush()
    }
    outputs[2]!.emit(9, 0)
    outputs[2]!.flush()
    expect(read()).toEqual(['0: 0', '2: 9', '0: 1', '0: 2'])
  })

  it('passes over a blocked channel and keeps its order for later', () => {
    const { gate, outputs, read } = gateOf(2)
    outputs[0]!.event({ kind: 'barrier', barrier: barrier(1) })
    outputs[0]!.emit(1, 0)
    outputs[0]!.flush()
    outputs[1]!.emit(2, 0)
    outputs[1]!.flush()
    expect(gate.next()?.kind).toBe('barrier')
    gate.channels[0]!.block()
    expect(read()).toEqual(['1: 2'])
    gate.unblockAll()
    expect(read()).toEqual(['0: 1'])
  })

  it('wakes when something comes', () => {
    const { gate, outputs, executor, wakes } = gateOf(2)
    gate.open()
    outputs[1]!.emit(2, 0)
    outputs[1]!.flush()
    executor.runAll()
    expect(wakes()).toBe(1)
  })
})
