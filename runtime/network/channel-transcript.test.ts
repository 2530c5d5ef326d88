// Transcripts in testdata/channel/: both machines of one channel and the wire between them.
//
//   window 8192 | assembly 20000 | deadline 2000 | planted frame-not-resent      settings, before anything else
//   100 consumer opens | takes [n] | blocks | unblocks | assembles | closes
//   100 producer offers a:500 b:100 (name:bytes) | offers last z:10 | sends
//   100 tick                                  both machines
//   100 deliver [to-consumer | to-producer]   what is on the wire, in order, and what comes of it
//   100 deliver last                          the newest frame overtakes those before it
//   100 lose [to-consumer | to-producer]      what is on the wire (that way)
//   100 repeat                                each message on the wire is there twice
//   100 cut to-consumer | to-producer | both  what is sent from now on is lost, until
//   100 mend
// A line tells what was put on the wire, what was taken, and failures.

import { describe } from 'vitest'
import { playTranscripts } from '../../tests/support/transcripts.ts'
import type { PlantedFault } from '../base/planted.ts'
import { AssemblyBudget } from './assembly-budget.ts'
import { ConsumerMachine } from './consumer-machine.ts'
import { CreditBudget } from './credit-budget.ts'
import { FRAME_HEADER_BYTES } from './frame.ts'
import type { ChannelMessage } from './frame.ts'
import { ProducerMachine } from './producer-machine.ts'

describe('transcripts of a channel', () => {
  playTranscripts(new URL('./testdata/channel/', import.meta.url), () => {
    const play = new Play()
    return (line) => play.line(line)
  })
})

class Play {
  #window = 64 * 1024
  #assemblyBytes = 16 * 1024 * 1024
  #deadlineMs = 2000
  readonly #planted = new Set<PlantedFault>()
  #producer!: ProducerMachine
  #consumer!: ConsumerMachine
  readonly #toConsumer: ChannelMessage[] = []
  readonly #toProducer: ChannelMessage[] = []
  readonly #cut = new Set<string>()
  readonly #failures = new Set<string>()
  #said: string[] = []

  line(line: string): readonly string[] {
    const [first = '', ...words] = line.split(' ')
    this.#said = []
    if (first === 'window') this.#window = Number(words[0])
    else if (first === 'assembly') this.#assemblyBytes = Number(words[0])
    else if (first === 'deadline') this.#deadlineMs = Number(words[0])
    else if (first === 'planted') this.#planted.add(words[0] as PlantedFault)
    else this.#happen(Number(first), words)
    return this.#said
  }

  #happen(nowMs: number, [who = '', what = '', ...rest]: readonly string[]): void {
    this.#begin()
    if (who === 'consumer') this.#consumerDoes(nowMs, what, rest)
    else if (who === 'producer') this.#producerDoes(nowMs, what, rest)
    else if (who === 'tick') {
      this.#producer.tick(nowMs)
      this.#consumer.tick(nowMs)
    } else if (who === 'deliver') this.#deliver(nowMs, what)
    else if (who === 'lose') {
      if (what !== 'to-producer') this.#toConsumer.length = 0
      if (what !== 'to-consumer') this.#toProducer.length = 0
    } else if (who === 'repeat') {
      for (const wire of [this.#toConsumer, this.#toProducer]) wire.push(...wire)
    } else if (who === 'cut')
      for (const way of what === 'both' ? ['to-consumer', 'to-producer'] : [what]) this.#cut.add(way)
    else if (who === 'mend') this.#cut.clear()
    else throw new Error(`nobody is called ${who}`)
    this.#carry()
  }

  #begin(): void {
    if (this.#producer !== undefined) return
    const assembly = new AssemblyBudget(this.#assemblyBytes)
    this.#producer = new ProducerMachine({ deadlineMs: this.#deadlineMs, planted: this.#planted })
    const onRoom = (): void => void this.#said.push('consumer: there is room')
    // One channel gets half of the budget.
    const credit = new CreditBudget(this.#window * 2).open()
    this.#consumer = new ConsumerMachine({ credit, assembly, deadlineMs: this.#deadlineMs, onRoom })
  }

  #consumerDoes(nowMs: number, what: string, rest: readonly string[]): void {
    if (what === 'opens') this.#consumer.open(nowMs)
    else if (what === 'blocks') this.#consumer.block()
    else if (what === 'unblocks') this.#consumer.unblock()
    else if (what === 'assembles') this.#consumer.assemble()
    else if (what === 'closes') this.#consumer.close()
    else if (what === 'takes') {
      const count = rest[0] === undefined ? 1 : Number(rest[0])
      for (let index = 0; index < count; index++) {
        const element = this.#consumer.take()
        this.#said.push(`consumer takes ${element === undefined ? 'nothing' : showElement(element)}`)
      }
    } else throw new Error(`a consumer cannot ${what}`)
  }

  #producerDoes(nowMs: number, what: string, rest: readonly string[]): void {
    if (what === 'sends') this.#producer.send(nowMs)
    else if (what === 'offers') {
      const last = rest[0] === 'last'
      for (const word of last ? rest.slice(1) : rest) {
        const [name = '', size = ''] = word.split(':')
        this.#producer.offer(new Uint8Array(Number(size)).fill(name.charCodeAt(0)), last)
      }
      this.#producer.send(nowMs)
    } else throw new Error(`a producer cannot ${what}`)
  }

  #deliver(nowMs: number, what: string): void {
    if (what === 'last') this.#arrive(this.#toConsumer.splice(-1), nowMs)
    else {
      const toConsumer = what === 'to-producer' ? [] : this.#toConsumer.splice(0)
      const toProducer = what === 'to-consumer' ? [] : this.#toProducer.splice(0)
      this.#arrive(toConsumer, nowMs)
      this.#arrive(toProducer, nowMs)
    }
  }

  #arrive(messages: readonly ChannelMessage[], nowMs: number): void {
    for (const message of messages) {
      if (message.kind === 'credit') this.#producer.credit(message, nowMs)
      else if (message.kind === 'data') this.#consumer.data(message)
      else this.#consumer.repeat(message)
      this.#carry()
    }
  }

  #carry(): void {
    this.#put('producer', this.#producer, this.#toConsumer, 'to-consumer')
    this.#put('consumer', this.#consumer, this.#toProducer, 'to-producer')
  }

  #put(who: string, machine: ProducerMachine | ConsumerMachine, wire: ChannelMessage[], way: string): void {
    for (const message of machine.outbox) {
      this.#said.push(`${who}: ${showMessage(message)}${this.#cut.has(way) ? ' (lost)' : ''}`)
      if (!this.#cut.has(way)) wire.push(message)
    }
    machine.outbox.length = 0
    if (machine.failure === undefined || this.#failures.has(who)) return
    this.#failures.add(who)
    this.#said.push(`${who} fails: ${machine.failure.code} ${machine.failure.detail}`)
  }
}

function showMessage(message: ChannelMessage): string {
  switch (message.kind) {
    case 'data': {
      const payloadBytes = message.frame.length - FRAME_HEADER_BYTES
      const what =
        message.elementBytes === 0
          ? `from place ${message.place}`
          : `place ${message.place} [${message.elementOffset}, ${message.elementOffset + payloadBytes}) of ${message.elementBytes}`
      return `frame ${message.sequence}, ${what}, ${message.frame.length} bytes${message.acknowledge ? ', please acknowledge' : ''}`
    }
    case 'credit': {
      const about = [
        message.opening ? ', opening' : '',
        message.gap ? `, where is ${message.received + 1}?` : '',
        message.answered > 0 ? `, answers ${message.answered}` : '',
      ]
      return `received ${message.received}, limit ${message.limit}${about.join('')}`
    }
    case 'repeat':
      return `sent up to ${message.highest}`
    default:
      return message satisfies never
  }
}

function showElement(element: Uint8Array): string {
  const letter = String.fromCharCode(element[0]!)
  return element.every((byte) => byte === element[0]) ? `${letter}, ${element.length} bytes` : 'a mixture'
}
