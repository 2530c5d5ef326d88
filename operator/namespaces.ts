// Whether a namespace is going. Asked only about what is being deleted: a namespace that goes deletes all that is in it.

import type { Clock } from '../runtime/base/environment.ts'
import type { KubeClient } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'

const keptMs = 5_000

export class Namespaces {
  readonly #client: Pick<KubeClient, 'get'>
  readonly #clock: Clock
  readonly #known = new Map<string, { readonly terminating: boolean; readonly atMs: number }>()

  constructor(client: Pick<KubeClient, 'get'>, clock: Clock) {
    this.#client = client
    this.#clock = clock
  }

  /** Never rejects: where it cannot be read, one goes on as if it stayed, and pods that cannot be made are seen as such. */
  async isTerminating(name: string): Promise<boolean> {
    const known = this.#known.get(name)
    if (known !== undefined && this.#clock.nowMs() - known.atMs < keptMs) return known.terminating
    const terminating = await this.#read(name)
    this.#known.set(name, { terminating, atMs: this.#clock.nowMs() })
    return terminating
  }

  async #read(name: string): Promise<boolean> {
    try {
      const found = await this.#client.get(types.namespace, { name })
      return found === undefined || found.metadata.deletionTimestamp !== undefined
    } catch {
      return false
    }
  }
}
