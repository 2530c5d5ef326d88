// Children against the rendering that was recorded for their revision, never against today's builder: what is missing or was edited is
// repaired to it. What is foreign is left alone and told.

import type { Action, ChildFact, Decision, Observed, Revision, StreamJobStatus } from './contract.ts'
import { START_IN_RENDERING } from './contract.ts'
import { record } from './decide-answers.ts'
import { ownCoordinator, ownRevision, podsOf, workersFor, workload } from './decide-facts.ts'
import { timeMs } from './status-time.ts'

/** `Kind/name` of everything that this start of the revision has. */
function expectedChildren({ rendering }: Revision, start: number): string[] {
  return Object.keys(rendering).map((key) => key.replaceAll(START_IN_RENDERING, String(start)))
}

export interface ChildrenState {
  /** Missing or not as rendered, and ours to repair. */
  readonly wrong: readonly string[]
  /** Of our names, and not ours. */
  readonly foreign: readonly string[]
  /** They are going, and cannot be made yet. */
  readonly going: readonly string[]
  readonly workers: 'right' | 'wrong' | 'missing'
}

/** Of the running start; undefined: its revision is not there. */
export function childrenOf(observed: Observed, status: StreamJobStatus): ChildrenState | undefined {
  const revision = ownRevision(observed, status)
  if (revision === undefined) return undefined
  const expected = expectedChildren(revision, status.start).map((key) => [key, observed.children[key]] as const)
  const wrong = expected.filter(([, child]) => child === undefined || isWrong(child, status))
  const sets = workload(observed, 'StatefulSet')
  return {
    wrong: wrong.map(([key]) => key),
    foreign: expected.filter(([, child]) => child?.ownedByJob === false).map(([key]) => key),
    going: expected.filter(([, child]) => child?.ownedByJob === true && child.deleting).map(([key]) => key),
    workers: sets === undefined || sets.deleting ? 'missing' : sets.replicas === status.workers ? 'right' : 'wrong',
  }
}

function isWrong(child: ChildFact, { revision, start }: StreamJobStatus): boolean {
  if (!child.ownedByJob || child.deleting) return false
  const isOther =
    (child.revision !== undefined && child.revision !== revision) ||
    (child.start !== undefined && child.start !== start)
  return isOther || !child.asRendered
}

/** undefined: nothing is to be repaired. */
export function repairOf(observed: Observed, status: StreamJobStatus): readonly Action[] | undefined {
  const state = childrenOf(observed, status)
  if (state === undefined || status.begin === undefined) return undefined
  const { revision, start, workers, begin } = status
  if (state.wrong.length > 0) return [{ type: 'applyChildren', revision: revision!, start, workers, begin }]
  const set = workload(observed, 'StatefulSet')
  return state.workers === 'wrong' ? [{ type: 'scaleWorkers', to: workers, of: set! }] : undefined
}

/** What must not wait for anything: each of these changes what is observed, so that it is not decided again. */
export function urgentActions(observed: Observed, status: StreamJobStatus | undefined): readonly Action[] {
  // One at a time: that one is refused says nothing of the next, and nothing else waits for it.
  const stuck = stuckPods(observed, stuckMs)
    .filter(({ uid }) => observed.refusedPods?.has(uid) !== true)
    .slice(0, 1)
    .map((of): Action => ({ type: 'delete', of, force: true }))
  return status === undefined ? stuck : [...lostWorkers(observed, status), ...stuck]
}

/** Past its grace for so long: the kubelet is gone. HEAD makes it safe to go on without it. */
const stuckMs = 30_000

/** Those that are being deleted on a node that does not answer, at once; others so long past their grace. */
export function stuckPods({ pods, nowMs }: Observed, pastGraceMs: number) {
  return pods.filter(
    ({ deletingSince, graceSeconds, nodeSilent }) =>
      deletingSince !== undefined &&
      (nodeSilent || nowMs >= timeMs(deletingSince) + (graceSeconds ?? 30) * 1_000 + pastGraceMs),
  )
}

/** The coordinator hears of a pod's end from us before its heartbeats are missed. */
function lostWorkers(observed: Observed, status: StreamJobStatus): Action[] {
  const own = ownCoordinator(observed, status)
  if (own === undefined || own.end !== 'none') return []
  const registered = own.workers.filter(({ state }) => state === 'registered').map(({ name }) => name)
  const dead = podsOf(observed, 'worker').filter(
    ({ phase, nodeLost, deletingSince }) =>
      phase === 'Failed' || phase === 'Succeeded' || (nodeLost && deletingSince !== undefined),
  )
  const alive = new Set(podsOf(observed, 'worker').map(({ name }) => name))
  const lost = [
    ...dead.map(({ name, uid, phase, nodeLost }) => ({
      name,
      uid,
      reason: nodeLost ? 'its node is lost' : `its pod is ${phase}`,
    })),
    ...observed.lostWorkers.filter(({ name }) => !alive.has(name)),
  ]
  return lost
    .filter(({ name }) => registered.includes(name))
    .map(({ name, uid, reason }) => ({
      type: 'request',
      request: {
        type: 'lost',
        start: status.start,
        // Once for each pod: a cache that is behind says nothing of the next one, whose own end is told again.
        request: `lost-${uid.slice(0, 8)}-${own.incarnation}-${name}`.slice(0, 64),
        worker: name,
        reason,
      },
    }))
}

/** Workloads and what else would keep pods alive; the rest is deleted with the job. */
export function takeDown(observed: Observed, kinds: readonly ('Deployment' | 'StatefulSet')[]): readonly Action[] {
  return kinds.flatMap((kind): Action[] => {
    const child = workload(observed, kind)
    return child === undefined || child.deleting ? [] : [{ type: 'delete', of: child, force: false }]
  })
}

/** What earlier starts, revisions and short pods have left. Only in a settled job. */
export function leftovers(observed: Observed, status: StreamJobStatus): readonly Action[] {
  const kept = new Set([status.revision, status.stableRevision])
  // A disposal is its Savepoint's.
  const pods = observed.pods.filter(({ purpose }) => purpose !== undefined && purpose !== 'admin-dispose')
  const pastStarts = Object.entries(observed.children).filter(
    ([key, { ownedByJob, start, deleting }]) =>
      key.startsWith('ConfigMap/') && ownedByJob && !deleting && start !== undefined && start < status.start,
  )
  return [
    ...pods
      .filter(({ deletingSince }) => deletingSince === undefined)
      .map((of): Action => ({ type: 'delete', of, force: false })),
    ...pastStarts.map(([, of]): Action => ({ type: 'delete', of, force: false })),
    ...observed.revisions
      .filter(({ name }) => !kept.has(name))
      .map(({ name }): Action => ({ type: 'deleteRevision', revision: name })),
  ]
}

/** Workers are as many as the coordinator needs: the graph may have several slot-sharing groups, and HEAD another size than was expected. */
export function sizedByNeed(observed: Observed, status: StreamJobStatus): Decision | undefined {
  const own = ownCoordinator(observed, status)
  const revision = ownRevision(observed, status)
  if (status.ended !== undefined || own?.slotsNeeded === undefined || own.state === 'ended' || revision === undefined)
    return undefined
  const workers = workersFor({ slotsNeeded: own.slotsNeeded, slots: revision.spec.worker.slots })
  if (workers === status.workers) return undefined
  return record(observed, { ...status, workers }, 'the graph needs another number of workers')
}
