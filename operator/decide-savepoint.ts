// A Savepoint object by itself: one with a path is registered, and one that is deleted takes its files away if it says so. It has no owner and
// outlives its job, so all that this needs stands in the object. Triggering one is its job's (decide-requests.ts).

import type { Condition, ConditionType, EventAction, StreamJobStatus } from './contract.ts'
import type {
  ObservedSavepoint,
  SavepointAction,
  SavepointDecision,
  SavepointFact,
  SavepointOrigin,
} from './savepoint-contract.ts'
import { FINALIZER } from './contract.ts'
import { disposalAnswer } from './decide-outputs.ts'
import { completedBy } from './resources/savepoint-origin.ts'
import { timeMs } from './status-time.ts'

/** After it the object goes, its files stay, and an event says so. */
export const disposalMs = 120_000
/** A Savepoint may be applied together with its job. */
const jobMs = 60_000
/** For a job to run that cannot take it yet: a change that has its own deadline is over by then. */
export const takenMs = 3_600_000
/** Between two pods that try it. */
const againMs = 15_000
const stillTaken =
  "It was still being taken: its files stay. Its job's status.savepoints will name them; take them away by millrace admin dispose."

export function decideSavepoint(observed: ObservedSavepoint): SavepointDecision {
  return observed.savepoint.deletingSince === undefined ? kept(observed) : deleted(observed)
}

function kept(observed: ObservedSavepoint): SavepointDecision {
  const { savepoint, fallback } = observed
  const { path, status, disposal, finalizers } = savepoint
  const isMarked = finalizers.includes(FINALIZER)
  if (disposal === 'delete' && !isMarked)
    return act('its deletion will have files to take away', { type: 'addFinalizer' })
  if (disposal === 'retain' && isMarked) return act('its deletion has nothing to do', { type: 'removeFinalizer' })
  const isDone = status?.state === 'completed' || status?.state === 'failed'
  // Its job, which is known now, may be gone when its files are to be taken away; and its revision may be known later than the path.
  const lacksOrigin = status?.origin === undefined && fallback !== undefined
  if (path !== undefined && (!isDone || lacksOrigin)) {
    const origin = fallback !== undefined && { origin: fallback }
    return act('it exists, by its path', { type: 'recordSavepoint', state: 'completed', path, ...origin })
  }
  if (isDone) return wait('it is done')
  return pending(observed)
}

function pending({ savepoint, job, jobStatus, nowMs }: ObservedSavepoint): SavepointDecision {
  const createdMs = timeMs(savepoint.createdAt)
  switch (job) {
    case 'unknown':
      return wait('it is not known whether its job is there')
    case 'gone': {
      const leftMs = createdMs + jobMs - nowMs
      if (leftMs > 0) return waitsFor(savepoint, 'There is no StreamJob of this name yet.', leftMs)
      return failed(
        'NoJob',
        'There is no StreamJob of this name to take it. Make the Savepoint again when there is one.',
      )
    }
    case 'there': {
      // Also of one that was asked for: nobody may answer any more.
      const lack = lackOf(jobStatus)
      // Also behind others: each is answered, and then the next is taken.
      if (lack === undefined) return waitsFor(savepoint, 'Its job takes it.')
      const begunMs = Math.max(createdMs, timeMs(lack.since ?? savepoint.createdAt))
      const leftMs = begunMs + takenMs - nowMs
      if (leftMs > 0) return waitsFor(savepoint, `It is taken once its job runs: ${lack.why}.`, leftMs)
      return failed(
        'NotTaken',
        `Its job could not take it within an hour: ${lack.why}. Make the Savepoint again when it runs.`,
      )
    }
    default:
      return job satisfies never
  }
}

interface Lack {
  readonly why: string
  /** RFC 3339; undefined: as long as there is the Savepoint. */
  readonly since?: string
}

/** Why its job takes none now; undefined: it runs, or has ended, and answers. */
function lackOf(status: StreamJobStatus | undefined): Lack | undefined {
  if (status === undefined) return { why: 'it was not seen by the operator yet' }
  const { phase, start, transition, conditions, ended } = status
  const reasonOf = (type: ConditionType, is: Condition['status']): string | undefined =>
    conditions.find((each) => each.type === type && each.status === is)?.reason
  const stalled = reasonOf('Stalled', 'True')
  const seen = stalled === undefined ? '' : ` (${stalled}: see its conditions)`
  if (start === 0 && phase === 'SUSPENDED')
    return { why: 'it is suspended and has never run; set its spec.state to running' }
  if (start === 0) return { why: `it has not started${seen}` }
  if (transition !== undefined)
    return { why: `a change of it is under way, ${transition.kind}${seen}`, since: transition.begunAt }
  if (stalled === 'UnsupportedRuntime' || stalled === 'RevisionUnknown') return { why: `it is left alone${seen}` }
  // By which spec it runs is then not known to anybody.
  if (stalled === 'InvalidSpec' && reasonOf('Degraded', 'True') === 'RevisionDeleted')
    return { why: `its revision is gone, and there is no other${seen}` }
  const isSilent = reasonOf('Ready', 'Unknown') === 'CoordinatorUnreachable' && ended === undefined
  const { lastTransitionTime: since } = conditions.find(({ type }) => type === 'Ready') ?? {}
  return isSilent ? { why: 'its coordinator does not answer', ...(since !== undefined && { since }) } : undefined
}

function waitsFor({ status }: SavepointFact, detail: string, forMs?: number): SavepointDecision {
  if (status?.state === 'pending' && status.detail === detail) return wait(detail, forMs)
  return act('it is said what it waits for', { type: 'recordSavepoint', state: 'pending', detail })
}

function failed(reason: string, detail: string): SavepointDecision {
  return act(
    'nobody will take it',
    { type: 'recordSavepoint', state: 'failed', detail },
    event('Warning', reason, detail),
  )
}

function deleted(observed: ObservedSavepoint): SavepointDecision {
  const { savepoint, nowMs, fallback, isBeingTaken, namespaceTerminating, pod } = observed
  const { status, disposal, finalizers, deletingSince } = savepoint
  if (!finalizers.includes(FINALIZER)) return wait('it goes')
  const path = status?.path ?? savepoint.path
  const leftMs = timeMs(deletingSince!) + disposalMs - nowMs
  if (disposal === 'delete' && path === undefined && isBeingTaken && !namespaceTerminating) {
    // Without it nobody would know of the files that come.
    if (leftMs > 0) return wait('its job is taking it, and its files go then', leftMs)
    return act('it is given up', event('Warning', 'FilesLeft', stillTaken), { type: 'removeFinalizer' })
  }
  if (disposal === 'retain' || path === undefined)
    return act('there is nothing to take away', { type: 'removeFinalizer' })
  const known = status?.origin
  const origin: SavepointOrigin | undefined = known === undefined ? fallback : completedBy(known, fallback)
  const left = (why: string): SavepointDecision =>
    act(
      'it is given up',
      event(
        'Warning',
        'FilesLeft',
        `The files at ${path} were not taken away: ${why}. Do it by millrace admin dispose.`,
      ),
      { type: 'removeFinalizer' },
    )
  if (origin === undefined) return left('it is not known with which image and storage')
  if (pod === undefined) {
    if (leftMs <= 0 || namespaceTerminating)
      return left(namespaceTerminating ? 'the namespace goes too' : 'no pod could be made')
    return act('its files are taken away', {
      type: 'runDisposal',
      origin,
      arguments: ['admin', 'dispose', path, '--yes', '--output', 'json'],
    })
  }
  const answer = disposalAnswer(pod, nowMs)
  switch (answer.kind) {
    case 'running':
      return leftMs <= 0 ? left('it took too long') : wait('a pod takes its files away', Math.min(1_000, leftMs))
    case 'done':
      return act('its files are gone', event('Normal', 'Disposed', `The files at ${path} are gone.`), {
        type: 'removeFinalizer',
      })
    case 'nothing':
      return act('nothing was found', event('Warning', 'NothingFound', nothingFound(path, origin)), {
        type: 'removeFinalizer',
      })
    case 'failed': {
      if (leftMs <= 0) return left(answer.why)
      const isOld = nowMs - timeMs(pod.createdAt) >= againMs
      if (!isOld || pod.deletingSince !== undefined) return wait(answer.why, Math.min(againMs, leftMs))
      return act('it is tried again', { type: 'delete', of: pod, force: false })
    }
    default:
      return answer satisfies never
  }
}

/** A store that is a folder of a volume looks empty to a pod without the volume, and so does another server's bucket of that name. */
function nothingFound(path: string, { storage, s3 }: SavepointOrigin): string {
  const place = s3?.endpoint === undefined ? storage : `${storage} at ${s3.endpoint}`
  return `No file was found at ${path}: they were taken away before, or are not where the pod looked (${place}, with what status.origin has of the job's podTemplate). Look there for yourself, and take away what is left by millrace admin dispose.`
}

function act(why: string, ...actions: readonly SavepointAction[]): SavepointDecision {
  return { kind: 'act', actions, why }
}

function wait(why: string, forMs?: number): SavepointDecision {
  return { kind: 'wait', forMs, why }
}

function event(kind: EventAction['kind'], reason: string, message: string): EventAction {
  return { type: 'event', kind, reason, message }
}
