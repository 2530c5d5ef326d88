import { describe, expect, it } from 'vitest'
import { checkpointId } from '../base/ids.ts'
import type { KeyedSnapshot, StateHandle } from '../checkpoint/contract.ts'
import { codec, handleIn, keyedOf, transaction } from '../checkpoint/test-snapshots.ts'
import { settlePromises } from '../testkit/manual-clock.ts'
import { assembleSnapshot, snapshotBytes } from './snapshot-assembly.ts'

const writer = { write: async (): Promise<StateHandle> => handleIn('chk-7/lists') }
const keyed: KeyedSnapshot = keyedOf({ parallelism: 2, subtask: 0, maxParallelism: 8 })

describe('the assembly of a snapshot', () => {
  it('joins keyed state, lists and transactions of one operator, and leaves out operators that hold nothing', async () => {
    const part = { operatorState: { list: { redistribution: 'union' as const, codec, items: [new Uint8Array([1])] } } }
    const operators = await assembleSnapshot({
      id: checkpointId(7),
      writer,
      parts: [
        { uid: 'head', keyed: Promise.resolve(keyed) },
        { uid: 'head', part: Promise.resolve(part) },
        { uid: 'sink', part: Promise.resolve({ committables: [transaction('t')] }) },
        { uid: 'empty', part: Promise.resolve({ committables: [] }) },
      ],
    })
    expect(Object.keys(operators)).toEqual(['head', 'sink'])
    expect(operators['head']).toEqual({
      keyed,
      operatorState: { list: { redistribution: 'union', codec, items: handleIn('chk-7/lists'), count: 1 } },
    })
    expect(operators['sink']).toEqual({ committables: [transaction('t')] })
    expect(snapshotBytes(operators)).toBe(10 * keyed.groups.filter(({ handle }) => handle !== undefined).length + 10)
  })

  it('fails with the first failure, but only after every part has ended', async () => {
    let release!: () => void
    const slow = new Promise<KeyedSnapshot>((resolve) => (release = () => resolve(keyed)))
    let outcome = 'open'
    const assembled = assembleSnapshot({
      id: checkpointId(7),
      writer,
      parts: [
        { uid: 'sink', part: Promise.reject(new Error('disk full')) },
        { uid: 'head', keyed: slow },
      ],
    }).catch((error: unknown) => (outcome = String(error)))
    await settlePromises()
    expect(outcome).toBe('open')
    release()
    await assembled
    expect(outcome).toBe('Error: disk full')
  })
})
