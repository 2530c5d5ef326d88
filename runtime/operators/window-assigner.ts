// Which windows a time belongs to: plain data. Windows are [startMs, endMs); tumbling and sliding ones are aligned to the epoch plus an offset.

import { MAX_WATERMARK, MIN_WATERMARK } from '../record/element.ts'
import type { TimeDomain } from '../state/contract.ts'
import { operatorError } from './errors.ts'

export interface TimeWindow {
  readonly startMs: number
  /** Exclusive. */
  readonly endMs: number
}

/** Tumbling is sliding by its own size. */
export interface SlidingWindows {
  readonly kind: 'sliding'
  readonly time: TimeDomain
  readonly sizeMs: number
  readonly slideMs: number
  readonly offsetMs: number
}

export interface SessionWindows {
  readonly kind: 'session'
  readonly time: TimeDomain
  readonly gapMs: number
}

/** Belongs to no time: it has no end that time could reach, and no late records. */
export interface GlobalWindow {
  readonly kind: 'global'
}

export type WindowAssigner = SlidingWindows | SessionWindows | GlobalWindow

/** Default 'event'. 'processing': windows of the wall clock, which a restart does not repeat. */
interface OfTime {
  readonly time?: TimeDomain
}

/** Each record in exactly one window. `offsetMs` moves the windows against the epoch (UTC): days of UTC-8 have +8 h. */
export function tumblingWindows(
  options: { readonly sizeMs: number; readonly offsetMs?: number } & OfTime,
): SlidingWindows {
  return slidingWindows({ ...options, slideMs: options.sizeMs })
}

/** A window of `sizeMs` begins every `slideMs`; a record is in sizeMs / slideMs of them, rounded up or down. */
export function slidingWindows(
  options: { readonly sizeMs: number; readonly slideMs: number; readonly offsetMs?: number } & OfTime,
): SlidingWindows {
  const { sizeMs, slideMs, offsetMs = 0, time = 'event' } = options
  const valid = isDuration(sizeMs) && isDuration(slideMs) && Number.isSafeInteger(offsetMs)
  if (!valid) throw operatorError('MR-J54', `Given: size ${sizeMs}, slide ${slideMs}, offset ${offsetMs}.`)
  checkTime(time)
  return { kind: 'sliding', time, sizeMs, slideMs, offsetMs }
}

/**
 * Records of a key that follow each other by less than `gapMs` share a window. It begins with the first of them and ends `gapMs`
 * after the last; a record between two sessions makes them one.
 */
export function sessionWindows(options: { readonly gapMs: number } & OfTime): SessionWindows {
  const { gapMs, time = 'event' } = options
  if (!isDuration(gapMs)) throw operatorError('MR-J54', `Given: gap ${gapMs}.`)
  checkTime(time)
  return { kind: 'session', time, gapMs }
}

/** One window for all records of a key. It needs a trigger, which alone says when it fires and when it is emptied. */
export function globalWindow(): GlobalWindow {
  return { kind: 'global' }
}

/** From before all time until after it. */
export const allTime: TimeWindow = { startMs: MIN_WATERMARK, endMs: MAX_WATERMARK }

/** Start of the latest window that holds `timestamp`, if any does; earlier ones are slides apart. Rounds down for times before the epoch too. */
export function lastWindowStart(assigner: Pick<SlidingWindows, 'slideMs' | 'offsetMs'>, timestamp: number): number {
  const past = (timestamp - assigner.offsetMs) % assigner.slideMs
  return timestamp - (past < 0 ? past + assigner.slideMs : past)
}

/** About 300 years: with any date of JavaScript added it is still a safe integer. */
const durationMaxMs = 1e13

export function isDuration(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0 && value <= durationMaxMs
}

/** A job file runs by type stripping, which does not check what the type says. */
export function checkTime(time: TimeDomain): void {
  if (time !== 'event' && time !== 'processing') throw operatorError('MR-J54', `Given: time '${String(time)}'.`)
}

export function checkAllowedLateness(allowedLatenessMs: number): number {
  if (allowedLatenessMs === 0 || isDuration(allowedLatenessMs)) return allowedLatenessMs
  throw operatorError('MR-J54', `Given: allowed lateness ${allowedLatenessMs}.`)
}
