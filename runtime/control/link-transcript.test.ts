// Transcripts in testdata/link/: both ends of a control link and what lies between them.
//
//   deadline 1000                        settings, before anything else
//   0 start coordinator as c1            a new life of a side, under a session's name; the other is `slot`
//   5 coordinator sends a b              messages
//   5 tick
//   6 deliver [coordinator | slot]       what is on the way (to that side), in order, and what comes of it
//   6 lose [coordinator | slot]          what is on the way (to that side)
//   6 hold | release                     what is on the way to the slot is put aside; comes later, behind everything else
//   6 repeat | reverse                   what is on the way is there twice; arrives in the opposite order
//   6 cut | mend                         what is sent meanwhile is lost

import { describe } from 'vitest'
import { playTranscripts } from '../../tests/support/transcripts.ts'
import { LinkMachine } from './link-machine.ts'
import type { LinkPacket } from './link-machine.ts'

describe('transcripts of a control link', () => {
  playTranscripts(new URL('./testdata/link/', import.meta.url), () => {
    const play = new Play()
    return (line) => play.line(line)
  })
})

type Side = 'coordinator' | 'slot'
const other = (side: Side): Side => (side === 'slot' ? 'coordinator' : 'slot')

class Play {
  #deadlineMs = 10_000
  readonly #machines = new Map<Side, LinkMachine>()
  readonly #wire: Record<Side, LinkPacket[]> = { coordinator: [], slot: [] }
  #held: LinkPacket[] = []
  #cut = false
  #said: string[] = []

  line(line: string): readonly string[] {
    const [first = '', ...words] = line.split(' ')
    this.#said = []
    if (first === 'deadline') this.#deadlineMs = Number(words[0])
    else this.#happen(Number(first), words)
    return this.#said
  }

  #happen(nowMs: number, words: readonly string[]): void {
    const [who = '', what = ''] = words
    const sides: Side[] = what === 'coordinator' || what === 'slot' ? [what] : ['slot', 'coordinator']
    if (who === 'start') {
      const session = words[3]!
      this.#machines.set(what as Side, new LinkMachine({ session, deadlineMs: this.#deadlineMs, nowMs }))
    } else if (what === 'sends')
      for (const message of words.slice(2)) this.#machines.get(who as Side)!.send(message, nowMs)
    else if (who === 'tick') for (const machine of this.#machines.values()) machine.tick(nowMs)
    else if (who === 'deliver') this.#deliver(sides, nowMs)
    else if (who === 'lose') for (const side of sides) this.#wire[side] = []
    else if (who === 'hold') this.#held = this.#wire.slot.splice(0)
    else if (who === 'release') this.#wire.slot.push(...this.#held)
    else if (who === 'repeat') for (const side of sides) this.#wire[side].push(...this.#wire[side])
    else if (who === 'reverse') for (const side of sides) this.#wire[side].reverse()
    else if (who === 'cut') this.#cut = true
    else if (who === 'mend') this.#cut = false
    else throw new Error(`nobody is called ${who}`)
    this.#carry()
  }

  #deliver(sides: readonly Side[], nowMs: number): void {
    const arriving = sides.map((side) => [side, this.#wire[side].splice(0)] as const)
    for (const [side, packets] of arriving) {
      for (const packet of packets) {
        this.#machines.get(side)?.packet(packet, nowMs)
        this.#carry()
      }
    }
  }

  #carry(): void {
    for (const [side, machine] of this.#machines) {
      for (const message of machine.inbox.splice(0)) this.#said.push(`${side} gets ${String(message)}`)
      for (const packet of machine.outbox.splice(0)) {
        this.#said.push(`${side}: ${show(packet)}${this.#cut ? ' (lost)' : ''}`)
        if (!this.#cut) this.#wire[other(side)].push(packet)
      }
      if (machine.lost === undefined) continue
      this.#said.push(`${side} has lost its peer: ${machine.lost}`)
      this.#machines.delete(side)
    }
  }
}

function show({ kind, from, to, received, number, payload }: LinkPacket): string {
  const what = kind === 'message' ? `message ${number} (${String(payload)})` : kind
  return `${what}, ${from} to ${to ?? 'anybody'}, received ${received}`
}
