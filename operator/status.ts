// Status as values: how one is made, and the few ways in which it changes. Pure; whoever writes it is elsewhere.

import type {
  CloseMode,
  Observed,
  RecordedRestorePoint,
  StreamJobStatus,
  Transition,
  TransitionStep,
} from './contract.ts'
import { STATUS_VERSION } from './contract.ts'
import { timeMs, timeText } from './status-time.ts'

/** Of a job that was never seen: a nonce that is there at creation is answered. */
export function firstStatus(observed: Observed): StreamJobStatus {
  const { job, spec } = observed
  const { restartNonce, restoreNonce, savepointNonce, checkpointNonce } = spec.fits
    ? spec.spec
    : ({} as Readonly<Record<string, undefined>>)
  return {
    version: STATUS_VERSION,
    observedGeneration: job.generation,
    jobId: job.uid,
    phase: 'PENDING',
    conditions: [],
    start: 0,
    workers: 0,
    savepoints: [],
    restarts: 0,
    parallelism: 0,
    labelSelector: '',
    answered: {
      ...(restartNonce !== undefined && { restart: restartNonce }),
      ...(restoreNonce !== undefined && { restore: restoreNonce }),
      ...(savepointNonce !== undefined && { savepoint: savepointNonce }),
      ...(checkpointNonce !== undefined && { checkpoint: checkpointNonce }),
    },
    timeline: [],
  }
}

export interface NewTransition {
  readonly kind: Transition['kind']
  readonly step: TransitionStep
  readonly mode: CloseMode
  readonly modeOfSpec?: boolean | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
  readonly parallelism?: number
  readonly restoreFrom?: string | undefined
  readonly restoreNonce?: number | undefined
  readonly savepoint?: string | undefined
}

/** The status in which a transition begins. Its request's name is the same whoever asks, and another one for each transition. */
export function beginTransition(
  observed: Observed,
  status: StreamJobStatus,
  { kind, step, mode, modeOfSpec, from, to, parallelism, restoreFrom, restoreNonce, savepoint }: NewTransition,
): StreamJobStatus {
  const now = timeText(observed.nowMs)
  const transition: Transition = {
    kind,
    step,
    mode,
    ...(modeOfSpec !== undefined && { modeOfSpec }),
    attempt: 0,
    request: `${kind}-${status.start}-${observed.job.generation}-0`,
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ...(parallelism !== undefined && { parallelism }),
    ...(restoreFrom !== undefined && { restoreFrom }),
    ...(restoreNonce !== undefined && { restoreNonce }),
    ...(savepoint !== undefined && { savepoint }),
    begunAt: now,
    stepAt: now,
    progressAt: now,
    progress: '',
  }
  return { ...status, transition, timeline: [] }
}

/** The transition as it is at its next step; the time of the one before goes into the timeline. */
export function toStep(
  observed: Observed,
  status: StreamJobStatus,
  step: TransitionStep,
  changes: Partial<Transition> = {},
): StreamJobStatus {
  const now = timeText(observed.nowMs)
  const { retry: _, held: __, ...transition } = status.transition!
  return {
    ...status,
    timeline: timelineAt(observed, status),
    transition: { ...transition, ...changes, step, stepAt: now, progressAt: now },
  }
}

/** Another try of what the coordinator did not do, under another name, not before `afterMs`. */
export function toNextAttempt(observed: Observed, status: StreamJobStatus, why: string): StreamJobStatus {
  const afterMs = Math.min(attemptMsMin * 2 ** status.transition!.attempt, attemptMsMax)
  const next = toNextAttemptNow(status)
  return { ...next, transition: { ...next.transition!, retry: { at: timeText(observed.nowMs + afterMs), why } } }
}
const attemptMsMin = 5_000
const attemptMsMax = 300_000

/** Under another name, at once: the request of the attempt before stands with the coordinator. */
export function toNextAttemptNow(status: StreamJobStatus): StreamJobStatus {
  const { retry: _, ...transition } = status.transition!
  const attempt = transition.attempt + 1
  return {
    ...status,
    transition: { ...transition, attempt, request: transition.request.replace(/-\d+$/, `-${attempt}`) },
  }
}

export function endTransition(observed: Observed, status: StreamJobStatus): StreamJobStatus {
  const { transition: _, ...rest } = status
  return { ...rest, timeline: timelineAt(observed, status) }
}

function timelineAt({ nowMs }: Observed, { timeline, transition }: StreamJobStatus): StreamJobStatus['timeline'] {
  const { step, stepAt } = transition!
  return [...timeline, { step, seconds: Math.round(Math.max(0, nowMs - timeMs(stepAt)) / 100) / 10 }].slice(
    -timelineMax,
  )
}
const timelineMax = 20

export function pointAt({ nowMs }: Observed, point: Omit<RecordedRestorePoint, 'readAt'>): RecordedRestorePoint {
  return { ...point, readAt: timeText(nowMs) }
}

/** Without the field: a status holds no undefined. */
export function without(status: StreamJobStatus, ...names: readonly (keyof StreamJobStatus)[]): StreamJobStatus {
  return Object.fromEntries(
    Object.entries(status).filter(([name]) => !(names as readonly string[]).includes(name)),
  ) as unknown as StreamJobStatus
}

/** Of the fields those that are there. */
export function only(status: StreamJobStatus, ...names: readonly (keyof StreamJobStatus)[]): Partial<StreamJobStatus> {
  return Object.fromEntries(Object.entries(status).filter(([name]) => (names as readonly string[]).includes(name)))
}
