import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { plainType } from '../../tests/support/network.ts'
import { checkpointId } from '../base/ids.ts'
import { createWriter } from '../record/bytes.ts'
import { MAX_WATERMARK, MIN_WATERMARK } from '../record/element.ts'
import type { ChannelItem } from '../record/element.ts'
import { readElement, writeEvent, writeRecords } from './element-codec.ts'

const savepoint = {
  id: checkpointId(2 ** 40),
  kind: 'savepoint',
  triggeredAtMs: 1_700_000_000_000,
  alignedMs: 12.5,
} as const
const examples: Readonly<Record<string, ChannelItem>> = {
  records: { kind: 'records', values: ['a', { b: 1 }], timestamps: [5, -7] },
  watermark: { kind: 'watermark', timestamp: 1_700_000_000_000 },
  'first watermark': { kind: 'watermark', timestamp: MIN_WATERMARK },
  'last watermark': { kind: 'watermark', timestamp: MAX_WATERMARK },
  idle: { kind: 'status', idle: true },
  active: { kind: 'status', idle: false },
  checkpoint: { kind: 'barrier', barrier: { id: checkpointId(1), kind: 'checkpoint', triggeredAtMs: 3, alignedMs: 0 } },
  savepoint: { kind: 'barrier', barrier: savepoint },
  end: { kind: 'end' },
}

describe('elements', () => {
  const golden = JSON.parse(readFileSync(new URL('./testdata/elements.json', import.meta.url), 'utf8')) as Record<
    string,
    string
  >

  for (const [name, item] of Object.entries(examples)) {
    it(`are written as in the golden file and read back: ${name}`, () => {
      const writer = createWriter()
      if (item.kind === 'records') writeRecords(plainType.batch, item, 0, item.values.length, writer)
      else writeEvent(item, writer)
      expect(Buffer.from(writer.take()).toString('hex')).toBe(golden[name])
      expect(readElement(plainType.batch, new Uint8Array(Buffer.from(golden[name]!, 'hex')))).toEqual(item)
    })
  }

  it.each([
    { kind: 'checkpoint' },
    { kind: 'checkpoint', halt: 'stop' },
    { kind: 'savepoint' },
    { kind: 'savepoint', halt: 'stop' },
    { kind: 'savepoint', halt: 'drain' },
  ] as const)('that are barriers are read back with what they halt: %j', (kind) => {
    const writer = createWriter()
    const item: ChannelItem = { kind: 'barrier', barrier: { ...savepoint, ...kind } }
    writeEvent(item, writer)
    expect(readElement(plainType.batch, writer.take())).toEqual({ ...item, barrier: { ...savepoint, ...kind } })
  })

  it('of an unknown kind or cut off are errors with a code', () => {
    expect(() => readElement(plainType.batch, Uint8Array.from([9]))).toThrow('MR-W06')
    expect(() => readElement(plainType.batch, Uint8Array.from([3, 0]))).toThrow('MR-R')
    expect(() => readElement(plainType.batch, Uint8Array.from([3, 1, 0, 0, 0, 0, 0, 0, 0, 7]))).toThrow('MR-W06')
  })
})
