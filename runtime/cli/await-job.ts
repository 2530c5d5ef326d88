// Waits for what a running job was asked for. The process that was asked may end, or be followed by another one, while we wait: HEAD
// has what came of it.

import { requestId } from '../base/ids.ts'
import type { LocalWorld, StoredJob } from '../local/local-jobs.ts'
import { headKeeperOf, snapshotFolderIn } from '../local/local-jobs.ts'
import { headView, manifestView } from '../rest/job-views.ts'
import type { HeadSummary, ManifestResource } from '../rest/resources.ts'
import type { Head } from '../storage/head-contract.ts'
import { commandError } from './errors.ts'
import { contactJob } from './job-client.ts'
import { isOver, savepointOfWishedEnd } from './job-end.ts'
import { nextLook } from './next-look.ts'
import { snapshotCall, snapshotState, subjects } from './snapshot-request.ts'
import type { SnapshotState, SnapshotWish } from './snapshot-request.ts'

export interface SnapshotOrder {
  readonly stored: StoredJob
  readonly world: LocalWorld
  readonly wish: SnapshotWish
  /** undefined: a new one. */
  readonly request: string | undefined
  readonly timeoutMs: number
}

/** The snapshot. Throws MR-L31 when the job does not run, MR-L33 when it was refused or has failed, MR-L35 after the timeout. */
export async function orderSnapshot(order: SnapshotOrder): Promise<ManifestResource> {
  const { stored, world, wish, timeoutMs } = order
  const request = order.request ?? world.environment.random.id()
  const subject = subjects[wish.mode]
  const untilMs = performance.now() + timeoutMs
  const contact = await contactJob(stored)
  if (contact.kind === 'not running') throw await notRunning(order)
  const { client } = contact
  const { path, answerPath, schema, body } = snapshotCall(wish, request)
  let answer = await client.post(path, schema, body)
  for (;;) {
    const known = answer === undefined ? await fromHead(order, request) : snapshotState(answer)
    if (known?.state === 'completed') return known.snapshot
    if (known?.state === 'failed' || known?.state === 'ended') {
      const head = await summaryOf(order)
      const savepoint = head && savepointOfWishedEnd(head.end, wish)
      if (savepoint !== undefined) return savepoint
      throw commandError('MR-L33', `${subject}: ${known.detail}.`)
    }
    if (performance.now() >= untilMs)
      throw commandError(
        'MR-L35',
        `${subject} was asked for under the request id ${request}; --request ${request} waits for the same one.`,
      )
    await nextLook()
    answer = await client.get(answerPath, schema)
  }
}

/** For a process that is not reached: what HEAD says, or that somebody else runs the job now and goes on with the request. */
async function fromHead(order: SnapshotOrder, request: string): Promise<SnapshotState | undefined> {
  const { stored, wish } = order
  const head = await headOf(order)
  const result = head?.savepointResults.find((entry) => entry.request === request)
  if (result?.manifest !== undefined) {
    return { state: 'completed', snapshot: manifestView(result.manifest, snapshotFolderIn(stored.storeFolder)) }
  }
  if (result !== undefined) return { state: 'failed', detail: result.detail }
  const end = head?.end.kind ?? 'none'
  if (end !== 'none') return { state: 'ended', detail: `the job had ended before (${end})` }
  // Another command may have taken the job over: it goes on with what stands in HEAD, and we with waiting for that.
  if ((await contactJob(stored)).kind === 'running') return undefined
  const stands = head?.savepointRequests.some((entry) => entry.request === requestId(request)) === true
  throw await notRunning(
    order,
    stands
      ? `Its process has ended meanwhile; ${subjects[wish.mode].toLowerCase()} is taken up when the job runs again.`
      : 'Its process has ended meanwhile, before it wrote the request down.',
  )
}

/** Waits until the start that `savepoint` stopped has ended and has committed all that it may. Throws MR-L33, MR-L35. */
export async function awaitEnd(order: SnapshotOrder, savepoint: ManifestResource): Promise<HeadSummary> {
  const untilMs = performance.now() + order.timeoutMs
  for (;;) {
    // Asked in this order: who has gone wrote all that it would before.
    const contact = await contactJob(order.stored)
    const head = await summaryOf(order)
    // Its run command may have been given again already.
    if (head !== undefined && (isOver(head) || head.start > savepoint.start)) return head
    if (contact.kind === 'not running') {
      const end = head?.end.kind ?? 'none'
      throw commandError(
        'MR-L33',
        `${order.stored.id} is ${end === 'none' ? 'interrupted' : end}, and not all that it may commit is confirmed; its run command does that first.`,
      )
    }
    if (performance.now() >= untilMs) throw commandError('MR-L35', `${order.stored.id} is ending.`)
    await nextLook()
  }
}

async function summaryOf(order: SnapshotOrder): Promise<HeadSummary | undefined> {
  const head = await headOf(order)
  return head && headView(head, snapshotFolderIn(order.stored.storeFolder))
}

export async function headOf({ stored, world }: Pick<SnapshotOrder, 'stored' | 'world'>): Promise<Head | undefined> {
  return (await headKeeperOf(stored, world)).read()
}

/** MR-L31 with how the job is; `more` is a sentence. */
export async function notRunning(
  { stored, world }: Pick<SnapshotOrder, 'stored' | 'world'>,
  more?: string,
): Promise<Error> {
  const end = (await headOf({ stored, world }))?.end.kind ?? 'none'
  const how = `${stored.id} is ${end === 'none' ? 'interrupted' : end}.`
  return commandError('MR-L31', more === undefined ? how : `${how} ${more}`)
}
