// What `millrace admin` answers: one object for programs, and the same as text.

import type { SinkTransactions } from '../admin/commit.ts'
import type { Contents } from '../admin/restore-point.ts'
import { counted } from '../base/counted.ts'
import type { HeadSummary } from '../rest/resources.ts'
import type { AdminAction } from './admin-options.ts'
import { timeText } from './time-text.ts'
import { grouped } from './progress.ts'

export interface AdminReport {
  readonly command: AdminAction['verb']
  /**
   * none: there positively is no HEAD, the job has not begun. found and empty: of restore-point. refused, unclear, wrong: nothing was done, or
   * not all of it; see `error`.
   */
  readonly outcome: 'none' | 'nothing to do' | 'would do' | 'done' | 'found' | 'empty' | 'refused' | 'unclear' | 'wrong'
  /** HEAD, as it is after the command. null: there is none, it was not reached, or it is not what the command is about. */
  readonly job: HeadSummary | null
  /** Of a close that was not told to do it. */
  readonly would?: { readonly end: HeadSummary['end'] }
  /** Of the restore point, and how far it was looked at. */
  readonly contents?: Contents
  readonly verified?: 'lengths' | 'checksums'
  /** Of a savepoint that is disposed of: its folder. */
  readonly savepoint?: string
  /** Keys that are, or would be, deleted; below the job's store or, of a savepoint, beside it. */
  readonly objects?: readonly string[]
  /** Ids of checkpoints that HEAD gives up. */
  readonly checkpoints?: readonly number[]
  /** By sink: committed by commit, aborted by sweep. Absent in a sweep that was not given the job's code. */
  readonly transactions?: readonly SinkTransactions[]
  readonly error?: { readonly code: string | null; readonly message: string }
}

export function adminText(report: AdminReport): string {
  const { outcome, job, would } = report
  if (outcome === 'none') return 'The job has no HEAD: it has not begun.'
  const lines = job === null ? [] : [`${job.id}, start ${job.start}: ${endText(job.end)}`]
  if (report.command === 'restore-point') lines.push(...pointLines(report))
  lines.push(...whatLines(report))
  if (job !== null && job.unconfirmed !== null)
    lines.push(`Commits of ${job.unconfirmed.path} are permitted and not confirmed.`)
  if (outcome === 'nothing to do') lines.push('There is nothing to do.')
  if (outcome === 'would do') {
    if (would !== undefined) lines.push(`It would be ended: ${would.end.kind}.`)
    lines.push('Nothing was done yet; --yes does it.')
  }
  if (outcome === 'done') lines.push('Done.')
  return lines.join('\n')
}

function endText(end: HeadSummary['end']): string {
  if (end.kind === 'none') return 'has not ended'
  if ('savepoint' in end && end.savepoint !== undefined) return `${end.kind} with ${end.savepoint.path}`
  if ('reason' in end && end.reason !== undefined) return `${end.kind}: ${end.reason}`
  return end.kind
}

function pointLines({ job, contents, verified }: AdminReport): string[] {
  const point = job?.restorePoint
  if (job === null || point === undefined) return []
  const moves = job.end.kind === 'none' ? ['The start has not ended: a job that runs has another one soon.'] : []
  if (point.kind === 'empty') return ['Its restore point is empty: to begin from nothing.', ...moves]
  const { kind, id, start, path, bytes, completedAtMs, drained } = point.manifest
  const at = completedAtMs === 0 ? '' : `, completed ${timeText(completedAtMs)}`
  const lines = [`Its restore point is ${kind} ${id} of start ${start}${at}, ${grouped(bytes)} bytes:`, path]
  if (drained) lines.push('It was taken with drain: its event time has ended.')
  if (contents !== undefined) {
    const { objects, pieces, transactions } = contents
    const looked =
      verified === 'checksums' ? 'all of it was read and is right' : 'all of them are there, as long as they must be'
    const state =
      pieces === 0
        ? 'It names no objects: what state there is stands in its manifest.'
        : `${counted(pieces, 'piece', 'pieces')} of state in ${counted(objects, 'object', 'objects')}: ${looked}.`
    const open = transactions === 0 ? 'no transactions' : counted(transactions, 'transaction', 'transactions')
    lines.push(`${state} It holds ${open}.`)
  }
  return [...lines, ...moves]
}

function whatLines({ command, outcome, savepoint, objects, checkpoints, transactions }: AdminReport): string[] {
  const will = outcome === 'would do' ? 'To ' : ''
  const lines: string[] = []
  const act = (what: string, doing: string, names: readonly string[]): void => {
    if (names.length === 0) return
    lines.push(`${will === '' ? doing : `${will}${what}`}:`, ...names.map((name) => `  ${name}`))
  }
  if (savepoint !== undefined) lines.push(`Savepoint ${savepoint}`)
  act('give up checkpoints', 'Checkpoints given up', (checkpoints ?? []).map(String))
  act('delete', 'Deleted', objects ?? [])
  for (const { uid, transactions: names } of transactions ?? [])
    act(
      `${command === 'commit' ? 'commit' : 'abort'} at ${uid}`,
      `${command === 'commit' ? 'Committed' : 'Aborted'} at ${uid}`,
      names,
    )
  if (command === 'sweep' && transactions === undefined)
    lines.push("Transactions were not looked at: that needs the job's code.")
  return lines
}
