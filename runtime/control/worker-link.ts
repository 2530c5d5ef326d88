// A link that is there before its port is: of a slot that waits for a worker, or that somebody else's word can lose.

import { invariant } from '../base/errors.ts'
import type { ControlLink } from './contract.ts'
import { Delivery } from './delivery.ts'

export class BoundLater<Out, In> implements ControlLink<Out, In> {
  readonly #delivery = new Delivery<In>()
  #link: ControlLink<Out, In> | undefined
  /** Bounded by what its owner sends before the slot has registered, which is nothing as a rule. */
  #waiting: Out[] = []

  /** From now on everything goes over `link`, what was sent before first. Closes it at once if this one is closed or lost. */
  bind(link: ControlLink<Out, In>): void {
    invariant(this.#link === undefined, 'a link is bound twice')
    if (this.#delivery.closed) {
      link.close()
      return
    }
    this.#link = link
    link.onMessage((message) => this.#delivery.message(message))
    link.onLost((reason) => this.#delivery.lose(reason))
    for (const message of this.#waiting.splice(0)) link.send(message)
  }

  /** Somebody who knows says that the peer is gone. */
  lose(reason: string): void {
    this.#waiting = []
    this.#link?.close()
    this.#delivery.lose(reason)
  }

  send(message: Out): void {
    if (this.#delivery.closed) return
    if (this.#link === undefined) this.#waiting.push(message)
    else this.#link.send(message)
  }

  onMessage(callback: (message: In) => void): void {
    this.#delivery.onMessage(callback)
  }

  onLost(callback: (reason: string) => void): void {
    this.#delivery.onLost(callback)
  }

  close(): void {
    this.#waiting = []
    this.#delivery.close()
    this.#link?.close()
  }
}
