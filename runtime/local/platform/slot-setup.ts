// What a slot's thread is told, besides what goes over its control port. Structured-cloneable.

import type { MessagePort } from 'node:worker_threads'
import type { JobId, SlotId } from '../../base/ids.ts'
import type { JobSettings } from '../../job/contract.ts'
import type { FailpointPlan } from '../failpoint-plan.ts'

/** The first message to a thread: which slot it is. */
export interface SlotSetup {
  readonly slot: SlotId
  readonly job: JobId
  /** Absolute. */
  readonly jobFile: string
  readonly jobName: string
  readonly args: unknown
  readonly parallelism: number | undefined
  readonly parallelismDefault: number
  readonly maxParallelism: number | undefined
  readonly settings: Partial<JobSettings>
  /** The job's store. */
  readonly storeFolder: string
  /** Of the place that is for its savepoints alone; undefined: they are in its store. */
  readonly savepointsFolder: string | undefined
  /** How many slots share the manifest's room for inlined state. */
  readonly slotCount: number
  readonly control: MessagePort
  readonly failpoints: FailpointPlan
}

/** To a running slot: another one came or went. */
export type PeerMessage =
  | { readonly type: 'peer'; readonly slot: SlotId; readonly port: MessagePort }
  | { readonly type: 'gone'; readonly slot: SlotId }
