// Carries out what was decided about a job: each action once or any number of times, conditional on the very objects that were observed.

import { applyChildren, codeOfRevision, createOwned, deleteRevision, storeRevision } from './act-children.ts'
import type { ChildrenContext } from './act-children.ts'
import { jobNameOf } from './caches.ts'
import { sharedNatsText } from './contract.ts'
import type { Action, EventAction, ObjectIdentity } from './contract.ts'
import type { SavepointAction, SavepointFact } from './savepoint-contract.ts'
import type { Coordinators } from './coordinator-client.ts'
import type { Events } from './events.ts'
import { KubeError } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'
import type { SeenJob, SeenSavepoint } from './observe.ts'
import { disposalPod } from './resources/disposal-pod.ts'
import type { OwnerJob } from './resources/objects.ts'
import { shortPod } from './resources/short-pod.ts'
import { savepointObject } from './savepoint-objects.ts'

export interface ActContext extends Omit<ChildrenContext, 'job'> {
  readonly events: Events
  readonly coordinators: Coordinators
}

/** In their order; the first that fails ends the rest, but for a deletion at its end, which nothing may hold up. */
export async function act(context: ActContext, seen: SeenJob, actions: readonly Action[]): Promise<void> {
  const isLast = actions.some(({ type }) => type === 'removeFinalizer')
  for (const action of actions) {
    try {
      await carryOut(context, seen, action)
    } catch (error) {
      if (!isLast || action.type === 'removeFinalizer') throw error
      context.log('warn', 'the deletion goes on without', { action: action.type, error: String(error) })
    }
  }
}

async function carryOut(context: ActContext, seen: SeenJob, action: Action): Promise<void> {
  const { writer, events, coordinators, caches } = context
  const { owner, observed, coordinator } = seen
  // A status write or an action before may have given it a newer version.
  const object = caches.get(types.streamJob, owner.namespace, owner.name) ?? seen.object
  const children: ChildrenContext = { ...context, job: owner }
  switch (action.type) {
    case 'addFinalizer':
      return writer.finalizer(seen.object, true)
    case 'removeFinalizer':
      return writer.finalizer(object.metadata.uid === owner.uid ? object : seen.object, false)
    case 'storeRevision':
      if ((await storeRevision(children, observed, action)) === 'shared')
        await events.tell(object, sharedNats(action.revision.name))
      return
    case 'deleteRevision':
      return deleteRevision(children, action.revision)
    case 'applyChildren':
      return applyChildren(children, observed, action)
    case 'scaleWorkers':
      return void (await writer.patch(action.of, { spec: { replicas: action.to } }))
    case 'delete':
      return writer.delete(action.of, action)
    case 'request': {
      if (coordinator === undefined) throw new Error('the coordinator cannot be asked: its access is not known')
      return coordinators.request(owner.uid, coordinator, action.request)
    }
    case 'runPod': {
      const revision = observed.revisions.find(({ name }) => name === action.revision)
      if (revision === undefined) throw new Error(`revision ${action.revision} is not there`)
      await codeOfRevision(children, observed, revision)
      const { pod: purpose, request, start, begin } = action
      const { name, rendering } = revision
      const words = action.arguments
      return createOwned(
        writer,
        owner,
        shortPod({ job: owner, purpose, request, revision: name, rendering, start, begin, arguments: words }),
      )
    }
    case 'createSavepoint':
      // It has no owner: the job that it names says whose it is.
      return writer.create(savepointObject(observed.job, action), (there) => jobNameOf(there) === owner.name)
    case 'recordSavepoint':
      return recordSavepoint(context, action.of, action)
    case 'event':
      return events.tell(object, action)
    default:
      return action satisfies never
  }
}

function sharedNats(revision: string): EventAction {
  return {
    type: 'event',
    kind: 'Warning',
    reason: 'SharedNatsCredentials',
    message: `Revision ${revision} has ${sharedNatsText}`,
  }
}

/** Those of one Savepoint object by itself. */
export async function actOnSavepoint(
  context: ActContext,
  { observed, object }: SeenSavepoint,
  actions: readonly SavepointAction[],
): Promise<void> {
  const { writer, events } = context
  const { savepoint } = observed
  for (const action of actions)
    switch (action.type) {
      case 'addFinalizer':
      case 'removeFinalizer':
        await writer.finalizer(object, action.type === 'addFinalizer')
        break
      case 'recordSavepoint':
        await recordSavepoint(context, savepoint, action)
        break
      case 'runDisposal': {
        const { namespace, name, uid } = savepoint
        const { origin } = action
        const owner: OwnerJob = { namespace, name, uid }
        await createOwned(writer, owner, disposalPod({ savepoint: owner, origin, arguments: action.arguments }))
        break
      }
      case 'delete':
        await writer.delete(action.of, action)
        break
      case 'event':
        await events.tell(object, action)
        break
      default:
        action satisfies never
    }
}

async function recordSavepoint(
  { writer, caches }: ActContext,
  of: ObjectIdentity,
  {
    state,
    path,
    detail,
    origin,
  }: Pick<Extract<SavepointAction, { type: 'recordSavepoint' }>, 'state' | 'path' | 'detail' | 'origin'>,
): Promise<void> {
  const known = caches.get(types.savepoint, of.namespace, of.name)
  if (known?.metadata.uid !== of.uid || known.metadata.resourceVersion !== of.resourceVersion)
    throw new KubeError(409, 'Conflict', `Savepoint ${of.namespace}/${of.name} has changed`)
  // What it waited for is not why it failed.
  const { detail: _, ...before } = (known['status'] ?? {}) as Partial<NonNullable<SavepointFact['status']>>
  const status: SavepointFact['status'] = {
    ...before,
    state,
    ...(path !== undefined && { path }),
    ...(detail !== undefined && { detail }),
    ...(origin !== undefined && { origin }),
  }
  await writer.status(known, status)
}
