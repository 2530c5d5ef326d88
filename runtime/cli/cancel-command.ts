// `millrace cancel`: the job is over for good, whether it runs or not.

import { cancel, drainedStopOf } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import { headKeeperOf } from '../local/local-jobs.ts'
import type { LocalWorld, StoredJob } from '../local/local-jobs.ts'
import { nothing } from '../rest/resources.ts'
import { headOf, pause } from './await-job.ts'
import { controlHelp, controlWords, folderOption } from './control-words.ts'
import type { ControlWords } from './control-words.ts'
import { commandError } from './errors.ts'
import { contactJob } from './job-client.ts'
import { localWorld, namedJob } from './named-job.ts'
import type { ControlEdge } from './named-job.ts'
import { readWords } from './words.ts'
import type { CommandSyntax } from './words.ts'

export interface CancelCommand extends ControlWords {
  readonly kind: 'cancel'
}

const help = `millrace cancel <job> [options]   end a job for good, without a savepoint

A running job ends at once; one that is interrupted, suspended or stopped is not gone on with any more. Its run command begins a
new job from the beginning. Savepoints stay.

${controlHelp}

Exit codes: 0 it is over, 1 it could not be cancelled, 2 the command line is wrong.`

export const cancelSyntax: CommandSyntax<CancelCommand> = {
  name: 'cancel',
  takes: '<job>',
  summary: 'end a job for good, whether it runs or not',
  help,
  parse: (words) => {
    const { values, positionals } = readWords({ command: 'cancel', words, options: folderOption })
    return { kind: 'cancel', ...controlWords({ command: 'cancel', positionals, folder: values.folder }) }
  },
}

/** Ending the tasks and one write of HEAD, which settles within a minute. */
const endDeadlineMs = 120_000

export async function cancelJob(command: CancelCommand, edge: ControlEdge): Promise<void> {
  const world = await localWorld(edge, command.folder)
  const stored = await namedJob(command.job, edge, world)
  const contact = await contactJob(stored)
  if (contact.kind === 'running') await contact.client.post('/v1/cancel', nothing, {})
  const head = contact.kind === 'running' ? await ended(stored, world) : await cancelInHead(stored, world)
  edge.terminal.say(sentence(stored, head))
}

/** It ends itself: its tasks first, then HEAD. */
async function ended(stored: StoredJob, world: LocalWorld): Promise<Head> {
  const untilMs = performance.now() + endDeadlineMs
  for (;;) {
    // In this order: who has gone wrote all that it would before.
    const { kind } = await contactJob(stored)
    const head = await headOf({ stored, world })
    // While it is there it still makes the commits that it was permitted to make.
    const isOver = head !== undefined && head.end.kind !== 'none'
    if (isOver && (head.unconfirmed === undefined || kind === 'not running')) return head
    // It went before it wrote the end: nobody owns the job now.
    if (kind === 'not running') return cancelInHead(stored, world)
    if (performance.now() >= untilMs) throw commandError('MR-L35', `${stored.id} is to end.`)
    await pause()
  }
}

/** An end that is final stays. A process that begins meanwhile reads it, and ends (rule 5). */
async function cancelInHead(stored: StoredJob, world: LocalWorld): Promise<Head> {
  const keeper = await headKeeperOf(stored, world)
  // One that was drained is as good as finished.
  const goesOn = ({ end }: Head): boolean =>
    end.kind === 'none' || end.kind === 'suspended' || (end.kind === 'stopped' && drainedStopOf(end) === undefined)
  const head = await keeper.readBegun()
  return goesOn(head) ? keeper.amend((newest) => (goesOn(newest) ? cancel(newest, { deleted: true }) : newest)) : head
}

function sentence({ id }: StoredJob, { end, unconfirmed }: Head): string {
  const commits =
    unconfirmed === undefined
      ? ''
      : ` Commits that it was permitted to make are not confirmed; its run command makes them before it begins a new job.`
  switch (end.kind) {
    case 'cancelled':
      return `${id} is cancelled.${commits}`
    case 'stopped':
      return drainedStopOf(end) !== undefined
        ? `${id} is drained; there is nothing to cancel.${commits}`
        : `${id} was being stopped, and is stopped with savepoint ${end.savepoint.id}.${commits} Cancel it again to end it for good.`
    case 'finished':
      return `${id} has finished; there is nothing to cancel.`
    case 'failed':
      return `${id} has failed already.${commits}`
    default:
      return `${id} is ${end.kind}.${commits}`
  }
}
