// A start: its number is raised in status, its children are made, and it is watched until its first completed checkpoint makes the revision
// stable; or until the progress deadline, when the revision that was stable comes back.

import type { Decision, Observed, RecordedRestorePoint, StartBegin, StreamJobStatus, Transition } from './contract.ts'
import { childrenOf, repairOf, sizedByNeed } from './decide-children.ts'
import { desiredOf, isBlocked } from './decide-desired.ts'
import {
  isHeadRefused,
  outageOf,
  ownCoordinator,
  ownRevision,
  podsOf,
  revisionNamed,
  rollbackFields,
  troubleOf,
  validSpec,
  startsOfChildren,
  workersFor,
} from './decide-facts.ts'
import { act, normal, record, wait, warning } from './decide-answers.ts'
import { smallerStart } from './decide-smaller.ts'
import { furtherThan } from './progress.ts'
import { beginTransition, endTransition, only, toStep, without } from './status.ts'
import { asSentence } from './status-text.ts'
import { timeMs, timeText } from './status-time.ts'
import { rolledBackKey } from './revision.ts'

/** The status in which the next start begins. HEAD chooses where, unless something else was asked for. */
export function startOf(observed: Observed, status: StreamJobStatus): StreamJobStatus {
  const { to, kind, restoreNonce } = status.transition!
  const revision = revisionNamed(observed, to)!
  const begin = beginOf(observed, status)
  const { parallelism } = begin
  const started: StreamJobStatus = {
    ...without(status, 'ended', 'finishedAt', 'failure', ...rollbackFields),
    start: Math.max(status.start, ...startsOfChildren(observed)) + 1,
    revision: revision.name,
    begin,
    parallelism,
    restarts: 0,
    workers: workersFor({ slotsNeeded: parallelism, slots: revision.spec.worker.slots }),
    ...(isHeadRefused(status)
      ? only(status, ...rollbackFields)
      : kind !== 'rollback' && status.restorePoint && before(status)),
    ...(restoreNonce !== undefined && { answered: { ...status.answered, restore: restoreNonce } }),
  }
  return toStep(observed, started, 'starting')
}

/** How the start that the transition leads to begins. Its revision is stored. */
export function beginOf(observed: Observed, status: StreamJobStatus): StartBegin {
  const { to, kind } = status.transition!
  const spec = validSpec(observed, status)!
  const isRollback = kind === 'rollback'
  const place = isRollback ? rollbackBegin(status) : chosenBegin(observed, status)
  const isAtHead = place.from === undefined && place.empty !== true
  return {
    parallelism: isRollback
      ? (status.rollbackParallelism ?? revisionNamed(observed, to)!.parallelism)
      : spec.parallelism,
    ...place,
    ...(isAtHead && hasHead(status) && { goesOn: true }),
    ...(spec.allowNonRestoredState && { allowNonRestoredState: true }),
  }
}

/** HEAD was seen, with something completed. Where it is then not to be found the state is elsewhere, or lost. */
export function hasHead({ restorePoint, lastCheckpoint }: StreamJobStatus): boolean {
  return restorePoint?.path !== undefined || lastCheckpoint !== undefined
}

/** Where an unstable start is taken back to: of several in a row, to before the first. */
function before({
  restorePoint,
  rollbackPoint,
  rollbackParallelism,
  parallelism,
  revision,
  stableRevision,
}: StreamJobStatus) {
  const wasStable = revision === stableRevision || rollbackPoint === undefined
  return wasStable
    ? { rollbackPoint: restorePoint!, rollbackParallelism: Math.max(1, parallelism) }
    : { rollbackPoint, ...(rollbackParallelism !== undefined && { rollbackParallelism }) }
}

/** Neither place nor `empty`: where HEAD says. */
function chosenBegin(observed: Observed, status: StreamJobStatus): Partial<StartBegin> {
  const { transition, begin, rollbackPoint } = status
  const isMissed = hasMissed(observed, status)
  const { restoreFrom = isMissed ? missedOf(observed, status) : undefined, mode } = transition!
  if (restoreFrom !== undefined) return { from: restoreFrom, asked: true }
  const isMissedEmpty = isMissed && isUnasked(transition!) && begin?.empty === true
  if (mode === 'stateless' || isMissedEmpty) return { empty: true }
  return isHeadRefused(status) ? placeAt(rollbackPoint!) : {}
}

/**
 * The start before never began: its image, its code or its room did not come so far. HEAD shows it where it was just read; before that its
 * coordinator may only be silent. One that was rolled back is not made up for.
 */
function hasMissed(observed: Observed, status: StreamJobStatus): boolean {
  const { start, restorePoint, rolledBackStart, transition } = status
  if (transition!.step !== 'closed' || start === rolledBackStart) return false
  return (restorePoint?.start ?? 0) < start && ownCoordinator(observed, status) === undefined
}

function placeAt({ path }: RecordedRestorePoint): Partial<StartBegin> {
  return path === undefined ? { empty: true } : { from: path }
}

/** By another size, or since it was stopped by somebody: nobody has said how it is to begin. */
function isUnasked({ kind, modeOfSpec }: Transition): boolean {
  return kind === 'restart' && modeOfSpec === undefined
}

/** Where it was to begin, as the spec says it now, since the place may be what was wrong. */
function missedOf(observed: Observed, status: StreamJobStatus): string | undefined {
  const { begin, restorePoint } = status
  if (begin?.asked !== true) return undefined
  const wanted = validSpec(observed, status)?.restoreFrom
  if (wanted !== 'latest') return wanted
  // The latest of a job that never began is that of the job before; else HEAD has it.
  return (restorePoint?.start ?? 0) === 0 ? begin.from : undefined
}

/**
 * A start that went on from HEAD's own point and completed nothing has left that point where it was. One that is to begin elsewhere replaces
 * it, and is undone by naming the point of before: also where HEAD shows none of it, since its coordinator may come after that was read; and
 * where that start was followed by one that went on from its point.
 */
function rollbackBegin({ begin, rollbackPoint, restorePoint }: StreamJobStatus): Partial<StartBegin> {
  if (rollbackPoint === undefined) return {}
  const beginsElsewhere = begin?.empty === true || begin?.from !== undefined
  if (!beginsElsewhere && restorePoint?.path === rollbackPoint.path) return {}
  return placeAt(rollbackPoint)
}

export function decideStarting(observed: Observed, status: StreamJobStatus): Decision {
  const smaller = smallerStart(observed, status)
  if (smaller !== undefined) return smaller
  const children = childrenOf(observed, status)
  if (children === undefined) return wait(`revision ${status.revision} is not there`, 5_000)
  const repair = repairOf(observed, status)
  if (repair !== undefined)
    return (
      overdue(observed, status, 'its objects could not be made') ??
      act('the children of this start are not there yet', ...repair)
    )
  if (children.going.length > 0) return wait(`${children.going.join(', ')} is still being deleted`, 1_000)
  if (children.foreign.length > 0) return wait(`${children.foreign.join(', ')} is not ours`, 10_000)
  return record(observed, toStep(observed, status, 'stabilising'), 'all children are there')
}

/** Without checkpoints, or where none was even tried, a revision is stable when it has run for so long. */
const runsForMs = 60_000
/** Progress is written down at most so often. */
const progressEveryMs = 5_000

export function decideStabilising(observed: Observed, status: StreamJobStatus): Decision {
  const transition = status.transition!
  const own = ownCoordinator(observed, status)
  const { nowMs } = observed
  if (own?.end === 'finished') return record(observed, stable(observed, status), 'it has finished')
  if (own?.completedInStart === true)
    return record(observed, stable(observed, status), 'a checkpoint completed', [
      normal('Stable', `Revision ${status.revision} completed its first checkpoint in start ${status.start}.`),
    ])
  const runs = own?.state === 'running' && own.checkpointing !== 'on' && own.consecutiveFailures === 0
  if (runs && nowMs - timeMs(transition.stepAt) >= runsForMs)
    return record(observed, stable(observed, status), 'it runs, without checkpoints')
  if (own?.end === 'failed' || own?.end === 'cancelled')
    return failed(observed, status, own.reason ?? `it was ${own.end}`)
  if (own?.end === 'suspended' || own?.end === 'stopped') {
    const again = beginTransition(observed, status, {
      kind: 'restart',
      step: 'closing',
      mode: 'last-state',
      from: status.revision,
      to: status.revision,
    })
    return record(observed, again, 'it was stopped by somebody else')
  }
  const smaller = smallerStart(observed, status)
  if (smaller !== undefined) return smaller
  const sized = sizedByNeed(observed, status)
  if (sized !== undefined) return sized
  const repair = repairOf(observed, status)
  if (repair !== undefined)
    return (
      overdue(observed, status, 'its objects could not be made') ??
      act('children are not as this start has them', ...repair)
    )
  return watched(observed, status)
}

function stable(observed: Observed, status: StreamJobStatus): StreamJobStatus {
  const done = without(endTransition(observed, status), ...rollbackFields)
  const transition = status.transition!
  // What was rolled back stays refused, and so does a size that it was not begun with; a start that was asked for has settled both. A job that is
  // resumed by the revision of before is asked for what is refused as it was.
  const isRollback = transition.kind === 'rollback'
  const desired = desiredOf(observed)
  const isSettled = !isUnasked(transition) && desired.kind === 'known' && !isBlocked(desired, status)
  const rest = isRollback ? done : without(done, 'refusedSize', ...(isSettled ? (['blocked'] as const) : []))
  return { ...rest, stableRevision: status.revision! }
}

function watched(observed: Observed, status: StreamJobStatus): Decision {
  const transition = status.transition!
  const { nowMs } = observed
  const outage = outageOf(observed, status)
  const { held } = transition
  const holdOff = (changes: Partial<typeof transition>, why: string): Decision => {
    const { held: _, ...rest } = transition
    return record(observed, { ...status, transition: { ...rest, ...changes } }, why)
  }
  if (outage !== undefined && held === undefined)
    return holdOff({ held: { since: timeText(nowMs), why: outage } }, outage)
  if (outage === undefined && held !== undefined) {
    const progressAt = timeText(timeMs(transition.progressAt) + nowMs - timeMs(held.since))
    return holdOff({ progressAt }, 'what was away is back')
  }
  const progress = progressOf(observed, status)
  const sinceMs = nowMs - timeMs(transition.progressAt)
  if (progress !== undefined && sinceMs >= progressEveryMs)
    return holdOff({ progress, progressAt: timeText(nowMs), ...(held && { held }) }, 'it makes progress')
  if (progress !== undefined) return wait('it makes progress', 1_000)
  return overdue(observed, status, 'no checkpoint has completed') ?? wait('it is not stable yet', 1_000)
}

/** undefined: its deadline has not come, or there is nothing to go back to. */
function overdue(observed: Observed, status: StreamJobStatus, what: string): Decision | undefined {
  const { progressAt, held } = status.transition!
  const sinceMs = observed.nowMs - timeMs(progressAt)
  if (held !== undefined || sinceMs <= validSpec(observed, status)!.rollback.progressDeadline) return undefined
  const trouble = troubleOf(observed, status)
  const refused = observed.refusedAct
  const cause = trouble === undefined ? refused : `${trouble.who}: ${trouble.reason}: ${trouble.message}`
  return rolledBack(observed, status, cause === undefined ? what : `${what}: ${cause}`)
}

/** How far it has come, if that is further than before. */
function progressOf(observed: Observed, status: StreamJobStatus): string | undefined {
  const pods = [...podsOf(observed, 'coordinator'), ...podsOf(observed, 'worker')]
  const scheduled = pods.filter(({ node }) => node !== undefined).length
  const running = pods.filter(({ phase }) => phase === 'Running').length
  const { restarts = 0, progress = [] } = ownCoordinator(observed, status) ?? {}
  return furtherThan(status.transition!.progress, { restarts, measures: [scheduled, running, ...progress] })
}

function failed(observed: Observed, status: StreamJobStatus, reason: string): Decision {
  const back = rolledBack(observed, status, reason)
  if (back !== undefined) return back
  const done = { ...endTransition(observed, status), ...failedEnd(observed, reason) }
  return record(observed, done, 'the job failed', [warning('Failed', reason)])
}

export function failedEnd({ nowMs }: Observed, reason: string) {
  return { ended: 'FAILED', failure: reason.slice(0, 1_000), finishedAt: timeText(nowMs), workers: 0 } as const
}

/** Allowed only while HEAD shows that the new version completed nothing: whoever closes it looks again. undefined: not allowed. */
function rolledBack(observed: Observed, status: StreamJobStatus, why: string): Decision | undefined {
  const spec = validSpec(observed, status)!
  const { revision, stableRevision } = status
  const back = revisionNamed(observed, stableRevision)
  if (!spec.rollback.enabled || back === undefined || stableRevision === revision) return undefined
  if (ownCoordinator(observed, status)?.completedInStart === true) return undefined
  const desired = desiredOf(observed)
  const refused = ownRevision(observed, status)
  const key = refused === undefined ? undefined : rolledBackKey(refused.hash, spec)
  // An edit meanwhile is another attempt, which the next look begins.
  const isCurrent = desired.kind !== 'known' || rolledBackKey(desired.hash, desired.spec) === key
  const { begin } = status
  const where = begin?.asked === true ? `; spec.restoreNonce, to try it from ${begin.from}` : ''
  const message = `Revision ${revision} was not stable: ${asSentence(why)} The job is back at ${stableRevision}. Mend the spec, or raise spec.restartNonce to try it again${where}.`
  const next = beginTransition(observed, status, {
    kind: 'rollback',
    step: 'closing',
    mode: 'last-state',
    from: revision,
    to: stableRevision,
  })
  const rolledBackStart = status.rollbackPoint !== undefined && { rolledBackStart: status.start }
  const blocked = isCurrent && key !== undefined ? { blocked: { key, reason: 'RolledBack', message } } : {}
  return record(observed, { ...next, ...rolledBackStart, ...blocked }, 'rolled back', [warning('RolledBack', message)])
}
