import { describe, expect, it } from 'vitest'
import { edgeId, keyGroup, subtaskIndex } from '../base/ids.ts'
import type { Partitioning } from '../job/contract.ts'
import type { Key } from '../record/contract.ts'
import { keyGroupOf, subtaskOfKeyGroup } from '../record/key-group.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import type { InputChannel } from './contract.ts'
import { MEMORY_RECORDS_MAX } from './limits.ts'
import { memoryChannel } from './memory-channel.ts'
import { createRecordWriter } from './record-writer.ts'

function writerTo(count: number, partitioning: Partitioning, subtask = 0) {
  const environment = manualEnvironment()
  const pairs = Array.from({ length: count }, (_, consumer) =>
    memoryChannel(
      { edge: edgeId(0), producer: subtaskIndex(subtask), consumer: subtaskIndex(consumer) },
      environment.executor,
    ),
  )
  const channels = pairs.map(({ output }) => output)
  const keySelector = (value: unknown): Key => (value as { key: Key }).key
  const writer = createRecordWriter({ partitioning, channels, subtask, keySelector, maxParallelism: 128 })
  return { writer, environment, inputs: pairs.map(({ input }) => input) }
}

function received(input: InputChannel): unknown[] {
  const values: unknown[] = []
  for (let item = input.next(); item !== undefined; item = input.next()) {
    if (item.kind === 'records') values.push(...item.values)
    else values.push(item.kind)
  }
  return values
}

describe('a record writer', () => {
  it('sends everything to the same subtask on a forward edge', () => {
    const { writer, inputs } = writerTo(1, 'forward')
    for (const value of [1, 2, 3]) writer.emit(value, 0)
    writer.flush()
    expect(inputs.map(received)).toEqual([[1, 2, 3]])
  })

  it('deals records round robin, each producer beginning with another consumer', () => {
    const { writer, inputs } = writerTo(3, 'rebalance', 4)
    for (const value of [1, 2, 3, 4]) writer.emit(value, 0)
    writer.flush()
    expect(inputs.map(received)).toEqual([[3], [1, 4], [2]])
  })

  it('sends each key to the subtask that owns its key group', () => {
    const { writer, inputs } = writerTo(3, 'hash')
    const values = Array.from({ length: 100 }, (_, number) => ({ key: `key ${number}` }))
    for (const value of values) writer.emit(value, 0)
    writer.flush()
    const owner = ({ key }: { key: string }) => subtaskOfKeyGroup(keyGroup(keyGroupOf(key, 128)), 3, 128)
    expect(inputs.map(received)).toEqual([0, 1, 2].map((subtask) => values.filter((value) => owner(value) === subtask)))
  })

  it('leaves the keys to the only consumer that there is', () => {
    const { writer, inputs } = writerTo(1, 'hash')
    // Without a key: the selector would throw.
    for (const value of [{ key: 'a' }, undefined]) writer.emit(value, 0)
    writer.flush()
    expect(inputs.map(received)).toEqual([[{ key: 'a' }, undefined]])
  })

  it('copies records to all on a broadcast edge, and events on every edge', () => {
    const { writer, inputs } = writerTo(2, 'broadcast')
    writer.emit('a', 0)
    writer.event({ kind: 'watermark', timestamp: 5 })
    expect(inputs.map(received)).toEqual([
      ['a', 'watermark'],
      ['a', 'watermark'],
    ])
    const hash = writerTo(2, 'hash')
    hash.writer.event({ kind: 'end' })
    expect(hash.inputs.map(received)).toEqual([['end'], ['end']])
    expect(hash.writer.endReceived).toBe(true)
  })

  it('is ready only while all its channels are, and tells when they are again', () => {
    const { writer, inputs, environment } = writerTo(2, 'rebalance')
    let changes = 0
    writer.onChange(() => changes++)
    for (let number = 0; number < 2 * MEMORY_RECORDS_MAX; number++) writer.emit(number, 0)
    expect(writer.ready).toBe(false)
    received(inputs[0]!)
    environment.executor.runAll()
    expect([writer.ready, changes]).toEqual([false, 1])
    received(inputs[1]!)
    environment.executor.runAll()
    expect([writer.ready, changes]).toEqual([true, 2])
  })
})
