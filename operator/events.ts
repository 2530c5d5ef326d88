// Events (events.k8s.io/v1), so that `kubectl describe` tells what has happened. They are for people: one that cannot be written is lost.

import { createHash } from 'node:crypto'
import type { Clock } from '../runtime/base/environment.ts'
import type { EventAction } from './contract.ts'
import type { KubeClient, KubeObject } from './kubernetes/contract.ts'
import { KubeError } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'

/** The same word about the same object is not said again within. */
const againMs = 10 * 60_000
const rememberedMax = 5_000
/** The API server takes no more of it. */
const noteMax = 1_024

export interface EventsOptions {
  readonly client: Pick<KubeClient, 'create'>
  readonly clock: Clock
  /** This process, as its pod is called. */
  readonly instance: string
  readonly log: (level: 'debug' | 'warn', message: string, fields?: Readonly<Record<string, unknown>>) => void
}

export class Events {
  readonly #options: EventsOptions
  readonly #said = new Map<string, number>()

  constructor(options: EventsOptions) {
    this.#options = options
  }

  /** Never rejects. */
  async tell(about: KubeObject, { kind, reason, message }: EventAction): Promise<void> {
    const { client, clock, instance, log } = this.#options
    const { namespace, name, uid, resourceVersion } = about.metadata
    const said = createHash('sha256').update([uid, kind, reason, message].join('\n')).digest('hex')
    const nowMs = clock.nowMs()
    const before = this.#said.get(said)
    if (before !== undefined && nowMs - before < againMs) return
    this.#remember(said, nowMs)
    // Of the same word about the same version of it there is one, whichever operator says it.
    const hash = createHash('sha256').update(`${said} ${resourceVersion}`).digest('hex').slice(0, 16)
    try {
      await client.create(types.event, {
        apiVersion: types.event.apiVersion,
        kind: types.event.kind,
        metadata: { namespace: namespace!, name: `${name.slice(0, 200)}.${hash}` },
        eventTime: new Date(clock.wallMs()).toISOString().replace('Z', '000Z'),
        reportingController: 'millrace.dev/operator',
        reportingInstance: instance.slice(0, 128),
        action: reason.slice(0, 128),
        reason: reason.slice(0, 128),
        regarding: { apiVersion: about.apiVersion, kind: about.kind, namespace, name, uid, resourceVersion },
        note: cut(message),
        type: kind,
      })
    } catch (error) {
      if (error instanceof KubeError && error.exists) return
      log('warn', 'an event could not be written', { reason, error: String(error) })
    }
  }

  #remember(said: string, nowMs: number): void {
    this.#said.delete(said)
    this.#said.set(said, nowMs)
    if (this.#said.size <= rememberedMax) return
    for (const oldest of this.#said.keys()) return void this.#said.delete(oldest)
  }
}

/** In bytes, at the border of a character. */
function cut(text: string): string {
  let short = text
  while (Buffer.byteLength(short) > noteMax) short = short.slice(0, Math.max(0, short.length - 16))
  return short
}
