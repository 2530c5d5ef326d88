import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../testkit/manual-clock.ts'
import { Life } from './life.ts'
import type { LifeOptions } from './life.ts'
import { OUTSTANDING_BYTES_MAX, PROBE_BYTES, SILENT_LOOKS_MAX } from './limits.ts'

const lookMs = 1000
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A client whose server answers when told to. */
class Client {
  readonly info = { max_payload: 1024 * 1024 }
  readonly published: string[] = []
  inBytes = 0
  closes = 0
  readonly #pongs: (() => void)[] = []
  readonly #statuses: unknown[] = []
  #wake: () => void = () => undefined
  readonly #closed = Promise.withResolvers<undefined>()

  publish(subject: string): void {
    this.published.push(subject)
  }

  flush(): Promise<void> {
    return new Promise((resolve) => this.#pongs.push(resolve))
  }

  stats(): { readonly inBytes: number } {
    return { inBytes: this.inBytes }
  }

  isClosed(): boolean {
    return this.closes > 0
  }

  closed(): Promise<undefined> {
    return this.#closed.promise
  }

  close(): Promise<void> {
    this.closes++
    this.#closed.resolve(undefined)
    return Promise.resolve()
  }

  async *status(): AsyncGenerator {
    for (;;) {
      while (this.#statuses.length > 0) yield this.#statuses.shift()
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  says(words: string): void {
    this.#statuses.push({ type: 'error', error: new Error(words) })
    this.#wake()
  }

  /** The server answers all pings so far. */
  answer(): Promise<void> {
    for (const pong of this.#pongs.splice(0)) pong()
    return settled()
  }
}

function life() {
  const client = new Client()
  const clock = new ManualClock()
  const ends: string[] = []
  const errors: string[] = []
  let rooms = 0
  const one = new Life({
    client: client as unknown as LifeOptions['client'],
    clock,
    lookMs,
    allowed: ['mr.job.>'],
    onEnd: (reason) => ends.push(reason),
    onError: (error) => errors.push(error.message),
    onRoom: () => rooms++,
  })
  return { client, clock, ends, errors, life: one, rooms: () => rooms }
}

describe('a life of a connection', () => {
  it('ends when the server gives no sign for as many looks as allowed, and not before', async () => {
    const { client, clock, ends } = life()
    await client.answer()
    clock.advance(lookMs)
    await client.answer()
    clock.advance(lookMs)
    for (let look = 1; look < SILENT_LOOKS_MAX; look++) clock.advance(lookMs)
    expect(ends).toEqual([])
    clock.advance(lookMs)
    expect(ends).toEqual([`the server was silent for ${SILENT_LOOKS_MAX * lookMs} ms`])
    expect([client.closes, clock.waiting]).toEqual([1, 0])
  })

  it('takes whatever arrives for a sign, and goes on as long as there is one between two looks', async () => {
    const { client, clock, ends } = life()
    for (let look = 0; look < 50; look++) {
      if (look % 2 === 0) client.inBytes += 100
      else await client.answer()
      clock.advance(lookMs)
    }
    expect(ends).toEqual([])
  })

  it('takes no more than is allowed to be outstanding, asks the server now and then, and tells of room', async () => {
    const { client, life: one, rooms } = life()
    await client.answer()
    const bytes = new Uint8Array(PROBE_BYTES / 4)
    const most = OUTSTANDING_BYTES_MAX / bytes.length
    for (let count = 0; count < most; count++) expect(one.publish('a', bytes)).toBe(true)
    expect(one.publish('b', new Uint8Array(1))).toBe(false)
    expect(one.outstandingBytes).toBe(OUTSTANDING_BYTES_MAX)
    expect(rooms()).toBe(0)
    await client.answer()
    expect([one.outstandingBytes, rooms() > 0]).toEqual([0, true])
    expect(one.publish('b', new Uint8Array(1))).toBe(true)
    expect(client.published.filter((subject) => subject === 'b').length).toBe(1)
  })

  it('reports each refused subject once, and ends without an error when its credentials do', async () => {
    const { client, ends, errors } = life()
    for (let count = 0; count < 3; count++) client.says('\'Permissions Violation for Publish to "mr.other.x"\'')
    client.says('maximum subscriptions exceeded')
    await settled()
    expect(errors.map((message) => message.slice(0, 6))).toEqual(['MR-W34', 'MR-W35'])
    expect(errors[0]).toContain('Sending to mr.other.x is refused; the job needs mr.job.>')
    client.says('User Authentication Expired')
    await settled()
    expect(errors.length).toBe(2)
    expect(ends).toEqual(['the server says User Authentication Expired'])
  })
})
