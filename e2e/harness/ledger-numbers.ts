// Which numbers of a split were seen: a bit each, in pieces that take no room once they are full.

const PIECE_BITS = 65_536

interface Piece {
  readonly bits: Uint8Array
  count: number
}

export class SeenNumbers {
  readonly #pieces = new Map<number, Piece | 'full'>()
  #size = 0
  #highest = -1

  /** Whether it is new. */
  add(n: number): boolean {
    const index = Math.floor(n / PIECE_BITS)
    let piece = this.#pieces.get(index)
    if (piece === 'full') return false
    if (piece === undefined) {
      piece = { bits: new Uint8Array(PIECE_BITS / 8), count: 0 }
      this.#pieces.set(index, piece)
    }
    const bit = n % PIECE_BITS
    const mask = 1 << (bit & 7)
    if ((piece.bits[bit >> 3]! & mask) !== 0) return false
    piece.bits[bit >> 3]! |= mask
    if (++piece.count === PIECE_BITS) this.#pieces.set(index, 'full')
    this.#size++
    if (n > this.#highest) this.#highest = n
    return true
  }

  has(n: number): boolean {
    const piece = this.#pieces.get(Math.floor(n / PIECE_BITS))
    if (piece === undefined || piece === 'full') return piece === 'full'
    const bit = n % PIECE_BITS
    return (piece.bits[bit >> 3]! & (1 << (bit & 7))) !== 0
  }

  get size(): number {
    return this.#size
  }

  /** −1: none was seen. */
  get highest(): number {
    return this.#highest
  }

  /** The highest number up to which none is missing; −1: 0 is missing. */
  get contiguous(): number {
    for (let index = 0; ; index++) {
      const piece = this.#pieces.get(index)
      if (piece === 'full') continue
      if (piece === undefined) return index * PIECE_BITS - 1
      for (let bit = 0; ; bit++) {
        if ((piece.bits[bit >> 3]! & (1 << (bit & 7))) === 0) return index * PIECE_BITS + bit - 1
      }
    }
  }

  /** How many of 0 ≤ n < limit were seen. */
  below(limit: number): number {
    let count = 0
    for (const [index, piece] of this.#pieces) {
      const start = index * PIECE_BITS
      if (start + PIECE_BITS <= limit) count += piece === 'full' ? PIECE_BITS : piece.count
      else for (let n = start; n < limit; n++) if (this.has(n)) count++
    }
    return count
  }

  /** The first `max` numbers of 0 ≤ n < limit that were not seen. */
  missing(limit: number, max: number): number[] {
    const found: number[] = []
    for (let n = 0; n < limit && found.length < max; n++) {
      if (n % PIECE_BITS === 0 && this.#pieces.get(n / PIECE_BITS) === 'full') n += PIECE_BITS - 1
      else if (!this.has(n)) found.push(n)
    }
    return found
  }
}
