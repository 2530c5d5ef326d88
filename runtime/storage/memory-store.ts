// Object store and HEAD's store in memory: for tests, the test kit and the simulation.

import type { HeadStore, HeadVersion, ObjectKey, ObjectStore, SwapAnswer, VersionedHead } from './contract.ts'
import { storageError } from './errors.ts'

/** Copies go in and copies come out, as over a network; nobody shares a buffer with the store (a Buffer's own slice would). */
export class MemoryObjectStore implements ObjectStore {
  readonly #objects = new Map<ObjectKey, Uint8Array>()

  async create(key: ObjectKey, bytes: Uint8Array): Promise<'created' | 'exists'> {
    if (this.#objects.has(key)) return 'exists'
    this.#objects.set(key, new Uint8Array(bytes))
    return 'created'
  }

  async read(key: ObjectKey): Promise<Uint8Array | undefined> {
    return this.#objects.get(key)?.slice()
  }

  async readRange(key: ObjectKey, offset: number, length: number): Promise<Uint8Array | undefined> {
    const bytes = this.#objects.get(key)
    if (bytes === undefined) return undefined
    if (offset + length > bytes.length)
      throw storageError('MR-S03', rangeDetail({ key, offset, length, size: bytes.length }))
    return bytes.slice(offset, offset + length)
  }

  async delete(keys: readonly ObjectKey[]): Promise<void> {
    for (const key of keys) this.#objects.delete(key)
  }

  async list(prefix: string): Promise<ObjectKey[]> {
    return [...this.#objects.keys()].filter((key) => key.startsWith(prefix)).toSorted()
  }

  /** For tests that damage what is stored. */
  overwrite(key: ObjectKey, bytes: Uint8Array): void {
    this.#objects.set(key, new Uint8Array(bytes))
  }

  get size(): number {
    return this.#objects.size
  }
}

export class MemoryHeadStore implements HeadStore {
  #number = 0
  #bytes: Uint8Array | undefined

  async read(): Promise<VersionedHead | undefined> {
    return this.#bytes === undefined
      ? undefined
      : { version: { token: String(this.#number) }, bytes: this.#bytes.slice() }
  }

  async swap(expected: HeadVersion | undefined, bytes: Uint8Array): Promise<SwapAnswer> {
    const current = this.#bytes === undefined ? undefined : String(this.#number)
    if (expected?.token !== current) return { outcome: 'lost' }
    this.#number++
    this.#bytes = new Uint8Array(bytes)
    return { outcome: 'won', version: { token: String(this.#number) } }
  }

  /** For tests in which somebody takes HEAD away. */
  remove(): void {
    this.#bytes = undefined
  }
}

export function rangeDetail(range: {
  readonly key: ObjectKey
  readonly offset: number
  readonly length: number
  readonly size: number
}): string {
  return `${range.key} has ${range.size} bytes; ${range.length} were asked for at ${range.offset}.`
}
