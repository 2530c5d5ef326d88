// Something outside that processes call and that outlives them: answers are late, missing or lost, and calls of the dead may still
// land. Stores, HEAD and the ledger are such services.

import type { SimProcess } from './process.ts'
import type { SeededRandom } from './random.ts'
import { Weather } from './weather.ts'
import type { World } from './world.ts'

/**
 * slow: latencies times the level. failing: the chance that a call fails and does nothing. ambiguous: the chance that a write
 * fails though it has landed, or lands later: what an object store's 409, or 412 after a retry, may mean as well. torn: the chance that a
 * read breaks off. stalled: the chance that a call, or its answer, takes longer than whoever waits for it may be ready to. stale: the chance
 * that a list is an old one; only an object store has it.
 */
export type ServiceTrouble = 'slow' | 'failing' | 'ambiguous' | 'torn' | 'stalled' | 'stale'

export interface ServiceOptions {
  readonly name: string
  /** Of a call and its answer together, in calm weather. */
  readonly latencyMsMean: number
  /** The error of a call that got no answer. */
  readonly failure: (detail: string) => Error
}

/** An ambiguous write lands about this long after its error: later than a restart, sometimes. */
const lateMsMean = 2_000
/** And some far later: than every try to settle what became of it. */
const latestMsMax = 100_000
/** Of a call that is stalled, or its answer. */
const stallMsMax = 70_000
/** Of the writes that are under way when their process dies, as many land. */
const landsAfterDeath = 0.6

type WriteFate = 'done' | 'failed' | 'answer lost' | 'late'

export class SimService {
  readonly world: World
  readonly weather: Weather<ServiceTrouble>
  readonly #options: ServiceOptions
  readonly #random: SeededRandom

  constructor(world: World, options: ServiceOptions) {
    this.world = world
    this.weather = new Weather(world, options.name)
    this.#options = options
    this.#random = world.random.split(options.name)
  }

  /** `apply` asks the truth, which answers within microtasks. */
  read<T>(process: SimProcess, label: string, apply: () => Promise<T>): Promise<T> {
    const completion = process.completion<T>(label)
    if (!process.alive) return completion.promise
    const thereMs = process.wakesInMs + this.#latencyMs()
    const backMs = this.#latencyMs()
    const torn = this.#strikes('torn')
    if (torn || this.#strikes('failing'))
      completion.settle(thereMs + backMs, () => {
        throw this.#failure(label, torn ? 'the answer broke off' : 'no answer')
      })
    else this.world.after(thereMs, `${label} arrives`, () => answer(apply(), backMs, completion))
    return completion.promise
  }

  /**
   * `apply` changes the truth and answers within microtasks. With `unclear`, a lost answer is turned into one that says so; without
   * it the call fails.
   */
  write<T>(process: SimProcess, label: string, apply: () => Promise<T>, unclear?: (cause: unknown) => T): Promise<T> {
    const completion = process.completion<T>(label)
    if (!process.alive) return completion.promise
    const fate = this.#fateOfWrite()
    const thereMs = process.wakesInMs + this.#latencyMs()
    const backMs = this.#latencyMs()
    const survives = this.#random.chance(landsAfterDeath)
    const land = (): void => {
      if (!process.alive && !survives && fate !== 'late') return
      this.world.tell(() => {
        const how = process.alive ? (fate === 'done' ? '' : `, ${fate}`) : ', after its death'
        return `${this.#options.name}: ${label} of ${process.name} lands${how}`
      })
      if (fate === 'done') answer(apply(), backMs, completion)
      else apply().catch(() => undefined) // Nobody hears this answer, good or bad.
    }
    const landsMs = thereMs + (fate === 'late' ? this.#lateMs() : 0)
    if (fate !== 'failed') this.world.after(landsMs, `${label} lands`, land)
    if (fate !== 'done')
      completion.settle(thereMs + backMs, () => {
        const cause = this.#failure(label, 'no answer')
        if (unclear === undefined) throw cause
        return unclear(cause)
      })
    return completion.promise
  }

  #fateOfWrite(): WriteFate {
    if (this.#strikes('failing')) return 'failed'
    if (this.#strikes('ambiguous')) return this.#random.pick(['failed', 'answer lost', 'late'])
    return 'done'
  }

  #strikes(kind: ServiceTrouble): boolean {
    if (!this.#random.chance(this.weather.level(kind))) return false
    this.weather.count(kind)
    return true
  }

  #lateMs(): number {
    return this.#random.chance(0.2) ? this.#random.between(0, latestMsMax) : this.#random.exponential(lateMsMean)
  }

  #latencyMs(): number {
    const slowness = this.weather.level('slow')
    if (slowness > 1) this.weather.count('slow')
    if (this.#strikes('stalled')) return this.#random.between(0, stallMsMax)
    return this.#random.exponential((this.#options.latencyMsMean / 2) * Math.max(1, slowness))
  }

  #failure(label: string, what: string): Error {
    return this.#options.failure(`${label}: ${what} (simulated).`)
  }
}

function answer<T>(
  given: Promise<T>,
  backMs: number,
  completion: { settle(delayMs: number, outcome: () => T): void },
): void {
  given.then(
    (value) => completion.settle(backMs, () => value),
    (error: unknown) =>
      completion.settle(backMs, () => {
        throw error
      }),
  )
}
