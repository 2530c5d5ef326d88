// What the driver's process and the tests say to each other.

import type { JobSettings } from '../../../runtime/job/contract.ts'

export interface DriverOptions {
  readonly jobFile: string
  /** The working folder of the command. */
  readonly folder: string
  readonly name: string
  readonly args?: Readonly<Record<string, unknown>>
  readonly parallelism?: number
  readonly settings?: Partial<JobSettings>
  /** `<name>:<kill|throw>:<n>`, with commas between. */
  readonly failpoints?: string
}

export type DriverEvent =
  | { readonly type: 'began'; readonly job: string; readonly incarnation: number; readonly start: number }
  | { readonly type: 'running'; readonly attempts: Readonly<Record<string, number>> }
  | { readonly type: 'checkpoint'; readonly id: number }
  | { readonly type: 'restarting'; readonly message: string; readonly tasks: number }
  | { readonly type: 'terminated'; readonly slot: string | undefined }
  | {
      readonly type: 'log'
      readonly level: string
      readonly message: string
      readonly fields?: Readonly<Record<string, unknown>> | undefined
    }
  | {
      readonly type: 'outcome'
      readonly kind: string
      readonly reason: string | undefined
      readonly metrics: Readonly<Record<string, Readonly<Record<string, number>>>>
    }
  | { readonly type: 'error'; readonly code: string | undefined; readonly message: string }

/** terminate: a slot's thread, from outside; without number any. */
export type DriverOrder = { readonly type: 'terminate'; readonly slot?: number } | { readonly type: 'suspend' }
