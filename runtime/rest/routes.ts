// Every path of REST and what it does.

import { z } from 'zod'
import type { Clock, Random } from '../base/environment.ts'
import { requestId } from '../base/ids.ts'
import type { JobGraph } from '../job/contract.ts'
import type { Head } from '../storage/head-contract.ts'
import type { ControlledJob } from './controlled-job.ts'
import { restError } from './errors.ts'
import type { JobHistory } from './job-history.ts'
import { checkpointsView, graphView, jobView, subtasksView } from './job-views.ts'
import type { Locate } from './job-views.ts'
import * as resources from './resources.ts'
import type { SavepointMode, SavepointResource } from './resources.ts'
import { route } from './route.ts'
import type { Answer, Route } from './route.ts'
import { SavepointRequests } from './savepoint-requests.ts'

export interface ServedJob {
  readonly job: ControlledJob
  readonly graph: JobGraph
  readonly history: JobHistory
  /** Random, of this process: tells it from another one that got its address. */
  readonly instance: string
  readonly readHead: () => Promise<Head>
  readonly locate: Locate
  readonly clock: Clock
  readonly random: Random
}

export function routesOf(served: ServedJob): readonly Route[] {
  return [...questions(served), ...changes(served)]
}

function questions({ job, graph, history, instance, readHead, locate, clock }: ServedJob): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/job',
      summary: 'The job: its state, start, restore point and end',
      answers: { 200: resources.job },
      handle: async () => ok(jobView({ head: await readHead(), job, history, instance, locate })),
    }),
    route({
      method: 'GET',
      path: '/v1/graph',
      summary: 'Vertices, their operators, and edges',
      answers: { 200: resources.graph },
      handle: () => ok(graphView(graph)),
    }),
    route({
      method: 'GET',
      path: '/v1/subtasks',
      summary: 'What each subtask reported last',
      answers: { 200: resources.subtasks },
      handle: () => ok({ subtasks: subtasksView(job.execution) }),
    }),
    route({
      method: 'GET',
      path: '/v1/checkpoints',
      summary: 'The pending, retained, and last completed and failed checkpoints and savepoints',
      answers: { 200: resources.checkpoints },
      handle: async () => ok(checkpointsView({ head: await readHead(), job, history, nowMs: clock.nowMs(), locate })),
    }),
  ]
}

function changes({ job, readHead, locate, random }: ServedJob): readonly Route[] {
  const requests = new SavepointRequests({ job, readHead, locate })
  const ask = async (request: string | undefined, mode: SavepointMode): Promise<Answer> =>
    asked(await requests.ask(requestId(request ?? random.id()), mode))
  const answers = { 200: resources.savepointRequest, 202: resources.savepointRequest }
  return [
    route({
      method: 'POST',
      path: '/v1/checkpoints',
      summary: 'Takes a checkpoint as soon as none is pending',
      answers: { 202: resources.nothing },
      handle: () => {
        if (job.execution === undefined) throw restError('MR-H04', 'It has not begun yet.')
        job.checkpoint()
        return { status: 202, body: {} }
      },
    }),
    route({
      method: 'POST',
      path: '/v1/savepoints',
      summary: 'Takes a savepoint; the job runs on. The same request id is the same request',
      body: resources.savepointBody,
      answers,
      handle: ({ body }) => ask(body.request, 'savepoint'),
    }),
    route({
      method: 'GET',
      path: '/v1/savepoints/:request',
      summary: 'Whether a request, to stop too, is answered, and how',
      parameters: z.strictObject({ request: resources.requestName }),
      answers: { 200: resources.savepointRequest },
      handle: async ({ parameters }) => {
        const found = await requests.find(requestId(parameters.request))
        if (found === undefined) throw restError('MR-H02', `There is no request ${parameters.request}.`)
        return ok(found)
      },
    }),
    route({
      method: 'POST',
      path: '/v1/stop',
      summary: 'Ends the job with a savepoint; with drain event time ends first, and the job is finished',
      body: resources.stopBody,
      answers,
      handle: ({ body }) => ask(body.request, body.drain ? 'drain' : 'stop'),
    }),
    route({
      method: 'POST',
      path: '/v1/cancel',
      summary: 'Ends the job for good, without a savepoint',
      answers: { 202: resources.nothing },
      handle: () => {
        job.cancel()
        return { status: 202, body: {} }
      },
    }),
  ]
}

function ok(body: unknown): Answer {
  return { status: 200, body }
}

function asked(savepoint: SavepointResource): Answer {
  return { status: savepoint.state === 'pending' ? 202 : 200, body: savepoint }
}
