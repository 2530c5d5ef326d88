// Room for the fragmented records that one consumer subtask is assembling (rule 9).
//
// One budget per subtask, not per slot: a subtask that does not read (its output has no credit) keeps assembled records, and
// the consumer that would give it credit may run in the same slot and need room itself.

import { ASSEMBLY_BYTES_MAX } from './limits.ts'

export class AssemblyBudget {
  readonly #totalBytes: number
  #usedBytes = 0
  /** In order: a large record is not overtaken for ever by small ones. */
  readonly #waiting = new Map<object, { readonly byteCount: number; readonly onRoom: () => void }>()

  constructor(totalBytes = ASSEMBLY_BYTES_MAX) {
    this.#totalBytes = totalBytes
  }

  /** Takes room for all of a record or nothing; `onRoom` is called once it is worth asking again. `channel` identifies who asks. */
  start(channel: object, byteCount: number, onRoom: () => void): boolean {
    const [first] = this.#waiting.keys()
    if (this.#usedBytes + byteCount <= this.#totalBytes && (first === undefined || first === channel)) {
      this.#waiting.delete(channel)
      this.#usedBytes += byteCount
      if (first === channel) this.#wakeFirst()
      return true
    }
    if (!this.#waiting.has(channel)) this.#waiting.set(channel, { byteCount, onRoom })
    return false
  }

  finish(byteCount: number): void {
    this.#usedBytes -= byteCount
    this.#wakeFirst()
  }

  /** A blocked or closed channel waits for nothing. */
  withdraw(channel: object): void {
    if (this.#waiting.delete(channel)) this.#wakeFirst()
  }

  #wakeFirst(): void {
    for (const { byteCount, onRoom } of this.#waiting.values()) {
      if (this.#usedBytes + byteCount <= this.#totalBytes) onRoom()
      return
    }
  }
}
