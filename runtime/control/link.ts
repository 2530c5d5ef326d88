// A ControlLink over a port that may lose, repeat and reorder: the shell of LinkMachine.

import type { Environment, Timer } from '../base/environment.ts'
import type { ControlLink } from './contract.ts'
import { Delivery } from './delivery.ts'
import { LinkMachine, isPacket } from './link-machine.ts'

/** Carries structured-cloneable packets at most once; may lose, repeat and reorder them. */
export interface DatagramPort {
  send(message: unknown): void
  onMessage(callback: (message: unknown) => void): void
  close(): void
}

/** A slot's link is lost after no less, ms, without an answer: an outage of NATS is a pause (rule 10), and workers are lost sooner. */
export const linkDeadlineMsMin = 120_000

/** Of both ends of a slot's link, ms: a job whose channels outlast a longer outage has links that do too. */
export function linkDeadlineMs({ channelDeadlineMs }: { readonly channelDeadlineMs: number }): number {
  return Math.max(linkDeadlineMsMin, channelDeadlineMs)
}

export interface LinkOptions {
  readonly port: DatagramPort
  readonly environment: Environment
  /** Silence of the peer, ms, after which it is lost while something waits for it. */
  readonly deadlineMs: number
}

/** A new session with whoever is at the other end of `port`. Messages that arrive before onMessage are kept for it. */
export function createLink<Out, In>(options: LinkOptions): ControlLink<Out, In> {
  const { port, environment, deadlineMs } = options
  const { clock } = environment
  const machine = new LinkMachine({ session: environment.random.id(), deadlineMs, nowMs: clock.nowMs() })
  const delivery = new Delivery<In>()
  let timer: Timer | undefined

  const end = (): void => {
    timer?.cancel()
    timer = undefined
    port.close()
  }

  const carryOut = (): void => {
    try {
      for (const packet of machine.outbox) port.send(packet)
    } catch (error) {
      // A message that no port can carry would be repeated for ever, and whoever sent it hears of it nowhere else.
      if (delivery.closed) return
      end()
      return delivery.lose(error instanceof Error ? error.message : String(error))
    }
    machine.outbox.length = 0
    // A message may make its receiver send, and so come back here.
    for (const message of machine.inbox.splice(0)) delivery.message(message as In)
    if (machine.lost !== undefined && !delivery.closed) {
      end()
      delivery.lose(machine.lost)
    } else arm()
  }

  const arm = (): void => {
    if (machine.wakeAtMs === undefined || timer !== undefined || delivery.closed) return
    timer = clock.timer(Math.max(0, machine.wakeAtMs - clock.nowMs()), () => {
      timer = undefined
      machine.tick(clock.nowMs())
      carryOut()
    })
  }

  port.onMessage((packet) => {
    if (delivery.closed) return
    // Whoever has the job's credentials may send anything here: what is no packet neither ends the link nor its process.
    if (!isPacket(packet)) return environment.log('debug', 'what is no packet of a link was dropped')
    machine.packet(packet, clock.nowMs())
    carryOut()
  })
  carryOut()

  return {
    send: (message) => {
      if (delivery.closed) return
      machine.send(message, clock.nowMs())
      carryOut()
    },
    onMessage: (callback) => delivery.onMessage(callback),
    onLost: (callback) => delivery.onLost(callback),
    close: () => {
      if (delivery.closed) return
      delivery.close()
      end()
    },
  }
}
