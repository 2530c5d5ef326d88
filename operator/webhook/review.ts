// The answer to an AdmissionReview of a StreamJob: what schema and CEL cannot say. The loop validates again, so a webhook that is down costs
// nothing but the early word. Of a deletion it is asked how, as nothing undoes what the garbage collector has begun.

import { FINALIZER } from '../contract.ts'
import type { EffectiveSpec, Observed } from '../contract.ts'
import { canonicalJson } from '../revision.ts'

interface AdmissionRequest {
  readonly uid: string
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'
  readonly kind: { readonly group?: string; readonly kind: string }
  readonly userInfo?: { readonly username?: string }
  /** Of a deletion. */
  readonly options?: { readonly propagationPolicy?: string } | null
  readonly object?: ReviewedObject | null
  readonly oldObject?: ReviewedObject | null
}

export interface ReviewedObject {
  readonly metadata?: {
    readonly namespace?: string
    readonly name?: string
    readonly uid?: string
    readonly finalizers?: readonly string[]
  }
  readonly spec?: unknown
  readonly [field: string]: unknown
}

export interface ReviewOptions {
  readonly validate: (document: unknown, running: EffectiveSpec | undefined) => Observed['spec']
  /** What the job runs by; undefined: nothing, or it is not known. */
  readonly runningOf: (object: ReviewedObject) => EffectiveSpec | undefined
}

/** undefined: it is no AdmissionReview. */
export function review(body: unknown, { validate, runningOf }: ReviewOptions): object | undefined {
  const request = (body as { readonly request?: AdmissionRequest } | null)?.request
  if (typeof request?.uid !== 'string') return undefined
  const answer = (allowed: boolean, problems: readonly string[] = []): object => ({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: {
      uid: request.uid,
      allowed,
      ...(!allowed && { status: { status: 'Failure', code: 422, reason: 'Invalid', message: problems.join(' ') } }),
    },
  })
  const { object, oldObject, kind, operation } = request
  if (kind.kind === 'StreamJob' && operation === 'DELETE')
    return isTooHasty(request) ? answer(false, [tooHasty]) : answer(true)
  const isOurs = kind.kind === 'StreamJob' && (operation === 'CREATE' || operation === 'UPDATE')
  if (!isOurs || object === undefined || object === null) return answer(true)
  // Labels, finalizers and status of a spec that got in are nobody's harm.
  if (operation === 'UPDATE' && canonicalJson(object.spec ?? null) === canonicalJson(oldObject?.spec ?? null))
    return answer(true)
  const read = validate(object, operation === 'UPDATE' ? runningOf(object) : undefined)
  return read.fits ? answer(true) : answer(false, read.problems)
}

const tooHasty =
  'A StreamJob cannot be deleted in the foreground while its HEAD is to be closed: the garbage collector would take its pods, revisions and code away before that, and deletion.savepoint and checkpointing.onCancellation would be missed. Delete it by --cascade=background (the default of kubectl); in Argo CD by the sync option PrunePropagationPolicy=background, and for an Application by the finalizer resources-finalizer.argocd.argoproj.io/background.'

/** The collector itself, which follows an owner of the StreamJob, would ask for ever, and that owner never go. */
const collectors = ['system:serviceaccount:kube-system:', 'system:kube-controller-manager']

function isTooHasty({ options, oldObject, userInfo }: AdmissionRequest): boolean {
  const isCollector = collectors.some((name) => userInfo?.username?.startsWith(name) === true)
  const hasWork = oldObject?.metadata?.finalizers?.includes(FINALIZER) === true
  return options?.propagationPolicy === 'Foreground' && hasWork && !isCollector
}
