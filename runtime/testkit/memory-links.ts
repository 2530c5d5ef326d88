// How the processes of a mini cluster reach each other: control links and frames, copied, each in a later turn, in order, none after death.

import type { ControlLink, FromSlot, ToSlot } from '../control/contract.ts'
import type { FrameTransport } from '../network/contract.ts'
import type { TestProcess } from './test-process.ts'

/** The two ends of a link. The coordinator hears of the slot's death in a later turn; a slot does not outlive its coordinator. */
export function linkBetween(
  coordinator: TestProcess,
  slot: TestProcess,
): { readonly near: ControlLink<ToSlot, FromSlot>; readonly far: ControlLink<FromSlot, ToSlot> } {
  const near = new LinkEnd<ToSlot, FromSlot>(coordinator)
  const far = new LinkEnd<FromSlot, ToSlot>(slot)
  near.connect(far)
  far.connect(near)
  slot.onExit((reason) => coordinator.environment.executor.post(() => near.lose(reason)))
  return { near, far }
}

class LinkEnd<Out, In> implements ControlLink<Out, In> {
  readonly #process: TestProcess
  #peer: LinkEnd<In, Out> | undefined
  #closed = false
  #onMessage: ((message: In) => void) | undefined
  #onLost: ((reason: string) => void) | undefined

  constructor(process: TestProcess) {
    this.#process = process
  }

  connect(peer: LinkEnd<In, Out>): void {
    this.#peer = peer
  }

  send(message: Out): void {
    if (this.#closed || !this.#process.alive) return
    const copy = structuredClone(message)
    const peer = this.#peer!
    peer.#process.environment.executor.post(() => {
      if (!peer.#closed) peer.#onMessage?.(copy)
    })
  }

  onMessage(callback: (message: In) => void): void {
    this.#onMessage = callback
  }

  onLost(callback: (reason: string) => void): void {
    this.#onLost = callback
  }

  close(): void {
    this.#closed = true
  }

  lose(reason: string): void {
    if (this.#closed) return
    this.#closed = true
    this.#onLost?.(reason)
  }
}

interface Listener {
  readonly process: TestProcess
  readonly onMessage: (bytes: Uint8Array) => void
}

/** Between all slots; subjects name attempts, so that nobody hears what was meant for a former life. */
export class MemoryNetwork {
  readonly #listeners = new Map<string, Listener>()

  of(process: TestProcess): FrameTransport {
    return {
      subscribe: (subject, onMessage) => {
        const listener = { process, onMessage }
        this.#listeners.set(subject, listener)
        const close = (): void => {
          if (this.#listeners.get(subject) === listener) this.#listeners.delete(subject)
        }
        process.onExit(close)
        return { close }
      },
      send: ({ subject }, bytes) => {
        const listener = this.#listeners.get(subject)
        if (listener === undefined || !process.alive) return
        const copy = bytes.slice()
        listener.process.environment.executor.post(() => listener.onMessage(copy))
      },
    }
  }
}
