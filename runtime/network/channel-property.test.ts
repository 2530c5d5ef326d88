// Any interleaving with loss, repetition and reordering that eventually delivers gives the consumer exactly the sequence.

import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PlantedFault } from '../base/planted.ts'
import { AssemblyBudget } from './assembly-budget.ts'
import { ConsumerMachine } from './consumer-machine.ts'
import { CreditBudget } from './credit-budget.ts'
import type { ChannelMessage } from './frame.ts'
import { FRAGMENT_BYTES } from './limits.ts'
import { ProducerMachine } from './producer-machine.ts'

interface WireStep {
  readonly do: 'deliver' | 'lose' | 'twice'
  readonly channel: number
  readonly way: 'up' | 'down'
  readonly index: number
}

type Step =
  | WireStep
  | { readonly do: 'offer'; readonly channel: number; readonly size: number }
  | { readonly do: 'take' | 'block' | 'unblock' | 'assemble'; readonly channel: number }
  | { readonly do: 'tick'; readonly ms: number }

const channel = fc.nat(1)
const way = fc.constantFrom('up', 'down')
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('offer'),
      channel,
      size: fc.oneof(fc.integer({ min: 5, max: 900 }), fc.integer({ min: 5, max: 60_000 })),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('deliver'), channel, way, index: fc.oneof(fc.constant(0), fc.nat(5)) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('lose', 'twice'), channel, way, index: fc.nat(5) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('take'), channel }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('block', 'unblock', 'assemble'), channel }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('tick'), ms: fc.nat(300) }) },
)

describe('a channel', () => {
  it('delivers exactly what was offered, in order, whatever the network does to its messages', () => {
    fc.assert(deliversExactly([]), { numRuns: 150 })
  })

  it('that does not resend is seen by this test', () => {
    expect(fc.check(deliversExactly(['frame-not-resent']), { numRuns: 150, endOnFailure: true }).failed).toBe(true)
  })

  it('that is blocked holds up no other, though each has its reserve only and both have large records', () => {
    const run = new Run(2 * FRAGMENT_BYTES, new Set())
    for (let index = 0; index < 5; index++) run.step({ do: 'offer', channel: 0, size: 60_000 })
    run.step({ do: 'block', channel: 0 })
    for (let index = 0; index < 5; index++) run.step({ do: 'offer', channel: 1, size: 60_000 })
    run.goOn(200)
    expect(run.channels.map(({ taken }) => taken.length)).toEqual([0, 5])
    run.finish()
    expect(run.channels.map(({ taken }) => taken.length)).toEqual([5, 5])
  })
})

function deliversExactly(planted: readonly PlantedFault[]) {
  const steps = fc.array(step, { minLength: 20, maxLength: 150, size: 'max' })
  return fc.property(steps, fc.integer({ min: 2, max: 40 }), (steps, fragments) => {
    const run = new Run(fragments * FRAGMENT_BYTES, new Set(planted))
    for (const each of steps) run.step(each)
    run.finish()
    for (const { offered, taken } of run.channels) expect(taken).toEqual(offered)
  })
}

interface Channel {
  readonly producer: ProducerMachine
  readonly consumer: ConsumerMachine
  readonly up: ChannelMessage[]
  readonly down: ChannelMessage[]
  readonly offered: string[]
  readonly taken: string[]
}

class Run {
  readonly channels: Channel[]
  readonly #grantableBytes: number
  #nowMs = 0

  constructor(grantableBytes: number, planted: ReadonlySet<PlantedFault>) {
    this.#grantableBytes = grantableBytes
    const credit = new CreditBudget(grantableBytes * 2)
    // Room for one of the largest records of this test: the channels compete for it.
    const assembly = new AssemblyBudget(60_000)
    this.channels = [0, 1].map(() => ({
      producer: new ProducerMachine({ deadlineMs: 1e9, planted }),
      consumer: new ConsumerMachine({ credit: credit.open(), assembly, deadlineMs: 1e9, onRoom: () => undefined }),
      up: [],
      down: [],
      offered: [],
      taken: [],
    }))
    for (const { consumer } of this.channels) consumer.open(0)
    this.#carry()
  }

  step(step: Step): void {
    if (step.do === 'tick') this.#tick(step.ms)
    else {
      const channel = this.channels[step.channel]!
      if (step.do === 'offer') this.#offer(channel, step.size)
      else if (step.do === 'take') this.#take(channel)
      else if ('way' in step) this.#wire(channel, step)
      else channel.consumer[step.do]()
    }
    this.#carry()
  }

  /** The network is well again and both sides go on: everything must arrive. */
  finish(): void {
    for (const { consumer } of this.channels) consumer.unblock()
    this.goOn(2000)
  }

  /** Delivers and takes what there is, until all is there or `rounds` are over. */
  goOn(rounds: number): void {
    for (let round = 0; round < rounds; round++) {
      for (const each of this.channels) {
        for (const message of each.up.splice(0)) this.#arrive(each, message)
        for (const message of each.down.splice(0)) this.#arrive(each, message)
        while (this.#take(each)) this.#carry()
        each.consumer.assemble()
      }
      this.#carry()
      if (
        this.channels.every(
          ({ offered, taken, producer }) => offered.length === taken.length && producer.unacknowledgedFrames === 0,
        )
      )
        return
      this.#tick(100)
      this.#carry()
    }
  }

  #offer(channel: Channel, size: number): void {
    const element = new Uint8Array(size).fill(channel.offered.length)
    channel.offered.push(`${channel.offered.length}: ${size}`)
    channel.producer.offer(element)
    channel.producer.send(this.#nowMs)
  }

  #take(channel: Channel): boolean {
    const promised = channel.consumer.available
    const element = channel.consumer.take()
    if (promised) expect(element).toBeDefined()
    if (element === undefined) return false
    const number = channel.taken.length
    if (element.every((byte) => byte === (number & 255))) channel.taken.push(`${number}: ${element.length}`)
    else channel.taken.push('a mixture')
    return true
  }

  #wire(channel: Channel, { do: what, way, index }: WireStep): void {
    const wire = channel[way]
    const message = wire[index % Math.max(1, wire.length)]
    if (message === undefined) return
    if (what === 'twice') wire.push(message)
    else wire.splice(index % wire.length, 1)
    if (what === 'deliver') this.#arrive(channel, message)
  }

  #arrive({ producer, consumer }: Channel, message: ChannelMessage): void {
    if (message.kind === 'credit') producer.credit(message, this.#nowMs)
    else if (message.kind === 'data') consumer.data(message)
    else consumer.repeat(message)
  }

  #tick(ms: number): void {
    this.#nowMs += ms
    for (const { producer, consumer } of this.channels) {
      producer.tick(this.#nowMs)
      consumer.tick(this.#nowMs)
    }
  }

  #carry(): void {
    let held = 0
    for (const { producer, consumer, up, down } of this.channels) {
      down.push(...producer.outbox.splice(0))
      up.push(...consumer.outbox.splice(0))
      expect([producer.failure, consumer.failure]).toEqual([undefined, undefined])
      held += consumer.creditHeldBytes
    }
    expect(held).toBeLessThanOrEqual(this.#grantableBytes)
  }
}
