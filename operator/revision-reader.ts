// A revision that status names and that the caches do not show: somebody has deleted it, or they are behind. The API server is asked, since a job
// whose revision is not known is not one that runs by another.

import type { Clock } from '../runtime/base/environment.ts'
import type { Revision, UnseenRevision } from './contract.ts'
import type { KubeClient } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'
import { RecentLooks } from './recent-looks.ts'
import { readRevision } from './resources/controller-revision.ts'
import { isOwnedBy } from './resources/labels.ts'
import type { KubernetesObject, OwnerJob } from './resources/objects.ts'

export type RevisionAnswer = { readonly state: 'there'; readonly revision: Revision } | UnseenRevision

export class RevisionReader {
  readonly #client: Pick<KubeClient, 'get'>
  readonly #looks: RecentLooks<RevisionAnswer>

  constructor(client: Pick<KubeClient, 'get'>, clock: Clock) {
    this.#client = client
    this.#looks = new RecentLooks(clock)
  }

  /** Never rejects: what is not answered is unknown, and is not asked again at once either. */
  read(job: OwnerJob, name: string): Promise<RevisionAnswer> {
    return this.#looks.at(`${job.uid}/${name}`, () => this.#read(job, name))
  }

  async #read(job: OwnerJob, name: string): Promise<RevisionAnswer> {
    try {
      const found = await this.#client.get(types.controllerRevision, { namespace: job.namespace, name })
      const isOurs = found !== undefined && isOwnedBy(found as KubernetesObject, job)
      if (!isOurs || found.metadata.deletionTimestamp !== undefined) return { name, state: 'gone' }
      const revision = readRevision(found as KubernetesObject)
      return revision === undefined
        ? { name, state: 'unknown', why: 'it is of another version of the operator' }
        : { state: 'there', revision }
    } catch (error) {
      if (!(error instanceof Error)) throw error
      return { name, state: 'unknown', why: error.message }
    }
  }
}
