// What a coordinator's REST answers, as one fact. Pure. Answers are read leniently: an operator drives coordinators of its own version and of
// the one before.

import { z } from 'zod'
import type { CoordinatorFact, ServicesFact, StreamJobStatus } from './contract.ts'
import { endAnswer, manifestAnswer, restorePointAnswer, restorePointOf } from './decide-head-answer.ts'
import { none } from './progress.ts'
import { timeText } from './status-time.ts'

const manifest = manifestAnswer.extend({ completedAtMs: z.number(), bytes: z.number() })

export const jobAnswer = z.object({
  start: z.number(),
  incarnation: z.number(),
  state: z.enum(['starting', 'running', 'restarting', 'ending', 'ended']),
  parallelism: z.number(),
  restarts: z.number(),
  restorePoint: restorePointAnswer(manifest),
  end: endAnswer,
  unconfirmed: z.unknown().nullable(),
  slotsNeeded: z.number().nullable(),
  slotsOffered: z.number().nullable(),
  restore: z.object({ bytesRead: z.number().nullable(), subtasksRestored: z.number() }).nullable(),
  lastFailure: z.object({ message: z.string() }).nullable(),
})

export const checkpointsAnswer = z.object({
  /** null: none are taken unasked; undefined: a coordinator that does not say. */
  intervalMs: z.number().nullable().optional(),
  counters: z.object({ completed: z.number(), consecutiveFailures: z.number() }).nullable(),
  pending: z.object({ id: z.number(), phase: z.string(), missing: z.array(z.string()) }).nullable(),
  retained: z.array(manifest),
  completed: z.array(manifest.extend({ durationMs: z.number() })),
  failed: z.array(z.object({ id: z.number(), reason: z.string(), detail: z.string() })),
})

export const workersAnswer = z.object({
  workers: z.array(z.object({ name: z.string(), state: z.enum(['registered', 'leaving', 'lost']) })).nullable(),
})

const service = z.object({ state: z.enum(['ok', 'failed', 'unknown']) }).nullable()
export const healthAnswer = z.object({ storage: service, nats: service })

export const requestAnswer = z.object({
  state: z.enum(['pending', 'completed', 'failed', 'ended']),
  detail: z.string().optional(),
  savepoint: manifest.optional(),
  checkpoint: manifest.optional(),
})

export type RequestFact = CoordinatorFact['requests'][string]

export interface CoordinatorAnswers {
  readonly job: z.output<typeof jobAnswer>
  readonly checkpoints: z.output<typeof checkpointsAnswer>
  readonly workers: z.output<typeof workersAnswer>
  /** undefined: no answer in time. */
  readonly health: z.output<typeof healthAnswer> | undefined
  readonly requests: Readonly<Record<string, RequestFact>>
  /** An interval was asked for by the spec that it runs by. */
  readonly hasInterval: boolean
}

export function coordinatorFact(answers: CoordinatorAnswers): CoordinatorFact {
  const { job, checkpoints, workers, health, requests, hasInterval } = answers
  const { restorePoint, start } = job
  const completedInStart = restorePoint.kind === 'manifest' && restorePoint.manifest.start === start
  const consecutiveFailures = checkpoints.counters?.consecutiveFailures ?? 0
  const snapshots = snapshotsOf(checkpoints)
  const checkpointFailure = consecutiveFailures > 0 ? snapshots.lastFailed?.detail : undefined
  return {
    start,
    incarnation: job.incarnation,
    state: job.state,
    end: job.end.kind,
    reason: job.end.reason,
    restorePoint: restorePointOf(job),
    restarts: job.restarts,
    parallelism: job.parallelism,
    slotsNeeded: job.slotsNeeded ?? undefined,
    slotsOffered: job.slotsOffered ?? undefined,
    workers: (workers.workers ?? []).map(({ name, state }) => ({ name, state })),
    checkpointing: checkpointingOf(checkpoints, hasInterval),
    lastCheckpoint: lastCheckpointOf(checkpoints),
    completedInStart,
    consecutiveFailures,
    lastFailure:
      job.state === 'restarting' ? job.lastFailure?.message : (checkpointFailure ?? job.lastFailure?.message),
    snapshots,
    progress: [
      job.slotsOffered ?? none,
      job.state === 'running' ? 1 : 0,
      job.restore?.bytesRead ?? none,
      job.restore?.subtasksRestored ?? none,
      // Of the next checkpoint, which makes it stable; the one after one that failed has to come further than that.
      checkpoints.pending === null ? none : -checkpoints.pending.missing.length,
    ],
    ...servicesFact(health),
    requests,
  }
}

/** What was completed says nothing of it: it may be of an earlier start, or was asked for. */
function checkpointingOf(
  { intervalMs }: CoordinatorAnswers['checkpoints'],
  hasInterval: boolean,
): CoordinatorFact['checkpointing'] {
  if (intervalMs === undefined) return hasInterval ? 'on' : undefined
  return intervalMs === null ? 'off' : 'on'
}

export function servicesFact(health: CoordinatorAnswers['health']): ServicesFact {
  return { storageAnswers: isAnswering(health?.storage), natsAnswers: isAnswering(health?.nats) }
}

/** Unknown is not false. */
function isAnswering(word: z.output<typeof service> | undefined): boolean | undefined {
  if (word === undefined || word === null || word.state === 'unknown') return undefined
  return word.state === 'ok'
}

/** The newest checkpoint; before there is one, the newest savepoint. */
function lastCheckpointOf({ completed }: CoordinatorAnswers['checkpoints']): StreamJobStatus['lastCheckpoint'] {
  const newest = completed.findLast(({ kind }) => kind === 'checkpoint') ?? completed.at(-1)
  if (newest === undefined) return undefined
  const { id, path, completedAtMs, bytes, durationMs, kind } = newest
  return { id, path, time: timeText(completedAtMs), bytes, durationMs: Math.round(durationMs), kind }
}

function snapshotsOf({
  pending,
  retained,
  completed,
  failed,
}: CoordinatorAnswers['checkpoints']): CoordinatorFact['snapshots'] {
  const last = failed.at(-1)
  const known = [...retained, ...completed, ...failed, ...(pending === null ? [] : [pending])]
  return {
    newest: Math.max(0, ...known.map(({ id }) => id)),
    isPending: pending !== null,
    lastFailed: last && { id: last.id, detail: `${last.reason}: ${last.detail}` },
  }
}

export function requestFact({ state, detail, savepoint, checkpoint }: z.output<typeof requestAnswer>): RequestFact {
  const made = savepoint ?? checkpoint
  return {
    state,
    ...(made !== undefined && { path: made.path, id: made.id }),
    ...(detail !== undefined && { detail }),
  }
}
