// Paths that change the job. Each names the start that it means and its request, so that it can be repeated.

import { z } from 'zod'
import { requestId, start } from '../base/ids.ts'
import type { RequestId } from '../base/ids.ts'
import type { OwnerAction } from './access.ts'
import { AskedRequests } from './asked-requests.ts'
import { restError } from './errors.ts'
import { endView, manifestView } from './job-views.ts'
import * as requests from './request-resources.ts'
import type { EndResource, RescaleResource, SavepointResource } from './request-resources.ts'
import * as resources from './resources.ts'
import { ok, route } from './route.ts'
import type { Answer, Route } from './route.ts'
import { SavepointRequests, purposeOf, refuseUnlessOwned } from './savepoint-requests.ts'
import type { RequestState, Wish } from './savepoint-requests.ts'
import type { ServedJob } from './served-job.ts'

interface ChangeWords {
  readonly start?: number | undefined
  readonly request?: string | undefined
}

const workerName = z.string().regex(/^[A-Za-z0-9._:-]{1,253}$/, 'is no name of a worker')
const requestParameters = z.strictObject({ request: resources.requestName })

export function changes(served: ServedJob): readonly Route[] {
  const { job, graph, locate } = served
  const admission = new Admission(served)
  const snapshots = new SavepointRequests(served)
  const words = requests.changeWords(served.identified)
  const savepointResource = (request: string, state: RequestState): SavepointResource =>
    state.state === 'completed'
      ? { request, state: 'completed', savepoint: manifestView(state.manifest, locate) }
      : { request, ...state }
  const rescaleResource = (request: string, state: RequestState): RescaleResource =>
    state.state === 'completed'
      ? { request, state: 'completed', checkpoint: manifestView(state.manifest, locate) }
      : { request, ...state }
  const ask = async (body: ChangeWords, wish: Wish): Promise<{ request: RequestId; state: RequestState }> => {
    const { request } = await admission.admit(body, purposeOf(wish), snapshots)
    const state = await snapshots.ask(request, wish)
    return { request, state }
  }
  const askSavepoint = async (body: ChangeWords, mode: requests.SavepointMode): Promise<Answer> => {
    const { request, state } = await ask(body, { mode })
    return asked(savepointResource(request, state))
  }
  const found = async (request: string): Promise<RequestState> => {
    const state = await snapshots.find(requestId(request))
    if (state === undefined) throw restError('MR-H02', `There is no request ${request}.`)
    return state
  }
  /** Said again and again until HEAD has it. */
  const ending = (action: OwnerAction & ('close' | 'cancel'), summary: string, end: () => void): Route =>
    route({
      method: 'POST',
      path: `/v1/${action}`,
      summary,
      access: { owner: action },
      body: words.change,
      answers: { 200: requests.endRequest, 202: requests.endRequest },
      handle: async ({ body }) => {
        const { request, known } = await admission.admit(body, `${action} the job`, snapshots)
        const before = await endOf(served)
        if (before.end !== null && before.end.kind !== 'none') return ok(before)
        // Before it has begun it can be ended as well.
        if (served.history.outcome !== undefined) refuseUnlessOwned(job, served.history)
        if (!known) end()
        admission.taken(request, `${action} the job`)
        return { status: 202, body: before }
      },
    })
  return [
    route({
      method: 'POST',
      path: '/v1/checkpoints',
      summary: 'Takes a checkpoint as soon as none is pending',
      body: words.change,
      answers: { 202: requests.nothing },
      handle: async ({ body }) => {
        const { request, known } = await admission.admit(body, 'take a checkpoint', snapshots)
        refuseUnlessOwned(job, served.history)
        if (!known) job.checkpoint()
        admission.taken(request, 'take a checkpoint')
        return { status: 202, body: {} }
      },
    }),
    route({
      method: 'POST',
      path: '/v1/savepoints',
      summary: 'Takes a savepoint; the job runs on. The same request id is the same request',
      body: words.change,
      answers: { 200: requests.savepointRequest, 202: requests.savepointRequest },
      handle: ({ body }) => askSavepoint(body, 'savepoint'),
    }),
    route({
      method: 'GET',
      path: '/v1/savepoints/:request',
      summary: 'Whether a request, to stop too, is answered, and how',
      parameters: requestParameters,
      answers: { 200: requests.savepointRequest },
      handle: async ({ parameters: { request } }) => ok(savepointResource(request, await found(request))),
    }),
    route({
      method: 'POST',
      path: '/v1/stop',
      summary: 'Ends the job with a savepoint; with drain event time ends first, and the job is finished',
      access: { owner: 'stop' },
      body: words.stop,
      answers: { 200: requests.savepointRequest, 202: requests.savepointRequest },
      handle: ({ body }) => askSavepoint(body, body.drain ? 'drain' : 'stop'),
    }),
    route({
      method: 'POST',
      path: '/v1/rescale',
      summary: 'Stops at a checkpoint and goes on at another parallelism, in the same start',
      access: { owner: 'rescale' },
      body: words.rescale,
      answers: { 200: requests.rescaleRequest, 202: requests.rescaleRequest },
      handle: async ({ body }) => {
        const { parallelism } = body
        if (parallelism > graph.maxParallelism)
          throw restError(
            'MR-H03',
            `body.parallelism: ${parallelism} is more than the max parallelism of the job, ${graph.maxParallelism}.`,
          )
        const { request, state } = await ask(body, { mode: 'rescale', parallelism })
        return asked(rescaleResource(request, state))
      },
    }),
    route({
      method: 'GET',
      path: '/v1/rescale/:request',
      summary: 'Whether a request to rescale is answered, and how',
      parameters: requestParameters,
      answers: { 200: requests.rescaleRequest },
      handle: async ({ parameters: { request } }) => ok(rescaleResource(request, await found(request))),
    }),
    ending('close', 'Suspends the job: HEAD is closed, the tasks end, and the next start goes on from there', () =>
      job.suspend(),
    ),
    ending('cancel', 'Ends the job for good, without a savepoint', () => job.cancel()),
    route({
      method: 'POST',
      path: '/v1/workers/:name/lost',
      summary: 'The word of somebody outside that a worker is gone: its subtasks restart at once',
      access: { owner: 'lost' },
      parameters: z.strictObject({ name: workerName }),
      body: words.lost,
      answers: { 202: requests.nothing },
      handle: async ({ parameters: { name }, body }) => {
        const purpose = `report worker ${name} as lost`
        const { request, known } = await admission.admit(body, purpose, snapshots)
        if (!known && job.workers?.reportLost(name, body.reason) !== true)
          throw restError('MR-H02', `There is no worker ${name}.`)
        admission.taken(request, purpose)
        return { status: 202, body: {} }
      },
    }),
  ]
}

/** Who asks for what: that it is for this start, and under an id that was used for nothing else. */
class Admission {
  readonly #served: ServedJob
  readonly #asked = new AskedRequests()

  constructor(served: ServedJob) {
    this.#served = served
  }

  /** Throws MR-H08, MR-H05. */
  async admit(
    words: ChangeWords,
    purpose: string,
    snapshots: SavepointRequests,
  ): Promise<{ readonly request: RequestId; readonly known: boolean }> {
    const { history, readHead, random } = this.#served
    if (words.start !== undefined) {
      const own = history.start ?? (await readHead()).start
      if (start(words.start) !== own)
        throw restError('MR-H08', `It is for start ${words.start}, and this is start ${own}.`)
    }
    const request = requestId(words.request ?? random.id())
    const other = snapshots.purposeOf(request)
    if (other !== undefined && other !== purpose) throw restError('MR-H05', `${request} was to ${other}.`)
    return { request, known: this.#asked.isKnown(request, purpose) }
  }

  taken(request: RequestId, purpose: string): void {
    this.#asked.add(request, purpose)
  }
}

/** A store that does not answer must not keep a job from being ended. */
async function endOf({ readHead, locate }: ServedJob): Promise<EndResource> {
  try {
    return { end: endView((await readHead()).end, locate) }
  } catch {
    return { end: null }
  }
}

function asked(resource: SavepointResource | RescaleResource): Answer {
  return { status: resource.state === 'pending' ? 202 : 200, body: resource }
}
