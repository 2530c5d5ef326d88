// Paths that tell of the job and change nothing.

import { z } from 'zod'
import { checkpointId } from '../base/ids.ts'
import { checkpointView, checkpointsView } from './checkpoint-views.ts'
import { restError } from './errors.ts'
import { graphView, jobView, subtasksView, workersView } from './job-views.ts'
import * as operating from './operating-resources.ts'
import * as resources from './resources.ts'
import { ok, route } from './route.ts'
import type { Route } from './route.ts'
import type { ServedJob } from './served-job.ts'

export function questions(served: ServedJob): readonly Route[] {
  const { job, graph, history, instance, readHead, locate, clock } = served
  const figures = async () => ({ head: await readHead(), job, graph, history, nowMs: clock.nowMs(), locate })
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
      handle: () => ok(graphView(job.graph ?? graph)),
    }),
    route({
      method: 'GET',
      path: '/v1/subtasks',
      summary: 'What each subtask reported last',
      answers: { 200: resources.subtasks },
      handle: () => ok({ subtasks: subtasksView(job) }),
    }),
    route({
      method: 'GET',
      path: '/v1/checkpoints',
      summary: 'The pending, retained, and last completed and failed checkpoints and savepoints',
      answers: { 200: resources.checkpoints },
      handle: async () => ok(checkpointsView(await figures())),
    }),
    route({
      method: 'GET',
      path: '/v1/checkpoints/:id',
      summary: 'One checkpoint or savepoint, with what each subtask took',
      parameters: z.strictObject({ id: z.string().regex(/^[1-9]\d{0,14}$/, 'is no id of a checkpoint') }),
      answers: { 200: resources.checkpoint },
      handle: async ({ parameters }) => {
        const found = checkpointView(checkpointId(Number(parameters.id)), await figures())
        if (found === undefined)
          throw restError('MR-H02', `Checkpoint ${parameters.id} is not retained, and not among the last ones.`)
        return ok(found)
      },
    }),
    route({
      method: 'GET',
      path: '/v1/exceptions',
      summary: 'Failures that the job restarted after, or ended by',
      answers: { 200: operating.exceptions },
      handle: () => ok({ exceptions: history.remembered.exceptions }),
    }),
    route({
      method: 'GET',
      path: '/v1/restarts',
      summary: 'Restarts, and how long each took',
      answers: { 200: operating.restarts },
      handle: async () => ok({ count: (await readHead()).restarts, restarts: history.remembered.restarts }),
    }),
    route({
      method: 'GET',
      path: '/v1/workers',
      summary: 'Worker processes and their slots',
      answers: { 200: operating.workers },
      handle: () => ok(workersView(job.workers)),
    }),
  ]
}
