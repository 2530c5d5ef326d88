// A simulated object store and HEAD: one truth, and a handle for each process.

import type { HeadStore, HeadVersion, ObjectKey, ObjectStore, SwapAnswer } from '../storage/contract.ts'
import { storageError } from '../storage/errors.ts'
import { KeyHistory } from './key-history.ts'
import type { SimProcess } from './process.ts'
import type { SeededRandom } from './random.ts'
import { SimService } from './service.ts'
import type { ServiceTrouble } from './service.ts'
import type { Weather } from './weather.ts'
import type { World } from './world.ts'

const latencyMsMean = 4
/** How far a stale list lies back, in the mean: it hides what was created since, and shows what was deleted. Virtual ms. */
const staleMsMean = 3_000

export class SimStore {
  readonly weather: Weather<ServiceTrouble>
  readonly #truth: { readonly objects: ObjectStore; readonly head: HeadStore }
  readonly #service: SimService
  readonly #world: World
  readonly #keys = new KeyHistory()
  /** Of its own, as each concern's. */
  readonly #staleness: SeededRandom

  /** `truth`: stores in memory, that answer within microtasks. Scenarios may look into them; processes get handles. */
  constructor(world: World, truth: { readonly objects: ObjectStore; readonly head: HeadStore }, name = 'store') {
    this.#truth = truth
    const failure = (detail: string): Error => storageError('MR-S01', detail)
    this.#service = new SimService(world, { name, latencyMsMean, failure })
    this.weather = this.#service.weather
    this.#world = world
    this.#staleness = world.random.split(`stale lists of ${name}`)
  }

  /** Bytes that are being written must not change before the answer: they are read when the write lands. */
  objects(process: SimProcess): ObjectStore {
    const truth = this.#truth.objects
    const service = this.#service
    return {
      create: (key, bytes) => service.write(process, `create ${key}`, () => this.#create(key, bytes)),
      read: (key) => service.read(process, `read ${key}`, () => truth.read(key)),
      readRange: (key, offset, length) =>
        service.read(process, `read ${key} ${offset}+${length}`, () => truth.readRange(key, offset, length)),
      delete: (keys) => this.#delete(process, keys),
      list: (prefix) => service.read(process, `list ${prefix}`, () => this.#list(prefix)),
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

  async #create(key: ObjectKey, bytes: Uint8Array): Promise<'created' | 'exists'> {
    const answer = await this.#truth.objects.create(key, bytes)
    if (answer === 'created') this.#keys.created(key, this.#world.nowMs)
    return answer
  }

  /** A read of one object is never stale: what is created once under a name has one content, and HEAD is behind a compare-and-swap. */
  async #list(prefix: string): Promise<ObjectKey[]> {
    const now = await this.#truth.objects.list(prefix)
    const level = this.weather.level('stale')
    if (level === 0 || !this.#staleness.chance(level)) return now
    const then = this.#keys.asOf(now, prefix, this.#world.nowMs - this.#staleness.exponential(staleMsMean))
    const differs = then.length !== now.length || then.some((key, index) => key !== now[index])
    if (differs) {
      this.weather.count('stale')
      this.#world.tell(() => `${this.weather.name}: a stale list of ${prefix}`)
    }
    return then
  }

  async #remove(key: ObjectKey): Promise<void> {
    const wasThere = (await this.#truth.objects.read(key)) !== undefined
    await this.#truth.objects.delete([key])
    if (wasThere) this.#keys.deleted(key, this.#world.nowMs)
  }

  /** One request for each key: a call that fails may have deleted some of them. */
  async #delete(process: SimProcess, keys: readonly ObjectKey[]): Promise<void> {
    const remove = (key: ObjectKey): Promise<void> =>
      this.#service.write(process, `delete ${key}`, () => this.#remove(key))
    await Promise.all(keys.map(remove))
  }
}
