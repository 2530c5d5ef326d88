import { MessageChannel } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { slotId } from '../../base/ids.ts'
import { ThreadTransport } from './thread-transport.ts'

const [left, right] = [slotId('0#0'), slotId('1#0')]
const turn = () => new Promise((resolve) => setTimeout(resolve, 20))

function pair() {
  const { port1, port2 } = new MessageChannel()
  const transports = [new ThreadTransport(left), new ThreadTransport(right)] as const
  transports[0].addPeer(right, port1)
  transports[1].addPeer(left, port2)
  return transports
}

describe('the thread transport', () => {
  it('carries a copy to the subject in the other slot: the sender may reuse its buffer', async () => {
    const [one, two] = pair()
    const got: number[][] = []
    two.subscribe('a', (bytes) => got.push([...bytes]))
    two.subscribe('b', () => got.push([]))
    const buffer = Uint8Array.from([1, 2, 3])
    one.send({ slot: right, subject: 'a' }, buffer)
    buffer.fill(9)
    expect(buffer.length).toBe(3)
    one.send({ slot: right, subject: 'a' }, buffer.subarray(1))
    await turn()
    expect(got).toEqual([
      [1, 2, 3],
      [9, 9],
    ])
    one.close()
    two.close()
  })

  it('delivers to the own slot in a later turn', async () => {
    const transport = new ThreadTransport(left)
    const got: number[] = []
    transport.subscribe('a', (bytes) => got.push(bytes[0]!))
    transport.send({ slot: left, subject: 'a' }, Uint8Array.from([7]))
    expect(got).toEqual([])
    await turn()
    expect(got).toEqual([7])
    transport.close()
  })

  it('drops what is for an unknown, closed or removed slot, or for nobody', async () => {
    const [one, two] = pair()
    const got: number[] = []
    const subscription = two.subscribe('a', (bytes) => got.push(bytes[0]!))
    one.send({ slot: slotId('7#0'), subject: 'a' }, Uint8Array.from([1]))
    one.send({ slot: right, subject: 'nobody' }, Uint8Array.from([2]))
    await turn()
    subscription.close()
    one.send({ slot: right, subject: 'a' }, Uint8Array.from([3]))
    await turn()
    two.close()
    one.send({ slot: right, subject: 'a' }, Uint8Array.from([4]))
    await turn()
    one.removePeer(right)
    one.send({ slot: right, subject: 'a' }, Uint8Array.from([5]))
    await turn()
    expect(got).toEqual([])
    one.close()
  })

  it('uses the newest port of a slot', async () => {
    const [one, old] = pair()
    const { port1, port2 } = new MessageChannel()
    const again = new ThreadTransport(right)
    one.addPeer(right, port1)
    again.addPeer(left, port2)
    const got: string[] = []
    old.subscribe('a', () => got.push('old'))
    again.subscribe('a', () => got.push('new'))
    await turn()
    one.send({ slot: right, subject: 'a' }, Uint8Array.from([1]))
    await turn()
    expect(got).toEqual(['new'])
    for (const transport of [one, old, again]) transport.close()
  })
})
