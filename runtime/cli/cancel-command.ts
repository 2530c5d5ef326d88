// `millrace cancel`: the job is over for good, whether it runs or not.

import { cancel, drainedStopOf } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import { headKeeperOf, snapshotFolderIn } from '../local/local-jobs.ts'
import { headView } from '../rest/job-views.ts'
import type { LocalWorld, StoredJob } from '../local/local-jobs.ts'
import { endRequest } from '../rest/request-resources.ts'
import type { JobResource } from '../rest/resources.ts'
import { headOf } from './await-job.ts'
import { controlHelp, controlWords, targetOptions } from './control-words.ts'
import type { ControlWords } from './control-words.ts'
import { commandError } from './errors.ts'
import { contactJob } from './job-client.ts'
import { localWorld, namedJob } from './named-job.ts'
import type { ControlEdge } from './named-job.ts'
import { nextLook } from './next-look.ts'
import { endRemotely, jobOver, reach } from './remote-job.ts'
import { newRequest } from './request-word.ts'
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
    const { values, positionals } = readWords({ command: 'cancel', words, options: targetOptions })
    return { kind: 'cancel', ...controlWords({ command: 'cancel', positionals, values }) }
  },
}

/** Ending the tasks and one write of HEAD, which settles within a minute. */
const endDeadlineMs = 120_000

export async function cancelJob(command: CancelCommand, edge: ControlEdge): Promise<void> {
  const { target } = command
  if (target.kind !== 'local') {
    const reached = await reach(target, edge)
    if (reached.kind === 'over') {
      if (goesOnLater(reached.head.end)) throw jobOver(reached)
      return edge.terminal.say(sentence(reached.head))
    }
    const order = { action: 'cancel', request: newRequest(), timeoutMs: endDeadlineMs } as const
    return edge.terminal.say(sentence(await endRemotely(reached, order)))
  }
  const world = await localWorld(edge, target.folder)
  const stored = await namedJob(target.job, edge, world)
  const contact = await contactJob(stored)
  if (contact.kind === 'running') await contact.client.post('/v1/cancel', endRequest, {})
  const head = contact.kind === 'running' ? await ended(stored, world) : await cancelInHead(stored, world)
  edge.terminal.say(sentence(headView(head, snapshotFolderIn(stored.storeFolder))))
}

/** Its next start would go on: millrace admin close --deleted takes that away. */
function goesOnLater(end: JobResource['end']): boolean {
  return end.kind === 'suspended' || end.kind === 'stopped'
}

/** It ends itself: HEAD first, then its tasks. */
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
    await nextLook()
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

function sentence({ id, end, unconfirmed }: Pick<JobResource, 'id' | 'end' | 'unconfirmed'>): string {
  const commits =
    unconfirmed === null
      ? ''
      : ` Commits that it was permitted to make are not confirmed; its run command makes them before it begins a new job.`
  switch (end.kind) {
    case 'cancelled':
      return `${id} is cancelled.${commits}`
    case 'stopped':
      return end.savepoint.drained
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
