// `millrace preflight`: the answer of runtime/admin/preflight.ts, for the operator and for people.

import { resolve } from 'node:path'
import { preflight, reasonOf } from '../admin/preflight.ts'
import type { Preflight, Reason } from '../admin/preflight.ts'
import { isUnanswered } from '../admin/unanswered.ts'
import { counted } from '../base/counted.ts'
import { absolutePlace, openConfig } from './admin-target.ts'
import type { OpenedTarget } from './admin-target.ts'
import type { ControlEdge } from './named-job.ts'
import type { PreflightCommand } from './preflight-options.ts'

/** What --output json prints. */
export interface PreflightReport {
  readonly answer: Preflight['answer']
  readonly reasons: readonly Reason[]
  /** The largest of all vertices; null, as all below, where the job could not be loaded. */
  readonly parallelism: number | null
  readonly slotsNeeded: number | null
  readonly graphHash: string | null
  readonly maxParallelism: number | null
  readonly uids: readonly { readonly uid: string; readonly given: boolean }[] | null
  /** null: it begins from nothing, or that is not known. */
  readonly against: { readonly kind: string; readonly id: number; readonly path: string } | null
}

const exitCodes = { yes: 0, wrong: 2, no: 3, 'could not run': 4 } as const

/** The exit code. */
export async function runPreflight(command: PreflightCommand, edge: ControlEdge): Promise<number> {
  const { terminal, folder } = edge
  const print = (report: PreflightReport): void =>
    terminal.print(command.output === 'json' ? JSON.stringify(report) : textOf(report))
  let opened: Awaited<ReturnType<typeof openConfig>>
  try {
    opened = await openConfig(resolve(folder, command.config), edge)
  } catch (error) {
    print({ answer: 'could not run', reasons: [reasonOf(error)], ...unknown })
    return isUnanswered(error) ? exitCodes['could not run'] : exitCodes.wrong
  }
  try {
    const { world, config, loadGraph } = opened
    const {
      from,
      empty,
      goesOn = false,
      allowNonRestoredState = false,
      allowDrained = false,
    } = config.job.restore ?? {}
    const against = command.against ?? from
    const found = await preflight(world, {
      load: () => loadGraph!({}),
      against: against === undefined ? undefined : absolutePlace(against, folder).manifest,
      restore: {
        goesOn,
        allowNonRestoredState,
        allowDrained,
        ...(empty !== undefined && command.against === undefined && { empty }),
      },
    })
    print(reportOf(found, opened))
    return exitCodes[found.answer]
  } finally {
    await opened.close()
  }
}

const unknown: Omit<PreflightReport, 'answer' | 'reasons'> = {
  parallelism: null,
  slotsNeeded: null,
  graphHash: null,
  maxParallelism: null,
  uids: null,
  against: null,
}

function reportOf(
  { answer, reasons, graph, slotsNeeded, against }: Preflight,
  { world }: OpenedTarget,
): PreflightReport {
  const held = against && { kind: against.kind, id: against.id, path: world.stores.locate(against.path) }
  if (graph === undefined) return { answer, reasons, ...unknown }
  return {
    answer,
    reasons,
    parallelism: Math.max(...graph.vertices.map(({ parallelism }) => parallelism)),
    slotsNeeded: slotsNeeded ?? null,
    graphHash: graph.hash,
    maxParallelism: graph.maxParallelism,
    uids: graph.vertices.flatMap(({ chain }) => chain.map(({ uid, uidGiven }) => ({ uid, given: uidGiven }))),
    against: held ?? null,
  }
}

function textOf({ answer, reasons, slotsNeeded, parallelism, against }: PreflightReport): string {
  return [
    answer === 'yes'
      ? 'Yes: the job can begin.'
      : answer === 'no'
        ? 'No: the job cannot begin.'
        : 'It could not be found out.',
    ...reasons.map(({ message }) => message),
    ...(against === null ? [] : [`Held against ${against.kind} ${against.id}, ${against.path}.`]),
    ...(against === null && answer === 'yes' ? ['It begins from the beginning: there is no restore point.'] : []),
    ...(parallelism === null || slotsNeeded === null
      ? []
      : [`Parallelism ${parallelism}, ${counted(slotsNeeded, 'slot', 'slots')}.`]),
  ].join('\n')
}
