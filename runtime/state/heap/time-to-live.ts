// A state's time to live as its tables go by it: when an entry has expired, and which entries are looked at for clean-up.
//
// An entry carries the wall time of its last refresh, and not the time of its end: a job that changes the time to live changes it for
// what is stored too. An entry that a strict state finds expired is removed at once, so a clock that is set back brings nothing back that
// was seen to be gone; what nobody looked at lives longer by the jump, no more.

import type { Clock } from '../../base/environment.ts'
import type { StateTtl } from '../contract.ts'
import type { MapKey } from './cursor.ts'

/**
 * Entries looked at for clean-up each time that a state is used under another key, and for each new entry of a map: more than these
 * add, so that the walk gets round.
 */
export const LOOKS_PER_USE = 4

export class TimeToLive {
  readonly ms: number
  readonly refreshesOnRead: boolean
  readonly returnsExpired: boolean
  private readonly clock: Clock

  constructor(ttl: StateTtl, clock: Clock) {
    this.ms = ttl.ms
    this.refreshesOnRead = ttl.refresh === 'on read and write'
    this.returnsExpired = ttl.expired === 'returned if not yet cleaned up'
    this.clock = clock
  }

  /** Whole milliseconds: they are stored. */
  nowMs(): number {
    return Math.floor(this.clock.wallMs())
  }

  /** By difference: a time that a clock ahead of this one wrote is in the future, and that entry has not expired. */
  hasExpired(refreshedAtMs: number, nowMs: number): boolean {
    return nowMs - refreshedAtMs >= this.ms
  }
}

/** Goes round the entries of all groups for ever, a few at a time; the Maps may change between two steps. */
export class EntryWalk<Entry> {
  /** The group that the last entry is of. */
  group = 0
  private readonly groups: readonly Map<MapKey, Entry>[]
  private entries: Iterator<Entry>

  constructor(groups: readonly Map<MapKey, Entry>[]) {
    this.groups = groups
    this.entries = groups[0]!.values()
  }

  /** undefined: a group is done, and the next step begins the next one. */
  next(): Entry | undefined {
    const step = this.entries.next()
    if (step.done !== true) return step.value
    this.group = (this.group + 1) % this.groups.length
    this.entries = this.groups[this.group]!.values()
    return undefined
  }
}
