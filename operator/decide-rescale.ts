// Only the parallelism has changed: the running start goes on at another size, by a checkpoint with a stop barrier. Workers come first where
// it grows and go last where it shrinks, so that the old size can run until the new one does.

import type { CoordinatorFact, Decision, Observed, Revision, StreamJobStatus } from './contract.ts'
import { act, normal, record, wait, warning } from './decide-answers.ts'
import { repairOf } from './decide-children.ts'
import { ownCoordinator, ownRevision, podsOf, troubleOf, validSpec, workersFor, workload } from './decide-facts.ts'
import { asSentence } from './status-text.ts'
import { beginTransition, endTransition, toNextAttempt, toStep } from './status.ts'
import { timeMs } from './status-time.ts'

export function beginRescale(observed: Observed, status: StreamJobStatus, parallelism: number): StreamJobStatus {
  const workers = workersAt(observed, status, parallelism)
  const { revision: from } = status
  const begun = beginTransition(observed, status, {
    kind: 'rescale',
    step: 'growing',
    mode: 'last-state',
    from,
    to: from,
    parallelism,
  })
  return { ...begun, workers: Math.max(workers, status.workers) }
}

function workersAt(observed: Observed, status: StreamJobStatus, parallelism: number): number {
  const { slots } = (ownRevision(observed, status) as Revision).spec.worker
  return workersFor({ slotsNeeded: slotsAt(ownCoordinator(observed, status), parallelism), slots })
}

/** What the coordinator needs now, in proportion; at least what one slot-sharing group needs. */
function slotsAt(own: CoordinatorFact | undefined, parallelism: number): number {
  return Math.max(parallelism, Math.ceil(((own?.slotsNeeded ?? 0) * parallelism) / (own?.parallelism ?? 1)))
}

export function decideGrowing(observed: Observed, status: StreamJobStatus): Decision {
  const transition = status.transition!
  const wanted = validSpec(observed, status)?.parallelism ?? transition.parallelism!
  const own = ownCoordinator(observed, status)
  // Workers are no use to it any more, and until the deadline nobody would learn that it has finished or failed.
  if (own !== undefined && own.end !== 'none') return record(observed, endTransition(observed, status), 'the job ended')
  const { parallelism } = status
  // How many workers another size needs is said by a coordinator only.
  if (wanted !== transition.parallelism && (wanted === parallelism || own?.slotsNeeded !== undefined)) {
    // Nothing was asked for yet.
    const base = endTransition(observed, status)
    if (wanted === parallelism) return record(observed, shrunk(observed, base), 'the size was set back')
    return record(observed, beginRescale(observed, base, wanted), 'another size was asked for')
  }
  const repair = repairOf(observed, status)
  if (repair !== undefined) return act('workers come first', ...repair)
  const ready = podsOf(observed, 'worker').filter((pod) => pod.ready && pod.deletingSince === undefined).length
  // A pod is ready a while before the coordinator knows its slots, and would refuse.
  const offered = own?.state === 'running' && (own.slotsOffered ?? 0) >= slotsAt(own, transition.parallelism!)
  if (ready >= status.workers && offered)
    return record(observed, toStep(observed, status, 'rescaling'), 'the workers are ready')
  const { rollback } = validSpec(observed, status)!
  if (observed.nowMs - timeMs(transition.stepAt) <= rollback.progressDeadline)
    return wait('workers are not ready yet', 1_000)
  const trouble = troubleOf(observed, status)
  const cause =
    trouble === undefined ? `${ready} of ${status.workers} workers are ready` : `${trouble.reason}: ${trouble.message}`
  return refused(observed, status, cause)
}

export function decideRescaling(observed: Observed, status: StreamJobStatus): Decision {
  const { request, parallelism, retry, stepAt } = status.transition!
  const own = ownCoordinator(observed, status)
  if (own === undefined) return wait('the coordinator does not answer', 1_000)
  if (own.end !== 'none') return record(observed, endTransition(observed, status), 'the job ended')
  const answer = own.requests[request]
  // HEAD has the size before the coordinator has its graph, and with it how many slots it needs.
  if (own.parallelism === parallelism && own.slotsNeeded === undefined)
    return wait('the graph of the new size is being built', 500)
  if (
    answer?.state === 'completed' ||
    (answer === undefined && own.parallelism === parallelism && own.state === 'running')
  )
    return record(
      observed,
      shrunk(observed, toStep(observed, { ...status, parallelism: parallelism! }, 'shrinking')),
      'it runs at its new size',
      [normal('Rescaled', `The job runs with parallelism ${parallelism}.`)],
    )
  if (answer?.state === 'failed') {
    const why = answer.detail ?? 'no reason was given'
    if (status.transition!.attempt >= attemptsMax) return refused(observed, status, why)
    return record(observed, toNextAttempt(observed, status, why), 'the rescale failed', [
      warning('RescaleFailed', `The job runs on as it was, and it is tried again: ${why}`),
    ])
  }
  if (answer !== undefined) return wait('the job is rescaled', 500)
  if (retry !== undefined && observed.nowMs < timeMs(retry.at))
    return wait(`tried again later: ${retry.why}`, timeMs(retry.at) - observed.nowMs)
  const { progressDeadline } = validSpec(observed, status)!.rollback
  if (observed.nowMs - timeMs(stepAt) > progressDeadline)
    return refused(observed, status, observed.refusedAct ?? 'the coordinator did not take the request')
  return act('the coordinator is asked', {
    type: 'request',
    request: { type: 'rescale', start: status.start, request, parallelism: parallelism! },
  })
}
const attemptsMax = 5

export function decideShrinking(observed: Observed, status: StreamJobStatus): Decision {
  const repair = repairOf(observed, status)
  if (repair !== undefined) return act('workers go last', ...repair)
  const set = workload(observed, 'StatefulSet')
  const left = podsOf(observed, 'worker').length
  if (set !== undefined && left > status.workers) return wait('workers are going', 1_000)
  return record(observed, endTransition(observed, status), 'it has its new size')
}

/** By what the coordinator needs now. As long as that is unknown none goes: upkeep takes away what is too many when it is told. */
function shrunk(observed: Observed, status: StreamJobStatus): StreamJobStatus {
  const own = ownCoordinator(observed, status)
  if (own?.parallelism !== status.parallelism || own.slotsNeeded === undefined) return status
  const { slots } = ownRevision(observed, status)!.spec.worker
  return { ...status, workers: workersFor({ slotsNeeded: own.slotsNeeded, slots }) }
}

function refused(observed: Observed, status: StreamJobStatus, why: string): Decision {
  const parallelism = status.transition!.parallelism!
  const message = `The job could not go to parallelism ${parallelism}, and runs on with ${status.parallelism}: ${asSentence(why)} Make room (nodes, quota), then change spec.parallelism.`
  const next = shrunk(observed, { ...endTransition(observed, status), refusedSize: { parallelism, message } })
  return record(observed, next, 'it stays at its size', [warning('RescaleRefused', message)])
}
