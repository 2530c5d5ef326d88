// Deletion, in every state and within its deadline: HEAD is closed as cancelled, what runs is taken down, and the rest is the garbage
// collector's. With coordinator, object store and API of pods gone it ends at the deadline and says what was left undone: nobody starts this
// uid again.

import type { Action, CoordinatorFact, Decision, EventAction, Observed, PodFact, StreamJobStatus } from './contract.ts'
import { FINALIZER, FOREGROUND_FINALIZER } from './contract.ts'
import { act, normal, record, wait, warning } from './decide-answers.ts'
import { stuckPods } from './decide-children.ts'
import { desiredOf } from './decide-desired.ts'
import { hasRemains, isFirstStartPending, podsOf, shortPod, validSpec } from './decide-facts.ts'
import { adminAnswer } from './decide-outputs.ts'
import { childName } from './revision-names.ts'
import { asSentence } from './status-text.ts'
import { beginTransition, firstStatus, pointAt, toNextAttempt, toNextAttemptNow, toStep } from './status.ts'
import { timeMs } from './status-time.ts'
import { adminRevision, downOf, unconfirmedAt } from './upgrade-close.ts'
import { storing } from './upgrade-prepare.ts'

/** Of a job whose spec was never valid. */
const deadlineMsDefault = 45_000
/** How long nobody answers before a pod is made. */
const patienceMs = 3_000

export function decideDeletion(observed: Observed, known: StreamJobStatus | undefined): Decision {
  const { job } = observed
  if (!job.finalizers.includes(FINALIZER)) return wait("deletion is the garbage collector's")
  const status = known ?? firstStatus(observed)
  if (hasNotBegun(observed, known)) return act('nothing has begun', { type: 'removeFinalizer' })
  const deadlineMs = validSpec(observed, status)?.deletion.deadline ?? deadlineMsDefault
  const leftMs = timeMs(job.deletingSince!) + deadlineMs - observed.nowMs
  if (leftMs <= 0) return givenUp(observed, status)
  const decision = inTime(observed, status, leftMs)
  return decision.kind === 'wait' ? { ...decision, forMs: Math.min(decision.forMs ?? leftMs, leftMs) } : decision
}

function hasNotBegun(observed: Observed, status: StreamJobStatus | undefined): boolean {
  if (status === undefined) return !hasRemains(observed)
  const { start, transition } = status
  return start === 0 && (transition === undefined || (transition.kind === 'start' && transition.step === 'preparing'))
}

function inTime(observed: Observed, status: StreamJobStatus, leftMs: number): Decision {
  if (status.transition?.kind !== 'delete') {
    const wantsSavepoint = validSpec(observed, status)?.deletion.savepoint === true && status.ended === undefined
    const mode = wantsSavepoint ? 'savepoint' : 'delete'
    const savepoint = wantsSavepoint ? closedWith(status) : undefined
    const from = status.revision
    const next = beginTransition(observed, status, { kind: 'delete', step: 'closing', mode, from, savepoint })
    const begun = [
      normal('Deleting', `The job is deleted${wantsSavepoint ? ', after a savepoint' : ''}.`),
      ...(isInForeground(observed) ? [warning('ForegroundDeletion', foregroundText)] : []),
    ]
    if (wantsSavepoint && savepoint === undefined && status.transition?.step === 'closed')
      return givenUpSavepoint(observed, next, 'its running start had been ended at a checkpoint already', begun)
    return record(observed, next, 'it is deleted', begun)
  }
  if (status.transition.step !== 'closed') return closing(observed, status, leftMs)
  return takenDown(observed)
}

function isInForeground({ job }: Observed): boolean {
  return job.finalizers.includes(FOREGROUND_FINALIZER)
}
const foregroundText =
  'The job is deleted in the foreground: the garbage collector takes its pods, revisions and code away at once, and waits neither for a savepoint nor until HEAD is closed. HEAD is closed by a pod once it is done; a savepoint that deletion.savepoint asks for may be missed. Deleted by --cascade=background, all is done in order.'

/** The savepoint that HEAD was closed with before the deletion: no coordinator is asked for another, and there may be none. */
function closedWith({ transition, restorePoint }: StreamJobStatus): string | undefined {
  return transition?.step === 'closed' && restorePoint?.kind === 'savepoint' ? restorePoint.path : undefined
}

/** Any coordinator of this uid will do: whichever start HEAD is at, it is the last. */
function closing(observed: Observed, status: StreamJobStatus, leftMs: number): Decision {
  const { mode, request, stepAt, savepoint } = status.transition!
  const { coordinator } = observed
  if (mode === 'savepoint' && savepoint !== undefined) return named(observed, status, savepoint)
  const silentMs = observed.nowMs - timeMs(stepAt)
  if (!coordinator.known) {
    if (silentMs < patienceMs && podsOf(observed, 'coordinator').some(({ ready }) => ready))
      return wait('the coordinator does not answer', 1_000)
    // A savepoint needs the coordinator, for as long as the deadline leaves time to close HEAD without one. Of a job that never completed
    // anything there is nothing to be saved.
    if (mode === 'savepoint')
      return leftMs > closingMs && status.stableRevision !== undefined && !isTakenApart(observed)
        ? wait('the savepoint needs the coordinator', Math.min(1_000, leftMs - closingMs))
        : givenUpSavepoint(observed, status, `the coordinator does not answer: ${coordinator.why}`)
    if (observed.namespaceTerminating) return wait('no pod can be made in a namespace that goes', 1_000)
    return closedByPod(observed, status)
  }
  const { start, end, requests, restorePoint, state } = coordinator.value
  if (mode === 'savepoint') {
    const answer = requests[request]
    if (answer?.state === 'completed' || (end === 'stopped' && restorePoint.kind === 'savepoint'))
      return savepointTaken(observed, status, { path: answer?.path ?? restorePoint.path, point: restorePoint })
    if (answer?.state === 'failed' || answer?.state === 'ended' || end !== 'none') {
      return givenUpSavepoint(observed, status, answer?.detail ?? `the job has ended (${end})`)
    }
    if (leftMs <= endingMs) return givenUpSavepoint(observed, status, 'it was not complete in time')
    return answer?.state === 'pending'
      ? wait('the savepoint is taken', Math.min(500, leftMs - endingMs))
      : act('a savepoint is taken', { type: 'request', request: { type: 'stop', start, request, drain: false } })
  }
  if (end === 'none') {
    const type = mode === 'delete' ? 'cancel' : 'close'
    return act('HEAD is closed', { type: 'request', request: { type, start, request: `${request}-${type}` } })
  }
  if (state === 'ending') return wait('the job ends', 500)
  return needsPod(observed, status, { end, leftMs })
    ? closedByPod(observed, status)
    : closed(observed, status, restorePoint)
}

/**
 * Who cancels a job that runs takes away what the policy says: the coordinator, which then has told of it. Of a job that had ended before, a pod
 * writes that it is cancelled (rule 5): else the savepoint that it was stopped with stays a restore point, which no Savepoint may dispose of. By
 * the policy it is not done with that. One that is kept from running has written nothing.
 */
function needsPod(
  observed: Observed,
  status: StreamJobStatus,
  { end, leftMs }: { readonly end: CoordinatorFact['end']; readonly leftMs: number },
): boolean {
  const { mode, request } = status.transition!
  if (mode !== 'delete' || observed.namespaceTerminating) return false
  const pod = shortPod(observed, 'admin-close', request)
  // HEAD may tell what a pod wrote before the kubelet tells that the pod runs.
  const isOfPod = pod !== undefined && (pod.phase !== 'Pending' || pod.trouble === undefined)
  if (discards(observed, status)) return end !== 'cancelled' || isOfPod
  // Without the policy it is worth no deletion that is told as incomplete.
  return end !== 'cancelled' && (isOfPod || leftMs > closingMs)
}
/** What a pod needs to close HEAD, from its making to its end. */
const closingMs = 20_000
/** What a coordinator that answers needs for it. */
const endingMs = 5_000

/** No coordinator comes back of itself. */
function isTakenApart(observed: Observed): boolean {
  return observed.revisions.length === 0 && podsOf(observed, 'coordinator').length === 0
}

function discards(observed: Observed, status: StreamJobStatus): boolean {
  return status.transition!.mode === 'delete' && validSpec(observed, status)?.checkpointing.onCancellation === 'delete'
}

/** The checkpoints are all that is left then: they stay, whatever the policy. */
function givenUpSavepoint(
  observed: Observed,
  status: StreamJobStatus,
  why: string,
  before: readonly EventAction[] = [],
): Decision {
  const event = warning(
    'SavepointFailed',
    `The job is deleted without the savepoint that deletion.savepoint asks for: ${asSentence(why)} Its checkpoints stay.`,
  )
  return record(observed, closedIn('last-state', status), 'there is no savepoint', [...before, event])
}

/** Once the savepoint is had, or is not to be had. delete: as the policy says; last-state: what HEAD retains stays. */
function closedIn(mode: 'delete' | 'last-state', status: StreamJobStatus): StreamJobStatus {
  const next = toNextAttemptNow(status)
  return { ...next, transition: { ...next.transition!, mode } }
}

/** Written down before it gets a name: that may be refused, and its coordinator be gone when the deadline asks where it is. */
function savepointTaken(
  observed: Observed,
  status: StreamJobStatus,
  { path, point }: { readonly path: string | undefined; readonly point: Parameters<typeof pointAt>[1] },
): Decision {
  const known = { ...status, restorePoint: pointAt(observed, point) }
  if (path === undefined)
    return record(observed, closedIn('delete', known), 'the savepoint is complete', [
      normal('SavepointCompleted', 'The last savepoint is complete, at an unknown place.'),
    ])
  const next = { ...known, transition: { ...known.transition!, savepoint: path } }
  return record(observed, next, 'the savepoint is complete')
}

/** It outlives the job, under a name of its own. */
function named(observed: Observed, status: StreamJobStatus, path: string): Decision {
  const name = childName(observed.job, 'last')
  const isNamed = observed.savepoints.some((savepoint) => savepoint.name === name)
  if (!isNamed && !observed.namespaceTerminating)
    return act('the savepoint gets a name', { type: 'createSavepoint', name, path })
  const event = normal('SavepointCompleted', `The last savepoint is at ${path}${isNamed ? `, Savepoint ${name}` : ''}.`)
  return record(observed, closedIn('delete', status), 'the savepoint has its name', [event])
}

function closed(observed: Observed, status: StreamJobStatus, point: Parameters<typeof pointAt>[1]): Decision {
  const unconfirmed = point.unconfirmed
    ? [unconfirmedAt(point, 'they are left as they are (millrace admin commit)')]
    : []
  const next = { ...status, restorePoint: pointAt(observed, point) }
  return record(observed, toStep(observed, next, 'closed'), 'HEAD is closed', unconfirmed)
}

function closedByPod(observed: Observed, status: StreamJobStatus): Decision {
  const { request, retry, mode } = status.transition!
  const isDiscarding = discards(observed, status)
  const run = (pod: 'admin-close' | 'admin-dispose-checkpoints', ...words: string[]): Decision => {
    const revision = adminRevision(observed, status)
    if (revision === undefined) return revisionAnew(observed, status)
    const begin = status.begin ?? { parallelism: Math.max(1, status.parallelism) }
    const start = Math.max(1, status.start)
    return act('HEAD is closed by a pod', {
      type: 'runPod',
      pod,
      request,
      revision,
      start,
      begin,
      arguments: ['admin', ...words, '--yes', '--output', 'json'],
    })
  }
  const again = (why: string): Decision =>
    record(observed, toNextAttempt(observed, status, why), 'the pod could not close HEAD')
  if (retry !== undefined && observed.nowMs < timeMs(retry.at))
    return wait(retry.why, timeMs(retry.at) - observed.nowMs)
  const pod = shortPod(observed, 'admin-close', request)
  if (pod === undefined) return run('admin-close', 'close', ...(mode === 'delete' ? ['--deleted'] : []))
  const answer = adminAnswer(pod, observed.nowMs)
  if (pod.trouble !== undefined && isFirstStartPending(observed, status))
    return neverBegan(observed, status, pod.trouble)
  if (answer.kind === 'running') return wait('a pod closes HEAD', 500)
  if (answer.kind === 'failed') return again(answer.why)
  if (answer.kind === 'none') return closed(observed, status, { kind: 'empty', start: 0, unconfirmed: false })
  const { restorePoint } = answer.head
  if (!isDiscarding || restorePoint.unconfirmed) return closed(observed, status, restorePoint)
  const disposal = shortPod(observed, 'admin-dispose-checkpoints', request)
  if (disposal === undefined) return run('admin-dispose-checkpoints', 'dispose', '--checkpoints')
  const disposed = adminAnswer(disposal, observed.nowMs)
  if (disposed.kind === 'running') return wait('a pod takes the checkpoints away', 500)
  return disposed.kind === 'failed' ? again(disposed.why) : closed(observed, status, restorePoint)
}

/** A deletion in the foreground takes them too. While it lasts it would take the next one as well. */
function revisionAnew(observed: Observed, { revision }: StreamJobStatus): Decision {
  const desired = desiredOf(observed)
  if (revision === undefined || desired.kind !== 'known' || isInForeground(observed))
    return wait('no revision is stored that could close HEAD', 1_000)
  return act('no revision is left: one is made of the spec to close HEAD', ...storing(observed, desired, revision))
}

/** What keeps its coordinator down keeps this pod down too: of a HEAD that nobody can have written nothing is waited for. */
function neverBegan(
  observed: Observed,
  status: StreamJobStatus,
  { reason, message }: NonNullable<PodFact['trouble']>,
): Decision {
  const event = normal(
    'NeverBegan',
    `No coordinator of the job was ever seen to begin, and the pod that would look for its HEAD does not run either: ${reason}: ${asSentence(message)} Should there be a HEAD after all, it and its transactions are left untouched; nobody starts this job again.`,
  )
  return record(observed, toStep(observed, status, 'closed'), 'there is nothing to be closed', [event])
}

function takenDown(observed: Observed): Decision {
  return downOf(observed, true) ?? act('nothing of the job runs any more', { type: 'removeFinalizer' })
}

/** At the deadline: what is stuck is forced, and what was not done is said. */
function givenUp(observed: Observed, status: StreamJobStatus): Decision {
  const { coordinator } = observed
  const { transition, restorePoint } = status
  const told = coordinator.known ? coordinator.value.restorePoint.path : undefined
  const path = transition?.savepoint ?? told ?? restorePoint?.path
  const where = path === undefined ? '' : ` Its last known snapshot is ${path}.`
  const event = warning(
    'DeletionIncomplete',
    `The job was deleted at its deadline: ${undone(observed, status)}.${where}`,
  )
  const forced = stuckPods(observed, 0).map((of): Action => ({ type: 'delete', of, force: true }))
  return act('the deadline of the deletion has come', event, ...forced, { type: 'removeFinalizer' })
}

function undone(observed: Observed, status: StreamJobStatus): string {
  const { coordinator, refusedAct } = observed
  const { transition } = status
  if (transition?.kind === 'delete' && transition.step === 'closed')
    return podsOf(observed, 'worker').length + podsOf(observed, 'coordinator').length > 0
      ? 'some of its pods were still there'
      : 'it took too long'
  if (transition?.mode === 'savepoint' && transition.savepoint !== undefined)
    return `it was stopped with a savepoint, and no Savepoint could be made for it${refusedAct === undefined ? '' : ` (${refusedAct})`}; make one with its path to have it by name`
  if (isFirstStartPending(observed, status))
    return 'no coordinator of it was ever seen to begin, and whether it has a HEAD could not be read; nobody starts this job again, and transactions, if there are any, are left untouched'
  const end = coordinator.known ? coordinator.value.end : undefined
  if (end !== undefined && end !== 'none')
    return discards(observed, status)
      ? `HEAD has ended (${end}), and checkpoints that onCancellation gives up may still be there`
      : `HEAD has ended (${end}), and was not written as cancelled in time`
  const why =
    end === 'none'
      ? ' in time, though its coordinator answers'
      : isTakenApart(observed)
        ? ', since its coordinator and revisions were taken away before (a deletion in the foreground does that)'
        : ', since neither its coordinator nor a pod could reach it'
  return `HEAD was not closed${why}; nobody starts this job again, and its transactions are left untouched`
}
