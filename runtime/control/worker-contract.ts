// What a worker's process and the coordinator say to each other over their direct connection (rule 12): who is there, which slots run,
// and that both are alive. What concerns the subtasks in a slot goes over the slot's own link.

import type { Incarnation, JobId, SlotId } from '../base/ids.ts'
import type { SlotStart } from './contract.ts'

/** Version of these messages. `hello`'s type and wireVersion and the whole of `refused` stay as they are in every version. */
export const WORKER_WIRE_VERSION = 1

/** Between two heartbeats of each side, ms. */
export const HEARTBEAT_MS = 1_000
/** A side that was not heard for so long is lost, ms. */
export const SILENCE_MS_MAX = 10_000
/** A process that was frozen itself heard nobody meanwhile: one look counts for no more silence than this, ms. */
export const SILENCE_PER_LOOK_MS_MAX = 2 * HEARTBEAT_MS

export interface Hello {
  readonly type: 'hello'
  readonly wireVersion: number
  /** Of the package; coordinator and workers of a job are of one. */
  readonly runtimeVersion: string
  /** Of start, code, arguments and settings (distributed/build-identity.ts): who differs would work on the same records in another way. */
  readonly build: string
  readonly job: JobId
  readonly worker: string
  /** A name that no other life of this worker has: which of two connections is the same process's. */
  readonly instance: string
  /** The job's; compared in constant time, never logged. */
  readonly token: string
  readonly slots: number
  /** It refuses every lower one; 0: it has promised nothing. */
  readonly promised: Incarnation
  /** Slots that run on without a coordinator. */
  readonly running: readonly SlotId[]
}

export type FromWorker =
  | Hello
  | { readonly type: 'heartbeat' }
  /** Its thread is gone, asked for or not; also the answer where there was none. */
  | { readonly type: 'slotEnded'; readonly slot: SlotId; readonly reason: string }
  /** It is to end: its slots are to be moved within so many ms. */
  | { readonly type: 'leaving'; readonly graceMs: number }

export type ToWorker =
  | {
      readonly type: 'welcome'
      readonly incarnation: Incarnation
      /** Of the running slots those that go on, on a new link; the worker ends all others at once. */
      readonly keep: readonly SlotId[]
      /** The coordinator's wall clock, to notice one that is far off. */
      readonly wallMs: number
    }
  /** `final`: time does not mend it, the worker ends. The message is whole, with its code and what to do. */
  | { readonly type: 'refused'; readonly code: string; readonly message: string; readonly final: boolean }
  | { readonly type: 'heartbeat' }
  | { readonly type: 'startSlot'; readonly slot: SlotId; readonly start: SlotStart }
  | { readonly type: 'terminateSlot'; readonly slot: SlotId }
  /** The worker is needed no more: it ends, and well. */
  | { readonly type: 'goodbye'; readonly reason: string }

/** A direct connection, as both sides see it. Messages come whole and in order, or the connection is closed. */
export interface MessageConnection {
  /** The other end's, for people. */
  readonly address: string
  send(message: FromWorker | ToWorker): void
  /** What came in, not yet checked. */
  onMessage(callback: (message: unknown) => void): void
  /** Once, whichever side closed it or whatever broke it; not after one's own close. */
  onClosed(callback: (reason: string) => void): void
  /** What was sent before still goes out. */
  close(): void
}
