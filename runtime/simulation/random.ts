// Seeded randomness: everything in a simulated world is drawn from one seed, and each concern draws from a stream of its own,
// so that one more draw in the network does not change what the disk does.

import type { Random } from '../base/environment.ts'

/**
 * sfc32 ("small fast counter", Chris Doty-Humphrey, PractRand): 128 bits of state, one of them a counter, so no seed has a short
 * cycle. A stream's seed is the hash of its parent's seed and its name (murmur3's mixing steps, Austin Appleby), not a draw
 * from its parent: splitting neither uses nor depends on what the parent drew.
 */
export class SeededRandom implements Random {
  readonly #seed: number
  #a: number
  #b: number
  #c: number
  #counter = 1

  constructor(seed: number) {
    this.#seed = mix(mix(0x9e3779b9, seed >>> 0), Math.floor(seed / 0x1_0000_0000) >>> 0)
    this.#a = mix(this.#seed, 1)
    this.#b = mix(this.#seed, 2)
    this.#c = mix(this.#seed, 3)
    for (let round = 0; round < 12; round++) this.bits()
  }

  /** The stream of one concern: the same name gives the same stream, whatever was drawn before. */
  split(name: string): SeededRandom {
    return new SeededRandom(hashText(this.#seed, name))
  }

  /** 32 random bits, unsigned. */
  bits(): number {
    const result = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + result) | 0
    return result >>> 0
  }

  next(): number {
    return this.bits() / 0x1_0000_0000
  }

  /** 32 hexadecimal digits. Unique as far as 128 random bits are. */
  id(): string {
    let digits = ''
    for (let word = 0; word < 4; word++) digits += this.bits().toString(16).padStart(8, '0')
    return digits
  }

  /** Uniform integer in [0, bound); bound ≤ 2^32. */
  below(bound: number): number {
    return Math.floor(this.next() * bound)
  }

  /** Uniform in [low, high). */
  between(low: number, high: number): number {
    return low + this.next() * (high - low)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  /** Exponentially distributed with this mean: mostly short, now and then long. */
  exponential(mean: number): number {
    return -Math.log(1 - this.next()) * mean
  }

  pick<T>(choices: readonly T[]): T {
    if (choices.length === 0) throw new RangeError('nothing to pick from')
    return choices[this.below(choices.length)] as T
  }
}

/** Folds one more word into a 32-bit hash (murmur3's body and finalizer). */
export function mix(hash: number, word: number): number {
  let key = Math.imul(word, 0xcc9e2d51)
  key = Math.imul((key << 15) | (key >>> 17), 0x1b873593)
  let mixed = hash ^ key
  mixed = (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

/** Folds a text into a 32-bit hash (FNV-1a over its UTF-16 units, then mixed). */
export function hashText(hash: number, text: string): number {
  let folded = (hash ^ 0x811c9dc5) | 0
  for (let index = 0; index < text.length; index++) folded = Math.imul(folded ^ text.charCodeAt(index), 0x01000193)
  return mix(folded, text.length)
}
