// Questions to what was observed that several decisions ask. Unknown stays unknown: undefined here means "nobody says".

import { settingNames } from './contract.ts'
import type {
  ChildFact,
  CoordinatorFact,
  EffectiveSpec,
  Observed,
  PodFact,
  PodPurpose,
  Revision,
  Settings,
  StreamJobStatus,
  TransitionStep,
} from './contract.ts'
import { canonicalJson, withoutSettings } from './revision.ts'

/** The coordinator, if it speaks for the start that status names; one that has not begun it yet speaks for an older one. */
export function ownCoordinator({ coordinator }: Observed, status: StreamJobStatus): CoordinatorFact | undefined {
  return coordinator.known && coordinator.value.start === status.start ? coordinator.value : undefined
}

export function revisionNamed({ revisions }: Observed, name: string | undefined): Revision | undefined {
  return name === undefined ? undefined : revisions.find((revision) => revision.name === name)
}

/** The revision that runs. */
export function ownRevision(observed: Observed, status: StreamJobStatus): Revision | undefined {
  return revisionNamed(observed, status.revision)
}

/** One that ran was stored: what is not there any more under its name is not made again of what is asked for now. */
export function wasStored({ revision, stableRevision }: StreamJobStatus, name: string): boolean {
  return name === revision || name === stableRevision
}

/** What holds for the job now: the spec as it is, or the last one that was valid. undefined: there was none yet. */
export function validSpec(observed: Observed, status: StreamJobStatus | undefined): EffectiveSpec | undefined {
  if (observed.spec.fits) return observed.spec.spec
  const revision = revisionNamed(observed, status?.transition?.to) ?? revisionNamed(observed, status?.revision)
  if (revision === undefined || status === undefined) return undefined
  return { ...withoutSettings(revision.spec), ...(status.settings ?? settingsAsTheyAre(revision, status)) }
}

export function settingsOf(spec: EffectiveSpec): Settings {
  return Object.fromEntries(
    settingNames.flatMap((name) => (spec[name] === undefined ? [] : [[name, spec[name]]])),
  ) as unknown as Settings
}

/** Of a status that was lost meanwhile: nothing begins by them. */
function settingsAsTheyAre(revision: Revision, { ended, parallelism, answered }: StreamJobStatus): Settings {
  const { upgradeMode, restoreMode, allowNonRestoredState, rollback, deletion } = revision.spec
  const { restart, restore, savepoint, checkpoint } = answered
  return {
    state: ended === 'SUSPENDED' ? 'suspended' : 'running',
    parallelism: parallelism > 0 ? parallelism : revision.spec.parallelism,
    upgradeMode,
    restoreMode,
    allowNonRestoredState,
    rollback,
    deletion,
    ...(restart !== undefined && { restartNonce: restart }),
    ...(restore !== undefined && { restoreNonce: restore }),
    ...(savepoint !== undefined && { savepointNonce: savepoint }),
    ...(checkpoint !== undefined && { checkpointNonce: checkpoint }),
  }
}

export type Workload = 'Deployment' | 'StatefulSet'

/** The job's own coordinator (Deployment) or workers (StatefulSet). */
export function workload({ children }: Observed, kind: Workload): ChildFact | undefined {
  return Object.entries(children).find(([key, child]) => key.startsWith(`${kind}/`) && child.ownedByJob)?.[1]
}

export function podsOf({ pods }: Observed, component: PodFact['component']): readonly PodFact[] {
  return pods.filter((pod) => pod.component === component)
}

export function shortPod({ pods }: Observed, purpose: PodPurpose, request: string): PodFact | undefined {
  return pods.find((pod) => pod.purpose === purpose && pod.request === request)
}

/** What has not come up after it does not come by itself: pods take 3 to 15 s where the image is on the node. */
export const comesUpMs = 60_000

export interface Trouble {
  readonly who: string
  readonly reason: string
  readonly message: string
}

/** The short pods that a step may wait for without limit. */
const awaitedPods: Partial<Record<TransitionStep, readonly PodPurpose[]>> = {
  recovering: ['admin-restore-point'],
  closing: ['admin-close', 'admin-dispose-checkpoints'],
  closed: ['admin-commit', 'admin-restore-point'],
}

/** A short pod that is waited for and does not run. Of one that has ended its answer counts. */
export function awaitedPodTrouble({ pods }: Observed, { transition }: StreamJobStatus): Trouble | undefined {
  const purposes = transition === undefined ? undefined : awaitedPods[transition.step]
  return shortPodTrouble(
    pods.filter(
      ({ purpose, request }) =>
        purpose !== undefined && purposes?.includes(purpose) === true && request === transition?.request,
    ),
  )
}

/** The preflight pod that is waited for, for a bounded time, and does not run. */
export function preflightTrouble({ pods }: Observed, { transition }: StreamJobStatus): Trouble | undefined {
  if (transition?.step !== 'preparing') return undefined
  // One revision's behind the name of the request.
  const ofRequest = `${transition.request}-`
  return shortPodTrouble(
    pods.filter(({ purpose, request }) => purpose === 'preflight' && request?.startsWith(ofRequest) === true),
  )
}

function shortPodTrouble(pods: readonly PodFact[]): Trouble | undefined {
  for (const { name, phase, trouble } of pods)
    if (trouble !== undefined && phase !== 'Succeeded' && phase !== 'Failed') return { who: `pod ${name}`, ...trouble }
  return undefined
}

/**
 * Pods that are waited for, or of the running job, and do not run, with the kubelet's or the scheduler's reason; or that the cluster lets
 * nobody make.
 */
export function troubleOf(observed: Observed, status: StreamJobStatus): Trouble | undefined {
  const awaited = awaitedPodTrouble(observed, status)
  if (awaited !== undefined) return awaited
  for (const component of ['coordinator', 'worker'] as const)
    for (const { name, trouble } of podsOf(observed, component))
      if (trouble !== undefined) return { who: `pod ${name}`, ...trouble }
  const refused = Object.values(observed.children).find((child) => child.ownedByJob && child.podsRefused !== undefined)
  return (
    refused && { who: `a pod of ${refused.kind} ${refused.name}`, reason: 'PodsRefused', message: refused.podsRefused! }
  )
}

/** What is away that neither the job nor its spec can help. */
export function outageOf(observed: Observed, status: StreamJobStatus): string | undefined {
  const { coordinator } = observed
  const services = coordinator.known ? ownCoordinator(observed, status) : coordinator.services
  // Of one that has never begun the address may be what is wrong, unless what was stable has the same.
  const isAway = (group: 'storage' | 'nats'): boolean => coordinator.known || isAsWhenStable(observed, status, group)
  if (services?.storageAnswers === false && isAway('storage')) return 'the object store does not answer'
  if (services?.natsAnswers === false && isAway('nats')) return 'NATS does not answer'
  const lost = observed.pods.find(
    ({ component, nodeLost }) => nodeLost && (component === 'coordinator' || component === 'worker'),
  )
  return lost === undefined ? undefined : `the node ${lost.node} of ${lost.name} does not answer`
}

function isAsWhenStable(observed: Observed, status: StreamJobStatus, group: 'storage' | 'nats'): boolean {
  const [now, stable] = [ownRevision(observed, status), revisionNamed(observed, status.stableRevision)]
  return stable !== undefined && canonicalJson(now?.spec[group]) === canonicalJson(stable.spec[group])
}

export function workersFor({ slotsNeeded, slots }: { readonly slotsNeeded: number; readonly slots: number }): number {
  return Math.ceil(slotsNeeded / slots)
}

/** What is remembered of how an unstable start is taken back, until one is stable. */
export const rollbackFields = ['rollbackPoint', 'rollbackParallelism', 'rolledBackStart'] as const

/**
 * HEAD is still that of a start which was rolled back: what was to take its place has not begun. Where HEAD says is then gone to by nobody. One
 * that has completed something is not taken back.
 */
export function isHeadRefused({ restorePoint, rolledBackStart, rollbackPoint }: StreamJobStatus): boolean {
  if (restorePoint === undefined || rolledBackStart === undefined || rollbackPoint === undefined) return false
  return restorePoint.start <= rolledBackStart && restorePoint.madeBy !== restorePoint.start
}

/** Anything of this uid that a start has left: an empty status is then no first start. */
export function hasRemains({ children, pods, revisions }: Observed): boolean {
  return revisions.length > 0 || pods.length > 0 || Object.values(children).some(({ ownedByJob }) => ownedByJob)
}

/**
 * Nothing tells of a coordinator that began: status and objects know of one start and of nothing that it could have come to, and the pods that are
 * there have never run a container. A status that was lost, or is an older one, has another start or HEAD's restore point.
 */
export function isFirstStartPending(observed: Observed, status: StreamJobStatus): boolean {
  const { start, restorePoint, stableRevision, lastCheckpoint, ended } = status
  const hasCome = [restorePoint, stableRevision, lastCheckpoint, ended].some((each) => each !== undefined)
  const pods = [...podsOf(observed, 'coordinator'), ...podsOf(observed, 'worker')]
  const isPending = pods.length > 0 && pods.every(({ phase }) => phase === 'Pending')
  const isFirst = start === 1 && startsOfChildren(observed).every((each) => each === 1)
  return isFirst && !hasCome && !observed.coordinator.known && isPending
}

/** The numbers of starts whose objects are there: they are not used again, whatever status and HEAD say. */
export function startsOfChildren({ children }: Observed): readonly number[] {
  return Object.values(children).flatMap(({ ownedByJob, start }) => (ownedByJob && start !== undefined ? [start] : []))
}
