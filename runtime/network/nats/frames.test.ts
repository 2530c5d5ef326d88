import { describe, expect, it } from 'vitest'
import { slotId } from '../../base/ids.ts'
import { NatsFrames } from './frames.ts'

/** Hands over what is sent as it was given, as the client does, one turn later. */
class Line {
  readonly sent: { readonly subject: string; readonly bytes: Uint8Array }[] = []
  readonly subscriptions: { readonly subject: string; readonly onMessage: (bytes: Uint8Array) => void }[] = []

  publish(subject: string, bytes: Uint8Array): boolean {
    this.sent.push({ subject, bytes })
    return true
  }

  subscribe(subject: string, onMessage: (bytes: Uint8Array) => void): { close(): void } {
    const subscription = { subject, onMessage }
    this.subscriptions.push(subscription)
    return { close: () => void this.subscriptions.splice(this.subscriptions.indexOf(subscription), 1) }
  }
}

const to = (subject: string) => ({ slot: slotId('1#0'), subject })

describe('frames over NATS', () => {
  it('are copied when they are sent: the caller may use its bytes again', () => {
    const line = new Line()
    const frames = new NatsFrames(line)
    const bytes = Uint8Array.of(1, 2, 3)
    frames.send(to('a'), bytes)
    bytes.fill(9)
    frames.send(to('b'), bytes)
    // More than a slab holds, so that one after the other is begun.
    const numbered = Array.from({ length: 40 }, (_, index) => new Uint8Array(32 * 1024).fill(index))
    for (const frame of numbered) frames.send(to('c'), frame)
    frames.send(to('c'), new Uint8Array(2 * 1024 * 1024).fill(41))
    const many = line.sent.splice(2).map(({ bytes: sent }) => sent)
    expect(many.slice(0, 40).every((sent, index) => Buffer.compare(sent, numbered[index]!) === 0)).toBe(true)
    expect([many.at(-1)!.length, many.at(-1)!.every((byte) => byte === 41)]).toEqual([2 * 1024 * 1024, true])
    expect(line.sent.map(({ subject, bytes: sent }) => [subject, ...sent])).toEqual([
      ['a', 1, 2, 3],
      ['b', 9, 9, 9],
    ])
  })

  it('of one subject need one subscription, however many listen, which ends with the last of them', () => {
    const line = new Line()
    const frames = new NatsFrames(line)
    const got: string[] = []
    const listen = (name: string) => frames.subscribe('a', (bytes) => got.push(`${name} ${bytes.join()}`))
    const [first, second] = [listen('first'), listen('second')]
    expect(line.subscriptions.length).toBe(1)
    line.subscriptions[0]!.onMessage(Uint8Array.of(5))
    first.close()
    first.close()
    line.subscriptions[0]!.onMessage(Uint8Array.of(6))
    expect(got).toEqual(['first 5', 'second 5', 'second 6'])
    second.close()
    expect(line.subscriptions).toEqual([])
    listen('third')
    expect(line.subscriptions.length).toBe(1)
  })

  it('are handed over as a view of what was read, or as a copy where that would keep much more alive', () => {
    const line = new Line()
    const got: Uint8Array[] = []
    new NatsFrames(line).subscribe('a', (bytes) => got.push(bytes))
    const chunk = Buffer.alloc(64 * 1024, 3)
    line.subscriptions[0]!.onMessage(chunk.subarray(10, 30_000))
    line.subscriptions[0]!.onMessage(chunk.subarray(30_000, 30_100))
    expect(got.map(({ constructor, length, buffer }) => [constructor, length, buffer.byteLength])).toEqual([
      [Uint8Array, 29_990, 64 * 1024],
      [Uint8Array, 100, 100],
    ])
    expect(got.every((bytes) => bytes.every((byte) => byte === 3))).toBe(true)
  })
})
