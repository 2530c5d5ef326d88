// Draws a job from a seed: once, so that a run of many seeds meets many kinds.

import { flows } from '../flows/flows.ts'
import type { SeededRandom } from '../random.ts'
import { isEndless } from './shape.ts'
import type { Ending, FlowName, JobShape, Parallelism } from './shape.ts'

/** How often each is drawn. */
const weights: Readonly<Record<FlowName, number>> = {
  counter: 6,
  regions: 3,
  windows: 3,
  'idle windows': 2,
  'event timers': 3,
  'processing timers': 1,
  connected: 2,
  'time to live': 1,
  asynchronous: 3,
  sessions: 1,
  'processing windows': 1,
  'count windows': 1,
  broadcast: 1,
  coGroups: 1,
  'window join': 1,
  'interval join': 1,
  pipes: 4,
}

const names = (Object.keys(weights) as FlowName[]).flatMap((name) => Array<FlowName>(weights[name]).fill(name))

/** Of the keyed operator before and after. */
const rescalings = [
  [1, 2],
  [2, 1],
  [2, 3],
  [3, 2],
  [3, 7],
  [7, 3],
] as const

/** Splits of a source that has many more of them than subtasks. */
const manySplits = [8, 12]

export function drawShape(random: SeededRandom): JobShape {
  const flow = random.pick(names)
  const drawn = drawTrial(drawKind(flow, random), random)
  const shape = { ...drawn, removable: drawn.copied !== undefined && random.split('removable').chance(0.4) }
  return shape.trial === undefined && dealtFlows.has(flow) && random.chance(0.5) ? dealt(shape, random) : shape
}

/** Event time does not wait for splits that are yet to be dealt. */
const dealtFlows: ReadonlySet<FlowName> = new Set<FlowName>(['counter', 'regions', 'pipes', 'asynchronous'])

function dealt(shape: JobShape, random: SeededRandom): JobShape {
  if (isEndless(shape) || shape.sudden) return shape
  const splits = random.pick([4, 8, 12])
  return { ...shape, dealt: true, splits, perSplit: 8 + random.below(20) }
}

/** Whoever is spared everything else must show that nothing restarts. */
function drawTrial(shape: JobShape, random: SeededRandom): JobShape {
  const { ending, sudden } = shape
  if (shape.trial !== undefined || sudden || ending === 'stopped' || ending === 'drained' || !random.chance(0.15))
    return shape
  const trial = random.pick(['lost coordinators', 'lost coordinators', 'outage', 'long outage'] as const)
  const silent = trial === 'long outage' && ending === 'bounded' && random.split('silent').chance(0.5)
  return { ...spared(shape), trial, ...(silent && { checkpointIntervalMs: undefined }) }
}

function drawKind(flow: FlowName, random: SeededRandom): JobShape {
  const shape = drawAny(flow, random)
  if (flow === 'pipes') {
    const straight = piped(shape, random)
    return random.chance(0.3) ? givenUp(straight, random) : straight
  }
  if (flow === 'windows' && random.chance(0.6)) return skewed(shape, random)
  return flow === 'event timers' && random.chance(0.5) ? overdue(shape, random) : shape
}

/** At one parallelism, so that each record goes straight on. */
function piped(shape: JobShape, random: SeededRandom): JobShape {
  const even = (parallelism: number): Parallelism => ({ source: parallelism, keyed: parallelism, sink: parallelism })
  const size = random.pick([2, 3])
  return {
    ...shape,
    wiring: 'straight',
    splits: random.pick([size, 2 * size, 8]),
    parallelism: even(size),
    rescaled: shape.rescaled === undefined ? undefined : even(size === 2 ? 3 : 2),
    copied: shape.copied === undefined ? undefined : even(shape.copied.source),
    failover: 'region',
    checkpointIntervalMs: random.pick([250, 600, 1_500]),
  }
}

/** It reads all the while, and completes checkpoints. */
function givenUp(shape: JobShape, random: SeededRandom): JobShape {
  return {
    ...spared(shape),
    trial: 'given up',
    ending: random.pick(['bounded', 'quiet', 'cut']),
    sudden: false,
    apart: false,
    perSplit: 150,
    padBytes: 0,
    slowTurnMs: undefined,
    ratePerSecond: 10 * shape.splits,
    checkpointIntervalMs: random.pick([250, 600]),
    checkpointTimeoutMs: 10_000,
  }
}

/** Its own end is no fault; nor may anything but what is tried be one. */
function spared(shape: JobShape): JobShape {
  return {
    ...shape,
    rescaled: undefined,
    copied: undefined,
    savepoints: 0,
    tolerableFailures: Infinity,
    channelDeadlineMs: 120_000,
  }
}

/** Timers for a time long past, which fire when event time next moves: a snapshot finds some of them waiting. One source is slow, and time with it. */
function overdue(shape: JobShape, random: SeededRandom): JobShape {
  const splits = random.pick([2, 4])
  return {
    ...shape,
    eventDelayMs: -1_000_000,
    wiring: 'union',
    sudden: false,
    splits,
    slowSource: true,
    perSplit: 20 + random.below(30),
    ratePerSecond: 40 * splits,
    slowTurnMs: undefined,
    checkpointIntervalMs: 100,
  }
}

/**
 * At least once, so that subtasks are not at one point of event time at a checkpoint. The source that is behind in event time, and so says
 * what time it is, has its barrier through at once, and goes on; the other one's barrier waits behind what a slow subtask has before it,
 * and meanwhile that one's time goes on too. Then the key groups of subtasks at different times meet in fewer of them.
 */
function skewed(shape: JobShape, random: SeededRandom): JobShape {
  const keyed = random.pick([2, 3])
  const parallelism = { source: 1, keyed, sink: keyed }
  const splits = 2
  return {
    ...shape,
    mode: 'at-least-once',
    ending: 'bounded',
    sudden: false,
    splits,
    perSplit: 200 + random.below(100),
    wiring: 'union',
    slowSource: true,
    ratePerSecond: 200 * splits,
    slowTurnMs: 15,
    slowSlots: 'one keyed',
    apart: true,
    padBytes: 1_500,
    creditBytes: 80_000,
    windowMs: 300,
    parallelism,
    rescaled: { ...parallelism, keyed: keyed - 1 },
    rescaledBy: 'suspend',
    rescaledAtMs: random.between(200, 2_000),
    rescaledBehindResults: true,
    checkpointIntervalMs: 100,
    checkpointTimeoutMs: 30_000,
  }
}

function drawAny(flow: FlowName, random: SeededRandom): JobShape {
  const ending = random.pick<Ending>(flows[flow].endings)
  const idle = flow === 'idle windows'
  const endless = isEndless({ ending } as JobShape)
  const wiring = wiringOf(flow, random)
  const splits = splitsOf(flow, wiring, random)
  const inFlight = idle || (!endless && random.chance(0.5))
  // An endless job must keep up.
  const slowTurnMs = inFlight && !endless ? random.pick(idle ? [undefined, 4] : [undefined, 4, 15, 15]) : undefined
  const sudden = ending === 'bounded' && slowTurnMs === 15
  const parallelism = drawParallelism(idle, random)
  const rescaled = sudden || random.chance(0.6) ? undefined : drawRescaling(idle, parallelism, random)
  const maxParallelism = 8 + random.below(9)
  return {
    flow,
    ending,
    sudden,
    wiring,
    mode: flow === 'counter' || flow === 'connected' ? modeOf(random) : 'exactly-once',
    dealt: false,
    trial: undefined,
    splits,
    perSplit: perSplitOf(splits, { inFlight, sudden }, random),
    keys: 2 + random.below(8),
    stepMs: 100,
    windowMs: random.pick([300, 500, 1_000]),
    gapMs: random.pick([150, 250, 400]),
    timerDelayMs: random.pick([10, 150, 450]),
    eventDelayMs: random.pick([10, 150, 450]),
    unordered: random.chance(0.5),
    // Idleness needs a rate, or else a split that waits for its next turn is silent for longer than the timeout.
    ratePerSecond: inFlight && !idle ? undefined : splits * random.pick(idle ? [20, 40] : [10, 20, 40]),
    slowSource: false,
    idleAfterMs: idle ? 250 : undefined,
    parallelism: rescaled?.before ?? parallelism,
    rescaled: rescaled?.after,
    rescaledAtMs: random.between(300, 5_000),
    rescaledBehindResults: false,
    rescaledBy: random.pick(['suspend', 'stop', 'place'] as const),
    ...drawSavepoints(flow, ending, random),
    // Else the sources would be as slow as what they feed. Seven of everything would be a crowd.
    apart: sudden || (rescaled?.large !== true && random.chance(0.5)),
    removable: false,
    chainedSink: random.chance(0.5),
    ...drawSinks(flow, ending, random),
    maxParallelism,
    maxParallelismKeyed: random.chance(0.3) ? 8 + random.below(30) : maxParallelism,
    padBytes: inFlight ? random.pick([0, 1_500, 6_000]) : random.pick([0, 0, 200]),
    creditBytes: inFlight ? random.pick([undefined, 80_000]) : undefined,
    slowTurnMs,
    slowSlots: sudden ? 'behind the sources' : 'any',
    checkpointIntervalMs: sudden ? 100 : random.pick([100, 250, 600]),
    // An aligned checkpoint waits until what is buffered was worked through.
    checkpointTimeoutMs: slowTurnMs === undefined ? random.pick([3_000, 10_000]) : 30_000,
    // What takes longer to work through than a checkpoint may take would begin again and again.
    tolerableFailures: Math.max(random.pick([Infinity, Infinity, Infinity, 2, 0]), sudden ? Infinity : 0),
    onCancellation: random.pick(['retain', 'delete'] as const),
    minPauseMs: random.pick([0, 0, 100]),
    retained: 1 + random.below(3),
    bufferTimeoutMs: random.pick([0, 20, 100]),
    channelDeadlineMs: random.pick([5_000, 20_000]),
    failover: random.pick(['region', 'region', 'full'] as const),
  }
}

function modeOf(random: SeededRandom): JobShape['mode'] {
  return random.chance(0.2) ? 'at-least-once' : 'exactly-once'
}

function wiringOf(flow: FlowName, random: SeededRandom): JobShape['wiring'] {
  if (flows[flow].streams === 'two') return 'union'
  const timers = flow === 'event timers' || flow === 'processing timers'
  return timers ? random.pick(['straight', 'union'] as const) : random.pick(['straight', 'rebalance', 'union'] as const)
}

/** A union's sources share them evenly; beside the silent one there must be others in each source's subtasks. */
function splitsOf(flow: FlowName, wiring: JobShape['wiring'], random: SeededRandom): number {
  if (flow === 'idle windows') return 4
  if (random.chance(0.15)) return random.pick(manySplits)
  return wiring === 'union' ? 2 * (1 + random.below(2)) : 1 + random.below(4)
}

function perSplitOf(
  splits: number,
  { inFlight, sudden }: { readonly inFlight: boolean; readonly sudden: boolean },
  random: SeededRandom,
): number {
  const records = inFlight ? (sudden ? 120 : 60) + random.below(100) : 20 + random.below(30)
  return splits < manySplits[0]! ? records : Math.ceil(records / 3)
}

function drawParallelism(idle: boolean, random: SeededRandom): Parallelism {
  const keyed = 1 + random.below(3)
  const source = idle ? 2 + random.below(2) : 1 + random.below(3)
  return { source, keyed, sink: random.chance(0.6) ? keyed : 1 + random.below(3) }
}

interface Rescaling {
  readonly before: Parallelism
  readonly after: Parallelism
  readonly large: boolean
}

/** The sources go from one of the smaller ones to another, or stay. */
function drawRescaling(idle: boolean, { source, sink, keyed }: Parallelism, random: SeededRandom): Rescaling {
  const [from, to] = random.pick(rescalings)
  const after = idle || random.chance(0.3) ? source : 1 + random.below(3)
  // A sink of its own parallelism keeps it; else it goes along.
  const follows = sink === keyed
  return {
    before: { source, keyed: from, sink: follows ? from : sink },
    after: { source: after, keyed: to, sink: follows ? to : sink },
    large: from === 7 || to === 7,
  }
}

/** Another job can begin at a savepoint where what the first had given out by then follows from what it had read, and no split has ended. */
function drawSavepoints(flow: FlowName, ending: Ending, random: SeededRandom): Pick<JobShape, 'savepoints' | 'copied'> {
  const immediate = flows[flow].immediate && flow !== 'regions'
  if (immediate && ending !== 'bounded' && ending !== 'cancelled' && random.chance(0.6))
    return { savepoints: random.pick([1, 3]), copied: drawParallelism(false, random) }
  return { savepoints: random.pick([0, 0, 1, 3]), copied: undefined }
}

function drawSinks(
  flow: FlowName,
  ending: Ending,
  random: SeededRandom,
): Pick<JobShape, 'slowSink' | 'witness' | 'files'> {
  const none = { slowSink: false, witness: false, files: false }
  if (flow === 'regions') return none
  const ended = flows[flow].immediate && (ending === 'stopped' || ending === 'drained')
  if (ended && random.chance(0.5)) return { ...none, witness: true }
  if (flows[flow].immediate && random.chance(0.3)) return { ...none, witness: true }
  if (random.chance(0.1)) return { ...none, slowSink: true }
  return ending !== 'cancelled' && random.chance(0.1) ? { ...none, files: true } : none
}
