// Which windows an event time belongs to. Windows are [startMs, endMs), aligned to the epoch plus an offset.

import { operatorError } from './errors.ts'

export interface TimeWindow {
  readonly startMs: number
  /** Exclusive. */
  readonly endMs: number
}

/** Tumbling is sliding by its own size. */
export interface WindowAssigner {
  readonly sizeMs: number
  readonly slideMs: number
  readonly offsetMs: number
}

/** Each record in exactly one window. `offsetMs` moves the windows against the epoch (UTC): days of UTC-8 have +8 h. */
export function tumblingWindows(options: { readonly sizeMs: number; readonly offsetMs?: number }): WindowAssigner {
  return slidingWindows({ ...options, slideMs: options.sizeMs })
}

/** A window of `sizeMs` begins every `slideMs`; a record is in sizeMs / slideMs of them, rounded up or down. */
export function slidingWindows(options: {
  readonly sizeMs: number
  readonly slideMs: number
  readonly offsetMs?: number
}): WindowAssigner {
  const assigner = { sizeMs: options.sizeMs, slideMs: options.slideMs, offsetMs: options.offsetMs ?? 0 }
  const { sizeMs, slideMs, offsetMs } = assigner
  const valid = isDuration(sizeMs) && isDuration(slideMs) && Number.isSafeInteger(offsetMs)
  if (!valid) throw operatorError('MR-J54', `Given: size ${sizeMs}, slide ${slideMs}, offset ${offsetMs}.`)
  return assigner
}

/** Start of the latest window that holds `timestamp`, if any does; earlier ones are slides apart. Rounds down for times before the epoch too. */
export function lastWindowStart(assigner: WindowAssigner, timestamp: number): number {
  const past = (timestamp - assigner.offsetMs) % assigner.slideMs
  return timestamp - (past < 0 ? past + assigner.slideMs : past)
}

/** About 300 years: with any date of JavaScript added it is still a safe integer. */
const durationMaxMs = 1e13

function isDuration(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0 && value <= durationMaxMs
}

export function checkAllowedLateness(allowedLatenessMs: number): number {
  if (allowedLatenessMs === 0 || isDuration(allowedLatenessMs)) return allowedLatenessMs
  throw operatorError('MR-J54', `Given: allowed lateness ${allowedLatenessMs}.`)
}
