// What short pods printed: the last line of `millrace admin … --output json` and of `millrace preflight --output json`. What cannot be read
// says nothing; it is never taken for "none" or "no".

import { z } from 'zod'
import type { PodFact, RecordedRestorePoint } from './contract.ts'
import { endAnswer, manifestAnswer, restorePointAnswer, restorePointOf } from './decide-head-answer.ts'

const jobSummary = z.object({
  start: z.number(),
  parallelism: z.number(),
  restorePoint: restorePointAnswer(manifestAnswer),
  end: endAnswer,
  unconfirmed: z.unknown().nullable(),
})

const adminReport = z.object({
  outcome: z.enum(['none', 'nothing to do', 'would do', 'done', 'found', 'empty', 'refused', 'unclear', 'wrong']),
  job: jobSummary.nullable(),
  error: z.object({ code: z.string().nullable(), message: z.string() }).optional(),
})

const preflightReport = z.object({
  answer: z.enum(['yes', 'no', 'could not run']),
  reasons: z.array(z.object({ code: z.string().nullable().optional(), message: z.string() })),
})

export type HeadEndKind = z.output<typeof jobSummary>['end']['kind']

export interface HeadWord {
  readonly start: number
  readonly parallelism: number
  readonly end: HeadEndKind
  readonly reason: string | undefined
  readonly restorePoint: Omit<RecordedRestorePoint, 'readAt'>
}

export type AdminAnswer =
  /** It has not ended. */
  | { readonly kind: 'running' }
  /** There positively is no HEAD. */
  | { readonly kind: 'none' }
  | { readonly kind: 'head'; readonly head: HeadWord }
  /** Refused, unclear, or it did not come so far. */
  | { readonly kind: 'failed'; readonly why: string; readonly refused: boolean }

/** So long a pod has whose container the kubelet says it cannot start: then it is given up, and the next try may be by another image. */
const startMs = 15_000

export function adminAnswer(pod: PodFact, nowMs: number): AdminAnswer {
  if (pod.phase !== 'Succeeded' && pod.phase !== 'Failed') {
    const { trouble } = pod
    // One that waits for a node is not made again: that would lose its place, also with whoever adds nodes.
    if (trouble === undefined || pod.node === undefined || nowMs - Date.parse(pod.createdAt) < startMs)
      return { kind: 'running' }
    return { kind: 'failed', refused: false, why: `${trouble.reason}: ${trouble.message}` }
  }
  const report = adminReport.safeParse(jsonOf(pod.output))
  if (!report.success)
    return {
      kind: 'failed',
      refused: false,
      why: `pod ${pod.name} ended (code ${pod.exitCode ?? 'unknown'}) without an answer`,
    }
  const { outcome, job, error } = report.data
  if (outcome === 'none') return { kind: 'none' }
  if (outcome === 'refused' || outcome === 'unclear' || outcome === 'wrong' || outcome === 'would do' || job === null)
    return { kind: 'failed', refused: outcome === 'refused', why: error?.message ?? `the answer was ${outcome}` }
  return { kind: 'head', head: headWord(job) }
}

function headWord(summary: z.output<typeof jobSummary>): HeadWord {
  const { start, parallelism, end } = summary
  return { start, parallelism, end: end.kind, reason: end.reason, restorePoint: restorePointOf(summary) }
}

export type DisposalAnswer =
  /** `nothing`: where it looked there is no object under the path, which is no proof that there is none elsewhere. */
  { readonly kind: 'running' | 'done' | 'nothing' } | { readonly kind: 'failed'; readonly why: string }

/** Of a savepoint: with its job's HEAD gone or not. */
export function disposalAnswer(pod: PodFact, nowMs: number): DisposalAnswer {
  const report = adminReport.safeParse(jsonOf(pod.output))
  if (report.success && report.data.outcome === 'done') return { kind: 'done' }
  if (report.success && report.data.outcome === 'nothing to do') return { kind: 'nothing' }
  const answer = adminAnswer(pod, nowMs)
  if (answer.kind === 'running' || answer.kind === 'failed') return answer
  return { kind: 'failed', why: 'the answer was about something else' }
}

export type PreflightAnswer =
  | { readonly kind: 'running' }
  | { readonly kind: 'yes' }
  | { readonly kind: 'no'; readonly reasons: string }
  | { readonly kind: 'could not run'; readonly why: string }

/** Scheduling, pulling and loading together; then nothing is known, and the upgrade goes on without. */
export const preflightMs = 60_000

export function preflightAnswer(pod: PodFact, nowMs: number): PreflightAnswer {
  if (pod.phase !== 'Succeeded' && pod.phase !== 'Failed') {
    if (nowMs - Date.parse(pod.createdAt) < preflightMs) return { kind: 'running' }
    const { trouble } = pod
    return {
      kind: 'could not run',
      why: trouble === undefined ? 'no answer in 60 s' : `${trouble.reason}: ${trouble.message}`,
    }
  }
  const report = preflightReport.safeParse(jsonOf(pod.output))
  if (!report.success)
    return { kind: 'could not run', why: `it ended (code ${pod.exitCode ?? 'unknown'}) without an answer` }
  const reasons = report.data.reasons.map(({ message }) => message).join(' ')
  if (report.data.answer === 'could not run') return { kind: 'could not run', why: reasons }
  return report.data.answer === 'yes' ? { kind: 'yes' } : { kind: 'no', reasons }
}

/** The last line: job code may print before. */
function jsonOf(output: string | undefined): unknown {
  const line = output?.trimEnd().split('\n').at(-1)
  if (line === undefined) return undefined
  try {
    return JSON.parse(line) as unknown
  } catch {
    return undefined
  }
}
