// What kind of job a seed runs: drawn once, so that a run of many seeds meets many kinds.

import type { SeededRandom } from '../random.ts'

/**
 * counter: how many records of each key. regions: two counters that share nothing. windows: sums of tumbling windows; idle windows:
 * one split falls silent for good, and the others' windows must fire all the same. event timers, processing timers: one for each record.
 */
export type Flow = 'counter' | 'regions' | 'windows' | 'idle windows' | 'event timers' | 'processing timers'

/**
 * bounded: splits end, some of them early, and the job finishes. quiet: splits hold no more records but do not end; the job is suspended
 * when all its results are there. cut: the job is suspended while records flow.
 */
export type Ending = 'bounded' | 'quiet' | 'cut'

export interface JobShape {
  readonly flow: Flow
  readonly ending: Ending
  /** All splits end as soon as they are read, and what they held is still being worked through for a while. */
  readonly sudden: boolean
  /** union: two sources, half of the splits each. rebalance: records of a split go different ways to the keyed operator. */
  readonly wiring: 'straight' | 'rebalance' | 'union'
  readonly splits: number
  readonly perSplit: number
  readonly keys: number
  /** Between two records of a split, ms of event time. */
  readonly stepMs: number
  readonly windowMs: number
  readonly timerDelayMs: number
  /** Records of all splits in a second; undefined: as fast as they are taken. */
  readonly ratePerSecond: number | undefined
  readonly idleAfterMs: number | undefined
  readonly parallelism: { readonly source: number; readonly keyed: number; readonly sink: number }
  /** Of a second start that goes on from the first one's checkpoint; undefined: there is none. */
  readonly rescaled: JobShape['parallelism'] | undefined
  /** Each vertex in slots of its own, so that all its edges are remote; else one subtask of each shares a slot. */
  readonly apart: boolean
  readonly chainedSink: boolean
  readonly maxParallelism: number
  /** Of a record, beside its numbers: large ones fill buffers, and travel in fragments. */
  readonly padBytes: number
  /** Credit of a slot's connection, little more than one fragment a channel; undefined: as much as in production. */
  readonly creditBytes: number | undefined
  /** Some slots take so long for each record, ms, that others wait for them; undefined: none does. */
  readonly slowTurnMs: number | undefined
  readonly checkpointIntervalMs: number
  readonly checkpointTimeoutMs: number
  readonly minPauseMs: number
  readonly retained: number
  readonly bufferTimeoutMs: number
  readonly channelDeadlineMs: number
  readonly failover: 'region' | 'full'
}

const flows: readonly Flow[] = [
  'counter',
  'counter',
  'counter',
  'regions',
  'windows',
  'idle windows',
  'event timers',
  'processing timers',
]

export function drawShape(random: SeededRandom): JobShape {
  const flow = random.pick(flows)
  const timers = flow === 'event timers' || flow === 'processing timers'
  const wiring = timers
    ? random.pick(['straight', 'union'] as const)
    : random.pick(['straight', 'rebalance', 'union'] as const)
  const splits = splitsOf(flow, wiring, random)
  const ending = endingOf(flow, random)
  const idle = flow === 'idle windows'
  const inFlight = idle || (ending !== 'cut' && random.chance(0.5))
  // An endless job must keep up.
  const slowTurnMs =
    inFlight && ending !== 'cut' ? random.pick(idle ? [undefined, 4] : [undefined, 4, 15, 15]) : undefined
  const sudden = ending === 'bounded' && slowTurnMs === 15
  return {
    flow,
    ending,
    sudden,
    wiring,
    splits,
    perSplit: inFlight ? (sudden ? 120 : 60) + random.below(100) : 20 + random.below(30),
    keys: 2 + random.below(8),
    stepMs: 100,
    windowMs: random.pick([300, 500, 1_000]),
    timerDelayMs: random.pick([10, 150, 450]),
    // Idleness needs a rate, or else a split that waits for its next turn is silent for longer than the timeout.
    ratePerSecond: inFlight && !idle ? undefined : splits * random.pick(idle ? [20, 40] : [10, 20, 40]),
    idleAfterMs: idle ? 250 : undefined,
    parallelism: drawParallelism(idle, random),
    rescaled: sudden || random.chance(0.65) ? undefined : drawParallelism(idle, random),
    // Else the sources would be as slow as what they feed.
    apart: sudden || random.chance(0.5),
    chainedSink: random.chance(0.5),
    maxParallelism: 8 + random.below(9),
    padBytes: inFlight ? random.pick([0, 1_500, 6_000]) : random.pick([0, 0, 200]),
    creditBytes: inFlight ? random.pick([undefined, 80_000]) : undefined,
    slowTurnMs,
    checkpointIntervalMs: sudden ? 100 : random.pick([100, 250, 600]),
    // An aligned checkpoint waits until what is buffered was worked through.
    checkpointTimeoutMs: slowTurnMs === undefined ? random.pick([3_000, 10_000]) : 30_000,
    minPauseMs: random.pick([0, 0, 100]),
    retained: 1 + random.below(3),
    bufferTimeoutMs: random.pick([0, 20, 100]),
    channelDeadlineMs: random.pick([5_000, 20_000]),
    failover: random.pick(['region', 'region', 'full'] as const),
  }
}

function drawParallelism(idle: boolean, random: SeededRandom): JobShape['parallelism'] {
  const keyed = 1 + random.below(3)
  const source = idle ? 2 + random.below(2) : 1 + random.below(3)
  return { source, keyed, sink: random.chance(0.6) ? keyed : 1 + random.below(3) }
}

/** A union's sources share them evenly; beside the silent one there must be others in each source's subtasks. */
function splitsOf(flow: Flow, wiring: JobShape['wiring'], random: SeededRandom): number {
  if (flow === 'idle windows') return 4
  return wiring === 'union' ? 2 * (1 + random.below(2)) : 1 + random.below(4)
}

/** Whether each key's records come to the ledger in the order of their split: one way through the job, at no edge dealt out in turn. */
export function keepsOrder(shape: JobShape): boolean {
  // A processing-time timer's order follows the wall clock, and those of two hosts differ.
  if (shape.flow === 'processing timers') return false
  const starts = [shape.parallelism, ...(shape.rescaled === undefined ? [] : [shape.rescaled])]
  return shape.wiring !== 'rebalance' && starts.every(({ keyed, sink }) => keyed === sink)
}

/** How many records a split has: the one that falls silent has few, those of a job that is cut have no end. */
export function recordsOf(shape: JobShape, split: number): number {
  if (shape.flow === 'idle windows' && split === 0) return Math.ceil(shape.perSplit / 5)
  return shape.ending === 'cut' ? Infinity : shape.perSplit
}

/** A bounded job drops processing-time timers that its end overtakes; cutting windows leaves some unfired. */
function endingOf(flow: Flow, random: SeededRandom): Ending {
  if (flow === 'processing timers') return 'quiet'
  // Event time is not stored with a source's splits: after a restore, silent ones alone bring it nowhere.
  if (flow === 'idle windows') return random.pick(['bounded', 'cut'] as const)
  if (flow === 'windows' || flow === 'event timers') return 'bounded'
  return random.pick(['bounded', 'bounded', 'quiet', 'cut'] as const)
}
