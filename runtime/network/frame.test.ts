import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { edgeId, incarnation, subtaskIndex } from '../base/ids.ts'
import { decodeFrame, encodeFrame, FRAME_HEADER_BYTES } from './frame.ts'
import type { ChannelMessage, FrameRoute } from './frame.ts'
import { FRAME_BYTES_MAX } from './limits.ts'

const route: FrameRoute = {
  channel: { edge: edgeId(3), producer: subtaskIndex(1), consumer: subtaskIndex(300) },
  producerAttempt: { incarnation: incarnation(7), number: 2 },
  consumerAttempt: { incarnation: incarnation(7), number: 70000 },
}

function framed(...payload: readonly number[]): Uint8Array {
  return Uint8Array.from([...Array.from({ length: FRAME_HEADER_BYTES }, () => 0), ...payload])
}

const examples: Readonly<Record<string, ChannelMessage>> = {
  'data: whole elements': {
    kind: 'data',
    sequence: 5,
    place: 9,
    elementBytes: 0,
    elementOffset: 0,
    acknowledge: false,
    frame: framed(1, 0, 0, 0, 4),
  },
  'data: a fragment': {
    kind: 'data',
    sequence: 2 ** 40 + 1,
    place: 2 ** 41,
    elementBytes: 70000,
    elementOffset: 69998,
    acknowledge: true,
    frame: framed(8, 9),
  },
  'credit: opening': { kind: 'credit', received: 0, limit: 4096, answered: 0, opening: true, gap: false },
  'credit: answer and gap': { kind: 'credit', received: 11, limit: 2 ** 45, answered: 14, opening: false, gap: true },
  repeat: { kind: 'repeat', highest: 14 },
}

describe('frames', () => {
  const golden = JSON.parse(readFileSync(new URL('./testdata/frames.json', import.meta.url), 'utf8')) as Record<
    string,
    string
  >

  for (const [name, message] of Object.entries(examples)) {
    it(`have the bytes of the golden file: ${name}`, () => {
      expect(Buffer.from(encodeFrame(route, message)).toString('hex')).toBe(golden[name])
    })

    it(`are read from the golden file: ${name}`, () => {
      const bytes = new Uint8Array(Buffer.from(golden[name]!, 'hex'))
      const expected = message.kind === 'data' ? { ...message, frame: bytes } : message
      expect(decodeFrame(bytes)).toEqual({ route, message: expected })
    })
  }

  it('of another version are refused and say which', () => {
    const bytes = encodeFrame(route, examples['repeat']!)
    bytes[2] = 2
    expect(decodeFrame(bytes)).toEqual({ malformed: 'version 2 is not 1' })
  })

  it('that are cut off or too long are refused', () => {
    const bytes = Buffer.from(encodeFrame(route, examples['data: whole elements']!))
    for (let length = 0; length < bytes.length; length++)
      expect(decodeFrame(bytes.subarray(0, length))).toHaveProperty('malformed')
    expect(decodeFrame(Buffer.concat([bytes, Buffer.from([0])]))).toHaveProperty('malformed')
    expect(decodeFrame(new Uint8Array(FRAME_BYTES_MAX + 1))).toHaveProperty('malformed')
  })

  it('with any bytes changed are read or refused, never an exception', () => {
    const known = Object.values(examples).map((message) => Buffer.from(encodeFrame(route, message)))
    fc.assert(
      fc.property(
        fc.constantFrom(...known),
        fc.array(fc.tuple(fc.nat(80), fc.nat(255)), { maxLength: 8 }),
        (bytes, changes) => {
          const changed = Buffer.from(bytes)
          for (const [at, value] of changes) changed[at % changed.length] = value
          const frame = decodeFrame(changed)
          expect('malformed' in frame || Number.isSafeInteger(frame.route.channel.edge)).toBe(true)
        },
      ),
      { numRuns: 300 },
    )
  })
})
