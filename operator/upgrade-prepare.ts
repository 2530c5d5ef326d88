// A transition's first step: the revision is stored, with its code, and an upgrade is tried out by a preflight pod while the job still runs.

import type { Action, Decision, Observed, Revision, StreamJobStatus } from './contract.ts'
import { FINALIZER } from './contract.ts'
import { desiredOf, isBlocked, revisionToStore } from './decide-desired.ts'
import type { Desired } from './decide-desired.ts'
import { revisionNamed, shortPod, wasStored } from './decide-facts.ts'
import { preflightAnswer, preflightMs } from './decide-outputs.ts'
import { act, normal, record, wait, warning } from './decide-answers.ts'
import { askedRestore } from './decide-restore-from.ts'
import { beginTransition, endTransition, toStep } from './status.ts'
import { timeMs } from './status-time.ts'
import { beginOf, startOf } from './upgrade-start.ts'

export function decidePreparing(observed: Observed, status: StreamJobStatus): Decision {
  const transition = status.transition!
  const desired = desiredOf(observed)
  if (observed.spec.fits && observed.spec.spec.state === 'suspended')
    return givenUp(observed, status, 'the job is to be suspended')
  // Set back to what runs: nothing was touched yet.
  if (desired.kind === 'known' && transition.kind === 'upgrade' && desired.revision.name === transition.from)
    return givenUp(observed, status, 'the spec was set back')
  if (isOtherRestore(observed, status, desired)) return givenUp(observed, status, 'restoreNonce asks for another start')
  const stored = revisionNamed(observed, transition.to)
  if (stored === undefined) return store(observed, status, desired)
  if (desired.kind === 'known' && desired.hash !== stored.hash) {
    if (isBlocked(desired, status)) return givenUp(observed, status, 'the spec was set back to one that was refused')
    const next = beginTransition(observed, status, { ...transition, to: desired.revision.name })
    return record(observed, next, 'the spec was edited again')
  }
  if (transition.kind === 'start') {
    if (!observed.job.finalizers.includes(FINALIZER))
      return act('deletion will have HEAD to close', { type: 'addFinalizer' })
    return record(observed, startOf(observed, status), 'the revision is stored')
  }
  return preflight(observed, status, stored)
}

/** Of a first start it is not asked: that begins at restoreFrom in any case. */
function isOtherRestore(observed: Observed, status: StreamJobStatus, desired: Desired): boolean {
  const { kind, restoreNonce } = status.transition!
  if (kind === 'start' || desired.kind !== 'known' || isBlocked(desired, status)) return false
  return askedRestore(observed, status)?.restoreNonce !== restoreNonce
}

function store(observed: Observed, status: StreamJobStatus, desired: Desired): Decision {
  const name = status.transition!.to!
  if (wasStored(status, name)) return givenUp(observed, status, 'the revision was deleted')
  if (desired.kind !== 'known')
    return desired.kind === 'unknown'
      ? wait(desired.message, 5_000)
      : givenUp(observed, status, 'the spec became one that cannot be run')
  return act('the revision is not stored yet', ...storing(observed, desired, name))
}

export function storing(observed: Observed, desired: Desired & { readonly kind: 'known' }, name: string): Action[] {
  return [{ type: 'storeRevision', revision: revisionToStore(observed, desired, name) }]
}

/** Nothing was touched yet: as if it had not begun. */
function givenUp(observed: Observed, status: StreamJobStatus, why: string): Decision {
  return record(observed, endTransition(observed, status), why)
}

function preflight(observed: Observed, status: StreamJobStatus, stored: Revision): Decision {
  const { request, to, stepAt, restoreNonce } = status.transition!
  const goOn = (why: string, ...events: Parameters<typeof record>[3] & object): Decision =>
    record(observed, afterPreparing(observed, status), why, events)
  const unknown = (why: string): Decision =>
    goOn(
      'the preflight could not run',
      warning('PreflightCouldNotRun', `The new revision was not tried out: ${why}. The upgrade goes on.`),
    )
  // Edited code is another revision of the same generation, and may get the name of one that was refused and is gone: what a pod said of that
  // is not said of this one.
  const ofRevision = `${request}-${stored.hash.slice(0, 16)}`
  const pod = shortPod(observed, 'preflight', ofRevision)
  if (pod === undefined) {
    if (observed.nowMs - timeMs(stepAt) > preflightMs + 15_000) return unknown('its pod could not be made')
    return act('the new revision is tried out', {
      type: 'runPod',
      pod: 'preflight',
      request: ofRevision,
      revision: to!,
      start: Math.max(1, status.start),
      begin: beginOf(observed, status),
      arguments: ['preflight', '--output', 'json'],
    })
  }
  const answer = preflightAnswer(pod, observed.nowMs)
  switch (answer.kind) {
    case 'running':
      return wait('the preflight runs', 1_000)
    case 'yes':
      return goOn('the preflight said yes', normal('PreflightPassed', `Revision ${to} fits the state of the job.`))
    case 'could not run':
      return unknown(answer.why)
    case 'no': {
      const desired = desiredOf(observed)
      const asked = restoreNonce === undefined ? '' : ' spec.restoreNonce is answered by the start that comes then.'
      const message = `The new revision was refused, and the job runs on as it was. ${answer.reasons} Mend it, or raise spec.restartNonce to try it again.${asked}`
      if (desired.kind !== 'known') return wait(desired.message, 5_000)
      const blocked = { key: desired.key, reason: 'PreflightRefused', message }
      const next = { ...endTransition(observed, status), blocked }
      return record(observed, next, 'the preflight said no', [warning('PreflightRefused', message)])
    }
    default:
      return answer satisfies never
  }
}

/** A suspended job has been closed: its restore point stands in status. */
function afterPreparing(observed: Observed, status: StreamJobStatus): StreamJobStatus {
  const isClosed = status.ended === 'SUSPENDED' && status.restorePoint !== undefined
  return toStep(observed, status, isClosed ? 'closed' : 'closing')
}
