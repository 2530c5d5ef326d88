// Whether a namespace is going. Asked only about what is being deleted: a namespace that goes deletes all that is in it.

import type { Clock } from '../runtime/base/environment.ts'
import type { KubeClient } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'
import { RecentLooks } from './recent-looks.ts'

export class Namespaces {
  readonly #client: Pick<KubeClient, 'get'>
  readonly #looks: RecentLooks<boolean>

  constructor(client: Pick<KubeClient, 'get'>, clock: Clock) {
    this.#client = client
    this.#looks = new RecentLooks(clock)
  }

  /** Never rejects: where it cannot be read, one goes on as if it stayed, and pods that cannot be made are seen as such. */
  isTerminating(name: string): Promise<boolean> {
    return this.#looks.at(name, () => this.#read(name))
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
