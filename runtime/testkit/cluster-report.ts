// What a job is at, in one sentence, for the error of a test that waited in vain.

import type { Head } from '../storage/head-contract.ts'
import type { CoordinatorLife } from './coordinator-life.ts'
import type { ClusterLogLine } from './test-process.ts'

export interface ReportedCluster {
  /** undefined: it was never started. */
  readonly life: CoordinatorLife | undefined
  readonly head: Head | undefined
  readonly restarts: readonly string[]
  readonly logLines: readonly ClusterLogLine[]
}

/** Log lines that it shows. */
const linesMax = 5

export function reportOf({ life, head, restarts, logLines }: ReportedCluster): string {
  const recent = logLines
    .filter(({ level }) => level === 'error' || level === 'warn')
    .slice(-linesMax)
    .map(({ process, level, message, fields }) => `${process} ${level}: ${message} ${JSON.stringify(fields ?? {})}`)
  return [
    stateOf(life, head),
    ...(life?.alive === true ? [tasksOf(life), snapshotOf(life)] : []),
    ...(restarts.length === 0 ? [] : [`It restarted ${restarts.length} times, last for: ${restarts.at(-1)}.`]),
    ...(recent.length === 0 ? [] : [`Its last warnings:\n${recent.join('\n')}\n`]),
  ].join(' ')
}

export function stateOf(life: CoordinatorLife | undefined, head: Head | undefined): string {
  if (life === undefined) return 'The job was not started.'
  if (life.outcome !== undefined) {
    const reason = life.outcome.kind === 'failed' ? `: ${life.outcome.reason}` : ''
    return `The job has ended as ${life.outcome.kind}${reason}.`
  }
  if (life.broken !== undefined) return `The job's coordinator could not go on: ${String(life.broken.error)}.`
  if (!life.alive) return "The job's coordinator was killed; restart() starts another one."
  const unconfirmed = head?.unconfirmed === undefined ? '' : `, commits of ${head.unconfirmed.path} not confirmed yet`
  return `The job runs${unconfirmed}.`
}

function tasksOf({ coordinator }: CoordinatorLife): string {
  const byStatus = new Map<string, string[]>()
  for (const { key, status } of coordinator.execution?.tasks.values() ?? [])
    byStatus.set(status, [...(byStatus.get(status) ?? []), key])
  if (byStatus.size === 0) return 'No subtask is deployed.'
  return `Subtasks: ${[...byStatus].map(([status, keys]) => `${status}: ${keys.join(', ')}`).join('; ')}.`
}

function snapshotOf({ coordinator }: CoordinatorLife): string {
  const pending = coordinator.checkpoints?.pending
  if (pending === undefined) return 'No snapshot is pending.'
  const missing = [...pending.missing]
  const waits = missing.length === 0 ? 'is stored' : `waits for ${missing.join(', ')}`
  return `${pending.kind === 'checkpoint' ? 'Checkpoint' : 'Savepoint'} ${pending.id} ${waits} (${pending.phase}).`
}
