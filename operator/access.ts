// What a job's parts know each other by, made once, kept in its access Secret, and renewed before it ends.

import { keptOrRenewed, renewalOf } from './certificates.ts'
import { errorsOf } from '../runtime/base/errors.ts'
import { operatorErrors } from './errors.ts'
import type { EffectiveSpec } from './contract.ts'
import type { KubeObject } from './kubernetes/contract.ts'
import { isSignedBy, jobNatsCredentials } from './nats-credentials.ts'
import type { NatsSigner } from './nats-credentials.ts'
import { newTokens, readAccess } from './resources/access-secret.ts'
import type { Access } from './resources/access-secret.ts'
import { clusterFactsOf } from './resources/cluster-facts.ts'
import type { OperatorConfig } from './resources/operator-config.ts'
import type { OwnerJob } from './resources/objects.ts'
import { coordinatorHosts } from './resources/process-config.ts'
import { asSentence } from './status-text.ts'

const fail = errorsOf(operatorErrors)

export interface AccessMakerOptions {
  readonly config: Pick<OperatorConfig, 'natsAccess' | 'networkPolicy' | 'defaults'>
  /** Unpredictable. */
  readonly randomBytes: (count: number) => Uint8Array
  readonly wallMs: () => number
  /** undefined: the operator makes no credentials, or the keys are not there yet. */
  readonly signer: () => NatsSigner | undefined
  /** Why they are not. */
  readonly signerProblem: () => string | undefined
}

/** Certificates are looked into so often at most. */
const lookMs = 3_600_000

export class AccessMaker {
  readonly #options: AccessMakerOptions
  /** By job: the version of its Secret that was complete, and when that was seen. */
  readonly #complete = new Map<string, { readonly key: string; readonly atMs: number }>()

  constructor(options: AccessMakerOptions) {
    this.#options = options
  }

  isComplete(secret: KubeObject, job: OwnerJob, spec: EffectiveSpec | undefined): boolean {
    const { signer, wallMs } = this.#options
    const nowMs = wallMs()
    const own = this.#ofTheJob(spec) ? signer() : undefined
    const key = `${secret.metadata.uid} ${secret.metadata.resourceVersion} ${own?.account}`
    const known = this.#complete.get(job.uid)
    if (known?.key === key && nowMs - known.atMs < lookMs) return true
    const access = readAccess(secret['data'] as Readonly<Record<string, string>> | undefined)
    const isComplete =
      access !== undefined &&
      renewalOf(access, { hosts: coordinatorHosts(job), nowMs }).renew === 'nothing' &&
      (own === undefined || (access.natsCredentials !== undefined && isSignedBy(access.natsCredentials, own, job.uid)))
    if (isComplete) this.#complete.set(job.uid, { key, atMs: nowMs })
    else this.#complete.delete(job.uid)
    return isComplete
  }

  /** With as little new as can be: who holds the old goes on with it. Rejects with MR-P05 while the keys for NATS are not there. */
  async make(secret: KubeObject | undefined, job: OwnerJob, spec: EffectiveSpec): Promise<Access> {
    const nowMs = this.#options.wallMs()
    const held = readAccess(secret?.['data'] as Readonly<Record<string, string>> | undefined)
    const { authority, authorityKey, certificate, certificateKey } = await keptOrRenewed(held, {
      name: `millrace job ${job.uid}`,
      hosts: coordinatorHosts(job),
      nowMs,
    })
    const { workerToken, ownerToken, readerToken } = held ?? newTokens(this.#options.randomBytes)
    return {
      workerToken,
      ownerToken,
      readerToken,
      authority,
      authorityKey,
      certificate,
      certificateKey,
      natsCredentials: this.#natsCredentials(held?.natsCredentials, { job, spec, nowMs }),
    }
  }

  forget(uid: string): void {
    this.#complete.delete(uid)
  }

  #natsCredentials(
    held: string | undefined,
    { job, spec, nowMs }: { readonly job: OwnerJob; readonly spec: EffectiveSpec; readonly nowMs: number },
  ): string | undefined {
    // A revision of the time before the chart's address was changed mounts them all the same, and runs on.
    if (!this.#ofTheJob(spec)) return held
    const signer = this.#options.signer()
    if (signer === undefined) {
      // They are good for as long as nobody says otherwise.
      if (held !== undefined) return held
      const why = this.#options.signerProblem() ?? 'they were not read yet'
      throw fail('MR-P05', `For StreamJob ${job.namespace}/${job.name}: ${asSentence(why)}`)
    }
    return held !== undefined && isSignedBy(held, signer, job.uid) ? held : jobNatsCredentials(signer, job.uid, nowMs)
  }

  #ofTheJob(spec: EffectiveSpec | undefined): boolean {
    if (spec === undefined) return false
    return clusterFactsOf(spec, this.#options.config as OperatorConfig).natsCredentials.kind === 'of the job'
  }
}
