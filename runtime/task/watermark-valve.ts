// Event time of a subtask with several inputs: the smallest watermark over the channels that are not idle (design: Time).

import { MAX_WATERMARK, MIN_WATERMARK } from '../record/element.ts'

export interface ValveOutput {
  /** Set when the watermark rose. */
  readonly watermark?: number
  /** Set when the status turned. */
  readonly idle?: boolean
}

export class WatermarkValve {
  readonly #watermarks: number[]
  readonly #idle: boolean[]
  readonly #ended: boolean[]
  #current = MIN_WATERMARK
  #isIdle = false

  constructor(channels: number) {
    this.#watermarks = Array.from({ length: channels }, () => MIN_WATERMARK)
    this.#idle = Array.from({ length: channels }, () => false)
    this.#ended = Array.from({ length: channels }, () => false)
  }

  watermark(channel: number, timestamp: number): ValveOutput {
    if (timestamp > this.#watermarks[channel]!) this.#watermarks[channel] = timestamp
    return this.#update()
  }

  status(channel: number, idle: boolean): ValveOutput {
    this.#idle[channel] = idle
    return this.#update()
  }

  /** An ended channel holds nothing back: it has sent its last watermark before. */
  end(channel: number): ValveOutput {
    this.#ended[channel] = true
    return this.#update()
  }

  #update(): ValveOutput {
    let smallestActive = Infinity
    let largestIdle = MIN_WATERMARK
    let largestEnded = MIN_WATERMARK
    let idleCount = 0
    for (let channel = 0; channel < this.#watermarks.length; channel++) {
      const watermark = this.#watermarks[channel]!
      // The last watermark comes before the end: whatever turns idle between them, event time must not go to its end for that.
      if (this.#ended[channel] || watermark === MAX_WATERMARK) largestEnded = Math.max(largestEnded, watermark)
      else if (this.#idle[channel]) {
        idleCount++
        largestIdle = Math.max(largestIdle, watermark)
      } else smallestActive = Math.min(smallestActive, watermark)
    }
    const idle = smallestActive === Infinity && idleCount > 0
    // When the last active one turns idle the largest of the idle ones counts: it does not depend on the order in which they did
    // (FLINK-38454). Ended channels say nothing of time then: an idle one may still bring records.
    const next = smallestActive !== Infinity ? smallestActive : idle ? largestIdle : largestEnded
    const output: { watermark?: number; idle?: boolean } = {}
    // A channel that comes back from idleness cannot move the watermark back.
    if (next > this.#current) {
      this.#current = next
      output.watermark = next
    }
    if (idle !== this.#isIdle) {
      this.#isIdle = idle
      output.idle = idle
    }
    return output
  }
}
