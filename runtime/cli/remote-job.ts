// A job behind an address: what its coordinator is asked, and waiting for it. The coordinator may be lost and come back meanwhile; each
// request names its start and an id, and is made again until it is answered.

import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { endRequest } from '../rest/request-resources.ts'
import { job as jobResource } from '../rest/resources.ts'
import type { HeadSummary, JobResource, ManifestResource } from '../rest/resources.ts'
import type { RemoteTarget } from './control-words.ts'
import { commandError } from './errors.ts'
import { lookAtHead } from './head-look.ts'
import { JobClient } from './job-client.ts'
import { endWords, isOver, savepointOfWishedEnd } from './job-end.ts'
import type { ControlEdge } from './named-job.ts'
import { nextLook } from './next-look.ts'
import { RemoteClient } from './remote-client.ts'
import { remoteFilesOf } from './remote-config.ts'
import { snapshotCall, snapshotState, subjects } from './snapshot-request.ts'
import type { SnapshotWish } from './snapshot-request.ts'

/** Between two looks at HEAD while nobody answers. */
const lookEveryMs = 2_000

export interface RemoteJob {
  readonly client: RemoteClient
  readonly address: string
  /** As it was when it was first asked. */
  readonly job: JobResource
}

/** The job has ended, and its coordinator with it. */
export interface JobOver {
  readonly address: string
  readonly head: HeadSummary
  /** Where HEAD lies. */
  readonly store: string
  /** The process config that names it, absolute. */
  readonly config: string
}

export type Reached =
  | ({ readonly kind: 'answers' } & RemoteJob)
  /** Known of one that is named by its process config. */
  | ({ readonly kind: 'over' } & JobOver)

/** As `reach`. Throws MR-L38 when the job is over. */
export async function remoteJob(target: RemoteTarget, edge: ControlEdge): Promise<RemoteJob> {
  const reached = await reach(target, edge)
  if (reached.kind === 'answers') return reached
  throw jobOver(reached)
}

export function jobOver({ head: { id, start, end } }: JobOver): Error {
  return commandError('MR-L38', `${id} ${endWords(end)} (start ${start}).`)
}

/** Throws MR-L36, MR-L37 when its coordinator stays away, MR-L33 when we are refused. */
export async function reach(target: RemoteTarget, { folder, terminal }: ControlEdge): Promise<Reached> {
  const config = target.kind === 'config' ? resolve(folder, target.file) : undefined
  const files = target.kind === 'config' ? await remoteFilesOf(config!) : target
  const token = await secretIn(resolve(folder, files.tokenFile))
  const ca = files.caFile === undefined ? undefined : await textIn(resolve(folder, files.caFile))
  const { address } = files
  const { waitMs } = target
  const client = new RemoteClient({ client: new JobClient({ address, token, ca }), address, waitMs, terminal })
  let lookAtMs = -Infinity
  let says: string | undefined
  for (;;) {
    const heard = await client.once('GET', '/v1/job', jobResource)
    if (heard.kind === 'told') return { kind: 'answers', client, address, job: heard.value }
    if (heard.kind === 'refused') throw commandError('MR-L33', heard.message)
    const isGone = client.isGone
    if (config !== undefined && (isGone || performance.now() >= lookAtMs)) {
      const look = await lookAtHead(config)
      if (look.kind === 'over') return { ...look, address, config }
      says = look.says
      lookAtMs = performance.now() + lookEveryMs
    }
    if (isGone) throw client.gone(heard.why, says)
    await client.pauseAway(heard.why)
  }
}

export interface RemoteOrder {
  readonly wish: SnapshotWish
  /** undefined: a new one. */
  readonly request: string
  readonly timeoutMs: number
}

/** The snapshot. Throws MR-L33 when it was refused or has failed, MR-L35 after the timeout. */
export async function orderRemotely(
  remote: RemoteJob,
  { wish, request, timeoutMs }: RemoteOrder,
): Promise<ManifestResource> {
  const { client, job } = remote
  const untilMs = performance.now() + timeoutMs
  const { path, answerPath, schema, body } = snapshotCall(wish, request)
  const subject = subjects[wish.mode]
  let wasTaken = false
  let mustAsk = true
  let why = ''
  for (;;) {
    const told = mustAsk
      ? await client.once('POST', path, schema, { ...body, start: job.start })
      : await client.once('GET', answerPath, schema)
    if (told.kind === 'told') {
      const known = snapshotState(told.value)
      if (known.state === 'completed') return known.snapshot
      if (known.state !== 'pending') return endInstead(remote, wish, `${subject}: ${known.detail}.`)
      wasTaken = true
      // Asked for again, one that has failed would be tried again, and that never be told.
      mustAsk = false
    } else if (told.kind === 'away') why = ` Its coordinator did not answer (${told.why}).`
    // Its coordinator was lost before HEAD had the request; the next one knows nothing of it.
    else if (!mustAsk && told.code === 'MR-H02') mustAsk = true
    // One that has just come back takes a moment to begin.
    else if (wasTaken ? told.code !== 'MR-H04' : !(await client.mayTakeItSoon(told)))
      return endInstead(remote, wish, told.message)
    if (performance.now() >= untilMs)
      throw commandError(
        'MR-L35',
        `${subject} was asked for under the request id ${request}; --request ${request} waits for the same one.${why}`,
      )
    await (told.kind === 'away' ? client.pauseAway(told.why, untilMs - performance.now()) : nextLook())
  }
}

/** The savepoint of an end that the job has come to meanwhile, if it is as wished. Throws MR-L33 with `refusal`. */
async function endInstead({ client, job }: RemoteJob, wish: SnapshotWish, refusal: string): Promise<ManifestResource> {
  const now = await client.get('/v1/job', jobResource)
  const isOfThisRun = job.end.kind === 'none' && now.start === job.start
  const savepoint = isOfThisRun ? savepointOfWishedEnd(now.end, wish) : undefined
  if (savepoint === undefined) throw commandError('MR-L33', refusal)
  return savepoint
}

/** Until HEAD has an end. Throws MR-L33 when it is refused, MR-L35, and MR-L37 when the coordinator went before it told. */
export async function endRemotely(
  remote: RemoteJob,
  {
    action,
    request,
    timeoutMs,
  }: { readonly action: 'cancel' | 'close'; readonly request: string; readonly timeoutMs: number },
): Promise<JobResource> {
  const { client, job } = remote
  const untilMs = performance.now() + timeoutMs
  for (;;) {
    const { end } = await client.post(`/v1/${action}`, endRequest, { start: job.start, request })
    if (end !== null && end.kind !== 'none') return awaitRemoteEnd(remote, untilMs - performance.now())
    if (performance.now() >= untilMs) throw commandError('MR-L35', `${job.id} is to end.`)
    // Until HEAD has it a coordinator that comes back does not know of it.
    await nextLook()
  }
}

/** Until HEAD has an end, and all that it may commit is committed. Throws MR-L35, MR-L37. */
export async function awaitRemoteEnd({ client, job }: RemoteJob, timeoutMs: number): Promise<JobResource> {
  const untilMs = performance.now() + timeoutMs
  for (;;) {
    const heard = await client.once('GET', '/v1/job', jobResource)
    if (heard.kind === 'told' && (isOver(heard.value) || heard.value.start > job.start)) return heard.value
    if (heard.kind === 'away' && client.isGone)
      throw client.gone(heard.why, `It went before it told that all of ${job.id} has ended; HEAD knows.`)
    if (performance.now() >= untilMs) throw commandError('MR-L35', `${job.id} is ending.`)
    await (heard.kind === 'away' ? client.pauseAway(heard.why) : nextLook())
  }
}

async function secretIn(path: string): Promise<string> {
  const text = (await textIn(path)).trim()
  if (!/^\S+$/.test(text)) throw commandError('MR-L36', `${path}: it is to hold a token and nothing else.`)
  return text
}

async function textIn(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw commandError('MR-L36', `${path}: ${(error as Error).message}.`, error)
  }
}
