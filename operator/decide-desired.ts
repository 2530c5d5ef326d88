// What the spec and the code that it names ask for now, as the revision that would run it; or what stands in the way of one.

import type { EffectiveSpec, Observed, Revision, StreamJobStatus } from './contract.ts'
import { ownRevision, revisionNamed, validSpec } from './decide-facts.ts'
import { attemptKey, revisionHash, revisionName, revisionOf, rolledBackKey, specHash } from './revision.ts'
import type { CodeName } from './revision.ts'

export type Desired =
  | {
      readonly kind: 'known'
      readonly spec: EffectiveSpec
      readonly hash: string
      /** Of this attempt: what the preflight refused under it is not tried again. */
      readonly key: string
      /** The one to run: one that is stored, or the next. */
      readonly revision: Revision
      readonly isStored: boolean
    }
  /** The job runs on by the last that was good. `unknown`: it may be good, and one looks again. */
  | { readonly kind: 'problem' | 'unknown'; readonly reason: string; readonly message: string }

export function desiredOf(observed: Observed): Desired {
  const { spec: read, job, operatorVersion, revisions } = observed
  if (!read.fits) return { kind: 'problem', reason: 'InvalidSpec', message: read.problems.join(' ') }
  const code = codeOf(observed, read.spec)
  if (code !== undefined && 'kind' in code) return code
  const { spec, image } = read
  const hash = revisionHash({ specHash: read.hash, code })
  const key = attemptKey(hash, spec)
  const stored = revisions.find((revision) => revision.hash === hash && runsTheSame(revision, { spec, image }))
  // Of one that was deleted by somebody the number is not used again.
  const own = Object.values(observed.children).filter(({ ownedByJob }) => ownedByJob)
  const named = [observed.status?.revision, observed.status?.stableRevision, ...own.map(({ revision }) => revision)]
  const number = Math.max(0, ...named.map(numberOf), ...revisions.map((revision) => revision.number)) + 1
  const revision = stored ?? revisionOf({ job, number, spec, specHash: read.hash, image, code, operatorVersion })
  return { kind: 'known', spec, hash, key, revision, isStored: stored !== undefined }
}

/** A revision that a transition has named before it was stored: made of what is asked for now. */
export function revisionToStore(
  observed: Observed,
  desired: Desired & { readonly kind: 'known' },
  name: string,
): Revision {
  const number = numberOf(name)
  return { ...desired.revision, name: revisionName(observed.job, number), number }
}

function numberOf(name: string | undefined): number {
  return Number(/\d+$/.exec(name ?? '')?.[0] ?? 0)
}

/** Whether what runs is not what is asked for. `undefined`: that is not known. */
export function isOutdated(desired: Desired, running: Revision | undefined): boolean | undefined {
  if (desired.kind !== 'known' || running === undefined) return undefined
  return running.hash !== desired.hash
}

export function isBlocked(desired: Desired, status: StreamJobStatus): boolean {
  return desired.kind === 'known' && isRefused(status, desired.hash, desired.spec)
}

/** Whether this very attempt was refused or rolled back; operators of before wrote the key of a refused one for both. */
function isRefused({ blocked }: StreamJobStatus, hash: string, spec: EffectiveSpec): boolean {
  return blocked !== undefined && [attemptKey(hash, spec), rolledBackKey(hash, spec)].includes(blocked.key)
}

/**
 * Where a job goes on that was suspended before its rollback came to an end: at the stable revision, whatever the spec's code is now. undefined:
 * it was not being rolled back.
 */
export function stableToGoBackTo(observed: Observed, status: StreamJobStatus): string | undefined {
  const [own, stable] = [ownRevision(observed, status), revisionNamed(observed, status.stableRevision)]
  const spec = validSpec(observed, status)
  if (own === undefined || stable === undefined || own.name === stable.name || spec === undefined) return undefined
  return isRefused(status, own.hash, spec) ? stable.name : undefined
}

/** Of one hash there may be two: the chart's defaults have changed between them. */
function runsTheSame(
  revision: Revision,
  { spec, image }: { readonly spec: EffectiveSpec; readonly image: string },
): boolean {
  return revision.image === image && specHash(revision.spec) === specHash(spec)
}

/** undefined: it is in the image. */
function codeOf(
  { code }: Observed,
  { program }: EffectiveSpec,
): CodeName | undefined | Extract<Desired, { readonly message: string }> {
  const named = program.module.configMap
  if (named === undefined) return undefined
  if (!code.known)
    return {
      kind: 'unknown',
      reason: 'CodeUnknown',
      message: `The ConfigMap ${named.name} could not be read: ${code.why}.`,
    }
  const fact = code.value
  switch (fact.kind) {
    case 'files':
      if (!fact.keys.includes(named.key))
        return {
          kind: 'problem',
          reason: 'CodeMissing',
          message: `The ConfigMap ${named.name} has no key ${named.key}; its keys are ${fact.keys.join(', ')}. Add it, or mend spec.program.module.configMap.key.`,
        }
      return { hash: fact.hash, key: named.key }
    case 'missing':
      return {
        kind: 'problem',
        reason: 'CodeMissing',
        message: `The ConfigMap ${named.name} is not there: ${fact.why}. Make it in the job's namespace, or mend spec.program.module.configMap.name.`,
      }
    case 'too large':
      return {
        kind: 'problem',
        reason: 'CodeTooLarge',
        message: `The ConfigMap ${named.name} has ${fact.bytes} bytes; at most 1048576 can be kept. Put the code into an image and set spec.program.image and module.path.`,
      }
    case 'image':
      return { kind: 'unknown', reason: 'CodeUnknown', message: `The ConfigMap ${named.name} was not read yet.` }
    default:
      return fact satisfies never
  }
}
