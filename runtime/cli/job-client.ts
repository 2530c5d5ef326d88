// Talks to the process that runs a local job. Whether one does is never guessed: a file may have been left behind by a process that
// died, and its port may be another program's by now.

import { z } from 'zod'
import { readRestAddress } from '../local/platform/rest-file.ts'
import type { RestAddress } from '../local/platform/rest-file.ts'
import type { StoredJob } from '../local/local-jobs.ts'
import { errorAnswer, job as jobResource } from '../rest/resources.ts'
import type { JobResource } from '../rest/resources.ts'
import { commandError } from './errors.ts'

export type Contact =
  | { readonly kind: 'running'; readonly client: JobClient; readonly job: JobResource }
  /** Positively: there is no address, or nobody of that name answers there. */
  | { readonly kind: 'not running' }

/** One call. The process answers from memory and from one small file. */
const callDeadlineMs = 10_000
/** A process that ends takes its address away first, and one that begins puts its own there: look again. */
const triesMax = 3

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

type Answered =
  | { readonly kind: 'answer'; readonly status: number; readonly body: unknown }
  /** Nobody listens. */
  | { readonly kind: 'nobody' }
  /** Whether anybody is there is unknown. */
  | { readonly kind: 'silent'; readonly why: string }

export class JobClient {
  readonly #address: RestAddress

  constructor(address: RestAddress) {
    this.#address = address
  }

  /** undefined: the process is gone, or does not answer. Throws MR-L33 when it refuses. */
  get<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.output<Schema> | undefined> {
    return this.#ask('GET', path, schema, undefined)
  }

  /** undefined: it may have been asked or not; repeat it under the same request id. Throws MR-L33 when it refuses. */
  post<Schema extends z.ZodType>(path: string, schema: Schema, body: object): Promise<z.output<Schema> | undefined> {
    return this.#ask('POST', path, schema, body)
  }

  async call(method: 'GET' | 'POST', path: string, body: object | undefined): Promise<Answered> {
    const { address, token } = this.#address
    try {
      const response = await fetch(`${address}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          // A kept connection would be cut off in the middle of the next call when the process ends.
          connection: 'close',
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        redirect: 'error',
        signal: AbortSignal.timeout(callDeadlineMs),
      })
      return { kind: 'answer', status: response.status, body: jsonOf(await response.text()) }
    } catch (error) {
      const { cause } = error as { readonly cause?: { readonly code?: string } }
      if (cause?.code === 'ECONNREFUSED') return { kind: 'nobody' }
      return { kind: 'silent', why: cause?.code ?? (error as Error).message }
    }
  }

  async #ask<Schema extends z.ZodType>(
    method: 'GET' | 'POST',
    path: string,
    schema: Schema,
    body: object | undefined,
  ): Promise<z.output<Schema> | undefined> {
    const answer = await this.call(method, path, body)
    if (answer.kind !== 'answer') return undefined
    if (answer.status >= 400) throw commandError('MR-L33', messageOf(answer.body))
    const read = schema.safeParse(answer.body)
    if (read.success) return read.data
    throw commandError('MR-L33', `${method} ${path} was answered in a form that this version does not know.`)
  }
}

function messageOf(body: unknown): string {
  const read = errorAnswer.safeParse(body)
  return read.success ? read.data.message : JSON.stringify(body)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
