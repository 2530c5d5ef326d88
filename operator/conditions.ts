// The conditions of a StreamJob: what is the case, its first cause, and what to do. Reconciling and Stalled are kstatus's. A message changes
// only with what it tells of, since each change is a write.

import { sharedNatsText } from './contract.ts'
import type { Condition, ConditionType, Observed, StreamJobStatus } from './contract.ts'
import { childrenOf } from './decide-children.ts'
import { desiredOf, isBlocked, isOutdated } from './decide-desired.ts'
import {
  awaitedPodTrouble,
  comesUpMs,
  outageOf,
  ownCoordinator,
  ownRevision,
  podsOf,
  preflightTrouble,
  troubleOf,
  validSpec,
} from './decide-facts.ts'
import type { Trouble } from './decide-facts.ts'
import { hasCompletedHere } from './decide-smaller.ts'
import { isSupported } from './decide-supported.ts'
import { restoreFromProblem } from './decide-restore-from.ts'
import { asSentence } from './status-text.ts'
import { closeChoice, lostState } from './upgrade.ts'
import { timeMs, timeText } from './status-time.ts'

interface Word {
  readonly status: Condition['status']
  readonly reason: string
  readonly message: string
}

const is = (reason: string, message: string): Word => ({ status: 'True', reason, message })
const isNot = (reason: string, message: string): Word => ({ status: 'False', reason, message })
const unknown = (reason: string, message: string): Word => ({ status: 'Unknown', reason, message })

export function conditionsOf(observed: Observed, status: StreamJobStatus): readonly Condition[] {
  const blocked = blockedBy(observed, status)
  const stalled = blocked ?? stalledBy(observed, status)
  const words: Readonly<Record<ConditionType, Word>> = {
    Ready: readyWord(observed, status),
    Progressing: progressingWord(observed, status),
    CheckpointHealthy: checkpointWord(observed, status),
    Degraded: degradedWord(observed, status),
    UpgradeBlocked: blocked ?? isNot('NotBlocked', 'No change of the spec waits.'),
    Reconciling: reconcilingWord(observed, status, stalled !== undefined),
    Stalled: stalled ?? isNot('NotStalled', 'Nothing stands in the way.'),
    Isolated: isolatedWord(observed, status),
  }
  return Object.entries(words).map(([type, word]) => conditionOf(observed, status, type as ConditionType, word))
}

/** The time of its last change stays until it changes. */
function conditionOf(
  { job, nowMs }: Observed,
  { conditions }: StreamJobStatus,
  type: ConditionType,
  word: Word,
): Condition {
  const before = conditions.find((condition) => condition.type === type)
  const lastTransitionTime = before?.status === word.status ? before.lastTransitionTime : timeText(nowMs)
  return {
    type,
    ...word,
    message: word.message.slice(0, messageMax),
    lastTransitionTime,
    observedGeneration: job.generation,
  }
}
const messageMax = 2_000

function readyWord(observed: Observed, status: StreamJobStatus): Word {
  const { transition, ended, start, failure } = status
  if (observed.job.deletingSince !== undefined) return isNot('Deleting', 'The job is being deleted.')
  if (ended === 'FAILED')
    return isNot(
      'Failed',
      `The job failed: ${asSentence(failure ?? 'no reason was given')} Mend what it names, then raise spec.restartNonce; another program (code, image, args) starts it again too.`,
    )
  if (ended === 'FINISHED') return isNot('Finished', 'The job has read all of its input and finished.')
  if (ended === 'SUSPENDED') return isNot('Suspended', 'The job is suspended. Set spec.state to running to go on.')
  if (start === 0) return isNot('NotStarted', 'The job has not started yet.')
  if (transition?.step === 'closed' || transition?.step === 'starting')
    return isNot('Starting', 'The next start of the job is made ready.')
  const own = ownCoordinator(observed, status)
  if (own === undefined) {
    const coming = comesUp(observed, status)
    return coming === undefined
      ? unknown('CoordinatorUnreachable', `Nobody answers for start ${start}: ${silence(observed)}.`)
      : isNot('Starting', coming)
  }
  switch (own.state) {
    case 'running':
      return is('Running', 'All subtasks run.')
    case 'starting':
      return isNot('Starting', waitsFor(own.slotsNeeded, own.slotsOffered))
    case 'restarting':
      return isNot('Restarting', `The job restarts after a failure: ${asSentence(own.lastFailure ?? 'unknown')}`)
    case 'ending':
    case 'ended':
      return isNot('Ended', `Start ${start} has ended (${own.end}).`)
    default:
      return own.state satisfies never
  }
}

function isolatedWord(observed: Observed, status: StreamJobStatus): Word {
  if (status.start === 0) return unknown('NotStarted', 'The job has not started yet.')
  const sharing = ownRevision(observed, status)?.natsSharing
  switch (sharing) {
    case 'own':
      return is('OwnNatsUser', 'Its user of NATS may publish and subscribe to its own subjects only.')
    case 'shared':
      return isNot('SharedNatsCredentials', `It has ${sharedNatsText}`)
    case 'unknown':
      return unknown(
        'NatsCredentialsOfSpec',
        'What the Secret of spec.nats.credentialsSecret permits is known to who made it: it should be its own subjects and inbox only.',
      )
    case undefined:
      return unknown('RevisionUnknown', `What revision ${status.revision} was made with is not known.`)
    default:
      return sharing satisfies never
  }
}

/**
 * The coordinator of a start that has just been made is not silent yet: its pod is scheduled and begins, or its image is still being pulled.
 * What keeps it from that is told as its trouble, and a start that takes too long as Stalled. undefined: it should have come up.
 */
function comesUp(observed: Observed, { transition, start }: StreamJobStatus): string | undefined {
  if (transition?.step !== 'stabilising') return undefined
  const text = `The pods of start ${start} come up.`
  if (observed.nowMs - timeMs(transition.stepAt) < comesUpMs) return text
  const pending = podsOf(observed, 'coordinator').find(
    ({ phase, nodeSilent, deletingSince }) => phase === 'Pending' && !nodeSilent && deletingSince === undefined,
  )
  // What the kubelet waits for stands in its events alone.
  return (
    pending &&
    `${text} Pod ${pending.name} has waited for more than a minute, as it does while a large image is pulled: kubectl describe pod ${pending.name} -n ${pending.namespace} says for what.`
  )
}

function waitsFor(needed: number | undefined, offered: number | undefined): string {
  return needed !== undefined && offered !== undefined && offered < needed
    ? `It needs ${needed} slots, and its workers offer fewer.`
    : 'Its subtasks are being started.'
}

function silence({ coordinator }: Observed): string {
  return coordinator.known ? `the coordinator is at start ${coordinator.value.start}` : coordinator.why
}

function progressingWord(observed: Observed, status: StreamJobStatus): Word {
  const { transition, ended } = status
  if (transition === undefined)
    return isNot(ended === undefined ? 'Settled' : capital(ended.toLowerCase()), 'Nothing is under way.')
  const { kind, step, to, parallelism } = transition
  const target =
    parallelism !== undefined ? ` to parallelism ${parallelism}` : to === undefined ? '' : ` to revision ${to}`
  // The job is none the worse for it: the upgrade goes on without.
  const trouble = preflightTrouble(observed, status)
  const lack =
    trouble === undefined ? '' : ` ${capital(trouble.who)} does not run: ${trouble.reason}: ${trouble.message}`
  return is(`${capital(kind)}${capital(step)}`, `${capital(kind)}${target}: ${stepWords[step]}.${lack}`)
}

const stepWords = {
  recovering: 'where HEAD is gets read, since status was lost',
  preparing: 'the revision is stored and tried out',
  closing: 'the running start is ended at its restore point',
  closed: 'the restore point is known; what it permits is committed, and what ran is taken down',
  starting: 'the next start is made',
  stabilising: 'its first checkpoint is awaited',
  growing: 'workers are added',
  rescaling: 'the coordinator changes the size',
  shrinking: 'workers that are not needed go',
} as const

function checkpointWord(observed: Observed, status: StreamJobStatus): Word {
  if (status.ended !== undefined || status.start === 0) return unknown('NotRunning', 'The job does not run.')
  const own = ownCoordinator(observed, status)
  if (own === undefined)
    return comesUp(observed, status) === undefined
      ? unknown('CoordinatorUnreachable', `Nobody tells: ${silence(observed)}.`)
      : unknown('Starting', `The pods of start ${status.start} come up.`)
  if (own.consecutiveFailures > 0)
    return isNot(
      'CheckpointsFail',
      `Checkpoints fail: ${asSentence(own.lastFailure ?? 'see the log of the coordinator')} What is written since the last one would be processed again after a restart. Look at /v1/checkpoints and the object store.`,
    )
  if (own.checkpointing === 'off')
    return isNot('CheckpointingOff', 'The job takes no checkpoints: after a failure it begins again where it started.')
  return own.completedInStart || status.lastCheckpoint !== undefined
    ? is('Completed', 'The last checkpoint completed.')
    : unknown('NoneYet', 'No checkpoint has completed yet.')
}

function degradedWord(observed: Observed, status: StreamJobStatus): Word {
  const expected = status.ended === undefined && status.start > 0
  const refused = refusedPodOf(observed)
  if (refused !== undefined) return is('ActRefused', `What is to be done is refused: ${refused}`)
  const outage = outageOf(observed, status)
  if (outage !== undefined)
    return is('Outage', `${capital(outage)}. The job goes on when it is back; nothing needs to be done for the job.`)
  const foreign = childrenOf(observed, status)?.foreign ?? []
  if (expected && foreign.length > 0) return foreignWord(foreign)
  const unseen = expected ? unseenWord(observed, status) : undefined
  if (unseen !== undefined) return unseen
  if (observed.refusedAct !== undefined)
    return is('ActRefused', `What is to be done is refused, and tried again: ${asSentence(observed.refusedAct)}`)
  const awaited = awaitedPodTrouble(observed, status)
  if (awaited !== undefined) return troubleWord(awaited)
  const unconfirmed = unconfirmedWord(status)
  if (unconfirmed !== undefined) return unconfirmed
  if (!expected || status.transition?.step === 'closed') return isNot('AsExpected', 'Nothing is wrong.')
  const own = ownCoordinator(observed, status)
  const trouble = troubleOf(observed, status)
  // Why nobody answers says more than that nobody does.
  if (trouble !== undefined && own === undefined) return troubleWord(trouble)
  if (status.transition?.step === 'starting') return isNot('AsExpected', 'Nothing is wrong.')
  if (own === undefined) {
    if (comesUp(observed, status) !== undefined) return isNot('AsExpected', 'Nothing is wrong.')
    // In a start that has not completed anything there may be no tasks yet.
    const left =
      status.transition?.step === 'stabilising'
        ? `Whether start ${status.start} has begun is not known.`
        : 'Its tasks run on; checkpoints wait.'
    return is('CoordinatorUnreachable', `The coordinator does not answer: ${silence(observed)}. ${left}`)
  }
  if (own.state === 'restarting') {
    const missing = missingPods(observed)
    const lack = missing === undefined ? '' : ` ${capital(missing)}.`
    return is('Restarting', `The job restarts after a failure: ${asSentence(own.lastFailure ?? 'unknown')}${lack}`)
  }
  if (trouble !== undefined) return troubleWord(trouble)
  const desired = desiredOf(observed)
  // Another edit is another attempt: what was rolled back says nothing of it.
  const isSuperseded = desired.kind === 'known' && !isBlocked(desired, status)
  if (status.blocked?.reason === 'RolledBack' && !isSuperseded) return is('RolledBack', status.blocked.message)
  return isNot('AsExpected', 'Nothing is wrong.')
}

/** Without its node nobody else takes it away. */
function refusedPodOf({ pods, refusedPods }: Observed): string | undefined {
  const pod = pods.find(({ uid }) => refusedPods?.has(uid) === true)
  return (
    pod &&
    `pod ${pod.name}, which its node does not end, cannot be taken away by force: ${asSentence(refusedPods!.get(pod.uid)!)} It is tried again; permit it, or delete the pod by kubectl delete pod ${pod.name} -n ${pod.namespace} --force.`
  )
}

function troubleWord({ who, reason, message }: Trouble): Word {
  return is(reason, `${capital(who)} does not run: ${message}`)
}

/** HEAD is closed, and what it permits could not be committed. */
function unconfirmedWord({ transition, restorePoint }: StreamJobStatus): Word | undefined {
  if (transition?.step !== 'closed' || transition.retry === undefined || restorePoint?.unconfirmed !== true)
    return undefined
  return is(
    'CommitsUnconfirmed',
    `The transactions that ${restorePoint.path ?? 'HEAD'} permits could not be committed: ${asSentence(transition.retry.why)} Nothing else begins before they are, and it is tried again: bring back the system that they go to. If it has forgotten them and you know that they were committed: millrace admin commit --assume-committed.`,
  )
}

function foreignWord(foreign: readonly string[]): Word {
  return is(
    'ForeignObject',
    `${foreign.join(', ')} has the name of one of the job's objects and is not the job's; it is left alone. Delete or rename it.`,
  )
}

/** A revision without which nothing goes on. Of a suspended job there is nothing to be gone on with: it is resumed by its spec. */
function unseenWord({ unseen, job }: Observed, status: StreamJobStatus): Word | undefined {
  const { transition, revision, ended } = status
  const unread = unseen.find((each) => each.unread !== undefined)
  if (unread?.unread !== undefined)
    return is(
      'RevisionUnknown',
      `ControllerRevision ${unread.name} is not in the operator's cache and could not be read: ${asSentence(unread.unread)} Nothing of the job is changed until it is; what runs runs on.`,
    )
  if (job.deletingSince !== undefined || (transition === undefined && ended === 'SUSPENDED')) return undefined
  // What leads to another one needs it no more.
  const needed = transition === undefined || transition.kind === 'rescale' ? revision : transition.to
  const gone = unseen.find(({ name }) => name === needed)
  if (gone === undefined) return undefined
  const nonce = ended === 'FINISHED' ? 'restoreNonce, with spec.restoreFrom latest' : 'restartNonce'
  return is(
    'RevisionDeleted',
    `ControllerRevision ${gone.name}, which the job goes by, was deleted by somebody. What runs is left as it is, and is neither repaired, rescaled nor upgraded. To go on by the spec as it is now, raise spec.${nonce}.`,
  )
}

/** Why the spec as it is does not run. */
function blockedBy(observed: Observed, status: StreamJobStatus): Word | undefined {
  const { transition, blocked, refusedSize } = status
  const desired = desiredOf(observed)
  const unseen = unseenWord(observed, status)
  if (unseen?.reason === 'RevisionUnknown') return unseen
  if (desired.kind !== 'known')
    return is(
      desired.reason,
      `${desired.message}${status.start > 0 ? ' The job runs on by the last spec that was good.' : ''}`,
    )
  if (unseen !== undefined) return unseen
  // A deletion has its own ways and its deadline: no edit of the spec is what it needs.
  if (transition?.step === 'closing' && transition.kind !== 'delete') {
    const choice = closeChoice(observed, status)
    if (choice.how === 'block') return is(choice.reason, choice.message)
    if (transition.retry !== undefined)
      return is(
        transition.mode === 'savepoint' ? 'SavepointFailed' : 'RestorePointUnknown',
        `It is tried again: ${asSentence(transition.retry.why)} Nothing was taken away.`,
      )
  }
  if (transition?.step === 'closed' && lostState(observed, status))
    return is(
      'NothingToRestore',
      'The job took no checkpoints: its state since the start is gone with its processes. Set spec.upgradeMode to stateless to begin from nothing, or spec.restoreFrom and restoreNonce to begin at a snapshot.',
    )
  const unconfirmed = unconfirmedWord(status)
  if (unconfirmed !== undefined) return unconfirmed
  const refusals = [
    ...(blocked !== undefined && isBlocked(desired, status) ? [blocked] : []),
    ...(refusedSize === undefined ? [] : [{ reason: 'RescaleRefused', message: refusedSize.message }]),
  ]
  const [first] = refusals
  return first && is(first.reason, refusals.map(({ message }) => message).join(' '))
}

function reconcilingWord(observed: Observed, status: StreamJobStatus, isStalled: boolean): Word {
  if (isStalled) return isNot('Stalled', 'See Stalled.')
  if (observed.job.deletingSince !== undefined) return is('Deleting', 'The job is being deleted.')
  if (status.transition !== undefined) return is(capital(status.transition.kind), 'A change of the job is under way.')
  const wants = observed.spec.fits && observed.spec.spec.state === 'running' && status.ended !== 'FINISHED'
  const outdated = wants && isOutdated(desiredOf(observed), ownRevision(observed, status)) === true
  if (outdated) return is('Outdated', 'The job does not run by its spec yet.')
  const size = wants && status.ended === undefined && status.start > 0 ? awaitedSize(observed, status) : undefined
  return size === undefined ? isNot('Settled', 'The job is as its spec says.') : is('Outdated', size)
}

/** Asked for while not all subtasks run: a rescale in place waits for that. undefined: it has the size of its spec, or was refused another. */
function awaitedSize(observed: Observed, status: StreamJobStatus): string | undefined {
  const { parallelism, refusedSize } = status
  const wanted = validSpec(observed, status)!.parallelism
  if (wanted === parallelism || wanted === refusedSize?.parallelism) return undefined
  const start = `The job has parallelism ${parallelism}, and goes to ${wanted} once all of its subtasks run.`
  if (wanted > parallelism) return start
  const own = ownCoordinator(observed, status)
  if (own === undefined && status.transition === undefined && !hasCompletedHere(status)) return start
  return own?.checkpointing === 'off'
    ? `${start} Where they get no slots: it takes no checkpoints, so raise spec.restartNonce to begin again with ${wanted}.`
    : `${start} Where they get no slots for ${comesUpMs / 1_000} s it starts again with ${wanted}.`
}

/** What else does not get better by waiting, or has taken too long. */
function stalledBy(observed: Observed, status: StreamJobStatus): Word | undefined {
  const { transition, ended, failure } = status
  const revision = ownRevision(observed, status)
  if (revision !== undefined && !isSupported(observed.operatorVersion, revision.operatorVersion))
    return is(
      'UnsupportedRuntime',
      `Revision ${revision.name} was made by operator ${revision.operatorVersion}, this is ${observed.operatorVersion}; nothing of it is changed. Install an operator of a version beside it.`,
    )
  const nowhere = restoreFromProblem(observed, status)
  if (nowhere !== undefined) return is('RestoreFromNotFound', nowhere)
  if (ended === 'FAILED') return is('Failed', failure ?? 'The job failed.')
  const foreign = status.start > 0 && ended === undefined ? (childrenOf(observed, status)?.foreign ?? []) : []
  if (foreign.length > 0) return foreignWord(foreign)
  if (transition === undefined) return undefined
  if (
    observed.nowMs - timeMs(transition.progressAt) <=
    (validSpec(observed, status)?.rollback.progressDeadline ?? 300_000)
  )
    return undefined
  if (transition.held !== undefined) return undefined
  const trouble = troubleOf(observed, status)
  const known = observed.refusedAct ?? missingPods(observed)
  const cause =
    trouble === undefined
      ? `${capital(transition.kind)} makes no progress: ${known ?? stepWords[transition.step]}`
      : `${trouble.reason}: ${trouble.message}`
  const remedy =
    trouble === undefined && known === undefined
      ? "look at the job's pods and the log of the operator"
      : 'mend what is named'
  return is('ProgressDeadlineExceeded', `${asSentence(cause)} It is still tried; ${remedy}, or change the spec.`)
}

/** Not by itself a trouble: a pod that has gone is missing too, until the next is made. */
function missingPods({ children }: Observed): string | undefined {
  const short = Object.values(children).find(({ ownedByJob, podsMissing }) => ownedByJob && podsMissing > 0)
  if (short === undefined) return undefined
  const { kind, namespace, name, podsMissing, replicas } = short
  return `${podsMissing} of the ${replicas} pods of ${kind} ${name} are not made; kubectl describe statefulset ${name} -n ${namespace} says why`
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
