// Savepoints and checkpoints that somebody asks for: by a nonce, by a Savepoint object, by spec.savepoints. One at a time; what is asked is
// written into status under its request's name first, so that each is answered once, whoever dies meanwhile.

import type { Action, AskedSnapshot, CoordinatorFact, Decision, Observed, StreamJobStatus } from './contract.ts'
import type { SavepointFact } from './savepoint-contract.ts'
import { act, normal, record, wait, warning } from './decide-answers.ts'
import { ownCoordinator, ownRevision, validSpec } from './decide-facts.ts'
import { originOfJob } from './resources/savepoint-origin.ts'
import { childName } from './revision-names.ts'
import { without } from './status.ts'
import { timeMs, timeText } from './status-time.ts'

/** undefined: nobody asks for anything now. */
export function decideRequests(observed: Observed, status: StreamJobStatus): Decision | undefined {
  const { asked } = status
  if (asked !== undefined) return answerOf(observed, status, asked)
  const wish = nextWish(observed, status)
  if (wish !== undefined) return record(observed, { ...status, asked: wish }, `a ${wish.kind} is asked for`)
  return periodicOf(observed, status)
}

function nextWish(
  { savepoints, job, nowMs, ...observed }: Observed,
  status: StreamJobStatus,
): AskedSnapshot | undefined {
  const spec = observed.spec.fits ? observed.spec.spec : undefined
  const at = timeText(nowMs)
  for (const kind of ['savepoint', 'checkpoint'] as const) {
    const nonce = spec?.[`${kind}Nonce`]
    if (nonce !== undefined && nonce !== status.answered[kind])
      return { kind, nonce, at, request: `${kind}-nonce-${nonce}-${job.generation}` }
  }
  const [first] = savepoints
    .filter(isToBeMade)
    .sort((left, right) => compare(left.createdAt, right.createdAt) || compare(left.name, right.name))
  return first && { kind: 'savepoint', object: first.uid, at, request: `savepoint-${first.uid}`.slice(0, 64) }
}

function isToBeMade(savepoint: SavepointFact): boolean {
  return !savepoint.deleting && isOpen(savepoint)
}

function isOpen({ path, status }: SavepointFact): boolean {
  return path === undefined && status?.state !== 'completed' && status?.state !== 'failed'
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0
}

type Answer =
  | { readonly state: 'completed'; readonly path?: string; readonly id?: number }
  | { readonly state: 'failed'; readonly detail: string }

function answerOf(observed: Observed, status: StreamJobStatus, asked: AskedSnapshot): Decision {
  const own = ownCoordinator(observed, status)
  const answer = own && answered(own, asked)
  if (answer !== undefined) return given(observed, status, asked, answer)
  if (status.ended !== undefined)
    return given(observed, status, asked, { state: 'failed', detail: `the job is ${status.ended}: it does not run` })
  if (own === undefined) return wait('the coordinator does not answer', 2_000)
  // It was given up while the job could not take it (decide-savepoint.ts), and this coordinator was not asked.
  if (isGivenUp(observed, asked) && own.requests[asked.request] === undefined)
    return record(observed, without(status, 'asked'), 'the Savepoint was given up')
  if (asked.kind === 'checkpoint' && asked.after === undefined) {
    const after = own.snapshots.newest
    return record(observed, { ...status, asked: { ...asked, after } }, 'it is written down which checkpoints are older')
  }
  if (own.requests[asked.request] !== undefined) return wait(`the ${asked.kind} is taken`, 1_000)
  const { kind, request } = asked
  return act(`the coordinator is asked for a ${kind}`, {
    type: 'request',
    request: { type: kind, start: status.start, request },
  })
}

function isGivenUp({ savepoints }: Observed, asked: AskedSnapshot): boolean {
  return savepoints.some(({ uid, status }) => uid === asked.object && status?.state === 'failed')
}

function answered(own: CoordinatorFact, asked: AskedSnapshot): Answer | undefined {
  const answer = own.requests[asked.request]
  const made = asked.kind === 'checkpoint' ? checkpointAfter(own, asked) : undefined
  if (made !== undefined) return made
  if (answer?.state === 'completed')
    return {
      state: 'completed',
      ...(answer.path !== undefined && { path: answer.path }),
      ...(answer.id !== undefined && { id: answer.id }),
    }
  if (answer?.state === 'failed' || answer?.state === 'ended')
    return { state: 'failed', detail: answer.detail ?? 'no reason was given' }
  return own.end === 'none' ? undefined : { state: 'failed', detail: `the job has ended (${own.end})` }
}

/**
 * A checkpoint's request has no answer of its own: the next one is it, completed or not. Which is next its id says: clocks of two hosts differ,
 * and what a coordinator counts begins anew with each.
 */
function checkpointAfter(own: CoordinatorFact, { request, after }: AskedSnapshot): Answer | undefined {
  if (after === undefined) return undefined
  const { lastCheckpoint, snapshots } = own
  if (lastCheckpoint?.kind === 'checkpoint' && lastCheckpoint.id > after)
    return { state: 'completed', path: lastCheckpoint.path, id: lastCheckpoint.id }
  // One that is taken now may be the one that was asked for.
  const { lastFailed, isPending } = snapshots
  if (own.requests[request] === undefined || isPending || lastFailed === undefined || lastFailed.id <= after)
    return undefined
  return { state: 'failed', detail: lastFailed.detail }
}

/** An object is told first, also one that is being deleted, as it takes the files away; that it knows is what lets the request be forgotten. */
function given(observed: Observed, status: StreamJobStatus, asked: AskedSnapshot, answer: Answer): Decision {
  const object = observed.savepoints.find(({ uid }) => uid === asked.object)
  const origin = originOfJob(observed.job, ownRevision(observed, status))
  if (object !== undefined && isOpen(object))
    return act('the Savepoint is told', {
      type: 'recordSavepoint',
      of: object,
      ...answer,
      ...(origin !== undefined && { origin }),
    })
  const { nonce, kind, request } = asked
  const savepoints =
    kind === 'savepoint' && answer.state === 'completed' && answer.path !== undefined
      ? [
          ...status.savepoints,
          { path: answer.path, id: answer.id ?? 0, time: timeText(observed.nowMs), request },
        ].slice(-savepointsMax)
      : status.savepoints
  const next: StreamJobStatus = {
    ...without(status, 'asked'),
    savepoints,
    answered: { ...status.answered, ...(nonce !== undefined && { [kind]: nonce }) },
  }
  const name = kind === 'savepoint' ? 'Savepoint' : 'Checkpoint'
  const event =
    answer.state === 'completed'
      ? normal(
          `${name}Completed`,
          `The ${kind} ${request} is complete${answer.path === undefined ? '' : ` at ${answer.path}`}.`,
        )
      : warning(
          `${name}Failed`,
          `The ${kind} ${request} failed, and the job runs on: ${answer.detail}. Ask again by another nonce or object.`,
        )
  return record(observed, next, `the ${kind} is answered`, [event])
}
const savepointsMax = 20

// ---- spec.savepoints ----

function periodicOf(observed: Observed, status: StreamJobStatus): Decision | undefined {
  const every = validSpec(observed, status)?.savepoints
  if (every === undefined || status.ended !== undefined) return undefined
  const { periodic } = status
  if (periodic === undefined)
    return record(
      observed,
      { ...status, periodic: { number: 0, at: timeText(observed.nowMs) } },
      'savepoints are made from now on',
    )
  const name = periodicName(observed, periodic.number + 1)
  // Made, and not yet written down: the operator died between.
  const made = observed.savepoints.find((savepoint) => savepoint.name === name)
  if (made !== undefined)
    return record(
      observed,
      { ...status, periodic: { number: periodic.number + 1, at: made.createdAt } },
      'the next savepoint is made',
    )
  if (observed.nowMs - timeMs(periodic.at) >= every.every)
    return act('a savepoint is due', { type: 'createSavepoint', name })
  const old = superfluous(observed, status, every.keep)
  return old.length === 0 ? undefined : act('savepoints are beyond what is kept', ...old)
}

function periodicName({ job }: Observed, number: number): string {
  return childName(job, `p${number}`)
}

/** Made for this very job: those of an earlier one of its name, its last one too, are all that is left of that job. */
function isPeriodic(observed: Observed, { name, madeBy }: SavepointFact): boolean {
  const number = /-p(\d+)$/.exec(name)?.[1]
  return madeBy === 'operator' && number !== undefined && name === periodicName(observed, Number(number))
}

/** When the next one is due; ms from now. */
export function periodicInMs(observed: Observed, status: StreamJobStatus): number | undefined {
  const every = validSpec(observed, status)?.savepoints?.every
  if (every === undefined || status.periodic === undefined || status.ended !== undefined) return undefined
  return Math.max(0, timeMs(status.periodic.at) + every - observed.nowMs)
}

/** Only what spec.savepoints made, by count and age; the newest always stays, and so does what the job may begin from. */
function superfluous(
  observed: Observed,
  status: StreamJobStatus,
  { count, age }: { readonly count?: number | undefined; readonly age?: number | undefined },
): Action[] {
  const own = ownCoordinator(observed, status)
  // While the restore point is not known, any of them may be it.
  if (own === undefined) return []
  // restoreFrom too where nothing has begun there yet: a restoreNonce may wait, or come.
  const needed = new Set(
    [
      own.restorePoint.path,
      status.restorePoint?.path,
      status.rollbackPoint?.path,
      status.begin?.from,
      validSpec(observed, status)?.restoreFrom,
      status.settings?.restoreFrom,
    ].map(asFolder),
  )
  const made = observed.savepoints
    .filter(
      (savepoint) =>
        isPeriodic(observed, savepoint) &&
        !savepoint.deleting &&
        (savepoint.status?.state === 'completed' || savepoint.status?.state === 'failed'),
    )
    .sort((left, right) => compare(right.createdAt, left.createdAt) || compare(right.name, left.name))
  const completed = made.filter(({ status: done }) => done?.state === 'completed')
  const failed = made.filter(({ status: done }) => done?.state === 'failed')
  const isOld = ({ createdAt }: SavepointFact): boolean => age !== undefined && observed.nowMs - timeMs(createdAt) > age
  const gone = completed.filter((savepoint, index) => index > 0 && (index >= (count ?? Infinity) || isOld(savepoint)))
  return [...gone.filter(({ status: done }) => !needed.has(asFolder(done?.path))), ...failed.slice(1)].map((of) => ({
    type: 'delete',
    of,
    force: false,
  }))
}

/** One folder may be written in two ways. */
function asFolder(path: string | undefined): string | undefined {
  return path?.replace(/\/+$/, '')
}
