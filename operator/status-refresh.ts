// What status shows of a job, brought up to date from what is observed. Equal facts give an equal status: a settled job is never written.

import type { Observed, Phase, StreamJobStatus } from './contract.ts'
import { conditionsOf } from './conditions.ts'
import { ownCoordinator, ownRevision, settingsOf } from './decide-facts.ts'
import { selectorText } from './resources/labels.ts'
import { canonicalJson } from './revision.ts'
import { timeMs } from './status-time.ts'

/** Between two writes that only tell of a newer checkpoint. */
const checkpointEveryMs = 30_000

export function refreshed(observed: Observed, status: StreamJobStatus): StreamJobStatus {
  const { job } = observed
  const own = ownCoordinator(observed, status)
  const checkpoint = lastCheckpointOf(observed, status)
  const fresh: StreamJobStatus = {
    ...status,
    observedGeneration: job.generation,
    jobId: job.uid,
    phase: phaseOf(observed, status),
    restarts: own?.restarts ?? status.restarts,
    parallelism: own !== undefined && own.end === 'none' && own.parallelism > 0 ? own.parallelism : status.parallelism,
    labelSelector: labelSelectorOf(observed, status),
    ...(checkpoint && { lastCheckpoint: checkpoint }),
    ...(observed.spec.fits && { settings: settingsOf(observed.spec.spec) }),
  }
  return { ...fresh, conditions: conditionsOf(observed, fresh) }
}

/** Whether a write would change anything. */
export function differs(left: StreamJobStatus, right: StreamJobStatus): boolean {
  return canonicalJson(left) !== canonicalJson(right)
}

function lastCheckpointOf(observed: Observed, status: StreamJobStatus): StreamJobStatus['lastCheckpoint'] {
  const { lastCheckpoint: known } = status
  const found = ownCoordinator(observed, status)?.lastCheckpoint
  if (found === undefined || known === undefined) return found ?? known
  // A coordinator that was lost may know an older one.
  return timeMs(found.time) - timeMs(known.time) >= checkpointEveryMs ? found : known
}

/** A horizontal autoscaler counts pods by it, which are no measure of parallelism where a worker has several slots. */
function labelSelectorOf(observed: Observed, status: StreamJobStatus): string {
  const slots = ownRevision(observed, status)?.spec.worker.slots
  if (slots === undefined) return status.labelSelector
  return slots === 1 ? selectorText(observed.job, 'worker') : ''
}

function phaseOf(observed: Observed, status: StreamJobStatus): Phase {
  if (observed.job.deletingSince !== undefined) return 'DELETING'
  const { transition, ended, start, phase } = status
  if (transition !== undefined) {
    switch (transition.kind) {
      case 'start':
        return 'STARTING'
      case 'restart':
        return 'RESTARTING'
      case 'upgrade':
      case 'rollback':
        return 'UPGRADING'
      case 'rescale':
        return 'RESCALING'
      case 'suspend':
        return 'SUSPENDING'
      case 'delete':
        return 'DELETING'
      default:
        return transition.kind satisfies never
    }
  }
  if (ended !== undefined) return ended
  if (start === 0) return observed.spec.fits && observed.spec.spec.state === 'suspended' ? 'SUSPENDED' : 'PENDING'
  switch (ownCoordinator(observed, status)?.state) {
    case 'starting':
      return 'STARTING'
    case 'restarting':
      return 'RESTARTING'
    case 'running':
      return 'RUNNING'
    // Nobody says otherwise: without a coordinator the tasks run on.
    default:
      return phase === 'STARTING' || phase === 'RESTARTING' ? phase : 'RUNNING'
  }
}
