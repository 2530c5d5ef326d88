// Which key group a key falls in, and which subtask owns a group: the only place.
//
// Group = murmur3 (x86, 32 bit, seed 0) of the key's bytes (key.ts) mod max parallelism. The algorithm is Austin Appleby's
// MurmurHash3_x86_32, public domain, written here from its description (https://github.com/aappleby/smhasher, MurmurHash3.cpp).
// testdata/key-groups.txt pins the results: a change would send every stored key to another subtask.

import { invariant } from '../base/errors.ts'
import { keyGroup, subtaskIndex, type KeyGroup, type SubtaskIndex } from '../base/ids.ts'
import { createWriter } from './bytes.ts'
import type { Key } from './contract.ts'
import { encodeKey } from './key.ts'

// One writer for all keys: hashing is synchronous and its bytes are dropped at once.
const keyBytes = createWriter(1024)
const numberBytes = new DataView(new ArrayBuffer(8))

/** Longest string whose byte length is one byte of the key. */
const SHORT_TEXT_MAX = 127

/** Throws MR-R03 for NaN and for values that cannot be keys. 0 ≤ result < maxParallelism. */
export function keyGroupOf(key: Key, maxParallelism: number): KeyGroup {
  return groupOfHash(keyHash(key), maxParallelism)
}

/** Of keyHash's answer. */
export function groupOfHash(hash: number, maxParallelism: number): KeyGroup {
  // Told that both are unsigned integers, the engine divides integers; else floats, which took half of all that setting a key takes.
  return keyGroup((hash >>> 0) % (maxParallelism >>> 0))
}

/** murmur3 of the key's bytes, as a signed 32-bit integer: those the engine keeps without allocation. */
export function keyHash(key: Key): number {
  // Numbers and short ASCII strings, nearly all keys, are hashed without writing their bytes: 2 to 3 times faster.
  if (typeof key === 'number') {
    if (!Number.isNaN(key)) return numberHash(key)
  } else if (typeof key === 'string' && key.length >= 2 && key.length <= SHORT_TEXT_MAX) {
    const hash = asciiHash(key)
    if (hash !== undefined) return hash
  }
  keyBytes.position = 0
  encodeKey(key, keyBytes)
  return murmur3(keyBytes.bytes, 0, keyBytes.position)
}

/** The groups [first, last] of a subtask. Ranges of all subtasks partition 0 … maxParallelism - 1; sizes differ by at most 1. */
export function keyGroupRange(
  parallelism: number,
  subtask: SubtaskIndex,
  maxParallelism: number,
): { readonly first: KeyGroup; readonly last: KeyGroup } {
  assertParallelism(parallelism, maxParallelism)
  invariant(subtask >= 0 && subtask < parallelism, `subtask ${subtask} of ${parallelism}`)
  return {
    first: keyGroup(Math.ceil((subtask * maxParallelism) / parallelism)),
    last: keyGroup(Math.ceil(((subtask + 1) * maxParallelism) / parallelism) - 1),
  }
}

/** The subtask whose range contains the group. */
export function subtaskOfKeyGroup(group: KeyGroup, parallelism: number, maxParallelism: number): SubtaskIndex {
  return subtaskIndex(Math.floor((group * parallelism) / maxParallelism))
}

/** murmur3 x86 32 bit of bytes[from, to), as a signed integer. */
export function murmur3(bytes: Uint8Array, from: number, to: number, seed = 0): number {
  const length = to - from
  const blocksEnd = from + (length & ~3)
  let hash = seed
  for (let at = from; at < blocksEnd; at += 4) {
    hash = addBlock(hash, bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24))
  }
  let tail = 0
  for (let at = to - 1; at >= blocksEnd; at--) tail = (tail << 8) | bytes[at]!
  return finish(hash ^ mixBlock(tail), length)
}

/** The bytes are the tag 1 and the float, little-endian: two blocks and a tail of one byte. */
function numberHash(key: number): number {
  numberBytes.setFloat64(0, key === 0 ? 0 : key, true)
  const low = numberBytes.getInt32(0, true)
  const high = numberBytes.getInt32(4, true)
  const hash = addBlock(addBlock(0, 1 | (low << 8)), (low >>> 24) | (high << 8))
  return finish(hash ^ mixBlock(high >>> 24), 9)
}

/** The bytes are the tag 4, the length and the characters. undefined when one of them is not ASCII. Two characters or more. */
function asciiHash(text: string): number | undefined {
  const length = text.length
  let first = text.charCodeAt(0)
  let second = text.charCodeAt(1)
  let all = first | second
  let hash = addBlock(0, 4 | (length << 8) | (first << 16) | (second << 24))
  let at = 2
  for (; at + 4 <= length; at += 4) {
    first = text.charCodeAt(at)
    second = text.charCodeAt(at + 1)
    const third = text.charCodeAt(at + 2)
    const fourth = text.charCodeAt(at + 3)
    all |= first | second | third | fourth
    hash = addBlock(hash, first | (second << 8) | (third << 16) | (fourth << 24))
  }
  let tail = 0
  for (let index = length - 1; index >= at; index--) {
    const code = text.charCodeAt(index)
    all |= code
    tail = (tail << 8) | code
  }
  return all > 127 ? undefined : finish(hash ^ mixBlock(tail), length + 2)
}

function addBlock(hash: number, block: number): number {
  const mixed = hash ^ mixBlock(block)
  return (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0
}

/** 0 stays 0: an empty tail changes nothing. */
function mixBlock(block: number): number {
  const mixed = Math.imul(block, 0xcc9e2d51)
  return Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593)
}

function finish(hash: number, byteCount: number): number {
  let mixed = hash ^ byteCount
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}

function assertParallelism(parallelism: number, maxParallelism: number): void {
  invariant(
    Number.isInteger(parallelism) && parallelism >= 1 && parallelism <= maxParallelism,
    `parallelism ${parallelism} of at most ${maxParallelism}`,
  )
}
