// What is known and decided of one Savepoint object.

import type { EffectiveSpec, EventAction, ObjectIdentity, PodFact, StreamJobStatus } from './contract.ts'

/** What is needed to take a savepoint's files away when the job is gone. */
export interface SavepointOrigin {
  readonly jobId: string
  readonly image: string
  /** The job's own prefix. */
  readonly storage: string
  readonly s3?: NonNullable<EffectiveSpec['storage']>['s3']
  readonly serviceAccountName?: string
  /** What a short pod needs of the job's podTemplate (resources/origin-template.ts). Absent in those of an operator that did not keep it. */
  readonly podTemplate?: Readonly<Record<string, unknown>>
}

export interface SavepointFact extends ObjectIdentity {
  readonly path: string | undefined
  readonly disposal: 'retain' | 'delete'
  readonly deleting: boolean
  readonly deletingSince: string | undefined
  readonly finalizers: readonly string[]
  readonly madeBy: 'user' | 'operator'
  readonly createdAt: string
  readonly status:
    | {
        readonly state: 'pending' | 'completed' | 'failed'
        readonly path?: string
        readonly request?: string
        readonly origin?: SavepointOrigin
        readonly detail?: string
      }
    | undefined
}

/** One Savepoint object, by itself: what is registered, and what is taken away. Triggering is its job's. */
export interface ObservedSavepoint {
  readonly nowMs: number
  readonly savepoint: SavepointFact
  /** `unknown`: the cache is not there yet. */
  readonly job: 'there' | 'gone' | 'unknown'
  /** undefined: it is not there, or was not seen yet. */
  readonly jobStatus: StreamJobStatus | undefined
  readonly namespaceTerminating: boolean
  /** By its path and the job that it names; for savepoints that say no origin. */
  readonly fallback: SavepointOrigin | undefined
  /** Its job's status says that it is the one that is asked for now. */
  readonly isBeingTaken: boolean
  /** The pod that takes it away. */
  readonly pod: PodFact | undefined
}

export type SavepointAction =
  | { readonly type: 'addFinalizer' }
  | { readonly type: 'removeFinalizer' }
  | {
      readonly type: 'recordSavepoint'
      readonly state: 'pending' | 'completed' | 'failed'
      readonly path?: string
      readonly detail?: string
      readonly origin?: SavepointOrigin
    }
  | { readonly type: 'runDisposal'; readonly origin: SavepointOrigin; readonly arguments: readonly string[] }
  | { readonly type: 'delete'; readonly of: ObjectIdentity; readonly force: boolean }
  | EventAction

export type SavepointDecision =
  | { readonly kind: 'act'; readonly actions: readonly SavepointAction[]; readonly why: string }
  | { readonly kind: 'wait'; readonly forMs: number | undefined; readonly why: string }
