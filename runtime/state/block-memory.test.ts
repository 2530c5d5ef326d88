import { describe, expect, it } from 'vitest'
import { keyGroup } from '../base/ids.ts'
import { COPIED_BYTES_MAX } from '../checkpoint/contract.ts'
import type { BinaryWriter } from '../record/bytes.ts'
import { BlockMemory, PIECE_BYTES } from './block-memory.ts'
import { BlockWriter } from './segment.ts'

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

  it('gives the longest writer again, and lets go of one that grew far beyond a piece', () => {
    const memory = new BlockMemory()
    const grown = (byteCount: number) => {
      const writer = memory.takeWriter()
      writer.reserve(byteCount)
      return writer
    }
    const writers = [PIECE_BYTES, PIECE_BYTES * 5, 10, PIECE_BYTES * 2].map(grown)
    for (const writer of writers) memory.giveBack(writer)
    const again = [1, 2, 3, 4].map(() => writers.indexOf(memory.takeWriter()))
    expect(again).toEqual([3, 0, 2, -1])
    expect(writers.map(({ bytes }) => bytes.length === 0)).toEqual([false, true, false, false])
  })

  it('keeps the longest of many', () => {
    const memory = new BlockMemory()
    const writers = Array.from({ length: 40 }, (_, index) => {
      const writer = memory.takeWriter()
      writer.reserve(10_000 + ((index * 7) % 40) * 1_000)
      return writer
    })
    for (const writer of writers) memory.giveBack(writer)
    const kept = writers.map(({ bytes }) => bytes.length).filter((length) => length > 0)
    expect(kept).toHaveLength(16)
    expect(Math.min(...kept)).toBe(10_000 + 24 * 1_000)
  })

  it('of the pieces of one block is enough for the next, however many sections it has', async () => {
    const memory = new BlockMemory()
    const seen = new Set<ArrayBufferLike>()
    const written = async (): Promise<number> => {
      const block = new BlockWriter({ keyGroup: keyGroup(1), watermark: 0 }, memory)
      for (let section = 0; section < 5; section++) {
        block.beginSection(section)
        for (let index = 0; index < 1_000; index++) {
          block.entries.string('x'.repeat(100))
          block.endEntry()
          seen.add((block.entries as BinaryWriter).bytes.buffer)
        }
        block.endSection()
      }
      await block.finish({ shouldYield: () => false, pause: async () => undefined })
      return seen.size
    }
    await written()
    const second = await written()
    expect(await written()).toBe(second)
    expect(await written()).toBe(second)
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
