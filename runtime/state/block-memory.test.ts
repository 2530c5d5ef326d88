import { describe, expect, it } from 'vitest'
import { COPIED_BYTES_MAX } from '../checkpoint/contract.ts'
import { BlockMemory, PIECE_BYTES } from './block-memory.ts'

describe('the memory of blocks', () => {
  it('is the same for blocks of about one size, and of its own for one that the writer of snapshots does not copy', () => {
    const memory = new BlockMemory()
    const first = memory.roomFor(1_000_000)
    expect(memory.roomFor(1_400_000).buffer).toBe(first.buffer)
    expect(memory.roomFor(10)).toHaveLength(10)
    const larger = memory.roomFor(COPIED_BYTES_MAX)
    expect(larger).toHaveLength(COPIED_BYTES_MAX)
    expect(memory.roomFor(1).buffer).toBe(larger.buffer)
    expect(memory.roomFor(COPIED_BYTES_MAX + 1).buffer).not.toBe(larger.buffer)
  })

  it('gives a writer again that has room for a piece, and lets go of shorter and of much larger ones', () => {
    const memory = new BlockMemory()
    const grown = (byteCount: number) => {
      const writer = memory.takeWriter()
      writer.reserve(byteCount)
      return writer
    }
    const [kept, short, huge] = [grown(PIECE_BYTES), grown(10), grown(PIECE_BYTES * 5)]
    for (const writer of [kept, short, huge]) memory.giveBack(writer)
    const again = [memory.takeWriter(), memory.takeWriter()]
    expect(again.map((writer) => [kept, short, huge].indexOf(writer))).toEqual([0, -1])
    expect([short.bytes.length, huge.bytes.length]).toEqual([0, 0])
  })

  it('can be used again after it was given up', () => {
    const memory = new BlockMemory()
    memory.roomFor(100)
    memory.giveBack(memory.takeWriter())
    memory.close()
    memory.close()
    expect(memory.roomFor(100)).toHaveLength(100)
    expect(memory.takeWriter().position).toBe(0)
  })
})
