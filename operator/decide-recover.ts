// Status was lost, and something of this uid is there: that is no first start. Where HEAD is gets read before anything is started, by the
// coordinator or, if nobody answers, by an admin pod.

import type { CoordinatorFact, Decision, Observed, StreamJobStatus } from './contract.ts'
import { act, normal, record, wait, warning } from './decide-answers.ts'
import { desiredOf } from './decide-desired.ts'
import { revisionNamed, shortPod, startsOfChildren, workersFor, workload } from './decide-facts.ts'
import { adminAnswer } from './decide-outputs.ts'
import { restoreFromOf } from './decide-restore-from.ts'
import type { HeadWord } from './decide-outputs.ts'
import { beginTransition, endTransition, pointAt, toNextAttempt, toStep, without } from './status.ts'
import { timeMs, timeText } from './status-time.ts'
import { silenceMs } from './upgrade.ts'
import { downOf } from './upgrade-close.ts'
import { storing } from './upgrade-prepare.ts'

/** The status of a job whose status is gone. */
export function beginRecovery(observed: Observed, status: StreamJobStatus): Decision {
  const desired = desiredOf(observed)
  const to = newestFirst(observed)[0] ?? (desired.kind === 'known' ? desired.revision.name : undefined)
  const next = beginTransition(observed, status, { kind: 'start', step: 'recovering', mode: 'last-state', to })
  return record(observed, next, 'status was lost', [
    warning(
      'StatusLost',
      'The status of the job is gone, and the job is not new: its HEAD is read before anything is started.',
    ),
  ])
}

export function decideRecovering(observed: Observed, status: StreamJobStatus): Decision {
  const { request, to, stepAt, retry } = status.transition!
  if (observed.coordinator.known) return recovered(observed, status, observed.coordinator.value)
  if (to === undefined || revisionNamed(observed, to) === undefined) {
    const desired = desiredOf(observed)
    if (desired.kind !== 'known') return wait(desired.message, 5_000)
    if (to === undefined) return beginRecovery(observed, endTransition(observed, status))
    return act('a revision is needed to read HEAD', ...storing(observed, desired, to))
  }
  const isThere = workload(observed, 'Deployment') !== undefined
  if (isThere && observed.nowMs - timeMs(stepAt) < silenceMs) return wait('the coordinator does not answer yet', 1_000)
  if (retry !== undefined && observed.nowMs < timeMs(retry.at))
    return wait(retry.why, timeMs(retry.at) - observed.nowMs)
  const pod = shortPod(observed, 'admin-restore-point', request)
  if (pod === undefined)
    return act('HEAD is read', {
      type: 'runPod',
      pod: 'admin-restore-point',
      request,
      revision: to,
      start: 1,
      begin: { parallelism: 1 },
      arguments: ['admin', 'restore-point', '--output', 'json'],
    })
  const answer = adminAnswer(pod, observed.nowMs)
  switch (answer.kind) {
    case 'running':
      return wait('a pod reads HEAD', 1_000)
    case 'none':
      return neverBegun(observed, status)
    case 'head':
      return recovered(observed, status, answer.head)
    case 'failed':
      return again(observed, status, answer.why)
    default:
      return answer satisfies never
  }
}

function newestFirst({ revisions }: Observed): string[] {
  return revisions.toSorted((left, right) => right.number - left.number).map(({ name }) => name)
}

/** By another revision: any can read HEAD, and the image of one may not be there. */
function again(observed: Observed, status: StreamJobStatus, why: string): Decision {
  const { to } = status.transition!
  const desired = desiredOf(observed)
  const stored = newestFirst(observed)
  const names = [...new Set(desired.kind === 'known' ? [...stored, desired.revision.name] : stored)]
  const next = names[(names.indexOf(to ?? '') + 1) % names.length] ?? to
  const attempt = toNextAttempt(observed, status, why)
  const transition = { ...attempt.transition!, ...(next !== undefined && { to: next }) }
  return record(observed, { ...attempt, transition }, 'HEAD could not be read')
}

/** The start that HEAD is at goes on, or has ended as HEAD says. */
function recovered(
  observed: Observed,
  status: StreamJobStatus,
  { start, parallelism, end, reason, restorePoint }: HeadWord,
): Decision {
  const ran = workload(observed, 'Deployment')
  // Also if it is not there any more: what runs is not another one's.
  const known = ran?.start === start ? ran.revision : undefined
  const name = known ?? revisionNamed(observed, status.transition!.to)?.name
  if (name === undefined) return wait('no revision is stored', 5_000)
  const size = Math.max(1, parallelism)
  const slots = revisionNamed(observed, name)?.spec.worker.slots
  const made = workload(observed, 'StatefulSet')?.replicas ?? size
  const completed = restorePoint.madeBy === start
  const base: StreamJobStatus = {
    ...endTransition(observed, status),
    start,
    revision: name,
    // Which revision made what has completed is only known if it is the one that runs.
    ...(completed && known !== undefined && { stableRevision: known }),
    begin: { parallelism: size },
    parallelism,
    workers: slots === undefined ? made : workersFor({ slotsNeeded: size, slots }),
    restorePoint: pointAt(observed, restorePoint),
  }
  const event = normal(
    'StatusRecovered',
    `HEAD is at start ${start}: ${end === 'none' ? 'it goes on' : `it has ended (${end})`}.`,
  )
  const finishedAt = timeText(observed.nowMs)
  switch (end) {
    case 'none':
      return record(observed, base, 'the start goes on', [event])
    case 'suspended':
    case 'stopped':
      return record(observed, { ...base, ended: 'SUSPENDED', workers: 0 }, 'it was suspended', [event])
    case 'finished':
      return record(observed, { ...base, ended: 'FINISHED', finishedAt, workers: 0 }, 'it has finished', [event])
    case 'failed':
    case 'cancelled':
      return record(
        observed,
        { ...base, ended: 'FAILED', failure: reason ?? `it was ${end}`, finishedAt, workers: 0 },
        'it has failed',
        [event],
      )
    default:
      return end satisfies never
  }
}

/** There positively is no HEAD. The number of a start whose children are there is not used again. */
function neverBegun(observed: Observed, status: StreamJobStatus): Decision {
  // Workers of a start that did not come so far are of its revision, and no set replaces them.
  const down = downOf(observed, false)
  if (down !== undefined) return down
  const start = Math.max(0, ...startsOfChildren(observed))
  const desired = desiredOf(observed)
  // As of a job that is new.
  const from = restoreFromOf(observed, { ...status, start: 0 })
  if (from.kind === 'nothing') return wait('spec.restoreFrom is latest, and there is no completed Savepoint', 30_000)
  const next = toStep(observed, { ...status, start }, 'preparing', {
    ...(desired.kind === 'known' && { to: desired.revision.name }),
    ...(from.path !== undefined && { restoreFrom: from.path }),
  })
  return record(observed, next, 'no start has begun yet', [
    normal('StatusRecovered', 'There is no HEAD: the job has not begun.'),
  ])
}

/** HEAD is ahead of a status that was lost or restored from somewhere: numbers of starts are not used again, and what is closed is that start. */
export function caughtUp(
  observed: Observed,
  status: StreamJobStatus,
  { start, parallelism }: CoordinatorFact,
): Decision {
  const revision =
    revisionNamed(observed, workload(observed, 'Deployment')?.revision) ?? revisionNamed(observed, status.revision)
  const size = Math.max(1, parallelism)
  const next: StreamJobStatus = {
    ...without(status, 'ended', 'finishedAt', 'failure'),
    start,
    begin: { parallelism: size },
    workers: workersFor({ slotsNeeded: size, slots: revision?.spec.worker.slots ?? 1 }),
    ...(revision && { revision: revision.name }),
  }
  const isClosed = status.transition?.step === 'closed'
  return record(observed, isClosed ? toStep(observed, next, 'closing') : next, 'HEAD is ahead of status')
}
