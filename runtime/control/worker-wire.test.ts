import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { incarnation, jobId, slotId } from '../base/ids.ts'
import { WORKER_WIRE_VERSION } from './worker-contract.ts'
import type { FromWorker, ToWorker } from './worker-contract.ts'
import { sameToken } from './worker-token.ts'
import { encodeMessage, MESSAGE_BYTES_MAX, MessageReader, readFromWorker, readToWorker } from './worker-wire.ts'

const hello: FromWorker = {
  type: 'hello',
  wireVersion: WORKER_WIRE_VERSION,
  runtimeVersion: '1.0.0',
  build: '',
  job: jobId('uid-1'),
  worker: 'wörker-0',
  instance: 'i-1',
  token: 'secret',
  slots: 4,
  promised: incarnation(3),
  running: [slotId('0#3.1')],
}
const fromWorker: readonly FromWorker[] = [
  hello,
  { type: 'heartbeat' },
  { type: 'slotEnded', slot: slotId('0#3.1'), reason: 'its thread ended' },
  { type: 'leaving', graceMs: 25_000 },
]
const toWorker: readonly ToWorker[] = [
  { type: 'welcome', incarnation: incarnation(4), keep: [slotId('0#3.1')], wallMs: 1.5 },
  { type: 'refused', code: 'MR-D04', message: 'no', final: true },
  { type: 'heartbeat' },
  { type: 'startSlot', slot: slotId('1#4.1'), start: { incarnation: incarnation(4), parallelism: undefined } },
  { type: 'startSlot', slot: slotId('1#4.1'), start: { incarnation: incarnation(4), parallelism: 8 } },
  { type: 'terminateSlot', slot: slotId('1#4.1') },
  { type: 'goodbye', reason: 'the job has finished' },
]

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(pieces.flatMap((piece) => [...piece]))
}

describe('messages between worker and coordinator', () => {
  it('come out as they went in, however the bytes are cut', () => {
    const bytes = joined([...fromWorker, ...toWorker].map(encodeMessage))
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 30 }), (cuts) => {
        const places = [0, ...cuts.toSorted((left, right) => left - right), bytes.length]
        const reader = new MessageReader()
        const messages = places.slice(1).flatMap((to, index) => reader.push(bytes.subarray(places[index], to)))
        expect(messages.slice(0, fromWorker.length).map(readFromWorker)).toEqual(fromWorker)
        expect(messages.slice(fromWorker.length).map(readToWorker)).toEqual(toWorker)
      }),
      { numRuns: 50 },
    )
  })

  it.each<[string, unknown, string]>([
    ['no object', 7, 'At its top'],
    ['no type', {}, 'At type'],
    ['a type that there is not', { type: 'hullo' }, 'At type'],
    ['no slots', { ...hello, slots: undefined }, 'At slots'],
    ['a promise that is no number', { ...hello, promised: 'high' }, 'At promised'],
    ['a promise below zero', { ...hello, promised: -1 }, 'At promised'],
    ['too many slots', { ...hello, running: Array.from({ length: 257 }, () => 'a') }, 'At running'],
    ['a slot without a name', { type: 'slotEnded', slot: '', reason: '' }, 'At slot'],
  ])('with %s are refused, and no value of them is shown', (_, message, where) => {
    const said = thrown(() => readFromWorker(message))
    expect(said).toMatch(/^MR-D01 /)
    expect(said).toContain(where)
    expect(said).not.toContain('secret')
  })

  it('of another version of the wire are refused as that, whatever else is in them', () => {
    expect(thrown(() => readFromWorker({ type: 'hello', wireVersion: 2, news: true }))).toMatch(
      /^MR-D02 .*speaks version 2 of the wire, the coordinator 1\./,
    )
  })

  it('too long, or no JSON, end the connection before they are read', () => {
    const tooLong = new Uint8Array(4)
    new DataView(tooLong.buffer).setUint32(0, MESSAGE_BYTES_MAX + 1)
    expect(thrown(() => new MessageReader().push(tooLong))).toContain(`It has ${MESSAGE_BYTES_MAX + 1} bytes`)
    const http = new TextEncoder().encode('GET / HTTP/1.1\r\n\r\n')
    expect(thrown(() => new MessageReader().push(http))).toMatch(/^MR-D01 /)
    expect(thrown(() => new MessageReader().push(Uint8Array.of(0, 0, 0, 2, 0x7b, 0x7b)))).toContain('It is no JSON.')
    expect(thrown(() => new MessageReader().push(Uint8Array.of(0, 0, 0, 1, 0xff)))).toContain('It is no JSON.')
    expect(thrown(() => encodeMessage({ type: 'goodbye', reason: 'x'.repeat(MESSAGE_BYTES_MAX) }))).toMatch(/^MR-D01 /)
  })

  it('of the largest hello fit', () => {
    const running = Array.from({ length: 256 }, () => slotId('x'.repeat(200)))
    expect(encodeMessage({ ...(hello as typeof hello & { type: 'hello' }), running }).length).toBeLessThan(
      MESSAGE_BYTES_MAX,
    )
  })
})

it('tokens are the same or not', () => {
  expect(sameToken('a-token', 'a-token')).toBe(true)
  for (const other of ['', 'a-tokem', 'a-token ', 'A-token', 'a-tokena-token'])
    expect(sameToken('a-token', other)).toBe(false)
})

function thrown(act: () => unknown): string {
  try {
    act()
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('it was taken')
}
