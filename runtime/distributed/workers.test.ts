// Coordinator's and worker's sides over real sockets; what goes over NATS goes over memory here, and a slot is a few lines.

import { connect, createServer } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { checkpointId, incarnation, jobId, slotId } from '../base/ids.ts'
import type { Incarnation, SlotId } from '../base/ids.ts'
import { CONTROL_VERSION } from '../control/contract.ts'
import type { ControlLink, FromSlot, SlotStart, ToSlot } from '../control/contract.ts'
import { createLink, linkDeadlineMsMin } from '../control/link.ts'
import type { DatagramPort } from '../control/link.ts'
import { BoundLater } from '../control/worker-link.ts'
import { RemoteSlots, reconnectMs } from '../coordinator/remote-slots.ts'
import type { RemoteSlotsOptions } from '../coordinator/remote-slots.ts'
import { realEnvironment } from '../local/platform/real-environment.ts'
import { controlSubjects } from '../network/subjects.ts'
import { testAuthority } from '../../tests/support/certificates.ts'
import { dial } from './platform/dial.ts'
import type { Certificate } from './certificate-renewal.ts'
import { listenForWorkers } from './platform/worker-listener.ts'
import { WorkerShell } from './worker-shell.ts'
import type { SlotHost } from './worker-shell.ts'

const job = jobId('uid-1')
const known = testAuthority()
const start = (number: number): SlotStart => ({ incarnation: incarnation(number), parallelism: undefined })

const undo: (() => void)[] = []
afterEach(() => {
  for (const act of undo.splice(0).toReversed()) act()
})

/** Datagrams by subject, copied, in later turns. */
class Datagrams {
  readonly #listeners = new Map<string, (message: unknown) => void>()
  /** All that are sent are lost. */
  away = false

  port(own: string, peer: string): DatagramPort {
    return {
      send: (message) => {
        const copy: unknown = structuredClone(message)
        if (!this.away) setImmediate(() => this.#listeners.get(peer)?.(copy))
      },
      onMessage: (callback) => void this.#listeners.set(own, callback),
      close: () => void this.#listeners.delete(own),
    }
  }
}

class Slots implements SlotHost {
  readonly links = new Map<SlotId, BoundLater<FromSlot, ToSlot>>()
  readonly heard: string[] = []
  readonly lost: string[] = []
  /** Of its links, ms. */
  linkDeadlineMs = 60_000
  readonly #datagrams: Datagrams
  #onEnded: (slot: SlotId, reason: string) => void = () => undefined
  #onLinkLost: (slot: SlotId, reason: string) => void = () => undefined

  constructor(datagrams: Datagrams) {
    this.#datagrams = datagrams
  }

  start(slot: SlotId, { incarnation }: SlotStart): void {
    this.attach(slot, incarnation)
  }

  attach(slot: SlotId, incarnation: Incarnation): void {
    const subjects = controlSubjects(job, slot, incarnation)
    const link = new BoundLater<FromSlot, ToSlot>()
    const port = this.#datagrams.port(subjects.slot, subjects.coordinator)
    link.bind(createLink({ port, environment, deadlineMs: this.linkDeadlineMs }))
    link.onMessage((message) => this.heard.push(`${slot} hears ${message.type}`))
    link.onLost((reason) => {
      this.lost.push(`${slot}: ${reason}`)
      setImmediate(() => this.links.get(slot) === link && this.#onLinkLost(slot, 'its control link was lost'))
    })
    link.send({ type: 'registered', version: CONTROL_VERSION, slot, graphHash: 'hash', tasks: [] })
    link.send({ type: 'report', tasks: [] })
    this.links.set(slot, link)
  }

  detach(slot: SlotId, reason: string): void {
    this.links.get(slot)?.lose(reason)
  }

  terminate(slot: SlotId): void {
    this.die(slot, 'it was asked to end')
  }

  die(slot: SlotId, reason: string): void {
    this.links.get(slot)?.close()
    if (this.links.delete(slot)) setImmediate(() => this.#onEnded(slot, reason))
  }

  onEnded(callback: (slot: SlotId, reason: string) => void): void {
    this.#onEnded = callback
  }

  onLinkLost(callback: (slot: SlotId, reason: string) => void): void {
    this.#onLinkLost = callback
  }

  async close(): Promise<void> {
    for (const slot of this.links.keys()) this.links.get(slot)?.close()
  }
}

const log: string[] = []
const environment = realEnvironment({
  log: (_level, message, fields) => log.push(`${message} ${JSON.stringify(fields)}`),
})

async function coordinator(
  datagrams: Datagrams,
  {
    port = 0,
    certificate,
    ...overrides
  }: Partial<RemoteSlotsOptions> & { port?: number; certificate?: Certificate } = {},
) {
  const slots = new RemoteSlots({
    job,
    runtimeVersion: '1.0.0',
    token: 'secret-token',
    environment,
    linkDeadlineMs: linkDeadlineMsMin,
    openPort: (slot, incarnation) => {
      const subjects = controlSubjects(job, slot, incarnation)
      return datagrams.port(subjects.coordinator, subjects.slot)
    },
    ...overrides,
  })
  const listener = await listenForWorkers({
    host: '127.0.0.1',
    port,
    certificate,
    log: (level, message, fields) => environment.log(level, message, fields),
    accept: (connection) => slots.accept(connection),
  })
  const end = (): void => {
    slots.abandon()
    listener.close()
  }
  undo.push(end)
  return { slots, port: listener.port, end }
}

function worker(
  datagrams: Datagrams,
  port: number,
  {
    name = 'w-0',
    slots: count = 2,
    token = 'secret-token',
    ca,
    host = '127.0.0.1',
  }: {
    name?: string
    slots?: number
    token?: string
    ca?: string
    host?: string
  } = {},
) {
  const slots = new Slots(datagrams)
  const shell = new WorkerShell({
    agent: {
      job,
      worker: name,
      instance: environment.random.id(),
      token,
      runtimeVersion: '1.0.0',
      slots: count,
      coordinator: `${host}:${port}`,
    },
    environment,
    slots,
    dial: (handlers) => dial({ address: { host, port }, ca, ...handlers }),
  })
  undo.push(() => shell.leave(0))
  return { shell, slots }
}

/** What a link brings, and whether it is lost. */
function watch(link: ControlLink<ToSlot, FromSlot>) {
  const seen = { messages: [] as string[], lost: [] as string[] }
  link.onMessage((message) => seen.messages.push(message.type))
  link.onLost((reason) => seen.lost.push(reason))
  return seen
}

describe('coordinator and worker', () => {
  it('find each other whoever comes first; slots start, register, hear, and end', async () => {
    const datagrams = new Datagrams()
    const { slots, port } = await coordinator(datagrams)
    const link = slots.start(slotId('0#1.1'), start(1))
    const seen = watch(link)
    link.send({ type: 'complete', id: checkpointId(1) })
    const { slots: threads } = worker(datagrams, port)
    await until(() => seen.messages.length === 2)
    expect(seen.messages).toEqual(['registered', 'report'])
    await until(() => threads.heard.length === 1)
    expect(threads.heard).toEqual(['0#1.1 hears complete'])
    expect(slots.workers).toEqual([
      {
        name: 'w-0',
        address: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
        slots: 2,
        running: ['0#1.1'],
        state: 'registered',
        sinceMs: expect.closeTo(Date.now(), -4),
      },
    ])
    link.close()
    await slots.terminate(slotId('0#1.1'))
    expect(threads.links.size).toBe(0)
    expect(slots.workers[0]?.running).toEqual([])
    expect(seen.lost).toEqual([])
  })

  it('a dead thread loses its link alone, a cut connection those of the whole worker, at once', async () => {
    const datagrams = new Datagrams()
    const { slots, port } = await coordinator(datagrams)
    const { slots: threads } = worker(datagrams, port, { slots: 3 })
    const seen = ['0#1.1', '1#1.1', '2#1.1'].map((slot) => watch(slots.start(slotId(slot), start(1))))
    await until(() => seen.every(({ messages }) => messages.length > 0))
    threads.die(slotId('0#1.1'), 'its thread ended: out of memory')
    await until(() => seen[0]!.lost.length > 0)
    expect(seen[0]!.lost).toEqual(['worker w-0: its thread ended: out of memory'])
    expect(seen[1]!.lost).toEqual([])

    expect(slots.reportLost('w-0', 'its pod is gone')).toBe(true)
    expect(seen[1]!.lost).toEqual(['worker w-0 is lost: its pod is gone'])
    expect(seen[2]!.lost).toEqual(['worker w-0 is lost: its pod is gone'])
    // The worker hears of it, comes back, and ends what it still ran.
    await until(() => threads.lost.length === 2)
    await until(() => threads.links.size === 0 && slots.workers[0]?.state === 'registered')
    await slots.terminate(slotId('1#1.1'))
    const again = watch(slots.start(slotId('1#1.2'), start(1)))
    await until(() => again.messages.length > 0)
  })

  it('a slot that has lost its link alone is lost at once to a coordinator that waits for nothing', async () => {
    const datagrams = new Datagrams()
    const { slots, port } = await coordinator(datagrams)
    const { slots: threads } = worker(datagrams, port)
    threads.linkDeadlineMs = 300
    const seen = ['0#1.1', '1#1.1'].map((slot) => watch(slots.start(slotId(slot), start(1))))
    await until(() => seen.every(({ messages }) => messages.length === 2))
    datagrams.away = true
    // Only what has something to say notices that nobody answers.
    threads.links.get(slotId('0#1.1'))!.send({ type: 'report', tasks: [] })
    await until(() => threads.lost.length > 0)
    datagrams.away = false
    await until(() => seen[0]!.lost.length > 0)
    expect(seen.map(({ lost }) => lost)).toEqual([['worker w-0: its control link was lost'], []])
    expect(slots.workers[0]).toMatchObject({ state: 'registered', running: ['1#1.1'] })
    await slots.terminate(slotId('0#1.1'))
    const again = watch(slots.start(slotId('0#1.2'), start(1)))
    await until(() => again.messages.length > 0)
  })

  it('a slot that does not answer is lost after the deadline of the link that its job is given, not before', async () => {
    const datagrams = new Datagrams()
    const { slots, port } = await coordinator(datagrams, { linkDeadlineMs: 300 })
    worker(datagrams, port)
    const link = slots.start(slotId('0#1.1'), start(1))
    const seen = watch(link)
    await until(() => seen.messages.length > 0)
    datagrams.away = true
    const sinceMs = performance.now()
    link.send({ type: 'adopt', newestKnown: checkpointId(1) })
    await until(() => seen.lost.length > 0)
    expect(performance.now() - sinceMs).toBeGreaterThan(250)
  })

  it('a process with a thread that does not end says so instead of waiting for it', async () => {
    const datagrams = new Datagrams()
    const { slots, port } = await coordinator(datagrams)
    const { shell, slots: threads } = worker(datagrams, port)
    const seen = watch(slots.start(slotId('0#1.1'), start(1)))
    await until(() => seen.messages.length > 0)
    threads.close = () => new Promise(() => undefined)
    slots.dismiss('the job has ended')
    expect(await shell.ended).toEqual({ reason: 'the job has ended', error: undefined, final: false, hangs: true })
  })

  it('slots outlive their coordinator and are met by the next one, which misses nothing they say', async () => {
    const datagrams = new Datagrams()
    const first = await coordinator(datagrams)
    const { slots: threads } = worker(datagrams, first.port)
    const seen = ['0#1.1', '1#1.1'].map((slot) => watch(first.slots.start(slotId(slot), start(1))))
    await until(() => seen.every(({ messages }) => messages.length > 0))
    first.end()
    await until(() => threads.lost.length === 2)

    const { slots } = await coordinator(datagrams, { port: first.port })
    const survivors = await slots.survivors({
      incarnation: incarnation(2),
      enough: (found) => found.length === 2,
      // Just the room that there is: the last one to report is not left out.
      slotsNeeded: 2,
      deadlineMs: 600_000,
    })
    expect(survivors.map(({ slot }) => slot).toSorted()).toEqual(['0#1.1', '1#1.1'])
    expect(survivors[0]!.registered).toMatchObject({ type: 'registered', graphHash: 'hash' })
    // A while before anybody listens.
    await turns(20)
    const met = watch(survivors[0]!.link)
    await until(() => met.messages.length === 1)
    expect(met.messages).toEqual(['report'])
    survivors[0]!.link.send({ type: 'adopt', newestKnown: checkpointId(7) })
    await until(() => threads.heard.length === 1)
    expect(threads.heard[0]).toMatch(/ hears adopt$/)
    await slots.terminate(survivors[1]!.slot)
    expect(threads.links.size).toBe(1)
  })

  it('survivors are waited for though a worker that runs nothing comes first and has room for all', async () => {
    const datagrams = new Datagrams()
    const first = await coordinator(datagrams)
    const { slots: threads } = worker(datagrams, first.port)
    const seen = watch(first.slots.start(slotId('0#1.1'), start(1)))
    await until(() => seen.messages.length > 0)
    first.end()
    await until(() => threads.lost.length === 1)
    const { slots } = await coordinator(datagrams, { port: first.port })
    const survivors = slots.survivors({
      incarnation: incarnation(2),
      enough: (found) => found.length === 1,
      slotsNeeded: 2,
      deadlineMs: 600_000,
    })
    const { shell: spare } = worker(datagrams, first.port, { name: 'w-1', slots: 9 })
    await until(() => spare.isRegistered)
    expect((await survivors).map(({ slot }) => slot)).toEqual(['0#1.1'])
  })

  it('the last survivor to report is among them, also where there has long been room for the job without it', async () => {
    const datagrams = new Datagrams()
    const first = await coordinator(datagrams)
    const { slots: threads } = worker(datagrams, first.port)
    for (const slot of ['0#1.1', '1#1.1']) first.slots.start(slotId(slot), start(1))
    await until(() => threads.links.size === 2)
    first.end()
    await until(() => threads.lost.length === 2)
    datagrams.away = true
    const { slots } = await coordinator(datagrams, { port: first.port })
    const survivors = slots.survivors({
      incarnation: incarnation(2),
      enough: (found) => found.length === 2,
      slotsNeeded: 1,
      deadlineMs: 600_000,
    })
    // Those who had slots could be back by then: from now on nobody is waited for but those that are known.
    await new Promise((resolve) => setTimeout(resolve, reconnectMs + 200))
    datagrams.away = false
    expect((await survivors).map(({ slot }) => slot).toSorted()).toEqual(['0#1.1', '1#1.1'])
  })

  it('survivors that do not come in time are not waited for, and are ended when they come', async () => {
    const datagrams = new Datagrams()
    const first = await coordinator(datagrams)
    const { slots: threads } = worker(datagrams, first.port)
    const seen = watch(first.slots.start(slotId('0#1.1'), start(1)))
    await until(() => seen.messages.length > 0)
    first.end()
    const { slots } = await coordinator(datagrams, { port: first.port })
    const options = { incarnation: incarnation(2), enough: () => false, slotsNeeded: 9, deadlineMs: 1 }
    expect(await slots.survivors(options)).toEqual([])
    await until(() => threads.links.size === 0)
  })

  it('nobody is waited for who is not needed', async () => {
    const datagrams = new Datagrams()
    const options = { incarnation: incarnation(1), slotsNeeded: 2, deadlineMs: 600_000 }
    const alone = await coordinator(datagrams)
    expect(await alone.slots.survivors({ ...options, enough: () => true })).toEqual([])
    // Two slots are offered, and nothing runs in them.
    const { slots, port } = await coordinator(datagrams)
    worker(datagrams, port)
    expect(await slots.survivors({ ...options, enough: () => false })).toEqual([])
    expect(slots.slotsOffered).toBe(2)
  })

  it('a worker that leaves is told goodbye when its slots have ended', async () => {
    const datagrams = new Datagrams()
    const { slots, port } = await coordinator(datagrams)
    const left = Promise.withResolvers<unknown>()
    slots.onLeaving(left.resolve)
    const { shell } = worker(datagrams, port)
    const seen = watch(slots.start(slotId('0#1.1'), start(1)))
    await until(() => seen.messages.length > 0)
    shell.leave(20_000)
    expect(await left.promise).toMatchObject({ worker: 'w-0', slots: ['0#1.1'], graceMs: 20_000 })
    await slots.terminate(slotId('0#1.1'))
    expect(await shell.ended).toEqual({ reason: 'its slots have moved', error: undefined, final: false })
    await until(() => slots.workers[0]?.state === 'lost')
  })

  it('a worker with another token ends, and the token is nowhere to be read', async () => {
    const datagrams = new Datagrams()
    const { slots, port } = await coordinator(datagrams)
    const { shell } = worker(datagrams, port, { token: 'secret-tokem' })
    const { error, final } = await shell.ended
    expect(error?.message).toMatch(/^MR-D22 .*MR-D04 .*Worker w-0\./)
    expect(final).toBe(true)
    expect(slots.workers).toEqual([])
    expect([...log, error?.message].join('\n')).not.toMatch(/secret-toke[nm]/)
  })

  it('whoever speaks another language is cut off, and harms nobody', async () => {
    const datagrams = new Datagrams()
    const { slots, port } = await coordinator(datagrams)
    const seen = watch(slots.start(slotId('0#1.1'), start(1)))
    worker(datagrams, port)
    await until(() => seen.messages.length > 0)
    const stranger = connect(port, '127.0.0.1')
    undo.push(() => stranger.destroy())
    stranger.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await new Promise((resolve) => stranger.once('close', resolve))
    expect(seen.lost).toEqual([])
    expect(slots.slotsOffered).toBe(2)
  })

  it('two coordinators cannot listen at one place', async () => {
    const datagrams = new Datagrams()
    const { port } = await coordinator(datagrams)
    await expect(coordinator(datagrams, { port })).rejects.toThrow(/^MR-D33 .*127\.0\.0\.1, port \d+: .*EADDRINUSE/)
  })
})

describe('over TLS', () => {
  it('a worker trusts what its authority has signed for the name that it looks for', async () => {
    const authority = await testAuthority()
    const certificate = await authority.issue(['localhost', '127.0.0.1'])
    for (const host of ['localhost', '127.0.0.1']) {
      const datagrams = new Datagrams()
      const { slots, port } = await coordinator(datagrams, { certificate })
      worker(datagrams, port, { ca: authority.ca, host })
      const seen = watch(slots.start(slotId('0#1.1'), start(1)))
      await until(() => seen.messages.length > 0)
      expect(seen.messages[0]).toBe('registered')
    }
  })

  it.each([
    ['another authority', async () => (await testAuthority('another')).issue(['127.0.0.1']), /certificate/],
    ['another name', async () => (await known).issue(['elsewhere.example']), /does not match certificate/],
    [
      'an end that has passed',
      async () => (await known).issue(['127.0.0.1'], { notAfter: new Date(Date.now() - 60_000) }),
      /expired/,
    ],
  ])('and not what has %s', async (_, issue, reason) => {
    const datagrams = new Datagrams()
    const { slots, port } = await coordinator(datagrams, { certificate: await issue() })
    log.length = 0
    worker(datagrams, port, { ca: (await known).ca })
    await until(() => log.some((line) => line.startsWith('no coordinator') && reason.test(line)))
    expect(slots.workers).toEqual([])
  })

  it('does not take a coordinator without it, nor the other way about', async () => {
    const { ca } = await known
    const plain = createServer((socket) => socket.end('hello'))
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve))
    undo.push(() => plain.close())
    log.length = 0
    worker(new Datagrams(), (plain.address() as { port: number }).port, { ca })
    await until(() => log.some((line) => line.startsWith('no coordinator')))

    const datagrams = new Datagrams()
    const { slots, port } = await coordinator(datagrams, { certificate: await (await known).issue(['127.0.0.1']) })
    log.length = 0
    worker(datagrams, port)
    await until(() => log.some((line) => line.startsWith('no coordinator')))
    expect(slots.workers).toEqual([])
  })

  it('a certificate that is none is an error at once', async () => {
    await expect(coordinator(new Datagrams(), { certificate: { cert: 'nothing', key: 'nothing' } })).rejects.toThrow(
      /^MR-D34 /,
    )
  })
})

function turns(count: number): Promise<void> {
  return new Promise((resolve) => {
    const turn = (left: number): void => (left === 0 ? resolve() : void setImmediate(turn, left - 1))
    turn(count)
  })
}

async function until(condition: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 15_000
  while (!condition()) {
    if (performance.now() > deadlineMs)
      throw new Error(`it did not come to that within 15 s:\n${log.slice(-10).join('\n')}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
