// The heart: what is to be done about one StreamJob, from what was observed. Pure. A decision writes status, or acts on the status that is
// written, or waits; so a killed operator finds its place again from status and objects, whichever write it was killed after.

import type { Decision, Observed, StreamJobStatus } from './contract.ts'
import { FINALIZER, STATUS_VERSION } from './contract.ts'
import { act, record, wait } from './decide-answers.ts'
import { repairOf, urgentActions } from './decide-children.ts'
import { decideDeletion } from './decide-delete.ts'
import { hasRemains, ownRevision, validSpec } from './decide-facts.ts'
import { beginRecovery, caughtUp, decideRecovering } from './decide-recover.ts'
import { decideGrowing, decideRescaling, decideShrinking } from './decide-rescale.ts'
import { changeOf, decideSettled } from './decide-settled.ts'
import { isSupported } from './decide-supported.ts'
import { firstStatus } from './status.ts'
import { differs, refreshed } from './status-refresh.ts'
import { decideClosed, decideClosing } from './upgrade-close.ts'
import { decidePreparing } from './upgrade-prepare.ts'
import { decideStabilising, decideStarting } from './upgrade-start.ts'

export function decide(observed: Observed): Decision {
  const { status, job, namespaceTerminating, operatorVersion } = observed
  const version: number | undefined = status?.version
  if (version !== undefined && version > STATUS_VERSION)
    return wait('status was written by a newer operator: hands off')
  const deletion = job.deletingSince === undefined ? undefined : decideDeletion(observed, status)
  // Its last act waits for nothing: the rights to write status and to take pods away may be gone too.
  if (deletion?.kind === 'act' && deletion.actions.some(({ type }) => type === 'removeFinalizer')) return deletion
  const urgent = urgentActions(observed, status)
  if (urgent.length > 0) return act('pods were lost', ...urgent)
  if (deletion !== undefined) return shown(observed, deletion)
  if (namespaceTerminating) return wait('the namespace goes')
  if (status === undefined) {
    const first = firstStatus(observed)
    return hasRemains(observed)
      ? beginRecovery(observed, first)
      : record(observed, first, 'the job was not seen before')
  }
  const unread = observed.unseen.find((each) => each.unread !== undefined)
  if (unread !== undefined) return shown(observed, wait(`whether revision ${unread.name} is there is not known`, 5_000))
  const revision = ownRevision(observed, status)
  const isForeignRuntime = revision !== undefined && !isSupported(operatorVersion, revision.operatorVersion)
  return shown(observed, isForeignRuntime ? wait('its runtime is of another version') : decideLife(observed, status))
}

/** Before it acts or waits, status shows what is the case. */
function shown(observed: Observed, decision: Decision): Decision {
  const { status } = observed
  if (decision.kind === 'record' || status === undefined) return decision
  const fresh = refreshed(observed, status)
  return differs(fresh, status) ? record(observed, status, 'what is observed has changed') : decision
}

function decideLife(observed: Observed, status: StreamJobStatus): Decision {
  const { coordinator, job } = observed
  // An uninstallation has taken it off, and the job has run on.
  if (status.start > 0 && !job.finalizers.includes(FINALIZER))
    return act('deletion has HEAD to close, and the finalizer is gone', { type: 'addFinalizer' })
  if (coordinator.known && status.start > 0 && coordinator.value.start > status.start)
    return caughtUp(observed, status, coordinator.value)
  if (status.start > 0 && validSpec(observed, status) === undefined)
    return wait('the spec is not valid, and the revision with the last one that was is gone', 5_000)
  const { transition } = status
  if (transition === undefined) return decideSettled(observed, status)
  // How many workers a size needs is said by the revision.
  if (transition.kind === 'rescale' && ownRevision(observed, status) === undefined)
    return editedOf(observed, status) ?? wait('the revision that is rescaled is gone', 5_000)
  switch (transition.step) {
    case 'recovering':
      return decideRecovering(observed, status)
    case 'preparing':
      return keptUp(observed, status, decidePreparing(observed, status))
    case 'closing':
      return keptUp(observed, status, decideClosing(observed, status))
    case 'closed':
      return decideClosed(observed, status)
    case 'starting':
      return editedOf(observed, status) ?? decideStarting(observed, status)
    case 'stabilising':
      return editedOf(observed, status) ?? decideStabilising(observed, status)
    case 'growing':
      return editedOf(observed, status) ?? decideGrowing(observed, status)
    case 'rescaling':
      return editedOf(observed, status) ?? keptUp(observed, status, decideRescaling(observed, status))
    case 'shrinking':
      return decideShrinking(observed, status)
    default:
      return transition.step satisfies never
  }
}

/** While it waits, what still runs is looked after: without its coordinator a savepoint would be waited for in vain. */
function keptUp(observed: Observed, status: StreamJobStatus, decision: Decision): Decision {
  if (decision.kind !== 'wait' || status.ended === 'SUSPENDED') return decision
  const repair = repairOf(observed, status)
  return repair === undefined ? decision : act('children are not as this start has them', ...repair)
}

/** A start that is not stable yet, or is being rescaled, may be replaced by the next; the stable revision stays what it was. */
function editedOf(observed: Observed, status: StreamJobStatus): Decision | undefined {
  const spec = validSpec(observed, status)
  return spec && changeOf(observed, status, spec)
}
