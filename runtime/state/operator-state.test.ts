import { describe, expect, it } from 'vitest'
import { checkpointId } from '../base/ids.ts'
import { bytesCodec } from '../record/plain-codecs.ts'
import { MemorySnapshots } from './conformance-harness.ts'
import { decodeItems, encodeItems, readOperatorState, writeOperatorState } from './operator-state.ts'

const bytesOf = (...texts: readonly string[]): Uint8Array[] => texts.map((text) => new Uint8Array(Buffer.from(text)))

describe('operator state', () => {
  it('comes back as it was written', async () => {
    const store = new MemorySnapshots()
    const items = bytesOf('one', '', 'three')
    const part = { redistribution: 'split', codec: bytesCodec.description, items } as const
    const snapshot = await writeOperatorState(part, checkpointId(4), store)
    expect(snapshot).toMatchObject({ redistribution: 'split', count: 3, codec: bytesCodec.description })
    expect(await readOperatorState('splits', snapshot, store)).toEqual(items)
  })

  it('has bytes that stay: MRIT, version, count, items with their lengths', () => {
    expect(Buffer.from(encodeItems(bytesOf('ab', 'c'))).toString('hex')).toBe('4d52495401020000000261620163')
  })

  it('names the state and the object when it is cut short, too long or of another version', () => {
    const bytes = encodeItems(bytesOf('one', 'two'))
    for (let length = 0; length < bytes.length; length++) {
      expect(() => decodeItems(bytes.subarray(0, length), 2, "operator state 'splits' in object o")).toThrow(
        /MR-T03.*'splits' in object o/,
      )
    }
    expect(() => decodeItems(Uint8Array.of(...bytes, 0), 2, 'it')).toThrow(/MR-T03/)
    expect(() => decodeItems(bytes, 3, 'it')).toThrow(/MR-T03.*holds 2 items, the manifest says 3/)
    expect(() => decodeItems(bytes.with(4, 2), 2, 'it')).toThrow(/MR-T05/)
  })
})
