// What a slot's thread in a worker's process is told, besides what goes over its links. Structured-cloneable.

import type { MessagePort } from 'node:worker_threads'
import type { Incarnation, SlotId } from '../../base/ids.ts'
import type { SlotStart } from '../../control/contract.ts'
import type { FailpointPlan } from '../../local/failpoint-plan.ts'
import type { ProcessConfig } from '../contract.ts'

/** The first message to a thread: which slot it is. */
export interface SlotSetup {
  readonly type: 'setup'
  readonly slot: SlotId
  readonly start: SlotStart
  /** The worker's. */
  readonly worker: string
  readonly config: ProcessConfig
  /** Packets of its link to the coordinator that has started it. */
  readonly control: MessagePort
  readonly failpoints: FailpointPlan
}

export type ToThread =
  | SlotSetup
  /** The coordinator is gone. */
  | { readonly type: 'detach'; readonly reason: string }
  /** The next one; packets of a new link to it. */
  | { readonly type: 'attach'; readonly incarnation: Incarnation; readonly control: MessagePort }
