// What a job says about an asynchronous function: how many records wait for it at once, how long, in which order results go on.

import type { DeepReadonly } from '../state/contract.ts'
import { operatorError } from './errors.ts'
import { isPromise } from './user-code.ts'
import type { UserMetrics } from './user-metrics-contract.ts'

/** Given to the function with each record. */
export interface AsyncContext {
  /** Aborted when the record's time is over and when the operator closes, for what the function calls: `fetch(url, { signal })`. */
  readonly signal: AbortSignal
  /** 1 for the first try of the record by this attempt of the subtask. */
  readonly attempt: number
  /** Event time of the record, ms since the epoch; undefined if it has none. */
  readonly timestamp: number | undefined
  readonly metrics: UserMetrics
}

/**
 * ordered: results go on in the order of their records. unordered: as they come, but never past a watermark, so that none turns late.
 */
export type AsyncOrder = 'ordered' | 'unordered'

export interface AsyncRetries {
  /** Tries in all, the first among them. */
  readonly attempts: number
  /** Before the second try; doubled before each further one. */
  readonly delayMs: number
  /** Default: no bound but the record's timeout. */
  readonly maxDelayMs?: number
  /** Whether the error may be gone at the next try. Default: any may. */
  readonly when?: (error: unknown) => boolean
}

export interface AsyncOptions<In, Result> {
  /** Of one record, over all its tries. */
  readonly timeoutMs: number
  /** 'fail' (the default): MR-J70, and the job restarts. A function: its result stands for the missing one. */
  readonly onTimeout?: 'fail' | ((value: DeepReadonly<In>) => Result)
  /** Records without result at one time, and results that wait for those before them; default 100. With more the subtask stops reading. */
  readonly capacity?: number
  /** Default: 'ordered'. */
  readonly order?: AsyncOrder
  /** Default: the first error fails the job. */
  readonly retries?: AsyncRetries
}

/** Checked, with defaults. */
export interface AsyncSettings {
  readonly timeoutMs: number
  readonly onTimeout: ((value: unknown) => unknown) | undefined
  readonly capacity: number
  readonly order: AsyncOrder
  readonly retries: Required<AsyncRetries>
}

/** Throws MR-J71. `where`: the call, for the message. */
export function asyncSettings(where: string, options: AsyncOptions<never, unknown>): AsyncSettings {
  const { timeoutMs, onTimeout = 'fail', capacity = 100, order = 'ordered', retries } = options
  const { attempts, delayMs, maxDelayMs = Number.MAX_SAFE_INTEGER, when = () => true } = retries ?? noRetries
  const check = (fits: boolean, name: string, value: unknown): void => {
    if (!fits) throw operatorError('MR-J71', `${name} of ${where} is ${String(value)}.`)
  }
  const wholeFrom = (least: number, value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= least
  check(wholeFrom(1, timeoutMs) && timeoutMs <= timeoutMsMax, 'timeoutMs', timeoutMs)
  check(onTimeout === 'fail' || typeof onTimeout === 'function', 'onTimeout', onTimeout)
  check(wholeFrom(1, capacity), 'capacity', capacity)
  check(order === 'ordered' || order === 'unordered', 'order', order)
  check(wholeFrom(1, attempts), 'retries.attempts', attempts)
  check(wholeFrom(0, delayMs), 'retries.delayMs', delayMs)
  check(wholeFrom(delayMs, maxDelayMs), 'retries.maxDelayMs', maxDelayMs)
  check(typeof when === 'function', 'retries.when', when)
  return {
    timeoutMs,
    onTimeout: onTimeout === 'fail' ? undefined : (onTimeout as (value: unknown) => unknown),
    capacity,
    order,
    retries: { attempts, delayMs, maxDelayMs, when },
  }
}

/** Before try `attempt` (2 or more), ms. */
export function retryDelayMs({ delayMs, maxDelayMs }: Required<AsyncRetries>, attempt: number): number {
  return Math.min(maxDelayMs, delayMs * 2 ** (attempt - 2), timerMsMax)
}

/** A promise, or what awaits like one: database clients give such. */
export function isAwaitable(value: unknown): value is PromiseLike<unknown> {
  if (isPromise(value)) return true
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/** A timer takes no more; the record's timeout comes first anyway. */
const timerMsMax = 2 ** 31 - 1

const noRetries: AsyncRetries = { attempts: 1, delayMs: 0 }
/** Timers of Node do not reach further. */
const timeoutMsMax = 2 ** 31 - 1
