// HEAD of a mini cluster: what it says now can be looked at without asking.

import type { HeadStore, HeadVersion, SwapAnswer, VersionedHead } from '../storage/contract.ts'
import type { Head } from '../storage/head-contract.ts'
import { decodeHead } from '../storage/head-format.ts'
import { MemoryHeadStore } from '../storage/memory-store.ts'

export class WatchedHead implements HeadStore {
  readonly #store = new MemoryHeadStore()
  #now: Head | undefined

  /** undefined: no job has begun. */
  get now(): Head | undefined {
    return this.#now
  }

  read(): Promise<VersionedHead | undefined> {
    return this.#store.read()
  }

  async swap(expected: HeadVersion | undefined, bytes: Uint8Array): Promise<SwapAnswer> {
    const answer = await this.#store.swap(expected, bytes)
    if (answer.outcome === 'won') this.#now = decodeHead(bytes, `HEAD ${answer.version.token}`)
    return answer
  }
}
