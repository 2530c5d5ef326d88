// Channels over a real NATS server: every record once and in order, whatever becomes of the server (rules 8 to 10).

import { once } from 'node:events'
import { randomBytes } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { MillraceError } from '../../runtime/base/errors.ts'
import { Metrics } from '../../runtime/base/metrics.ts'
import { defaultConfig } from '../../runtime/job/settings.ts'
import { edgeId, subtaskIndex } from '../../runtime/base/ids.ts'
import { encodeFrame, FRAME_HEADER_BYTES } from '../../runtime/network/frame.ts'
import type { FrameRoute } from '../../runtime/network/frame.ts'
import { CREDIT_BYTES_MAX } from '../../runtime/network/limits.ts'
import { creditSubject, dataSubject } from '../../runtime/network/subjects.ts'
import { attempt, consumer, ConsumerSlot, job, ProducerSlot, producerOf } from './support/nats-channels.ts'
import { addressOf, TestLinks } from './support/nats-links.ts'
import { startNats } from './support/nats-server.ts'
import type { NatsServer } from './support/nats-server.ts'
import type { SlowThreadReport, SlowThreadRequest } from './support/nats-slow-thread.ts'
import { until } from './support/server-process.ts'

let server: NatsServer
let links: TestLinks
let failures: MillraceError[]
let closing: (() => void)[]

beforeEach(async () => {
  links = new TestLinks()
  failures = []
  closing = []
  server = await startNats()
})

afterEach(async () => {
  for (const close of closing) close()
  server.process.thaw()
  await links.close()
  await server.stop()
})

async function slots(channels: number, deadlineMs: number, lookMs = 2000) {
  const config = { servers: [server.url] }
  const [left, right] = [await links.open(config, { lookMs }), await links.open(config, { lookMs })]
  const { environment } = links
  const shared = { environment, deadlineMs, failures }
  const metrics = new Metrics()
  const producers = new ProducerSlot({ ...shared, transport: left.transport, metrics }, channels)
  const consumers = new ConsumerSlot({ ...shared, transport: right.transport }, channels)
  closing.push(() => producers.hub.closeAll())
  closing.push(() => consumers.hub.closeAll())
  consumers.open()
  return { producers, consumers, metrics }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

/** Ends the channels and sees that every record arrived, once and in order (ConsumerSlot looks at each). */
async function finish(producers: ProducerSlot, consumers: ConsumerSlot): Promise<void> {
  producers.end()
  await until('every channel has ended', () => consumers.allEnded && producers.endReceived, 60_000)
  expect(consumers.taken).toEqual(producers.emitted)
  expect(failures).toEqual([])
  expect(links.errors).toEqual([])
}

describe('channels over NATS', () => {
  it('deliver every record once and in order while the server is killed, started and frozen', async () => {
    const { producers, consumers, metrics } = await slots(4, 60_000, 200)
    producers.run(200, 100)
    for (let round = 0; round < 8; round++) {
      const before = sum(consumers.taken)
      await until('records flow', () => sum(consumers.taken) > before + 5000)
      if (round % 4 === 3) {
        server.process.freeze()
        const logged = links.logged.length
        // Long enough for both connections to be given up, the server still keeping them.
        await until(
          'both give it up',
          () => links.logged.slice(logged).filter(({ message }) => /lost/.test(message)).length >= 2,
        )
        server.process.thaw()
      } else await server.process.restart()
    }
    await finish(producers, consumers)
    expect(sum(consumers.taken)).toBeGreaterThan(40_000)
    // Else the network lost nothing and this shows nothing.
    expect(metrics.values.get('frames_resent_total')).toBeGreaterThan(0)
  })

  it('cost no restart and no record when the server is away for nearly 30 s, with the deadline that jobs have', async () => {
    const { producers, consumers } = await slots(2, defaultConfig().channelDeadlineMs)
    producers.run(50, 100)
    await until('records flow', () => sum(consumers.taken) > 1000)
    await server.process.kill()
    const awayFromMs = performance.now()
    const before = sum(consumers.taken)
    await until('28 s are over', () => performance.now() - awayFromMs > 28_000, 60_000)
    expect(sum(consumers.taken) - before).toBeLessThan(50_000)
    await server.process.start()
    const after = sum(consumers.taken)
    await until('records flow again', () => sum(consumers.taken) > after + 1000)
    await finish(producers, consumers)
  })

  it('fail their subtasks by name when the server is away for longer than their deadline', async () => {
    const { producers, consumers } = await slots(1, 1500)
    producers.run(50, 100)
    await until('records flow', () => sum(consumers.taken) > 1000)
    await server.process.kill()
    await until('the producer gives up', () => failures.length > 0)
    expect(failures[0]!.message).toMatch(/MR-W02 .*The consumer was silent for/)
  })

  it('carry records of many frames over a restart', async () => {
    const { producers, consumers } = await slots(2, 60_000)
    producers.run(2, 500_000)
    await until('records flow', () => sum(consumers.taken) > 20)
    await server.process.restart()
    const before = sum(consumers.taken)
    await until('records flow again', () => sum(consumers.taken) > before + 20)
    await finish(producers, consumers)
  })

  it('refuse what a foreigner sends on their subjects, and lose nothing', async () => {
    const { producers, consumers } = await slots(1, 60_000)
    const stranger = await links.open({ servers: [server.url] })
    const data = addressOf(dataSubject(job, consumer))
    const credit = addressOf(creditSubject(job, producerOf(0)))
    const channel = { edge: edgeId(0), producer: subtaskIndex(0), consumer: subtaskIndex(0) }
    const otherAttempt = { ...attempt, number: 2 }
    const route: FrameRoute = { channel, producerAttempt: otherAttempt, consumerAttempt: attempt }
    const late = encodeFrame(route, {
      kind: 'data',
      sequence: 1,
      place: 1,
      elementBytes: 0,
      elementOffset: 0,
      acknowledge: false,
      frame: new Uint8Array(FRAME_HEADER_BYTES + 8),
    })
    const grant = { kind: 'credit', received: 0, limit: 2 ** 40, answered: 0, opening: false, gap: false } as const
    // Nothing was sent yet: the frame would be the one that is waited for, and the credit the first that there is.
    const forged = 50
    for (let count = 0; count < forged; count++) {
      stranger.transport.send(data, late)
      stranger.transport.send(credit, encodeFrame(route, grant))
    }
    await until(
      'each of them to be refused',
      () => consumers.hub.refusedFrames === forged && producers.hub.refusedFrames === forged,
    )
    producers.run(200, 100)
    let rounds = 0
    await until('the flood and the records are through', () => {
      rounds++
      for (let count = 0; count < 20; count++) {
        const noise = randomBytes(1 + Math.floor((rounds * 37 + count * 101) % 4000))
        const halfRight = new Uint8Array(noise)
        halfRight.set(late.subarray(0, Math.min(40, noise.length)))
        for (const to of [data, credit]) for (const bytes of [noise, halfRight]) stranger.transport.send(to, bytes)
      }
      stranger.transport.send(data, late)
      stranger.transport.send(credit, encodeFrame(route, grant))
      return sum(consumers.taken) > 50_000 && rounds > 200
    })
    expect(consumers.hub.refusedFrames).toBeGreaterThan(1000)
    expect(producers.hub.refusedFrames).toBeGreaterThan(1000)
    await finish(producers, consumers)
  })

  it('to a thread that reads nothing for seconds stay far below what the server allows a slow consumer', async () => {
    const channels = 100
    const sleeping = new Int32Array(new SharedArrayBuffer(4))
    const workerData: SlowThreadRequest = { url: server.url, channels, sleeping }
    const worker = new Worker(new URL('support/nats-slow-thread.ts', import.meta.url), {
      workerData,
      execArgv: ['--conditions=millrace-source'],
    })
    try {
      await once(worker, 'message')
      const left = await links.open({ servers: [server.url] })
      const { environment } = links
      const producers = new ProducerSlot(
        { transport: left.transport, environment, deadlineMs: 60_000, failures },
        channels,
      )
      closing.push(() => producers.hub.closeAll())
      const connection = async () => {
        const { connections } = (await server.monitor('connz')) as { connections: Connection[] }
        return connections.find(({ name }) => name === 'slow consumer')!
      }
      const started = (await connection()).start
      producers.run(100, 1000)
      // More than an output keeps: so all of them have credit.
      await until('records flow on all channels', () => producers.emitted.every((count) => count > 200))
      worker.postMessage('sleep')
      await until('it sleeps', () => Atomics.load(sleeping, 0) === 1)
      let most = 0
      const fromMs = performance.now()
      await until('nothing goes on, and 3 s are over', async () => {
        most = Math.max(most, (await connection()).pending_bytes)
        return performance.now() - fromMs > 3000 && !producers.outputs.some((output) => output.ready)
      })
      Atomics.store(sleeping, 0, 0)
      Atomics.notify(sleeping, 0)
      producers.end()
      await until('it took everything', () => producers.endReceived, 60_000)
      const answer = once(worker, 'message')
      worker.postMessage('report')
      const [report] = (await answer) as [SlowThreadReport]
      expect(report).toEqual({ taken: producers.emitted, allEnded: true, failures: [], refused: 0 })
      expect(most).toBeGreaterThan(1024 * 1024)
      expect(most).toBeLessThan(CREDIT_BYTES_MAX)
      expect((await connection()).start).toBe(started)
      expect((await server.monitor('varz'))['slow_consumers']).toBe(0)
      expect(failures).toEqual([])
    } finally {
      Atomics.store(sleeping, 0, 0)
      Atomics.notify(sleeping, 0)
      await worker.terminate()
    }
  })
})

interface Connection {
  readonly name: string
  readonly pending_bytes: number
  readonly start: string
}
