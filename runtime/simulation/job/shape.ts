// What kind of job a seed runs, and what follows from it.

/**
 * counter: how many records of each key. regions: two counters that share nothing. windows: sums of tumbling windows; idle windows:
 * one split falls silent for good. event timers, processing timers: one for each record. pipes: nothing is exchanged, and
 * each subtask of the source has a region of its own. The others are named for what they use.
 */
export type FlowName =
  | 'counter'
  | 'regions'
  | 'windows'
  | 'idle windows'
  | 'event timers'
  | 'processing timers'
  | 'connected'
  | 'time to live'
  | 'asynchronous'
  | 'sessions'
  | 'processing windows'
  | 'count windows'
  | 'broadcast'
  | 'coGroups'
  | 'window join'
  | 'interval join'
  | 'pipes'

/**
 * bounded: splits end, some of them early, and the job finishes. quiet: splits hold no more records but do not end; the job is suspended
 * when all its results are there. cut: the job is suspended while records flow. stopped, drained: it ends with a savepoint while
 * records flow, and its results must be those of exactly the records before the savepoint's barrier. cancelled: while records flow,
 * and nothing but savepoints is left of it, if it says so.
 */
export type Ending = 'bounded' | 'quiet' | 'cut' | 'stopped' | 'drained' | 'cancelled'

export interface Parallelism {
  readonly source: number
  readonly keyed: number
  readonly sink: number
}

export interface JobShape {
  readonly flow: FlowName
  readonly ending: Ending
  /** All splits end as soon as they are read, and what they held is still being worked through for a while. */
  readonly sudden: boolean
  /** union: two sources, half of the splits each. rebalance: records of a split go different ways to the keyed operator. */
  readonly wiring: 'straight' | 'rebalance' | 'union'
  readonly mode: 'exactly-once' | 'at-least-once'
  /** Splits are given out one by one; else a reader gets its share at once. */
  readonly dealt: boolean
  /**
   * All that befalls this job; undefined: whatever there is. lost coordinators: they die while the job runs, and nothing may restart. outage:
   * the network's servers are away for less than any deadline, and nothing may restart; long outage: for longer, and all is exact again. Some of those
   * take no checkpoints: the coordinator then has nothing to say to anybody, and waits for nobody's answer.
   * given up: a worker cannot be reached while others do its work, and is all that the next coordinator finds.
   */
  readonly trial: 'lost coordinators' | 'outage' | 'long outage' | 'given up' | undefined
  readonly splits: number
  readonly perSplit: number
  readonly keys: number
  /** Between two records of a split, ms of event time. */
  readonly stepMs: number
  readonly windowMs: number
  /** Between two sessions. */
  readonly gapMs: number
  readonly timerDelayMs: number
  /** Of an event timer; below 0: its time has often passed when it is registered, and it waits until time moves again. */
  readonly eventDelayMs: number
  /** Asynchronous answers go on as they come. */
  readonly unordered: boolean
  /** Records of all splits in a second; undefined: as fast as they are taken. */
  readonly ratePerSecond: number | undefined
  /** The second source of a union has a quarter of its share of the rate. */
  readonly slowSource: boolean
  readonly idleAfterMs: number | undefined
  readonly parallelism: Parallelism
  /** Of a second start that goes on where the first one ended; undefined: there is none. */
  readonly rescaled: Parallelism | undefined
  /** Not before, virtual ms. */
  readonly rescaledAtMs: number
  /** Nor before something has come out: event time had begun at the checkpoint from which it then goes on. */
  readonly rescaledBehindResults: boolean
  /** How the first start ends for it: suspended, so from its checkpoint, or stopped with a savepoint. */
  /** place: in the same start, behind a checkpoint. */
  readonly rescaledBy: 'suspend' | 'stop' | 'place'
  /** Savepoints asked for while the job runs. */
  readonly savepoints: number
  /** Of another job that begins at the first of them while this one goes on; undefined: there is none. */
  readonly copied: Parallelism | undefined
  /** A keyed operator beside, whose results nobody keeps: the other job lacks it, and may drop its state. */
  readonly removable: boolean
  /** Each vertex in slots of its own, so that all its edges are remote; else one subtask of each shares a slot. */
  readonly apart: boolean
  readonly chainedSink: boolean
  /** A second ledger, slow to commit, in the keyed operator's task, which goes on to the first one. */
  readonly slowSink: boolean
  /** A sink without transactions there, to see what is given out and when. */
  readonly witness: boolean
  /** A sink of files there; all of the job is then on one machine. */
  readonly files: boolean
  readonly maxParallelism: number
  /** Of the keyed operator alone. */
  readonly maxParallelismKeyed: number
  /** Of a record, beside its numbers: large ones fill buffers, and travel in fragments. */
  readonly padBytes: number
  /** Credit of a slot's connection, little more than one fragment a channel; undefined: as much as in production. */
  readonly creditBytes: number | undefined
  /** Some slots take so long for each record, ms, that others wait for them; undefined: none does. */
  readonly slowTurnMs: number | undefined
  /** Which: half of them, by lot; all that run no source; that of the keyed operator's first subtask alone. */
  readonly slowSlots: 'any' | 'behind the sources' | 'one keyed'
  readonly checkpointIntervalMs: number | undefined
  readonly checkpointTimeoutMs: number
  readonly tolerableFailures: number
  readonly onCancellation: 'retain' | 'delete'
  readonly minPauseMs: number
  readonly retained: number
  readonly bufferTimeoutMs: number
  readonly channelDeadlineMs: number
  readonly failover: 'region' | 'full'
}

/** Whether each key's records come to the ledger in the order of their split: one way through the job, at no edge dealt out in turn. */
export function keepsOrder(shape: JobShape): boolean {
  // A processing-time timer's order follows the wall clock, and those of two hosts differ.
  if (shape.flow === 'processing timers') return false
  // What is in flight goes to other subtasks than its split.
  if (shape.flow === 'asynchronous' && (shape.unordered || shape.rescaled !== undefined)) return false
  const starts = [shape.parallelism, ...(shape.rescaled === undefined ? [] : [shape.rescaled])]
  return shape.wiring !== 'rebalance' && starts.every(({ keyed, sink }) => keyed === sink)
}

/** How many records a split has: the one that falls silent has few, those of a job that is cut have no end. */
export function recordsOf(shape: JobShape, split: number): number {
  if (shape.flow === 'idle windows' && split === 0) return Math.ceil(shape.perSplit / 5)
  return isEndless(shape) ? Infinity : shape.perSplit
}

/** Whether its splits have no end. */
export function isEndless({ ending }: JobShape): boolean {
  return ending !== 'bounded' && ending !== 'quiet'
}

/** Where a split of the job is read: the uid of its source, and its number there. `region`: 0 unless the job has two. */
export function sourceOf(
  shape: JobShape,
  region: number,
  split: number,
): { readonly uid: string; readonly split: number } {
  const prefix = shape.flow === 'regions' ? `region${region}-` : ''
  if (shape.wiring !== 'union') return { uid: `${prefix}numbers`, split }
  const half = shape.splits / 2
  return split < half ? { uid: `${prefix}left`, split } : { uid: `${prefix}right`, split: split - half }
}
