// Paths for whoever keeps the process running: probes, health, metrics.

import { z } from 'zod'
import { ServiceHealth } from './health.ts'
import { metricsText, metricsType } from './metrics-text.ts'
import * as operating from './operating-resources.ts'
import { ok, route } from './route.ts'
import type { Route } from './route.ts'
import type { ServedJob } from './served-job.ts'

export function operations(served: ServedJob): readonly Route[] {
  const { history, pings, clock } = served
  const storage = pings.storage && new ServiceHealth(pings.storage, clock)
  const nats = pings.nats && new ServiceHealth(pings.nats, clock)
  const isReady = (): boolean => history.sinceMs !== undefined || history.outcome !== undefined
  return [
    route({
      method: 'GET',
      path: '/livez',
      summary: 'The process answers',
      access: 'open',
      answers: { 200: operating.live },
      handle: () => ok({ live: true }),
    }),
    route({
      method: 'GET',
      path: '/readyz',
      summary: 'The process has begun the job, or found it ended',
      access: 'open',
      answers: { 200: operating.ready, 503: operating.ready },
      handle: () => ({
        status: isReady() ? 200 : 503,
        body: { ready: isReady(), waitsFor: served.waitsFor?.() ?? null },
      }),
    }),
    route({
      method: 'GET',
      path: '/v1/health',
      summary: 'Whether the object store and NATS answer',
      answers: { 200: operating.health },
      handle: async () => {
        const [storageNow = null, natsNow = null] = await Promise.all([storage?.look(), nats?.look()])
        return ok({ ready: isReady(), storage: storageNow, nats: natsNow })
      },
    }),
    route({
      method: 'GET',
      path: '/metrics',
      summary: 'All figures, for Prometheus',
      answers: { 200: z.string() },
      contentType: metricsType,
      handle: async () => ok(await metricsText(served)),
    }),
  ]
}
