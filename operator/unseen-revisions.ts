// Revisions that status names and that the caches do not show: somebody has deleted them, or the caches are behind. The API server is asked, since
// a job whose revision is not known is not one that runs by another.

import type { Clock } from '../runtime/base/environment.ts'
import type { Observed, Revision } from './contract.ts'
import type { KubeClient } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'
import { RecentLooks } from './recent-looks.ts'
import { readRevision } from './resources/controller-revision.ts'
import { isOwnedBy } from './resources/labels.ts'
import type { KubernetesObject, OwnerJob } from './resources/objects.ts'

export type UnseenRevision =
  | { readonly kind: 'there'; readonly revision: Revision }
  | { readonly kind: 'unseen'; readonly fact: Observed['unseen'][number] }

export class UnseenRevisions {
  readonly #client: Pick<KubeClient, 'get'>
  readonly #looks: RecentLooks<UnseenRevision>

  constructor(client: Pick<KubeClient, 'get'>, clock: Clock) {
    this.#client = client
    this.#looks = new RecentLooks(clock)
  }

  /** Never rejects: what is not answered is unknown, and is not asked again at once either. */
  read(job: OwnerJob, name: string): Promise<UnseenRevision> {
    return this.#looks.at(`${job.uid}/${name}`, () => this.#read(job, name))
  }

  async #read(job: OwnerJob, name: string): Promise<UnseenRevision> {
    const unread = (why: string): UnseenRevision => ({ kind: 'unseen', fact: { name, unread: why } })
    try {
      const found = await this.#client.get(types.controllerRevision, { namespace: job.namespace, name })
      const isOurs = found !== undefined && isOwnedBy(found as KubernetesObject, job)
      if (!isOurs || found.metadata.deletionTimestamp !== undefined) return { kind: 'unseen', fact: { name } }
      const revision = readRevision(found as KubernetesObject)
      return revision === undefined ? unread('it is of another version of the operator') : { kind: 'there', revision }
    } catch (error) {
      if (!(error instanceof Error)) throw error
      return unread(error.message)
    }
  }
}
