// What a link hands to its user: messages in order, then at most one loss. What comes before somebody listens is kept.

export class Delivery<In> {
  closed = false
  #onMessage: ((message: In) => void) | undefined
  #onLost: ((reason: string) => void) | undefined
  /** Bounded by what a peer sends before this side's first turn has ended. */
  readonly #early: In[] = []
  #lost: string | undefined

  onMessage(callback: (message: In) => void): void {
    this.#onMessage = callback
    while (this.#early.length > 0 && !this.closed) callback(this.#early.shift()!)
  }

  onLost(callback: (reason: string) => void): void {
    this.#onLost = callback
    if (this.#lost !== undefined) callback(this.#lost)
  }

  message(message: In): void {
    if (this.closed) return
    if (this.#onMessage === undefined || this.#early.length > 0) this.#early.push(message)
    else this.#onMessage(message)
  }

  lose(reason: string): void {
    if (this.closed) return
    this.closed = true
    this.#lost = reason
    this.#onLost?.(reason)
  }

  close(): void {
    this.closed = true
    this.#early.length = 0
  }
}
