// A job with nothing under way: what the spec or the world begins, and else what is repaired, asked for, and tidied up.

import type { Decision, EffectiveSpec, EventAction, Observed, StreamJobStatus, Transition } from './contract.ts'
import { act, normal, record, wait, warning } from './decide-answers.ts'
import { leftovers, repairOf, sizedByNeed } from './decide-children.ts'
import { desiredOf, isBlocked, isOutdated, stableToGoBackTo } from './decide-desired.ts'
import type { Desired } from './decide-desired.ts'
import { ownCoordinator, ownRevision, validSpec } from './decide-facts.ts'
import { smallerStart } from './decide-smaller.ts'
import { decideRequests, periodicInMs } from './decide-requests.ts'
import { beginRescale } from './decide-rescale.ts'
import { askedRestore, restoreFromOf, restoreFromProblem } from './decide-restore-from.ts'
import type { AskedRestore } from './decide-restore-from.ts'
import { beginTransition, pointAt, without } from './status.ts'
import { timeMs, timeText } from './status-time.ts'
import { downOf } from './upgrade-close.ts'
import { failedEnd } from './upgrade-start.ts'

/** A running job is looked at so often, ms. */
const lookMs = 10_000
/** One whose subtasks are being started: its restart is to be over in status when it is over. */
const restartLookMs = 1_000

export function decideSettled(observed: Observed, status: StreamJobStatus): Decision {
  const spec = validSpec(observed, status)
  if (spec === undefined) return wait('there was no valid spec yet')
  if (status.start === 0) return firstStart(observed, status, spec)
  return (
    endOf(observed, status) ??
    changeOf(observed, status, spec) ??
    sizeOf(observed, status, spec) ??
    upkeepOf(observed, status) ??
    decideRequests(observed, status) ??
    tidied(observed, status, spec)
  )
}

function firstStart(observed: Observed, status: StreamJobStatus, spec: EffectiveSpec): Decision {
  if (spec.state === 'suspended') return wait('it is suspended')
  const desired = desiredOf(observed)
  if (desired.kind !== 'known') return wait(desired.message, desired.kind === 'unknown' ? 5_000 : undefined)
  const problem = restoreFromProblem(observed, status)
  if (problem !== undefined) return wait(problem, 30_000)
  const from = restoreFromOf(observed, status)
  const restoreFrom = from.kind === 'found' ? from.path : undefined
  const to = desired.revision.name
  const next = beginTransition(observed, status, {
    kind: 'start',
    step: 'preparing',
    mode: 'last-state',
    to,
    restoreFrom,
  })
  return record(observed, next, 'the job is new', [
    normal('Starting', `The job starts as revision ${to}.`),
    ...(restoreFrom === undefined ? earlierNamesake(observed) : []),
  ])
}

/** Rule 5: who makes a job anew may have meant to go on with the one before. Checkpoints that are not in a Savepoint object nobody here knows of. */
function earlierNamesake({ savepoints, job }: Observed): EventAction[] {
  const left = savepoints
    .flatMap(({ name, createdAt, deleting, status: done }) =>
      !deleting && done?.path !== undefined && done.origin !== undefined && done.origin.jobId !== job.uid
        ? [{ name, createdAt, path: done.path }]
        : [],
    )
    .toSorted((one, other) => (one.createdAt < other.createdAt ? 1 : -1))
  const [newest] = left
  if (newest === undefined) return []
  const number = left.length === 1 ? 'a Savepoint' : `${left.length} Savepoints, the newest`
  const message = `An earlier job of this name has left ${number}: ${newest.name} (${newest.path}). This one begins from nothing; to go on from there, make it anew with spec.restoreFrom.`
  return [warning('EarlierNamesake', message)]
}

/** What the coordinator says has become of the job. */
function endOf(observed: Observed, status: StreamJobStatus): Decision | undefined {
  const own = ownCoordinator(observed, status)
  if (own === undefined || status.ended !== undefined) return undefined
  const { nowMs } = observed
  const restorePoint = pointAt(observed, own.restorePoint)
  switch (own.end) {
    case 'none':
      return undefined
    case 'finished': {
      const ended = { ...status, restorePoint, ended: 'FINISHED', finishedAt: timeText(nowMs), workers: 0 } as const
      return record(observed, ended, 'the job finished', [
        normal('Finished', 'The job has read all of its input and finished.'),
      ])
    }
    case 'failed':
    case 'cancelled': {
      const reason = own.reason ?? `it was ${own.end}`
      const ended = { ...status, restorePoint, ...failedEnd(observed, reason) }
      return record(observed, ended, 'the job failed', [warning('Failed', reason)])
    }
    case 'suspended':
    case 'stopped': {
      const { revision } = status
      // There is none that it could start again by, until somebody asks for another.
      if (ownRevision(observed, status) === undefined) return undefined
      const again = beginTransition(observed, status, {
        kind: 'restart',
        step: 'closing',
        mode: 'last-state',
        from: revision,
        to: revision,
      })
      const event = warning(
        'StoppedElsewhere',
        'The job was stopped by somebody else, and its spec says that it runs: it starts again where it stopped. Set spec.state to suspended to stop it.',
      )
      return record(observed, again, 'the job was stopped by somebody else', [event])
    }
    default:
      return own.end satisfies never
  }
}

/** What ends the running start to begin another, or none; asked of a job that is settled or not yet stable. */
export function changeOf(observed: Observed, status: StreamJobStatus, spec: EffectiveSpec): Decision | undefined {
  const { ended, revision } = status
  const begin = (
    kind: Transition['kind'],
    { to, restore }: { readonly to?: string; readonly restore?: AskedRestore },
    base = status,
  ): StreamJobStatus => {
    // A suspended job is closed already, and the same revision needs no trying out.
    const step = to !== undefined && to !== revision ? 'preparing' : ended === 'SUSPENDED' ? 'closed' : 'closing'
    const by = restore ?? ({ mode: spec.upgradeMode, modeOfSpec: true } as const)
    return beginTransition(observed, base, { kind, step, from: revision, to, ...by })
  }
  if (spec.state === 'suspended') {
    if (ended !== undefined) return undefined
    const event = normal('Suspending', `The job is suspended (${spec.upgradeMode}).`)
    return record(observed, begin('suspend', {}), 'it is to be suspended', [event])
  }
  const desired = desiredOf(observed)
  const { restartNonce } = spec
  const restore = askedRestore(observed, status)
  // With what it was asked for together: what runs now may not fit there.
  if (restore !== undefined && desired.kind === 'known' && !isBlocked(desired, status)) {
    const { restoreFrom } = restore
    // It is a restart too.
    const answered = { ...status.answered, ...(restartNonce !== undefined && { restart: restartNonce }) }
    const base = { ...without(status, 'blocked', 'refusedSize'), answered }
    const next = begin('restart', { to: desired.revision.name, restore }, base)
    return record(observed, next, 'restoreNonce was raised', [
      normal('Restoring', `The job is to start again from ${restoreFrom ?? 'its latest snapshot'}.`),
    ])
  }
  if (restartNonce !== undefined && restartNonce !== status.answered.restart) {
    const base = {
      ...without(status, 'blocked', 'refusedSize'),
      answered: { ...status.answered, restart: restartNonce },
    }
    if (ended === 'FINISHED') {
      const event = warning(
        'RestartIgnored',
        'The job has finished, and stays so: change its program (code, image, args), or make a new StreamJob.',
      )
      return record(observed, base, 'a finished job stays finished', [event])
    }
    const to = targetOf(observed, status, desired)
    if (to === undefined) return undefined
    return record(observed, begin(to === revision ? 'restart' : 'upgrade', { to }, base), 'restartNonce was raised', [
      normal('Restarting', 'A restart was asked for.'),
    ])
  }
  const own = ownRevision(observed, status)
  // A suspended job whose revision is gone is resumed by what is asked for.
  const isOther = own === undefined ? ended === 'SUSPENDED' : isOutdated(desired, own) === true
  if (desired.kind === 'known' && isOther && !isBlocked(desired, status)) {
    const to = desired.revision.name
    const event = normal('Upgrading', `The job goes from revision ${revision} to ${to} (${spec.upgradeMode}).`)
    return record(observed, begin('upgrade', { to }), 'the spec or the code has changed', [event])
  }
  if (ended === 'SUSPENDED' && own !== undefined) {
    const back = stableToGoBackTo(observed, status)
    const next =
      back === undefined
        ? begin('start', { to: revision! })
        : beginTransition(observed, status, {
            kind: 'rollback',
            step: 'closed',
            mode: 'last-state',
            from: revision,
            to: back,
          })
    const by = back === undefined ? '' : ` It goes on as revision ${back}: ${revision} was rolled back.`
    return record(observed, next, 'it is to run again', [normal('Resuming', `The job is resumed.${by}`)])
  }
  return undefined
}

/** What a restart starts: the newest of the spec if that is known, else what ran. undefined: that is gone. */
function targetOf(observed: Observed, status: StreamJobStatus, desired: Desired): string | undefined {
  return desired.kind === 'known' ? desired.revision.name : ownRevision(observed, status)?.name
}

function sizeOf(observed: Observed, status: StreamJobStatus, { parallelism }: EffectiveSpec): Decision | undefined {
  const { refusedSize } = status
  if (status.ended !== undefined || ownRevision(observed, status) === undefined) return undefined
  if (refusedSize !== undefined && refusedSize.parallelism !== parallelism)
    return record(observed, without(status, 'refusedSize'), 'another size is asked for')
  const own = ownCoordinator(observed, status)
  if (own?.state !== 'running') return smallerStart(observed, status)
  if (own.slotsNeeded === undefined) return undefined
  if (own.parallelism === parallelism || refusedSize !== undefined) return undefined
  const event = normal('Rescaling', `The job goes from parallelism ${own.parallelism} to ${parallelism}.`)
  return record(
    observed,
    beginRescale(observed, { ...status, parallelism: own.parallelism }, parallelism),
    'the parallelism has changed',
    [event],
  )
}

/** Children, and how many workers there are. */
function upkeepOf(observed: Observed, status: StreamJobStatus): Decision | undefined {
  if (status.ended === 'SUSPENDED') return downOf(observed, true)
  const sized = sizedByNeed(observed, status)
  if (sized !== undefined) return sized
  const repair = repairOf(observed, status)
  return repair && act('children are not as this start has them', ...repair)
}

function tidied(observed: Observed, status: StreamJobStatus, spec: EffectiveSpec): Decision {
  const { ended, finishedAt } = status
  const old = leftovers(observed, status)
  if (old.length > 0) return act('what is not needed any more goes', ...old)
  if (ended === undefined) {
    const isRestarting = ['starting', 'restarting'].includes(ownCoordinator(observed, status)?.state ?? '')
    if (isRestarting) return wait('its subtasks are being started', restartLookMs)
    const dueMs = Math.min(lookMs, periodicInMs(observed, status) ?? lookMs)
    return wait('it runs as its spec says', dueMs)
  }
  const { ttlAfterFinished } = spec
  if (ended !== 'FINISHED' || ttlAfterFinished === undefined || finishedAt === undefined) return wait(`it is ${ended}`)
  const leftMs = timeMs(finishedAt) + ttlAfterFinished - observed.nowMs
  if (leftMs > 0) return wait('it has finished', leftMs)
  const event = normal('Expired', 'The job finished longer ago than ttlAfterFinished, and is deleted.')
  return act('ttlAfterFinished is over', event, { type: 'delete', of: observed.job, force: false })
}
