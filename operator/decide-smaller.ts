// A job that does not get the slots of its size and is asked for a smaller one: a rescale in place needs it to run, so it starts again at that
// size where HEAD says. A larger one waits until it runs: more slots are no remedy.

import type { Decision, Observed, StreamJobStatus } from './contract.ts'
import { normal, record } from './decide-answers.ts'
import { comesUpMs, ownCoordinator, podsOf, validSpec } from './decide-facts.ts'
import { beginTransition, without } from './status.ts'
import { timeMs } from './status-time.ts'
import { closeChoice } from './upgrade.ts'

/** undefined: it runs, may soon run and then be rescaled in place, or no smaller size is asked for. */
export function smallerStart(observed: Observed, status: StreamJobStatus): Decision | undefined {
  const { revision, parallelism: from, refusedSize } = status
  const to = validSpec(observed, status)?.parallelism
  if (to === undefined || to >= from || to === refusedSize?.parallelism || !lacksSlots(observed, status))
    return undefined
  const sinceMs = stillSinceMs(status)
  if (sinceMs === undefined || observed.nowMs - sinceMs < comesUpMs) return undefined
  const next = beginTransition(observed, without(status, 'refusedSize'), {
    kind: 'restart',
    step: 'closing',
    mode: 'last-state',
    from: revision,
    to: revision,
  })
  // Without checkpoints, what still runs has state that is nowhere else: to give it up is the user's to say, by restartNonce and upgradeMode.
  if (closeChoice(observed, next).how === 'block') return undefined
  const message = `The job does not get the slots for parallelism ${from}, and starts again with the ${to} that are asked for.`
  return record(observed, next, 'a smaller size is asked for than there is no room for', [
    normal('Restarting', message),
  ])
}

function lacksSlots(observed: Observed, status: StreamJobStatus): boolean {
  const own = ownCoordinator(observed, status)
  if (own === undefined) return lacksPods(observed, status)
  const { end, state, slotsNeeded, slotsOffered } = own
  if (end !== 'none' || state === 'running' || slotsNeeded === undefined || slotsOffered === undefined) return false
  return slotsOffered < slotsNeeded
}

/** Of a start that nobody speaks for. The tasks of a settled job run on without a coordinator: that has to lack its own place. */
function lacksPods(observed: Observed, status: StreamJobStatus): boolean {
  const { transition, workers } = status
  const coordinators = podsOf(observed, 'coordinator')
  if (transition === undefined)
    return (
      !observed.coordinator.known &&
      hasCompletedHere(status) &&
      coordinators.every(({ trouble }) => trouble?.reason === 'Unschedulable')
    )
  const ready = [...coordinators, ...podsOf(observed, 'worker')].filter((pod) => pod.ready)
  return ready.length < workers + 1
}

/** The start that runs has completed a checkpoint, also where nobody answers for it: ids only grow. */
export function hasCompletedHere({ lastCheckpoint, restorePoint }: StreamJobStatus): boolean {
  if (lastCheckpoint === undefined) return false
  if (restorePoint === undefined || restorePoint.start === 0) return true
  return restorePoint.id !== undefined && lastCheckpoint.id > restorePoint.id
}

/** Since when it has come no further; undefined: it was running when it was last looked at. */
function stillSinceMs({ transition, conditions }: StreamJobStatus): number | undefined {
  if (transition !== undefined) return timeMs(transition.progressAt)
  const ready = conditions.find(({ type }) => type === 'Ready')
  return ready === undefined || ready.status === 'True' ? undefined : timeMs(ready.lastTransitionTime)
}
