import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DATAGRAM_BYTES_MAX, INCOMPLETE_BYTES_MAX, INCOMPLETE_DATAGRAMS_MAX, SENDERS_MAX } from './limits.ts'
import { PIECE_HEADER_BYTES, pieceCount, pieceOf, Reassembly } from './pieces.ts'
import type { Datagram } from './pieces.ts'

const pieceBytes = 1100
const sender = { high: 1, low: 2 }

const datagram = (number: number, byteCount: number, from = sender): Datagram => ({
  sender: from,
  number,
  bytes: Uint8Array.from({ length: byteCount }, (_, index) => (index * 7 + number) % 251),
})

function piecesOf(whole: Datagram): Uint8Array[] {
  const count = pieceCount(whole.bytes.length, pieceBytes)
  return Array.from({ length: count }, (_, index) => pieceOf(whole, index, pieceBytes))
}

/** What came out complete. */
function deliver(reassembly: Reassembly, pieces: readonly Uint8Array[]): Uint8Array[] {
  return pieces.flatMap((piece) => {
    const arrival = reassembly.piece(piece)
    return arrival.kind === 'complete' ? [new Uint8Array(arrival.bytes)] : []
  })
}

describe('datagrams in pieces', () => {
  it('come out as they went in, at any size', () => {
    const step = pieceBytes - PIECE_HEADER_BYTES
    for (const [index, byteCount] of [0, 1, step - 1, step, step + 1, 3 * step, 100_000].entries()) {
      const whole = datagram(index + 1, byteCount)
      const pieces = piecesOf(whole)
      expect(pieces.every((piece) => piece.length <= pieceBytes)).toBe(true)
      expect(pieces.length).toBe(Math.max(1, Math.ceil(byteCount / step)))
      expect(deliver(new Reassembly(), pieces)).toEqual([whole.bytes])
    }
  })

  it('come at most once, whole, and with rising numbers, whatever the network loses, repeats and reorders', () => {
    const message = fc.record({ low: fc.nat(2), byteCount: fc.oneof(fc.nat(50), fc.nat(6000)) })
    const fate = fc.record({ copies: fc.oneof(fc.constant(1), fc.nat(3)), delay: fc.oneof(fc.constant(0), fc.nat(12)) })
    fc.assert(
      fc.property(fc.array(message, { maxLength: 20 }), fc.infiniteStream(fate), (messages, fates) => {
        const numbers = [0, 0, 0]
        const sent = messages.map(({ low, byteCount }) => datagram(++numbers[low]!, byteCount, { high: 0, low }))
        const wire: { readonly piece: Uint8Array; readonly at: number }[] = []
        for (const [at, piece] of sent.flatMap(piecesOf).entries()) {
          const { copies, delay } = fates.next().value as { copies: number; delay: number }
          for (let copy = 0; copy < copies; copy++) wire.push({ piece, at: at + delay * copy + delay })
        }
        wire.sort((left, right) => left.at - right.at)
        const reassembly = new Reassembly()
        const got: [string, number][] = []
        for (const { piece } of wire) {
          const arrival = reassembly.piece(piece)
          if (arrival.kind !== 'complete') continue
          const whole = sent.find(({ bytes }) => Buffer.compare(bytes, arrival.bytes) === 0 && bytes.length > 0)
          if (arrival.bytes.length > 0) expect(whole).toBeDefined()
          const view = new DataView(piece.buffer, piece.byteOffset)
          got.push([String(view.getUint32(8, true)), view.getFloat64(20, true)])
        }
        for (const low of ['0', '1', '2']) {
          const own = got.filter(([from]) => from === low).map(([, number]) => number)
          expect(own).toEqual([...new Set(own)].toSorted((left, right) => left - right))
        }
        expect(reassembly.incomplete).toBeLessThanOrEqual(INCOMPLETE_DATAGRAMS_MAX)
      }),
      { numRuns: 200 },
    )
  })

  it('all come when nothing is lost, also from several senders at once', () => {
    const senders = [1, 2, 3].map((low) => ({ high: 9, low }))
    const sent = [1, 2, 3].flatMap((number) => senders.map((from) => datagram(number, 5000, from)))
    const queues = sent.map(piecesOf)
    const interleaved: Uint8Array[] = []
    for (let index = 0; index < queues.length; index += senders.length)
      for (let piece = 0; piece < queues[0]!.length; piece++)
        for (let other = 0; other < senders.length; other++) interleaved.push(queues[index + other]![piece]!)
    expect(deliver(new Reassembly(), interleaved).length).toBe(sent.length)
  })

  it('that lack a piece are dropped with their pieces once a newer one of their sender is complete', () => {
    const reassembly = new Reassembly()
    const [first, second] = [datagram(1, 5000), datagram(2, 3000)]
    deliver(reassembly, piecesOf(first).slice(1))
    expect(reassembly.keptBytes).toBeGreaterThan(3000)
    expect(deliver(reassembly, piecesOf(second))).toEqual([second.bytes])
    expect([reassembly.keptBytes, reassembly.incomplete]).toEqual([0, 0])
    expect(reassembly.piece(piecesOf(first)[0]!)).toEqual({ kind: 'late' })
  })

  it('that are never completed are bounded in number, the oldest going first', () => {
    const reassembly = new Reassembly()
    for (let low = 0; low < 100; low++) deliver(reassembly, piecesOf(datagram(1, 3000, { high: 5, low })).slice(0, 2))
    expect(reassembly.incomplete).toBe(INCOMPLETE_DATAGRAMS_MAX)
    const newest = datagram(1, 3000, { high: 5, low: 99 })
    expect(deliver(reassembly, piecesOf(newest).slice(2))).toEqual([newest.bytes])
    const oldest = datagram(1, 3000, { high: 5, low: 0 })
    expect(deliver(reassembly, piecesOf(oldest).slice(2))).toEqual([])
  })

  it('that are never completed are bounded in bytes', () => {
    const reassembly = new Reassembly()
    const largePieceBytes = 2 * 1024 * 1024
    const bytes = new Uint8Array(DATAGRAM_BYTES_MAX)
    for (let low = 0; low < 3; low++) {
      const count = pieceCount(bytes.length, largePieceBytes)
      for (let index = 1; index < count; index++)
        reassembly.piece(pieceOf({ sender: { high: 6, low }, number: 1, bytes }, index, largePieceBytes))
    }
    expect(reassembly.keptBytes).toBeLessThanOrEqual(INCOMPLETE_BYTES_MAX)
    expect(reassembly.incomplete).toBe(2)
  })

  it('of more senders than are told apart forget the one that was silent longest', () => {
    const reassembly = new Reassembly()
    const first = piecesOf(datagram(1, 10, { high: 7, low: 0 }))
    deliver(reassembly, first)
    expect(reassembly.piece(first[0]!).kind).toBe('late')
    for (let low = 1; low <= SENDERS_MAX; low++) deliver(reassembly, piecesOf(datagram(1, 10, { high: 7, low })))
    expect(reassembly.piece(first[0]!).kind).toBe('complete')
  })

  it('are refused with the reason when they are none', () => {
    const reassembly = new Reassembly()
    const good = piecesOf(datagram(3, 5000))[1]!
    const damaged = (change: (view: DataView) => void): Uint8Array => {
      const bytes = new Uint8Array(good)
      change(new DataView(bytes.buffer))
      return bytes
    }
    const reasons = [
      new Uint8Array(0),
      new Uint8Array(PIECE_HEADER_BYTES),
      damaged((view) => view.setUint8(2, 2)),
      damaged((view) => view.setUint32(12, 5, true)),
      damaged((view) => view.setUint32(16, 0, true)),
      damaged((view) => view.setUint32(16, 0xff_ff_ff_ff, true)),
      damaged((view) => view.setFloat64(20, Number.NaN, true)),
      damaged((view) => view.setFloat64(20, 0, true)),
      good.subarray(0, PIECE_HEADER_BYTES),
    ].map((bytes) => reassembly.piece(bytes))
    expect(reasons.map((arrival) => (arrival.kind === 'malformed' ? arrival.reason : arrival.kind))).toEqual([
      '0 bytes are no header',
      'it does not begin like a piece',
      'version 2 is not 1',
      'piece 5 of 5',
      'piece 1 of 0',
      'piece 1 of 4294967295',
      'its number is NaN',
      'its number is 0',
      'it is empty',
    ])
    reassembly.piece(good)
    expect(reassembly.piece(damaged((view) => view.setUint32(16, 9, true))).kind).toBe('malformed')
  })

  it('have a form that stays', () => {
    const piece = pieceOf(
      { sender: { high: 0x01020304, low: 0x05060708 }, number: 258, bytes: Buffer.from('hi') },
      0,
      2000,
    )
    expect(Buffer.from(piece).toString('hex')).toBe(
      ['4d640100', '04030201', '08070605', '00000000', '01000000', '0000000000207040', '6869'].join(''),
    )
  })
})
