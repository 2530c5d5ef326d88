// `millrace admin`: close, restore-point, commit, dispose and sweep, on HEAD and store alone. What each does stands in runtime/admin.

import { inspect } from 'node:util'
import { adminError } from '../admin/errors.ts'
import { closeJob } from '../admin/close.ts'
import { commitOfJob } from '../admin/commit.ts'
import { disposeCheckpoints, disposeSavepoint } from '../admin/dispose.ts'
import { restorePoint } from '../admin/restore-point.ts'
import { sweepJob } from '../admin/sweep.ts'
import { isUnanswered } from '../admin/unanswered.ts'
import { MillraceError } from '../base/errors.ts'
import { start } from '../base/ids.ts'
import { headView } from '../rest/job-views.ts'
import type { Head } from '../storage/head-contract.ts'
import type { AdminCommand, Disposal } from './admin-options.ts'
import { adminText } from './admin-report.ts'
import type { AdminReport } from './admin-report.ts'
import { openPlace, openTarget } from './admin-target.ts'
import type { AdminEdge, OpenedTarget } from './admin-target.ts'
import { commandError } from './errors.ts'

const exitCodes = { done: 0, wrong: 2, refused: 3, unclear: 4 } as const

/** The exit code. Throws nothing that is a MillraceError: it is told as the outcome. */
export async function runAdmin(command: AdminCommand, edge: AdminEdge): Promise<number> {
  const { action, output } = command
  const print = (report: AdminReport): void =>
    edge.terminal.print(output === 'json' ? JSON.stringify(report) : adminText(report))
  let phase: 'opening' | 'acting' = 'opening'
  let opened: OpenedTarget | undefined
  try {
    opened = await openTarget(command.target, edge)
    const act = await prepared(command, opened, edge)
    phase = 'acting'
    print(await act())
    return exitCodes.done
  } catch (error) {
    const outcome = outcomeOf(error, phase)
    const code = error instanceof MillraceError ? error.code : null
    const message = error instanceof Error ? error.message : String(error)
    if (output === 'json') print({ command: action.verb, outcome, job: null, error: { code, message } })
    edge.terminal.say(edge.debug || !(error instanceof MillraceError) ? inspect(error) : message)
    return exitCodes[outcome]
  } finally {
    await opened?.close()
  }
}

function outcomeOf(error: unknown, phase: 'opening' | 'acting'): 'wrong' | 'refused' | 'unclear' {
  if (isUnanswered(error)) return 'unclear'
  return phase === 'opening' ? 'wrong' : 'refused'
}

type Act = () => Promise<AdminReport>

/** What all answers have in common. */
interface Found {
  readonly outcome: string
  readonly head?: Head
}

/** Loads the job's code where it is needed: what is wrong there is no refusal. */
async function prepared({ action, apply }: AdminCommand, opened: OpenedTarget, edge: AdminEdge): Promise<Act> {
  const { world, files, loadGraph } = opened
  const { verb } = action
  const view = (head: Head) => headView(head, ({ path }) => world.stores.locate(path))
  const jobOf = ({ head }: Found): AdminReport['job'] => (head === undefined ? null : view(head))
  switch (verb) {
    case 'close':
      return async () => {
        const closed = await closeJob(world, {
          start: action.start === undefined ? undefined : start(action.start),
          deleted: action.deleted,
          apply,
        })
        const would = closed.outcome === 'would do' ? { end: view(closed.next).end } : undefined
        return { command: verb, outcome: closed.outcome, job: jobOf(closed), ...(would !== undefined && { would }) }
      }
    case 'restore-point':
      return async () => {
        const found = await restorePoint(world, { deep: action.deep })
        const verified = action.deep ? ('checksums' as const) : ('lengths' as const)
        const more = found.outcome === 'found' ? { contents: found.contents, verified } : {}
        return { command: verb, outcome: found.outcome, job: jobOf(found), ...more }
      }
    case 'commit': {
      if (loadGraph === undefined)
        throw commandError(
          'MR-L10',
          'admin commit needs the code of the job: --config, or --job with its job file or manifest.',
        )
      const graph = await loadGraph(action.assumeCommitted ? { onUnknownCommit: 'assume committed' } : {})
      return async () => {
        const committed = await commitOfJob(world, { start: opened.start, graph, files, apply })
        const sinks = 'sinks' in committed ? { transactions: committed.sinks } : {}
        return { command: verb, outcome: committed.outcome, job: jobOf(committed), ...sinks }
      }
    }
    case 'dispose':
      return preparedDisposal(action.what, { opened, apply, folder: edge.folder, jobOf })
    case 'sweep': {
      const graph = await loadGraph?.({})
      const code = graph === undefined ? undefined : { graph, files }
      return async () => {
        if (await opened.runs()) throw adminError('MR-A02', `A process runs ${world.job}.`)
        const swept = await sweepJob(world, { jobIsDown: action.jobIsDown, code, apply })
        const garbage = 'garbage' in swept ? swept.garbage : undefined
        const more = garbage && {
          objects: [...garbage.objects, ...garbage.elsewhere.map((key) => world.stores.savepoints?.nameOf(key) ?? key)],
          checkpoints: garbage.discarding,
          ...(code !== undefined && { transactions: garbage.transactions }),
        }
        return { command: verb, outcome: swept.outcome, job: jobOf(swept), ...more }
      }
    }
    default:
      return action satisfies never
  }
}

async function preparedDisposal(
  what: Disposal,
  {
    opened,
    apply,
    folder,
    jobOf,
  }: {
    readonly opened: OpenedTarget
    readonly apply: boolean
    readonly folder: string
    readonly jobOf: (found: Found) => AdminReport['job']
  },
): Promise<Act> {
  const { world } = opened
  if (what.kind === 'checkpoints') {
    return async () => {
      const disposed = await disposeCheckpoints(world, { apply })
      const checkpoints = 'ids' in disposed ? { checkpoints: disposed.ids } : {}
      return { command: 'dispose', outcome: disposed.outcome, job: jobOf(disposed), ...checkpoints }
    }
  }
  const { place, close } = await openPlace(what.path, opened, folder)
  return async () => {
    try {
      const disposed = await disposeSavepoint(world, { place, foreign: what.foreign, apply })
      const objects = 'objects' in disposed ? { objects: disposed.objects } : {}
      return { command: 'dispose', outcome: disposed.outcome, job: null, savepoint: place.folder, ...objects }
    } finally {
      await close()
    }
  }
}
