// A simulated object store and HEAD: one truth, and a handle for each process.

import type { HeadStore, HeadVersion, ObjectKey, ObjectStore, SwapAnswer } from '../storage/contract.ts'
import { storageError } from '../storage/errors.ts'
import type { SimProcess } from './process.ts'
import { SimService } from './service.ts'
import type { ServiceTrouble } from './service.ts'
import type { Weather } from './weather.ts'
import type { World } from './world.ts'

const latencyMsMean = 4

export class SimStore {
  readonly weather: Weather<ServiceTrouble>
  readonly #truth: { readonly objects: ObjectStore; readonly head: HeadStore }
  readonly #service: SimService

  /** `truth`: stores in memory, that answer within microtasks. Scenarios may look into them; processes get handles. */
  constructor(world: World, truth: { readonly objects: ObjectStore; readonly head: HeadStore }, name = 'store') {
    this.#truth = truth
    const failure = (detail: string): Error => storageError('MR-S01', detail)
    this.#service = new SimService(world, { name, latencyMsMean, failure })
    this.weather = this.#service.weather
  }

  /** Bytes that are being written must not change before the answer: they are read when the write lands. */
  objects(process: SimProcess): ObjectStore {
    const truth = this.#truth.objects
    const service = this.#service
    return {
      create: (key, bytes) => service.write(process, `create ${key}`, () => truth.create(key, bytes)),
      read: (key) => service.read(process, `read ${key}`, () => truth.read(key)),
      readRange: (key, offset, length) =>
        service.read(process, `read ${key} ${offset}+${length}`, () => truth.readRange(key, offset, length)),
      delete: (keys) => this.#delete(process, keys),
      list: (prefix) => service.read(process, `list ${prefix}`, () => truth.list(prefix)),
    }
  }

  head(process: SimProcess): HeadStore {
    const truth = this.#truth.head
    const unclear = (cause: unknown): SwapAnswer => ({ outcome: 'unclear', cause })
    return {
      read: () => this.#service.read(process, 'read HEAD', () => truth.read()),
      swap: (expected: HeadVersion | undefined, bytes: Uint8Array) =>
        this.#service.write(process, 'swap HEAD', () => truth.swap(expected, bytes), unclear),
    }
  }

  /** One request for each key: a call that fails may have deleted some of them. */
  async #delete(process: SimProcess, keys: readonly ObjectKey[]): Promise<void> {
    const remove = (key: ObjectKey): Promise<void> =>
      this.#service.write(process, `delete ${key}`, () => this.#truth.objects.delete([key]))
    await Promise.all(keys.map(remove))
  }
}
