// What is needed to take a savepoint's files away: the image, the store and the job that it is of.

import type { Revision } from '../contract.ts'
import type { SavepointOrigin } from '../savepoint-contract.ts'
import type { SpecDefaults } from '../validate.ts'
import type { OwnerJob } from './objects.ts'
import { originTemplate } from './origin-template.ts'
import { jobStorage } from './process-config.ts'

export interface PathOptions {
  /** Of the Savepoint. */
  readonly namespace: string
  readonly defaults: SpecDefaults
  /** Of the job that it names: as only what lies in its store is sure to be its own, what lies in the chart's goes by its path. */
  readonly ofJob: SavepointOrigin | undefined
}

/** Of a savepoint that says none itself. */
export function originByPath(
  path: string | undefined,
  { namespace, defaults, ofJob }: PathOptions,
): SavepointOrigin | undefined {
  if (ofJob !== undefined && path?.startsWith(`${ofJob.storage}/`) === true) return ofJob
  return originInStore(path, namespace, defaults) ?? ofJob
}

/**
 * Of a savepoint in the chart's store, or in its place for savepoints: whose it is stands in its path. Only of its own namespace: who may make Savepoints in one has no say over
 * the files of another, though the credentials reach all of the store.
 */
function originInStore(
  path: string | undefined,
  namespace: string,
  { image, storage, serviceAccountName }: SpecDefaults,
): SavepointOrigin | undefined {
  const [checkpoints, savepoints] = [storage?.checkpoints, storage?.savepoints].map(
    (address) => address && `${address.replace(/\/+$/, '')}/`,
  )
  if (path === undefined || image === undefined || checkpoints === undefined) return undefined
  // One may lie within the other.
  const [prefix] = [checkpoints, savepoints]
    .filter((each) => each !== undefined && path.startsWith(each))
    .toSorted((one, other) => other!.length - one!.length)
  if (prefix === undefined) return undefined
  const parts = path.slice(prefix.length).replace(/\/+$/, '').split('/')
  const [of, name, uid] = parts
  if (of !== namespace || name === undefined || uid === undefined) return undefined
  // A store that is a folder would go up by them, to another namespace's.
  if (parts.some((part) => ['', '.', '..'].includes(part))) return undefined
  return originOf(
    { storage, ...(serviceAccountName !== undefined && { serviceAccountName }) },
    { jobId: uid, image, storage: `${checkpoints}${of}/${name}/${uid}` },
  )
}

/** Of a savepoint of a job, by the revision that this one runs by. */
export function originOfJob(job: OwnerJob, revision: Revision | undefined): SavepointOrigin | undefined {
  if (revision?.spec.storage?.checkpoints === undefined) return undefined
  const { spec, image } = revision
  const podTemplate = originTemplate(spec.coordinator.podTemplate)
  const origin = { jobId: job.uid, image, storage: jobStorage(job, spec) }
  return originOf(spec, { ...origin, ...(podTemplate !== undefined && { podTemplate }) })
}

/** Of one that an operator wrote down which kept no podTemplate: while its job is there, that is the job's of now. */
export function completedBy(origin: SavepointOrigin, fallback: SavepointOrigin | undefined): SavepointOrigin {
  const { jobId, podTemplate } = fallback ?? {}
  return jobId === origin.jobId && podTemplate !== undefined ? { podTemplate, ...origin } : origin
}

function originOf(
  { storage, serviceAccountName }: Pick<SpecDefaults, 'storage' | 'serviceAccountName'>,
  origin: Pick<SavepointOrigin, 'jobId' | 'image' | 'storage' | 'podTemplate'>,
): SavepointOrigin {
  return {
    ...origin,
    ...(storage?.s3 !== undefined && { s3: storage.s3 }),
    ...(serviceAccountName !== undefined && { serviceAccountName }),
  }
}
