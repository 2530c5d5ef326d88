import { describe, expect, it } from 'vitest'
import { Metrics } from '../base/metrics.ts'
import type { KeyedSnapshot, StateHandle } from '../checkpoint/contract.ts'
import type { RestoredSubtask } from '../control/contract.ts'
import { keyGroup } from '../base/ids.ts'
import { bytesToRestore, countedReader } from './restore-progress.ts'

const object = (length: number): StateHandle => ({ kind: 'object', object: 'chk-1/a', offset: 0, length, crc: 0 })
const inline = (text: string): StateHandle => ({ kind: 'inline', base64: Buffer.from(text).toString('base64'), crc: 0 })

describe('what a subtask has to read', () => {
  it('are the groups of its own range, whatever else their snapshots hold, and all of its lists', () => {
    const group = (number: number, handle?: StateHandle) => ({
      keyGroup: keyGroup(number),
      watermark: 0,
      ...(handle && { handle }),
    })
    const keyed: KeyedSnapshot = {
      format: 1,
      states: [],
      groups: [
        group(1, object(1_000)),
        group(2, object(10)),
        group(3),
        group(4, inline('seven b')),
        group(5, object(1_000)),
      ],
    }
    const share = { redistribution: 'split', codec: {}, count: 1, from: 0, to: 1 } as const
    const restored = {
      operators: { a: { keyed: [keyed] }, b: { operatorState: { list: [{ ...share, items: object(100) }] } } },
    } as unknown as RestoredSubtask
    expect(bytesToRestore(restored, { first: 2, last: 4 })).toBe(10 + 7 + 100)
    expect(bytesToRestore(undefined, { first: 0, last: 9 })).toBe(0)
  })

  it('is counted as it is read', async () => {
    const metrics = new Metrics()
    const reader = countedReader({ read: async () => new Uint8Array(5) }, metrics)
    await reader.read(object(5))
    await reader.read(object(5))
    expect(metrics.figures()).toEqual({ restored_bytes_total: 10 })
  })
})
