// Talks to the process that runs a job. Whether one runs a local job is never guessed: a file may have been left behind by a process that
// died, and its port may be another program's by now.

import type { z } from 'zod'
import { readRestAddress } from '../local/platform/rest-file.ts'
import type { RestAddress } from '../local/platform/rest-file.ts'
import type { StoredJob } from '../local/local-jobs.ts'
import { errorAnswer, job as jobResource } from '../rest/resources.ts'
import type { JobResource } from '../rest/resources.ts'
import { commandError } from './errors.ts'
import { callHttp } from './http-call.ts'
import type { HttpAnswer } from './http-call.ts'

export type Contact =
  | { readonly kind: 'running'; readonly client: JobClient; readonly job: JobResource }
  /** Positively: there is no address, or nobody of that name answers there. */
  | { readonly kind: 'not running' }

/** One call. The process answers from memory and from one small file. */
const callDeadlineMs = 10_000
/** A process that ends takes its address away first, and one that begins puts its own there: look again. */
const triesMax = 3
const gatewayStatuses: ReadonlySet<number> = new Set([502, 503, 504])

/** Throws MR-L32 when it cannot be told. */
export async function contactJob(stored: StoredJob): Promise<Contact> {
  const { storeFolder } = stored
  let why = ''
  for (let tries = 1; tries <= triesMax; tries++) {
    const address = await readRestAddress(storeFolder)
    if (address === undefined) return { kind: 'not running' }
    const client = new JobClient(address)
    const answer = await client.call('GET', '/v1/job', undefined)
    if (answer.kind === 'silent') {
      why = answer.why
      continue
    }
    const job = answer.kind === 'answer' ? jobResource.safeParse(answer.body) : undefined
    const isIt = job?.success === true && job.data.instance === address.instance
    if (isIt) return { kind: 'running', client, job: job.data }
    // Its process lives and a server of our kind refuses the token: the file may have been changed.
    const refusesUs = answer.kind === 'answer' && refusesToken(answer.body) && isAlive(address.pid)
    if (answer.kind === 'nobody' || (answer.status < 500 && !refusesUs)) return leftBehind(stored, address)
    why = `it answers ${answer.status}: ${messageOf(answer.body)}`
  }
  throw commandError('MR-L32', `${storeFolder}: ${why}.`)
}

/** Its file stays: only the process that wrote it, or the next one that runs the job, may take it away. */
async function leftBehind(stored: StoredJob, address: RestAddress): Promise<Contact> {
  const now = await readRestAddress(stored.storeFolder)
  return now === undefined || now.instance === address.instance ? { kind: 'not running' } : contactJob(stored)
}

function refusesToken(body: unknown): boolean {
  const read = errorAnswer.safeParse(body)
  return read.success && read.data.code === 'MR-H01'
}

/** Whether there is a process of that number; not whether it is the same one. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

export interface Endpoint {
  /** `http://127.0.0.1:40123`, without a path. */
  readonly address: string
  readonly token: string
  /** PEM; for https. */
  readonly ca?: string | undefined
}

export type Told<T> =
  | { readonly kind: 'told'; readonly value: T }
  /** `code`: undefined where it is no error of ours. */
  | { readonly kind: 'refused'; readonly code: string | undefined; readonly message: string }
  | Exclude<HttpAnswer, { readonly kind: 'answer' }>

export class JobClient {
  readonly #endpoint: Endpoint

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint
  }

  /** undefined: the process is gone, or does not answer. Throws MR-L33 when it refuses. */
  get<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.output<Schema> | undefined> {
    return this.#ask('GET', path, schema, undefined)
  }

  /** undefined: it may have been asked or not; repeat it under the same request id. Throws MR-L33 when it refuses. */
  post<Schema extends z.ZodType>(path: string, schema: Schema, body: object): Promise<z.output<Schema> | undefined> {
    return this.#ask('POST', path, schema, body)
  }

  /** Throws MR-L33 for an answer of another form. */
  async tell<Schema extends z.ZodType>(
    method: 'GET' | 'POST',
    path: string,
    schema: Schema,
    body?: object,
  ): Promise<Told<z.output<Schema>>> {
    const answer = await this.call(method, path, body)
    if (answer.kind !== 'answer') return answer
    if (answer.status >= 400) {
      const read = errorAnswer.safeParse(answer.body)
      // Said by what stands before the process, such as an Ingress, which found nobody behind it; or by one that does not know HEAD yet (MR-H11,
      // MR-H12).
      if (gatewayStatuses.has(answer.status))
        return { kind: 'silent', why: read.data?.message ?? `status ${answer.status}`, mayPass: true }
      return { kind: 'refused', code: read.data?.code, message: messageOf(answer.body) }
    }
    const read = schema.safeParse(answer.body)
    if (read.success) return { kind: 'told', value: read.data }
    throw commandError('MR-L33', `${method} ${path} was answered in a form that this version does not know.`)
  }

  call(method: 'GET' | 'POST', path: string, body: object | undefined): Promise<HttpAnswer> {
    const { address, token, ca } = this.#endpoint
    return callHttp({ method, url: `${address}${path}`, token, body, ca, deadlineMs: callDeadlineMs })
  }

  async #ask<Schema extends z.ZodType>(
    method: 'GET' | 'POST',
    path: string,
    schema: Schema,
    body: object | undefined,
  ): Promise<z.output<Schema> | undefined> {
    const told = await this.tell(method, path, schema, body)
    if (told.kind === 'refused') throw commandError('MR-L33', told.message)
    return told.kind === 'told' ? told.value : undefined
  }
}

function messageOf(body: unknown): string {
  const read = errorAnswer.safeParse(body)
  return read.success ? read.data.message : JSON.stringify(body)
}
