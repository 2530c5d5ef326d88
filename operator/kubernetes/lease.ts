// Leader election by a Lease. It keeps two operators from working against each other; it fences nothing: every act is conditional on a status
// write of its own (kubernetes.md rule 10, scenarios.md O17).

import type { Clock, Random, Timer } from '../../runtime/base/environment.ts'
import { KubeError } from './contract.ts'
import type { KubeClient, KubeObject } from './contract.ts'
import { types } from './types.ts'

export interface LeaseOptions {
  readonly client: KubeClient
  readonly namespace: string
  readonly name: string
  /** This process, unlike any other. */
  readonly holder: string
  readonly clock: Clock
  readonly random: Random
  readonly log: (level: 'info' | 'warn', message: string, fields?: Readonly<Record<string, unknown>>) => void
  readonly onLeading: () => void
  /** Whatever runs is to stop at once. */
  readonly onLost: (reason: string) => void
}

const durationMs = 15_000
/** The holder gives up by itself before others may take over. */
const renewDeadlineMs = 10_000
const retryMs = 2_000
/** A lease that was not read for so long says nothing. */
const knownMs = 30_000

interface LeaseSpec {
  readonly holderIdentity?: string | null
  readonly renewTime?: string
  readonly leaseDurationSeconds?: number
  readonly leaseTransitions?: number
  readonly acquireTime?: string
}

export class Lease {
  readonly #options: LeaseOptions
  #timer: Timer | undefined
  #closed = false
  #leading = false
  #renewedMs = 0
  #readMs: number | undefined
  /** Another's renewals are judged by when they were seen here: its clock may be wrong. */
  #seen: { readonly holder: string; readonly renewTime: string; readonly atMs: number } | undefined

  constructor(options: LeaseOptions) {
    this.#options = options
  }

  /** By the clock too: a process that was frozen must not believe it for one turn longer. */
  get leading(): boolean {
    return this.#leading && this.#options.clock.nowMs() - this.#renewedMs <= renewDeadlineMs
  }

  /** It is known who leads: this process, or another. */
  get known(): boolean {
    return this.#readMs !== undefined && this.#options.clock.nowMs() - this.#readMs <= knownMs
  }

  start(): void {
    void this.#turn()
  }

  /** Gives the lease back, so that the next one need not wait. Never rejects. */
  async release(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    if (!this.#leading) return
    this.#leading = false
    try {
      const lease = await this.#read()
      if (lease !== undefined && specOf(lease).holderIdentity === this.#options.holder)
        await this.#write(lease, { holderIdentity: '', leaseDurationSeconds: 1 })
    } catch (error) {
      this.#options.log('warn', 'the lease was not given back', { error: String(error) })
    }
  }

  async #turn(): Promise<void> {
    const { clock, random, onLost } = this.#options
    try {
      await this.#tryToHold()
    } catch (error) {
      this.#options.log('warn', 'the lease could not be written', { error: String(error) })
    }
    if (this.#leading && clock.nowMs() - this.#renewedMs > renewDeadlineMs) {
      this.#leading = false
      onLost(`the lease was not renewed for ${renewDeadlineMs} ms`)
    }
    if (!this.#closed) this.#timer = clock.timer(retryMs * (0.8 + 0.4 * random.next()), () => void this.#turn())
  }

  async #tryToHold(): Promise<void> {
    const { client, namespace, name, holder, clock, onLost } = this.#options
    const startedMs = clock.nowMs()
    const lease = await this.#read()
    if (lease === undefined) {
      try {
        await client.create(types.lease, {
          apiVersion: types.lease.apiVersion,
          kind: types.lease.kind,
          metadata: { namespace, name },
          spec: { ...this.#held(0), acquireTime: this.#now() },
        })
        return this.#holds(startedMs)
      } catch (error) {
        if (error instanceof KubeError && error.exists) return undefined
        throw error
      }
    }
    const spec = specOf(lease)
    const isOwn = spec.holderIdentity === holder
    if (!isOwn && !this.#isFree(spec)) {
      if (this.#leading) {
        this.#leading = false
        onLost(`${spec.holderIdentity} holds the lease`)
      }
      return undefined
    }
    const transitions = (spec.leaseTransitions ?? 0) + (isOwn ? 0 : 1)
    try {
      await this.#write(lease, { ...this.#held(transitions), ...(isOwn ? {} : { acquireTime: this.#now() }) })
      return this.#holds(startedMs)
    } catch (error) {
      if (error instanceof KubeError && error.conflict) return undefined
      throw error
    }
  }

  /** Counted from before the write: others count from when they see it. */
  #holds(startedMs: number): void {
    this.#renewedMs = startedMs
    if (this.#leading || this.#closed) return
    this.#leading = true
    this.#options.onLeading()
  }

  #isFree({ holderIdentity, renewTime, leaseDurationSeconds }: LeaseSpec): boolean {
    if (holderIdentity === undefined || holderIdentity === null || holderIdentity === '') return true
    const nowMs = this.#options.clock.nowMs()
    const seen = this.#seen
    if (seen === undefined || seen.holder !== holderIdentity || seen.renewTime !== renewTime) {
      this.#seen = { holder: holderIdentity, renewTime: renewTime ?? '', atMs: nowMs }
      return false
    }
    return nowMs - seen.atMs > (leaseDurationSeconds ?? durationMs / 1_000) * 1_000
  }

  #held(leaseTransitions: number): LeaseSpec {
    const { holder } = this.#options
    return {
      holderIdentity: holder,
      leaseDurationSeconds: durationMs / 1_000,
      renewTime: this.#now(),
      leaseTransitions,
    }
  }

  #now(): string {
    // Leases count microseconds.
    return new Date(this.#options.clock.wallMs()).toISOString().replace('Z', '000Z')
  }

  async #read(): Promise<KubeObject | undefined> {
    const { client, namespace, name, clock } = this.#options
    const lease = await client.get(types.lease, { namespace, name })
    this.#readMs = clock.nowMs()
    return lease
  }

  async #write(lease: KubeObject, spec: LeaseSpec): Promise<void> {
    const { client, namespace, name } = this.#options
    const { uid, resourceVersion } = lease.metadata
    await client.patch(types.lease, { namespace, name }, { metadata: { uid, resourceVersion }, spec })
  }
}

function specOf(lease: KubeObject): LeaseSpec {
  return lease['spec'] ?? {}
}
