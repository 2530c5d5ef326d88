// The operator's word with coordinators: what they answer, as facts that are as fresh as somebody needs, and requests. Whoever does not answer
// in time is unknown, with why.

import type { z } from 'zod'
import type { Clock, Random } from '../runtime/base/environment.ts'
import type { CoordinatorRequest, CoordinatorSays } from './contract.ts'
import {
  checkpointsAnswer,
  coordinatorFact,
  healthAnswer,
  jobAnswer,
  requestAnswer,
  requestFact,
  servicesFact,
  workersAnswer,
} from './coordinator-facts.ts'
import type { RequestFact } from './coordinator-facts.ts'

/** Of one call. */
const callMs = 2_000

export interface CoordinatorAddress {
  /** The Service's name within the cluster, and REST's port. */
  readonly host: string
  readonly port: number
  /** The owner's. */
  readonly token: string
  /** PEM. */
  readonly authority: string
}

export interface CoordinatorSession {
  /** JSON, or the text where it is none. Rejects when there is no answer in `callMs`. */
  call(
    method: 'GET' | 'POST',
    path: string,
    body?: object,
  ): Promise<{ readonly status: number; readonly body: unknown }>
  close(): void
}

/** Opens a connection for a few calls. */
export type CoordinatorDial = (address: CoordinatorAddress, deadlineMs: number) => CoordinatorSession

export interface Question {
  readonly uid: string
  /** undefined: it cannot be asked; `why` says so. */
  readonly address: CoordinatorAddress | undefined
  readonly why: string
  /** Requests that status names, whose answers are wanted. */
  readonly requests: readonly { readonly name: string; readonly kind: 'savepoint' | 'rescale' | 'checkpoint' }[]
  readonly hasInterval: boolean
  /** An answer that is not older will do, ms. */
  readonly ageMsMax: number
}

/** One answer that did not come in time is no news of a job that runs as it should: so old may the last one be meanwhile. */
const missedMs = 35_000
/** Whoever needs a newer answer than this hears at once that there is none. */
const settledMs = 10_000

/** A checkpoint that it cannot begin within ten minutes a coordinator drops, and tells nobody, as it knows no name of it. A little longer. */
const droppedMs = 11 * 60_000

interface Known {
  readonly fact: CoordinatorSays
  readonly atMs: number
  readonly names: string
}

export class Coordinators {
  readonly #dial: CoordinatorDial
  readonly #clock: Clock
  readonly #random: Random
  readonly #known = new Map<string, Known>()
  readonly #waiting = new Map<string, Promise<CoordinatorSays>>()
  /** Checkpoints that this process asked for, by uid and request; of which incarnation, and when. */
  readonly #asked = new Map<string, Map<string, { readonly incarnation: number; readonly atMs: number }>>()
  /** What was refused for good, by uid and request. */
  readonly #refused = new Map<string, Map<string, string>>()

  constructor({
    dial,
    clock,
    random,
  }: {
    readonly dial: CoordinatorDial
    readonly clock: Clock
    readonly random: Random
  }) {
    this.#dial = dial
    this.#clock = clock
    this.#random = random
  }

  /** Never rejects. */
  async ask(question: Question): Promise<CoordinatorSays> {
    const { uid, address, why, requests, ageMsMax } = question
    if (address === undefined) {
      this.#known.delete(uid)
      return { known: false, why }
    }
    const names = requests.map(({ name }) => name).join(' ')
    const known = this.#known.get(uid)
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : this.#clock.nowMs() - known.atMs
    // With a jitter: many jobs that began together are not asked together.
    if (known !== undefined && known.names === names && ageMs < ageMsMax * (0.8 + 0.4 * this.#random.next()))
      return known.fact
    const waiting = this.#waiting.get(uid)
    if (waiting !== undefined) return waiting
    const asking = this.#ask(question, address).finally(() => this.#waiting.delete(uid))
    this.#waiting.set(uid, asking)
    const fact = await asking
    const isMissed = !fact.known && known?.fact.known === true && ageMsMax >= settledMs && ageMs < missedMs
    if (isMissed) return known.fact
    this.#known.set(uid, { fact, atMs: this.#clock.nowMs(), names })
    return fact
  }

  async #ask(question: Question, address: CoordinatorAddress): Promise<CoordinatorSays> {
    const session = this.#dial(address, callMs)
    const get = async <Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.output<Schema>> => {
      const { status, body } = await session.call('GET', path)
      if (status !== 200) throw new Error(`GET ${path} was answered by ${status}`)
      const read = schema.safeParse(body)
      if (!read.success) throw new Error(`the answer to GET ${path} is not what was expected`)
      return read.data
    }
    const health = get('/v1/health', healthAnswer).catch(() => undefined)
    try {
      const [job, checkpoints, workers] = await Promise.all([
        get('/v1/job', jobAnswer),
        get('/v1/checkpoints', checkpointsAnswer),
        get('/v1/workers', workersAnswer),
      ])
      const { incarnation } = job
      const requests = await this.#answers(question, session, { incarnation, isTaking: checkpoints.pending !== null })
      const { hasInterval } = question
      return {
        known: true,
        value: coordinatorFact({ job, checkpoints, workers, requests, hasInterval, health: await health }),
      }
    } catch (error) {
      return { known: false, why: (error as Error).message, services: servicesFact(await health) }
    } finally {
      session.close()
    }
  }

  async #answers(
    { uid, requests }: Question,
    session: CoordinatorSession,
    { incarnation, isTaking }: { readonly incarnation: number; readonly isTaking: boolean },
  ): Promise<Record<string, RequestFact>> {
    const answers: Record<string, RequestFact> = {}
    for (const { name, kind } of requests) {
      const refused = this.#refused.get(uid)?.get(name)
      if (refused !== undefined) answers[name] = { state: 'failed', detail: refused }
      else if (kind === 'checkpoint') {
        const asked = this.#asked.get(uid)?.get(name)
        if (asked?.incarnation !== incarnation) continue
        const isDropped = !isTaking && this.#clock.nowMs() - asked.atMs >= droppedMs
        answers[name] = isDropped ? { state: 'failed', detail: 'it was not begun in time' } : { state: 'pending' }
      } else {
        const path = `/v1/${kind === 'savepoint' ? 'savepoints' : 'rescale'}/${encodeURIComponent(name)}`
        const { status, body } = await session.call('GET', path)
        if (status === 404) continue
        const read = requestAnswer.safeParse(body)
        if (status !== 200 || !read.success) throw new Error(`GET ${path} was answered by ${status}`)
        answers[name] = requestFact(read.data)
      }
    }
    return answers
  }

  /** Rejects unless it was taken, or refused for good, which is then its answer. What was known is asked anew. */
  async request(uid: string, address: CoordinatorAddress, asked: CoordinatorRequest): Promise<void> {
    const known = this.#known.get(uid)?.fact
    const session = this.#dial(address, callMs)
    try {
      const { path, words } = callOf(asked)
      const { status, body } = await session.call('POST', path, {
        start: asked.start,
        request: asked.request,
        ...words,
      })
      if (status >= 200 && status <= 299) {
        if (asked.type === 'checkpoint' && known?.known === true)
          remember(this.#asked, uid, asked.request, {
            incarnation: known.value.incarnation,
            atMs: this.#clock.nowMs(),
          })
        return
      }
      // A worker that it does not know is lost to it already.
      if (asked.type === 'lost' && status === 404) return
      const detail = (body as { readonly message?: unknown } | null)?.message
      const message = `POST ${path} was answered by ${status}: ${typeof detail === 'string' ? detail : 'no reason'}`
      if (status !== 400) throw new Error(message)
      remember(this.#refused, uid, asked.request, message)
    } finally {
      this.#known.delete(uid)
      session.close()
    }
  }

  forget(uid: string): void {
    this.#known.delete(uid)
    this.#asked.delete(uid)
    this.#refused.delete(uid)
  }
}

/** Of one job few are remembered: status names one at a time. */
const rememberedMax = 20

function remember<Value>(all: Map<string, Map<string, Value>>, uid: string, request: string, value: Value): void {
  const own = all.get(uid) ?? new Map<string, Value>()
  all.set(uid, own)
  own.set(request, value)
  if (own.size <= rememberedMax) return
  for (const oldest of own.keys()) return void own.delete(oldest)
}

function callOf(asked: CoordinatorRequest): { readonly path: string; readonly words: object } {
  switch (asked.type) {
    case 'stop':
      return { path: '/v1/stop', words: { drain: asked.drain } }
    case 'close':
    case 'cancel':
      return { path: `/v1/${asked.type}`, words: {} }
    case 'rescale':
      return { path: '/v1/rescale', words: { parallelism: asked.parallelism } }
    case 'savepoint':
      return { path: '/v1/savepoints', words: {} }
    case 'checkpoint':
      return { path: '/v1/checkpoints', words: {} }
    case 'lost':
      return { path: `/v1/workers/${encodeURIComponent(asked.worker)}/lost`, words: { reason: asked.reason } }
    default:
      return asked satisfies never
  }
}
