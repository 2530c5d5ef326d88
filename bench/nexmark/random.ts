// The generator's random numbers: mulberry32, seeded anew for each event by fmix32 of its number. Both are public domain.

const step = 0x6d2b79f5
const alphabet = Buffer.from('abcdefghijklmnopqrstuvwxyz_ ABCD', 'latin1')
/** By ten bits: the lower five are the first letter. */
const letterPairs = Uint16Array.from({ length: 1024 }, (_, bits) => alphabet[bits & 31]! | (alphabet[bits >>> 5]! << 8))

export class EventRandom {
  #state = 0
  #seedHigh = 0
  #highMixed = fmix32(0x9e3779b9 | 0)

  /** For event `low + high * 2^32`; both 32 bits. */
  seed(low: number, high: number): void {
    if (high !== this.#seedHigh) {
      this.#seedHigh = high
      this.#highMixed = fmix32((high + 0x9e3779b9) | 0)
    }
    this.#state = fmix32(low ^ this.#highMixed)
  }

  /** 32 bits, signed. */
  next(): number {
    this.#state = (this.#state + step) | 0
    return mulberry32(this.#state)
  }

  /** `limit` is 32 bits, unsigned: said so, the remainder is one of integers. */
  below(limit: number): number {
    return (this.next() >>> 0) % (limit >>> 0)
  }

  unit(): number {
    return (this.next() >>> 0) / 4294967296
  }

  /**
   * Writes letters, six for a draw, at [at, end) and up to five behind. Two at a time, and with the state in a variable:
   * twice as fast as letter by letter.
   */
  letters(into: DataView, at: number, end: number): void {
    let state = this.#state
    for (; at < end; at += 6) {
      state = (state + step) | 0
      const bits = mulberry32(state)
      into.setUint16(at, letterPairs[bits & 1023]!, true)
      into.setUint16(at + 2, letterPairs[(bits >>> 10) & 1023]!, true)
      into.setUint16(at + 4, letterPairs[(bits >>> 20) & 1023]!, true)
    }
    this.#state = state
  }
}

function mulberry32(state: number): number {
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return mixed ^ (mixed >>> 14)
}

function fmix32(hash: number): number {
  let mixed = hash ^ (hash >>> 16)
  mixed = Math.imul(mixed, 0x85ebca6b)
  mixed ^= mixed >>> 13
  mixed = Math.imul(mixed, 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}
