// Which session a record belongs to. The sessions of a key are disjoint: where one begins says which it is.

import type { TimeWindow } from './window-assigner.ts'

export interface SessionOfRecord {
  /** The window that the record belongs to. */
  readonly window: TimeWindow
  /** Open sessions that become part of it, earliest first. None: it is new. */
  readonly merged: readonly TimeWindow[]
}

/**
 * A session that ends at the record's time, or begins gapMs after it, is another one: by then the watermark may have ended it, and
 * what is one session must not depend on how far the watermark had come.
 */
export function sessionOf(
  sessions: readonly TimeWindow[],
  record: { readonly timeMs: number; readonly gapMs: number },
): SessionOfRecord {
  const own = { startMs: record.timeMs, endMs: record.timeMs + record.gapMs }
  const merged: TimeWindow[] = []
  let { startMs, endMs } = own
  for (const session of sessions) {
    if (session.startMs >= own.endMs || session.endMs <= own.startMs) continue
    merged.push(session)
    startMs = Math.min(startMs, session.startMs)
    endMs = Math.max(endMs, session.endMs)
  }
  if (merged.length > 1) merged.sort((left, right) => left.startMs - right.startMs)
  return { window: { startMs, endMs }, merged }
}
