// Objects that have the name of one of a job's and are not the job's. The caches hold only what carries our labels, so these are met when
// something is to be made; they are left alone, and looked at again from time to time.

import type { Clock } from '../runtime/base/environment.ts'
import { childFact } from './child-facts.ts'
import type { ChildFact } from './contract.ts'
import type { KubeClient, KubeObject } from './kubernetes/contract.ts'
import { typeOf } from './kubernetes/types.ts'
import { isOwnedBy } from './resources/labels.ts'
import type { KubernetesObject, OwnerJob } from './resources/objects.ts'

const lookMs = 15_000

interface Stranger {
  readonly object: KubeObject
  readonly seenMs: number
}

export class ForeignObjects {
  readonly #client: Pick<KubeClient, 'get'>
  readonly #clock: Clock
  readonly #byJob = new Map<string, Map<string, Stranger>>()

  constructor(client: Pick<KubeClient, 'get'>, clock: Clock) {
    this.#client = client
    this.#clock = clock
  }

  met(owner: OwnerJob, object: KubeObject): void {
    const own = this.#byJob.get(owner.uid) ?? new Map<string, Stranger>()
    this.#byJob.set(owner.uid, own)
    own.set(`${object.kind}/${object.metadata.name}`, { object, seenMs: this.#clock.nowMs() })
  }

  async of(owner: OwnerJob): Promise<Readonly<Record<string, ChildFact>>> {
    const own = this.#byJob.get(owner.uid)
    if (own === undefined) return {}
    const facts: Record<string, ChildFact> = {}
    for (const [key, { object, seenMs }] of own) {
      const isOld = this.#clock.nowMs() - seenMs >= lookMs
      // Who is not answered goes on with what was there: a deletion must not wait for it.
      const current = isOld ? await this.#client.get(typeOf(object)!, object.metadata).catch(() => object) : object
      if (current === undefined || isOwnedBy(current as KubernetesObject, owner)) own.delete(key)
      else {
        if (isOld) this.met(owner, current)
        facts[key] = childFact(current, owner, true)
      }
    }
    if (own.size === 0) this.#byJob.delete(owner.uid)
    return facts
  }

  forget(uid: string): void {
    this.#byJob.delete(uid)
  }
}
