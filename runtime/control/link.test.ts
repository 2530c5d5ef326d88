import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manualEnvironment, SeededRandom } from '../testkit/manual-clock.ts'
import { createLink, linkDeadlineMs } from './link.ts'
import type { DatagramPort } from './link.ts'

/** Two ports with a wire between them that loses, repeats and delays by a seed while `rough`. */
function roughPair(seed: number) {
  const random = new SeededRandom(seed)
  const environment = manualEnvironment({ random })
  const state = { rough: true }
  const listeners: (((message: unknown) => void) | undefined)[] = [undefined, undefined]
  const closed = [false, false]
  const port = (own: 0 | 1): DatagramPort => ({
    send: (message) => {
      const copies = state.rough ? Math.floor(random.next() * 3) : 1
      for (let copy = 0; copy < copies; copy++) {
        const delayMs = state.rough ? random.next() * 400 : 1
        environment.clock.timer(delayMs, () => listeners[1 - own]?.(structuredClone(message)))
      }
    },
    onMessage: (callback) => {
      listeners[own] = callback
    },
    close: () => {
      listeners[own] = undefined
      closed[own] = true
    },
  })
  return { environment, state, ports: [port(0), port(1)] as const, closed }
}

it("the deadline of a slot's link is never below that of its job's channels, so that an outage which these outlast restarts nothing", () => {
  expect(linkDeadlineMs({ channelDeadlineMs: 600_000 })).toBe(600_000)
  expect(linkDeadlineMs({ channelDeadlineMs: 5_000 })).toBe(120_000)
})

describe('a control link', () => {
  it('delivers each message once and in order over a network that loses, repeats and reorders', () => {
    fc.assert(
      fc.property(fc.nat(), fc.array(fc.tuple(fc.nat(1), fc.nat(200)), { maxLength: 60 }), (seed, sends) => {
        const { environment, state, ports } = roughPair(seed)
        const links = ports.map((port) => createLink<number, number>({ port, environment, deadlineMs: 60_000 }))
        const sent: number[][] = [[], []]
        const got: number[][] = [[], []]
        links.forEach((link, side) => {
          link.onMessage((message) => got[side]!.push(message))
          link.onLost((reason) => expect(reason).toBe('never'))
        })
        for (const [index, [side, pauseMs]] of sends.entries()) {
          sent[1 - side]!.push(index)
          links[side]!.send(index)
          environment.clock.advance(pauseMs)
        }
        state.rough = false
        environment.clock.advance(30_000)
        expect(got).toEqual(sent)
        expect(environment.clock.waiting).toBe(0)
      }),
      { numRuns: 60 },
    )
  })

  it.each([null, {}, 'noise', 7, [], { version: 1, kind: 'message', from: 's', received: 0.5, number: 1 }])(
    'takes no notice of what is no packet: %j',
    (noise) => {
      const { environment, state, ports } = roughPair(1)
      state.rough = false
      const [near, far] = ports.map((port) => createLink<number, number>({ port, environment, deadlineMs: 60_000 }))
      const got: number[] = []
      far!.onMessage((message) => got.push(message))
      far!.onLost((reason) => expect(reason).toBe('never'))
      ports[0].send(noise)
      near!.send(1)
      ports[0].send(noise)
      environment.clock.advance(10_000)
      expect(got).toEqual([1])
    },
  )

  it('is lost, and says why, when its port cannot carry a message', () => {
    const { environment, state, ports } = roughPair(1)
    state.rough = false
    const port: DatagramPort = {
      ...ports[0],
      send: (message) => {
        if ((message as { payload?: unknown }).payload === 'too much') throw new Error('it is too large')
        ports[0].send(message)
      },
    }
    const near = createLink<string, string>({ port, environment, deadlineMs: 60_000 })
    createLink<string, string>({ port: ports[1], environment, deadlineMs: 60_000 })
    environment.clock.advance(1_000)
    const lost: string[] = []
    near.onLost((reason) => lost.push(reason))
    near.send('too much')
    near.send('more')
    environment.clock.advance(10_000)
    expect(lost).toEqual(['it is too large'])
  })

  it('keeps messages for whoever listens later', () => {
    const { environment, state, ports } = roughPair(1)
    state.rough = false
    const [left, right] = ports.map((port) => createLink<string, string>({ port, environment, deadlineMs: 1000 }))
    left!.send('early')
    environment.clock.advance(500)
    const got: string[] = []
    right!.onMessage((message) => {
      got.push(message)
      if (message === 'early') right!.send('answer')
    })
    left!.onMessage((message) => got.push(message))
    environment.clock.advance(500)
    expect(got).toEqual(['early', 'answer'])
  })

  it('tells once that the peer is lost, and closes its port', () => {
    const { environment, ports, closed } = roughPair(1)
    const [port] = ports
    const link = createLink<string, string>({ port, environment, deadlineMs: 1000 })
    const reasons: string[] = []
    link.onLost((reason) => reasons.push(reason))
    link.send('anybody?')
    environment.clock.advance(20_000)
    link.send('still?')
    environment.clock.advance(20_000)
    expect(reasons).toHaveLength(1)
    expect(reasons[0]).toContain('it was silent for')
    expect(closed[0]).toBe(true)
    expect(environment.clock.waiting).toBe(0)
  })

  it('leaves no timer behind when it is closed', () => {
    const { environment, ports } = roughPair(1)
    const link = createLink<string, string>({ port: ports[0], environment, deadlineMs: 1000 })
    link.send('a')
    link.close()
    link.send('b')
    environment.clock.advance(500)
    expect(environment.clock.waiting).toBe(0)
  })
})
