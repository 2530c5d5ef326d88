import { describe, expect, it } from 'vitest'
import { manualEnvironment } from '../../testkit/manual-clock.ts'
import { DatagramPort } from './datagrams.ts'
import type { DatagramCarrier } from './datagrams.ts'
import { DATAGRAMS_QUEUED_BYTES_MAX, PIECE_BYTES_MAX, PIECES_OUTSTANDING_BYTES_MAX } from './limits.ts'

/** A server in memory that has seen what was sent when `see` is called. */
class Wire implements DatagramCarrier {
  connected = true
  maxPayload = 1024 * 1024
  outstandingBytes = 0
  largest = 0
  mostOutstanding = 0
  readonly #queue: { readonly subject: string; readonly bytes: Uint8Array }[] = []
  readonly #subscriptions = new Map<string, (bytes: Uint8Array) => void>()
  readonly #rooms = new Set<() => void>()

  publish(subject: string, bytes: Uint8Array): boolean {
    this.largest = Math.max(this.largest, bytes.length)
    this.outstandingBytes += bytes.length
    this.mostOutstanding = Math.max(this.mostOutstanding, this.outstandingBytes)
    this.#queue.push({ subject, bytes })
    return true
  }

  subscribe(subject: string, onMessage: (bytes: Uint8Array) => void): { close(): void } {
    this.#subscriptions.set(subject, onMessage)
    return { close: () => this.#subscriptions.delete(subject) }
  }

  onRoom(callback: () => void): { close(): void } {
    this.#rooms.add(callback)
    return { close: () => this.#rooms.delete(callback) }
  }

  /** Delivers everything; returns how many messages there were. */
  see(): number {
    let count = 0
    while (this.#queue.length > 0) {
      for (const { subject, bytes } of this.#queue.splice(0)) {
        this.#subscriptions.get(subject)?.(bytes)
        count++
      }
      this.outstandingBytes = 0
      this.#changed()
    }
    return count
  }

  lose(): void {
    this.#queue.length = 0
    this.outstandingBytes = 0
    this.connected = false
    this.#changed()
  }

  comeBack(): void {
    this.connected = true
    this.#changed()
  }

  #changed(): void {
    for (const room of this.#rooms) room()
  }
}

function pair() {
  const wire = new Wire()
  const environment = manualEnvironment()
  const logged: string[] = []
  const log = (_level: string, message: string): void => void logged.push(message)
  const left = new DatagramPort(wire, { own: 'a', peer: 'b' }, environment, log)
  const right = new DatagramPort(wire, { own: 'b', peer: 'a' }, environment, log)
  const got: unknown[] = []
  right.onMessage((message) => got.push(message))
  return { wire, left, right, got, logged }
}

describe('a port of datagrams', () => {
  it('keeps undefined apart from absent, and gives bytes of their own', () => {
    const { wire, left, got } = pair()
    const message = {
      to: undefined,
      none: null,
      list: [undefined, 1.5, -3, 2 ** 53 - 1, Number.NaN, Number.POSITIVE_INFINITY, 2n ** 70n, true],
      bytes: Uint8Array.of(1, 2, 3),
      nested: { empty: new Uint8Array(0), text: 'é😀', absent: {} },
    }
    left.send(message)
    wire.see()
    expect(got).toStrictEqual([message])
    const { bytes } = got[0] as { readonly bytes: Uint8Array }
    expect(bytes.constructor).toBe(Uint8Array)
    expect(bytes.buffer.byteLength).toBe(3)
  })

  it('sends what is large in pieces that the server takes, no faster than it sees them, and what follows behind it', () => {
    const { wire, left, got } = pair()
    wire.maxPayload = 64 * 1024
    const large = { state: new Uint8Array(20 * 1024 * 1024).fill(7) }
    left.send(large)
    left.send('behind')
    expect(wire.see()).toBeGreaterThan(300)
    expect(wire.largest).toBe(64 * 1024)
    expect(wire.mostOutstanding).toBeLessThan(PIECES_OUTSTANDING_BYTES_MAX + PIECE_BYTES_MAX)
    expect(got.length).toBe(2)
    expect(Buffer.compare((got[0] as typeof large).state, large.state)).toBe(0)
    expect(got[1]).toBe('behind')
  })

  it('keeps nothing while the server is away, and begins anew when it is back', () => {
    const { wire, left, got } = pair()
    left.send(new Uint8Array(20 * 1024 * 1024))
    wire.lose()
    left.send('while away')
    wire.comeBack()
    expect(wire.see()).toBe(0)
    left.send('afterwards')
    wire.see()
    expect(got).toEqual(['afterwards'])
  })

  it('drops what does not fit behind what waits, and goes on', () => {
    const { wire, left, got } = pair()
    const half = new Uint8Array(DATAGRAMS_QUEUED_BYTES_MAX / 2)
    left.send(half)
    left.send(half)
    left.send('small')
    wire.see()
    left.send('later')
    wire.see()
    expect(got.map((message) => (message instanceof Uint8Array ? message.length : message))).toEqual([
      half.length,
      'small',
      'later',
    ])
  })

  it('refuses a message above 64 MiB by name', () => {
    const { left } = pair()
    expect(() => left.send(new Uint8Array(64 * 1024 * 1024 + 1))).toThrow(
      /MR-W36 .*67108870 bytes to b; at most 67108864/,
    )
  })

  it('refuses what is no datagram and what cannot be unpacked, and goes on', () => {
    const { wire, left, right, got, logged } = pair()
    wire.publish('b', Buffer.from('x'.repeat(100)))
    left.send({ fine: 1 })
    wire.see()
    const spoilt = new Uint8Array(29)
    const view = new DataView(spoilt.buffer)
    view.setUint16(0, 0x644d, true)
    view.setUint8(2, 1)
    view.setUint32(16, 1, true)
    view.setFloat64(20, 1, true)
    spoilt[28] = 0xc4
    wire.publish('b', spoilt)
    wire.see()
    expect([got, right.refused, logged.length]).toEqual([[{ fine: 1 }], 2, 2])
  })

  it('is silent after its close', () => {
    const { wire, left, right, got } = pair()
    left.send(1)
    right.close()
    wire.see()
    expect(got).toEqual([])
  })
})
