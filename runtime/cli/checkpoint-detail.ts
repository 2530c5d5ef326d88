// `millrace checkpoints --id`: one checkpoint or savepoint, with what each subtask took.

import type { CheckpointId } from '../base/ids.ts'
import { rememberedCheckpoint } from '../rest/checkpoint-views.ts'
import type { StoredFigures } from '../rest/checkpoint-views.ts'
import { snapshotsRemembered } from '../rest/job-history.ts'
import { checkpoint as checkpointResource } from '../rest/resources.ts'
import type { CheckpointResource } from '../rest/resources.ts'
import type { ControlTarget, LocalTarget } from './control-words.ts'
import { commandError } from './errors.ts'
import { contactJob } from './job-client.ts'
import { localWorld, namedJob } from './named-job.ts'
import type { ControlEdge } from './named-job.ts'
import { formatDuration, grouped } from './progress.ts'
import { reach } from './remote-job.ts'
import { localRecord, noHistory, remoteRecord } from './stored-history.ts'
import { table } from './table.ts'
import { timeText } from './time-text.ts'

/** Throws MR-L33 for one that HEAD does not name, and that is not among the last ones; else what the way to the job throws. */
export async function oneCheckpoint(
  id: CheckpointId,
  target: ControlTarget,
  edge: ControlEdge,
): Promise<CheckpointResource> {
  if (target.kind === 'local') return ofLocal(id, target, edge)
  const reached = await reach(target, edge)
  if (reached.kind === 'over') return stored(id, await remoteRecord(reached.config, edge.terminal))
  return reached.client.get(`/v1/checkpoints/${id}`, checkpointResource)
}

async function ofLocal(id: CheckpointId, target: LocalTarget, edge: ControlEdge): Promise<CheckpointResource> {
  const world = await localWorld(edge, target.folder)
  const job = await namedJob(target.job, edge, world)
  const contact = await contactJob(job)
  if (contact.kind === 'running') {
    const asked = await contact.client.get(`/v1/checkpoints/${id}`, checkpointResource)
    // Else it ended between two questions.
    if (asked !== undefined) return asked
  }
  return stored(id, await localRecord(job, world, edge.terminal))
}

/** Of a job that nobody runs. */
function stored(id: CheckpointId, record: StoredFigures): CheckpointResource {
  const found = rememberedCheckpoint(id, record)
  if (found !== undefined) return found
  const why =
    record.remembered === undefined
      ? `HEAD does not name it. ${noHistory}`
      : `HEAD does not name it, and it is not among the last ${snapshotsRemembered} that completed or failed: no more are remembered.`
  throw commandError('MR-L33', `Checkpoint ${id} of ${record.head.job}: ${why}`)
}

export function detailText(found: CheckpointResource): string {
  switch (found.state) {
    case 'pending': {
      const { id, kind, phase, forMs, missing } = found
      const waits = missing.length === 0 ? '' : `; not acknowledged: ${missing.join(', ')}`
      return `${kind} ${id} is pending for ${formatDuration(forMs)} (${phase})${waits}`
    }
    case 'failed':
      return `${found.id} failed at ${timeText(found.atMs)} (${found.reason}): ${found.detail}`
    case 'completed':
      return completedText(found)
    default:
      return found satisfies never
  }
}

const heads = ['subtask', 'start delay', 'alignment', 'sync', 'async', 'bytes', '']

function completedText(found: Extract<CheckpointResource, { readonly state: 'completed' }>): string {
  const { id, kind, path, completedAtMs, durationMs, bytes, retained, subtasks } = found
  const took = durationMs === null ? '' : ` in ${formatDuration(durationMs)}`
  const lines = [
    `${kind} ${id} completed at ${timeText(completedAtMs)}${took}, ${grouped(bytes)} bytes${retained ? ', retained' : ''}`,
    path,
  ]
  if (subtasks === null) return [...lines, 'What each subtask took is not remembered.'].join('\n')
  const rows = subtasks.map(({ vertex, subtask, finished, startDelayMs, alignmentMs, syncMs, asyncMs, bytes: own }) => [
    `${vertex}/${subtask}`,
    startDelayMs === null ? '-' : formatDuration(startDelayMs),
    formatDuration(alignmentMs),
    formatDuration(syncMs),
    formatDuration(asyncMs),
    grouped(own),
    finished ? 'had finished' : '',
  ])
  return [...lines, '', table([heads, ...rows])].join('\n')
}
