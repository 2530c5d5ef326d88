// REST of a job that does what a test says, called over HTTP.

import { ManualClock } from '../testkit/manual-clock.ts'
import { JobHistory } from './job-history.ts'
import { createRest } from './server.ts'
import type { Rest, RestOptions } from './server.ts'
import { TestJob, testGraph } from './test-job.ts'

export const ownerToken = 'a-token-of-some-length'
export const readerToken = 'a-token-to-read-with'

export interface Call {
  readonly method?: string
  readonly body?: unknown
  /** As it stands. */
  readonly text?: string
  readonly type?: string
  readonly authorization?: string
}

const served: Rest[] = []

/** For afterEach. */
export async function closeServed(): Promise<void> {
  for (const rest of served.splice(0)) await rest.close()
}

/** A local job's by default: one token, and no start or request needed. */
export async function serve(options: Partial<RestOptions> = {}) {
  const job = new TestJob()
  const clock = new ManualClock()
  const history = new JobHistory(clock)
  const logged: string[] = []
  let made = 0
  const rest = await createRest({
    job,
    graph: testGraph,
    history,
    instance: 'i1',
    tokens: { owner: ownerToken },
    listen: { host: '127.0.0.1', port: 0 },
    identified: false,
    pings: {},
    readHead: async () => job.head,
    locate: ({ path }) => `/store/${path}`,
    clock,
    random: { next: () => 0, id: () => `made-${++made}` },
    log: (level, message, fields) => void logged.push(`${level} ${message} ${JSON.stringify(fields)}`),
    ...options,
  })
  served.push(rest)
  const address = await rest.listen()
  const fetched = (path: string, { method, body, text, type, authorization = `Bearer ${ownerToken}` }: Call = {}) => {
    const content = text ?? (body === undefined ? undefined : JSON.stringify(body))
    return fetch(`${address}${path}`, {
      method: method ?? (content === undefined ? 'GET' : 'POST'),
      headers: { authorization, ...(content !== undefined && { 'content-type': type ?? 'application/json' }) },
      ...(content !== undefined && { body: content }),
    })
  }
  const call = async (path: string, given: Call = {}) => {
    const response = await fetched(path, given)
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  return { job, clock, history, address, call, fetched, logged }
}
