// Control links over a real NATS server: every message once and in order, large ones too, whatever becomes of the server (rule 12).

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { incarnation, jobId, slotId } from '../../runtime/base/ids.ts'
import type { ControlLink } from '../../runtime/control/contract.ts'
import { createLink } from '../../runtime/control/link.ts'
import { controlSubjects } from '../../runtime/network/subjects.ts'
import { addressOf, TestLinks } from './support/nats-links.ts'
import { startNats } from './support/nats-server.ts'
import type { NatsServer } from './support/nats-server.ts'
import { until } from './support/server-process.ts'

interface Message {
  readonly number: number
  readonly state?: Uint8Array | undefined
}

let server: NatsServer
let links: TestLinks
let open: ControlLink<Message, Message>[]

beforeEach(async () => {
  links = new TestLinks()
  open = []
  server = await startNats()
})

afterEach(async () => {
  for (const link of open) link.close()
  server.process.thaw()
  await links.close()
  await server.stop()
})

const slot = slotId('worker-1.0#0')

async function pair(deadlineMs: number) {
  const config = { servers: [server.url] }
  const [left, right] = [await links.open(config, { lookMs: 200 }), await links.open(config, { lookMs: 200 })]
  const subjects = controlSubjects(jobId('job'), slot, incarnation(3))
  const { environment } = links
  const lost: string[] = []
  const got: { readonly left: Message[]; readonly right: Message[] } = { left: [], right: [] }
  const linkOf = (side: 'left' | 'right'): ControlLink<Message, Message> => {
    const [own, peer] = side === 'left' ? [subjects.coordinator, subjects.slot] : [subjects.slot, subjects.coordinator]
    const port = (side === 'left' ? left : right).datagrams({ own, peer })
    const link = createLink<Message, Message>({ port, environment, deadlineMs })
    link.onMessage((message) => got[side].push(message))
    link.onLost((reason) => lost.push(reason))
    open.push(link)
    return link
  }
  return { coordinator: linkOf('left'), worker: linkOf('right'), got, lost, subjects }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

describe('a control link over NATS', () => {
  it('delivers every message once and in order both ways, while the server is killed and started', async () => {
    const { coordinator, worker, got, lost } = await pair(60_000)
    let sent = 0
    for (let life = 0; life < 5; life++) {
      for (let count = 0; count < 100; count++, sent++) {
        coordinator.send({ number: sent, state: undefined })
        worker.send({ number: sent, state: Uint8Array.of(sent % 256) })
        if (count === 50) await server.process.kill()
      }
      await server.process.start()
      await until('some arrive', () => got.right.length > sent - 60)
    }
    await until('all arrive', () => got.left.length === sent && got.right.length === sent)
    expect(got.right).toStrictEqual(upTo(sent).map((number) => ({ number, state: undefined })))
    expect(got.left).toStrictEqual(upTo(sent).map((number) => ({ number, state: Uint8Array.of(number % 256) })))
    expect(lost).toEqual([])
  })

  it('carries messages of many megabytes, also over restarts, with small ones in between', async () => {
    const { coordinator, worker, got, lost } = await pair(60_000)
    const state = (number: number): Uint8Array => new Uint8Array(5 * 1024 * 1024).fill(number)
    for (const number of upTo(12)) {
      worker.send(number % 2 === 0 ? { number, state: state(number) } : { number })
      if (number === 4) await server.process.restart()
    }
    await until('the first large one arrives', () => got.left.length > 0)
    await server.process.restart()
    await until('all arrive', () => got.left.length === 12)
    for (const { number, state: came } of got.left)
      expect(came === undefined ? 'none' : Buffer.compare(came, state(number))).toBe(number % 2 === 0 ? 0 : 'none')
    expect(got.left.map(({ number }) => number)).toEqual(upTo(12))
    // The other way is free meanwhile.
    coordinator.send({ number: 0 })
    await until('the answer arrives', () => got.right.length === 1)
    expect(lost).toEqual([])
  })

  it('refuses what is no datagram, and goes on', async () => {
    const { coordinator, got, subjects, lost } = await pair(60_000)
    const stranger = await links.open({ servers: [server.url] })
    for (let count = 0; count < 500; count++)
      stranger.transport.send(addressOf(subjects.slot), new Uint8Array(1 + count * 7).fill(count))
    coordinator.send({ number: 1 })
    await until('it arrives', () => got.right.length === 1)
    const refused = (): number => links.logged.filter(({ message }) => message === 'A datagram was refused.').length
    await until('all were refused', () => refused() === 500)
    expect(lost).toEqual([])
  })

  it('loses its peer by name when the server is away for longer than its deadline', async () => {
    const { coordinator, got, lost } = await pair(1500)
    coordinator.send({ number: 0 })
    await until('they know each other', () => got.right.length === 1)
    await server.process.kill()
    coordinator.send({ number: 1 })
    await until('it gives up', () => lost.length > 0)
    expect(lost[0]).toMatch(/it was silent for \d+ ms/)
  })
})
