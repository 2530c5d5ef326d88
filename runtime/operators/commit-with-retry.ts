// Commits what is permitted, again and again with back-off, until it is committed, refused, or the deadline has passed (rule 23).

import type { Environment } from '../base/environment.ts'
import { InvariantError, MillraceError, mayPass } from '../base/errors.ts'
import type { MetricGroup } from '../base/metrics.ts'
import type { Committable } from '../checkpoint/contract.ts'
import type { Committer } from '../connectors/contract.ts'
import type { OnUnknownCommit } from '../job/contract.ts'
import { operatorError } from './errors.ts'

export interface CommitOptions {
  readonly committer: Committer
  readonly committables: readonly Committable[]
  readonly environment: Environment
  readonly metrics: MetricGroup
  /** From the call on; also bounds an attempt that never answers. */
  readonly deadlineMs: number
  /** When the external system does not know one of them: only the user may say that it was committed. */
  readonly onUnknown: OnUnknownCommit
  /** For the error's text: which sink. */
  readonly sink: string
  /** Aborted when the task ends: nothing is retried then. */
  readonly stop: AbortSignal
}

const firstPauseMs = 100
const pauseMaxMs = 10_000

/**
 * Resolves when all are committed. Rejects with MR-J60 at the deadline, MR-J62 when stopped, and with MR-J65 around the committer's own
 * error when that is not to be retried: the external system has forgotten the transaction, and nobody but the user may decide what then.
 */
export async function commitWithRetry(options: CommitOptions): Promise<void> {
  const { clock, random } = options.environment
  const deadline = clock.nowMs() + options.deadlineMs
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, pauseMaxMs)) {
    const outcome = await attempt(options, deadline - clock.nowMs())
    if (outcome.kind === 'committed') break
    if (outcome.kind === 'failed' && isUnknown(outcome.cause) && options.onUnknown === 'assume committed')
      return assumeCommitted(options)
    if (outcome.kind === 'failed' && !mayPass(outcome.cause)) throw refusedError(options, outcome.cause)
    // Jitter: the subtasks of a sink lost the same server at the same moment and must not all come back at once.
    const jittered = pauseMs * (0.5 + random.next() / 2)
    const cause = outcome.kind === 'failed' ? outcome.cause : undefined
    if (outcome.kind === 'deadline' || clock.nowMs() + jittered > deadline) throw deadlineError(options, cause)
    options.metrics.add('commit_retries_total', 1)
    options.environment.log('warn', 'a commit failed and is tried again', {
      sink: options.sink,
      cause: describeCause(cause),
    })
    if (outcome.kind === 'stopped' || (await pause(options, jittered)) === 'stopped') throw stoppedError(options)
  }
  options.metrics.add('commits_total', options.committables.length)
}

/** One of them is not known: those that are must be committed all the same, so each is asked for by itself. */
async function assumeCommitted(options: CommitOptions): Promise<void> {
  const [only] = options.committables
  if (options.committables.length > 1) {
    for (const committable of options.committables) await commitWithRetry({ ...options, committables: [committable] })
    return
  }
  options.environment.log('warn', 'a transaction that is not known any more counts as committed, as the job was told', {
    sink: options.sink,
    transaction: only?.transaction,
  })
}

type Outcome =
  | { readonly kind: 'committed' }
  | { readonly kind: 'failed'; readonly cause: unknown }
  | { readonly kind: 'deadline' }
  | { readonly kind: 'stopped' }

/** One attempt, given up at the deadline: an external system may never answer. What it still does then is harmless, commits are idempotent. */
function attempt(options: CommitOptions, leftMs: number): Promise<Outcome> {
  return new Promise((resolve) => {
    const settle = (outcome: Outcome): void => {
      timer.cancel()
      options.stop.removeEventListener('abort', onStop)
      resolve(outcome)
    }
    const onStop = (): void => settle({ kind: 'stopped' })
    const timer = options.environment.clock.timer(Math.max(0, leftMs), () => settle({ kind: 'deadline' }))
    options.stop.addEventListener('abort', onStop)
    if (options.stop.aborted) return onStop()
    options.committer.commit(options.committables).then(
      () => settle({ kind: 'committed' }),
      (cause: unknown) => settle({ kind: 'failed', cause }),
    )
  })
}

function pause(options: CommitOptions, delayMs: number): Promise<'over' | 'stopped'> {
  return new Promise((resolve) => {
    const settle = (how: 'over' | 'stopped'): void => {
      timer.cancel()
      options.stop.removeEventListener('abort', onStop)
      resolve(how)
    }
    const onStop = (): void => settle('stopped')
    const timer = options.environment.clock.timer(delayMs, () => settle('over'))
    options.stop.addEventListener('abort', onStop)
  })
}

/** Of the connectors' table, as Committer.commit says. */
function isUnknown(cause: unknown): boolean {
  return cause instanceof MillraceError && cause.code === 'MR-N12'
}

function names(options: CommitOptions): string {
  return `Sink '${options.sink}', ${options.committables.length} transactions from '${options.committables[0]?.transaction}' on.`
}

function deadlineError(options: CommitOptions, cause: unknown): Error {
  return operatorError(
    'MR-J60',
    `${names(options)} Deadline ${options.deadlineMs} ms. Last answer: ${describeCause(cause)}.`,
    cause,
  )
}

function refusedError(options: CommitOptions, cause: unknown): unknown {
  if (cause instanceof InvariantError) return cause
  return operatorError('MR-J65', `${names(options)} ${describeCause(cause)}`, cause)
}

/** Whether a permitted commit is in the way: by rule 23 the job then stops and asks, and is not over. */
export function isCommitRefused(code: string | undefined): boolean {
  return code === 'MR-J60' || code === 'MR-J65'
}

function describeCause(cause: unknown): string {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : cause === undefined ? 'none' : typeof cause
}

function stoppedError(options: CommitOptions): Error {
  return operatorError('MR-J62', names(options))
}
