// The external system of the ledger, as each process reaches it: late, failing, and unclear about what it has done.

import type { LedgerSystem } from '../connectors/ledger.ts'
import type { SimProcess } from './process.ts'
import { SimService } from './service.ts'
import type { ServiceTrouble } from './service.ts'
import type { Weather } from './weather.ts'
import type { World } from './world.ts'

const latencyMsMean = 2

export class SimLedger {
  readonly weather: Weather<ServiceTrouble>
  readonly #truth: LedgerSystem
  readonly #service: SimService

  /** `truth`: the ledger in memory, which outlives all processes and answers within microtasks. */
  constructor(
    world: World,
    truth: LedgerSystem,
    options: { readonly name?: string; readonly latencyMsMean?: number } = {},
  ) {
    this.#truth = truth
    const { name = 'ledger' } = options
    const failure = (detail: string): Error => new Error(`${name}: ${detail}`)
    this.#service = new SimService(world, { name, latencyMsMean, ...options, failure })
    this.weather = this.#service.weather
  }

  handle(process: SimProcess): LedgerSystem {
    const [truth, service] = [this.#truth, this.#service]
    return {
      append: (name, entries) => service.write(process, `append to ${name}`, () => truth.append(name, entries)),
      preCommit: (name) => service.write(process, `pre-commit ${name}`, () => truth.preCommit(name)),
      commit: (name) => service.write(process, `commit ${name}`, () => truth.commit(name)),
      abort: (name) => service.write(process, `abort ${name}`, () => truth.abort(name)),
      list: () => service.read(process, 'list transactions', () => truth.list()),
    }
  }
}
