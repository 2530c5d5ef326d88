// Rule 2 in the middle of every transition: HEAD is closed, the restore point that it shows is written into status, and only then does a
// pod go. Asking again is the same request; a request that failed is made again under another name, later.

import type {
  Action,
  CoordinatorRequest,
  Decision,
  EventAction,
  Observed,
  PodFact,
  StreamJobStatus,
  Transition,
} from './contract.ts'
import { stuckPods, takeDown } from './decide-children.ts'
import { desiredOf, isBlocked, stableToGoBackTo } from './decide-desired.ts'
import { ownCoordinator, podsOf, revisionNamed, rollbackFields, shortPod, wasStored, workload } from './decide-facts.ts'
import { adminAnswer } from './decide-outputs.ts'
import { askedRestore } from './decide-restore-from.ts'
import type { HeadEndKind } from './decide-outputs.ts'
import { act, normal, record, wait, warning } from './decide-answers.ts'
import { endTransition, pointAt, toNextAttempt, toNextAttemptNow, toStep, without } from './status.ts'
import { timeMs, timeText } from './status-time.ts'
import { closeChoice, lostState } from './upgrade.ts'
import { storing } from './upgrade-prepare.ts'
import { hasHead, startOf } from './upgrade-start.ts'

export function decideClosing(observed: Observed, status: StreamJobStatus): Decision {
  const edited = retargeted(observed, status)
  if (edited !== undefined) return record(observed, edited, 'the spec was edited again')
  const transition = status.transition!
  const { retry, request } = transition
  const choice = closeChoice(observed, status)
  if (choice.how === 'read') {
    const { restorePoint, end } = ownCoordinator(observed, status)!
    return closedBy(observed, status, { point: restorePoint, end })
  }
  if (retry !== undefined && observed.nowMs < timeMs(retry.at))
    return wait(`tried again later: ${retry.why}`, timeMs(retry.at) - observed.nowMs)
  const { start } = status
  const ask = (asked: CoordinatorRequest): Decision => {
    const answer = ownCoordinator(observed, status)!.requests[asked.request]
    if (answer?.state === 'failed') {
      const why = answer.detail ?? 'no reason was given'
      const event = warning('SavepointFailed', `Nothing was taken away, and it is tried again: ${why}`)
      return record(observed, toNextAttempt(observed, status, why), 'the savepoint failed', [event])
    }
    if (answer?.state === 'pending') return wait('the coordinator closes the job', 500)
    return act('HEAD is to be closed', { type: 'request', request: asked })
  }
  switch (choice.how) {
    case 'stop':
      return ask({ type: 'stop', start, request, drain: false })
    case 'close':
    case 'cancel':
      return ask({ type: choice.how, start, request: `${request}-${choice.how}` })
    case 'admin':
      return closeByPod(observed, status)
    case 'wait':
      return wait(choice.why, 1_000)
    case 'block':
      return wait(choice.message, 5_000)
    default:
      return choice satisfies never
  }
}

/** What wants to be known of the HEAD that was closed. */
interface Closed {
  readonly point: Parameters<typeof pointAt>[1]
  readonly end: HeadEndKind
}

function closedBy(observed: Observed, status: StreamJobStatus, { point, end }: Closed): Decision {
  const { kind, restoreFrom } = status.transition!
  const isAtWork = status.ended === undefined && restoreFrom === undefined
  // Read before: a start that began meanwhile is ahead of what status says.
  const base = { ...status, start: Math.max(status.start, point.start), restorePoint: pointAt(observed, point) }
  if (end === 'finished' && isAtWork && (kind === 'restart' || kind === 'suspend' || kind === 'rollback')) {
    const done = {
      ...without(endTransition(observed, base), ...rollbackFields),
      ended: 'FINISHED',
      finishedAt: new Date(observed.nowMs).toISOString(),
      workers: 0,
    } as const
    return record(observed, done, 'it finished meanwhile', [
      normal('Finished', 'The job finished before it was stopped.'),
    ])
  }
  const where = point.path === undefined ? 'from nothing: no snapshot has completed' : `at ${point.path}`
  const event = normal('Closed', `Start ${base.start} has ended. The next one begins ${where}.`)
  return record(observed, toStep(observed, base, 'closed'), 'HEAD is closed', [event])
}

/** One that was just seen to fail is looked at for so long before it is made again. */
const podRetryMs = 10_000

function closeByPod(observed: Observed, status: StreamJobStatus): Decision {
  const transition = status.transition!
  const { request, mode, restoreFrom } = transition
  const pod = shortPod(observed, 'admin-close', request)
  if (pod === undefined) {
    const revision = adminRevision(observed, status)
    if (revision === undefined) return wait('no revision is stored that could close HEAD', 5_000)
    return act('nobody answers: HEAD is closed by a pod', {
      type: 'runPod',
      pod: 'admin-close',
      request,
      revision,
      start: Math.max(1, status.start),
      begin: status.begin ?? { parallelism: Math.max(1, status.parallelism) },
      arguments: ['admin', 'close', ...(mode === 'delete' ? ['--deleted'] : []), '--yes', '--output', 'json'],
    })
  }
  const answer = adminAnswer(pod, observed.nowMs)
  switch (answer.kind) {
    case 'running':
      return wait('a pod closes HEAD', 1_000)
    case 'none':
      if (hasHead(status) && mode !== 'stateless' && restoreFrom === undefined) {
        const why = `the job has completed ${status.restorePoint?.path ?? status.lastCheckpoint?.path}, and there is no HEAD where its state should be`
        return record(observed, toNextAttempt(observed, status, why), 'HEAD is not there')
      }
      return closedBy(observed, status, { point: { kind: 'empty', start: 0, unconfirmed: false }, end: 'none' })
    case 'head':
      return answer.head.end === 'none'
        ? record(observed, toNextAttempt(observed, status, 'HEAD has not ended'), 'HEAD has not ended')
        : closedBy(observed, status, { point: answer.head.restorePoint, end: answer.head.end })
    case 'failed':
      return record(observed, toNextAttempt(observed, status, answer.why), 'the pod could not close HEAD')
    default:
      return answer satisfies never
  }
}

/** A revision whose pods can run: the stable one first, and at each attempt the next, since an image may be what is wrong. */
export function adminRevision(observed: Observed, status: StreamJobStatus): string | undefined {
  const { transition, stableRevision, revision } = status
  const names = [stableRevision, transition?.to, transition?.from, revision].filter(
    (name, index, all) => revisionNamed(observed, name) !== undefined && all.indexOf(name) === index,
  )
  return names[(transition?.attempt ?? 0) % Math.max(1, names.length)]
}

/** What the transition is to lead to by the spec of now; undefined: to what it says. What is being closed stays so. */
function retargeted(observed: Observed, status: StreamJobStatus): StreamJobStatus | undefined {
  const transition = status.transition!
  if (transition.kind === 'delete' || !observed.spec.fits) return undefined
  const { spec } = observed.spec
  const { restoreFrom, restoreNonce, ...plain } = transition
  const isRestore = restoreFrom !== undefined || restoreNonce !== undefined
  const bySpec = { mode: spec.upgradeMode, modeOfSpec: true } as const
  const leadingTo = (next: Transition): StreamJobStatus => ({ ...status, transition: next })
  if (spec.state === 'suspended') {
    if (transition.to === undefined) return modeOf()
    // What restoreNonce asked for it asks for again when the job is resumed.
    const { to: _, ...aimless } = plain
    return leadingTo({ ...aimless, kind: 'suspend', modeOfSpec: true, ...(isRestore && bySpec) })
  }
  const desired = desiredOf(observed)
  if (transition.kind === 'rollback' && (desired.kind !== 'known' || isBlocked(desired, status))) return undefined
  if (desired.kind === 'known' && !isBlocked(desired, status)) {
    const stored = revisionNamed(observed, transition.to)
    const isRight = stored === undefined ? transition.to === desired.revision.name : stored.hash === desired.hash
    const to = isRight ? transition.to! : desired.revision.name
    const restore = askedRestore(observed, status)
    const kind = restore !== undefined || to === transition.from ? 'restart' : 'upgrade'
    if (restore?.restoreNonce !== restoreNonce)
      return toNextAttemptNow(leadingTo({ ...plain, kind, to, ...(restore ?? bySpec) }))
    // It is an edit now, unless it is to begin where restoreFrom says, whatever the edit.
    if (!isRight) return leadingTo({ ...transition, kind, to, modeOfSpec: transition.modeOfSpec ?? true })
  } else if (transition.to === undefined && transition.from !== undefined) {
    const back = stableToGoBackTo(observed, status)
    if (back === undefined) return leadingTo({ ...transition, kind: 'restart', to: transition.from, modeOfSpec: true })
    const { modeOfSpec: _, ...unasked } = transition
    return toNextAttemptNow(leadingTo({ ...unasked, kind: 'rollback', to: back, mode: 'last-state' }))
  }
  return modeOf()

  /** While it is being closed, what blocks one mode may be left by another. */
  function modeOf(): StreamJobStatus | undefined {
    const { step, kind, mode, modeOfSpec = kind === 'upgrade' || kind === 'suspend' } = transition
    if (step !== 'closing' || !modeOfSpec || mode === spec.upgradeMode) return undefined
    return toNextAttemptNow(leadingTo({ ...transition, mode: spec.upgradeMode }))
  }
}

/** The restore point stands in status: what ran is taken down, what was permitted is committed, and the next start begins. */
export function decideClosed(observed: Observed, status: StreamJobStatus): Decision {
  const edited = retargeted(observed, status)
  if (edited !== undefined) return record(observed, edited, 'the spec was edited again')
  const transition = status.transition!
  const { from, to } = transition
  const point = status.restorePoint!
  // The coordinator of a start that was given up has begun it after all: what was read is not HEAD's word any more, nor is what a pod said.
  const begun = ownCoordinator(observed, status)?.restorePoint.start
  if (begun !== undefined && begun > point.start)
    return record(observed, toNextAttemptNow(toStep(observed, status, 'closing')), 'it has begun after all')
  const completed = point.madeBy === point.start && point.start === status.start
  if (completed && from !== undefined && from !== status.stableRevision) return stableAfterAll(observed, status, from)
  if (to !== undefined && revisionNamed(observed, to) === undefined) {
    const desired = desiredOf(observed)
    if (wasStored(status, to)) return wait(`revision ${to} is gone`, 5_000)
    if (desired.kind !== 'known') return wait(desired.message, 5_000)
    return act('the revision is not stored yet', ...storing(observed, desired, to))
  }
  if (lostState(observed, status))
    return wait('the job took no checkpoint, and nobody asked to give its state up', 5_000)
  const commit = committed(observed, status)
  if (commit !== undefined) return commit
  const down = downOf(observed, to === undefined)
  if (down !== undefined) return down
  if (to !== undefined) return record(observed, startOf(observed, status), 'what ran is down')
  const done = { ...endTransition(observed, status), ended: 'SUSPENDED', workers: 0 } as const
  const unconfirmed = point.unconfirmed ? [unconfirmedAt(point, 'the next start commits them')] : []
  const suspended = normal('Suspended', 'The job is suspended; its state stays.')
  return record(observed, done, 'it is suspended', [suspended, ...unconfirmed])
}

/** HEAD shows that the version that was closed had completed something, which nobody had seen: nothing before it is gone back to (rule 5). */
function stableAfterAll(observed: Observed, status: StreamJobStatus, from: string): Decision {
  const stable = { ...without(status, ...rollbackFields), stableRevision: from }
  const why = 'the version that was closed had completed something'
  const { kind } = status.transition!
  if (kind !== 'rollback')
    return record(observed, stable, why, [
      normal('Stable', `Revision ${from} completed a snapshot before it was replaced.`),
    ])
  const forward = {
    ...without(stable, 'blocked'),
    transition: { ...status.transition!, kind: 'restart', to: from },
  } as const
  return record(observed, forward, why, [
    normal('Stable', `Revision ${from} completed a snapshot before it could be rolled back; it goes on.`),
  ])
}

export function unconfirmedAt({ path = 'HEAD' }: { readonly path?: string }, who: string): EventAction {
  return warning('CommitsUnconfirmed', `Transactions that are permitted by ${path} were not confirmed; ${who}.`)
}

/** The ended coordinator commits what HEAD permits; how long it is left to do so. */
const commitMs = 30_000
/** From the making of a pod that could not commit to that of the next, at least. */
const commitAgainMs = 30_000
/** How long a suspension waits for commits, whoever makes them: a job whose sink is away can be suspended too. */
const suspendedCommitMs = 90_000

/**
 * Rule 23: before other code, or another restore point, what was permitted is committed by the revision that wrote it; and before a job is
 * suspended, since nobody knows when it goes on.
 */
function committed(observed: Observed, status: StreamJobStatus): Decision | undefined {
  const { from, to, request, stepAt, restoreFrom, mode } = status.transition!
  const point = status.restorePoint!
  const writer = revisionNamed(observed, from) ?? revisionNamed(observed, status.revision)
  if (!point.unconfirmed) return undefined
  if (writer !== undefined && writer.name === to && restoreFrom === undefined && mode !== 'stateless') return undefined
  if (to === undefined && observed.nowMs - timeMs(stepAt) > suspendedCommitMs) return undefined
  const settled = (): Decision =>
    record(observed, { ...status, restorePoint: { ...point, unconfirmed: false } }, 'what was permitted is committed')
  const own = ownCoordinator(observed, status)
  if (own?.restorePoint.unconfirmed === false) return settled()
  if (own !== undefined && observed.nowMs - timeMs(stepAt) < commitMs)
    return wait('the coordinator commits what was permitted', 500)
  // Other code may mean other transactions: once the writer is gone HEAD is read until somebody has committed them.
  const { why, revision, purpose, words } =
    writer === undefined
      ? ({
          why: 'whether what was permitted is committed is read by a pod',
          revision: adminRevision(observed, status),
          purpose: 'admin-restore-point',
          words: ['restore-point'],
        } as const)
      : ({
          why: 'what was permitted is committed by a pod',
          revision: writer.name,
          purpose: 'admin-commit',
          words: ['commit', '--yes'],
        } as const)
  if (revision === undefined) return wait('no revision is stored that could read HEAD', 5_000)
  const pod = shortPod(observed, purpose, request)
  if (pod === undefined)
    return act(why, {
      type: 'runPod',
      pod: purpose,
      request,
      revision,
      start: Math.max(1, status.start),
      begin: status.begin ?? { parallelism: Math.max(1, status.parallelism) },
      arguments: ['admin', ...words, '--output', 'json'],
    })
  const answer = adminAnswer(pod, observed.nowMs)
  if (answer.kind === 'running') return wait(why, 1_000)
  if (answer.kind === 'head' && !answer.head.restorePoint.unconfirmed) return settled()
  return notCommitted(
    observed,
    status,
    pod,
    answer.kind === 'failed'
      ? answer.why
      : writer === undefined
        ? `ControllerRevision ${from ?? status.revision}, whose code wrote them, was deleted; commit them with that code by millrace admin commit`
        : 'HEAD does not show them as committed',
  )
}

/** Why stands in status, so that it is told also while the next pod tries it; for how long is the external system's affair. */
function notCommitted(observed: Observed, status: StreamJobStatus, pod: PodFact, why: string): Decision {
  const { retry, ...transition } = status.transition!
  const againMs = timeMs(pod.createdAt) + commitAgainMs
  const at = timeText(againMs)
  if (retry?.at !== at || retry.why !== why) {
    const events = retry?.why === why ? [] : [unconfirmedAt(status.restorePoint!, `it is tried again: ${why}`)]
    const next = { ...status, transition: { ...transition, retry: { at, why } } }
    return record(observed, next, 'the commits could not be made', events)
  }
  if (observed.nowMs >= againMs && pod.deletingSince === undefined)
    return act('the pod is made again', { type: 'delete', of: pod, force: false })
  return wait(`the commits of the version before could not be made: ${why}`, podRetryMs)
}

/** undefined: nothing of it runs any more. A stuck pod is taken away by whoever looks at stuck pods. */
export function downOf(observed: Observed, all: boolean): Decision | undefined {
  const set = workload(observed, 'StatefulSet')
  const actions: Action[] = all
    ? [...takeDown(observed, ['StatefulSet', 'Deployment'])]
    : set !== undefined && !set.deleting && set.replicas !== 0
      ? [{ type: 'scaleWorkers', to: 0, of: set }]
      : []
  if (actions.length > 0) return act('the restore point stands in status: what runs is taken down', ...actions)
  const left = [...podsOf(observed, 'worker'), ...(all ? podsOf(observed, 'coordinator') : [])]
  if (left.length > 0)
    return wait(
      `${left.length} pods are still there${stuckPods(observed, 0).length > 0 ? ', past their grace' : ''}`,
      1_000,
    )
  const going = all && (set !== undefined || workload(observed, 'Deployment') !== undefined)
  return going ? wait('the workloads are still there', 1_000) : undefined
}
