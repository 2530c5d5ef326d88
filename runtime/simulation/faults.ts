// A seeded plan of faults. Each seed draws which kinds it uses and how often ("swarm testing", Groce and others, 2012): a run that
// always does everything at once never gets deep, and hides what only a rare mixture shows.

import type { FailpointName } from '../base/failpoints.ts'
import { failpointNames } from '../base/failpoints.ts'
import type { SimDisk } from './disk.ts'
import type { SimNetwork } from './network.ts'
import type { Machine, SimProcess } from './process.ts'
import type { SeededRandom } from './random.ts'
import type { ServiceTrouble } from './service.ts'
import type { Weather } from './weather.ts'
import type { Interference, World } from './world.ts'

export interface FaultTargets {
  /** Who may die or freeze at this moment. */
  readonly processes: () => readonly SimProcess[]
  /** Hosts that may lose power at this moment, with all their processes. */
  readonly machines?: () => readonly Machine[]
  readonly network?: SimNetwork
  /** Stores, the ledger: what processes call and what outlives them. */
  readonly services?: readonly { readonly weather: Weather<ServiceTrouble> }[]
  readonly disks?: () => readonly SimDisk[]
  /** Hosts whose wall clock may jump. */
  readonly clocks?: () => readonly Machine[]
}

export interface FaultOptions {
  /** Steps between two faults, in the mean; the seed varies it. */
  readonly stepsMean?: number
  /** Faults of a run at most; the seed draws how many of them. */
  readonly faultsMax?: number
}

/** No process freezes for longer: scenarios give convergence more time than this. Virtual milliseconds. */
export const freezeMsMax = 60_000
/** No trouble of network, store or disk lasts longer. Virtual milliseconds. */
const troubleMsMax = 10_000

/** A wall clock that was set wrong by an hour, and is set right, or the other way about. */
const jumpMsMax = 3_600_000

type FaultKind =
  | 'kill'
  | 'freeze'
  | 'power loss'
  | 'failpoint kill'
  | 'failpoint throw'
  | 'failpoint freeze'
  | 'network loss'
  | 'network delay'
  | 'network repetition'
  | 'network echo'
  | 'network reordering'
  | 'network restart'
  | 'dropped connection'
  | 'half-open connection'
  | 'service slow'
  | 'service failing'
  | 'service ambiguous'
  | 'service torn'
  | 'service stalled'
  | 'clock jump'
  | 'disk slow'
  | 'disk failing'
  | 'disk full'

/**
 * Named later than the others. They have a stream of their own, and one seed in five strikes at them: the rest do what they did before there were
 * any, so that seeds that are known to tell something go on telling it.
 */
const laterFailpoints = [
  'coordinator.begin.before',
  'coordinator.begin.after',
  'coordinator.trigger.before',
  'coordinator.trigger.after',
  'coordinator.complete.after',
  'coordinator.end.before',
  'coordinator.end.after',
] as const satisfies readonly FailpointName[]
const laterNames: ReadonlySet<FailpointName> = new Set(laterFailpoints)
const earlierFailpoints = failpointNames.filter((name) => !laterNames.has(name))
const laterShare = 0.2

const service = (trouble: ServiceTrouble): readonly string[] => [
  `store ${trouble}`,
  `ledger ${trouble}`,
  `slow ledger ${trouble}`,
]

/** Under which of these names `counts` has each kind: whichever service it met. */
export const countedAs: Readonly<Record<FaultKind | 'stale list', readonly string[]>> = {
  kill: ['kill'],
  freeze: ['freeze'],
  'power loss': ['power loss'],
  'failpoint kill': ['failpoint kill'],
  'failpoint throw': ['failpoint throw'],
  'failpoint freeze': ['failpoint freeze'],
  'network loss': ['network loss'],
  'network delay': ['network delay'],
  'network repetition': ['network repetition'],
  'network echo': ['network echo'],
  'network reordering': ['network reordering'],
  'network restart': ['network restart'],
  'dropped connection': ['network cut'],
  'half-open connection': ['network cut'],
  'service slow': service('slow'),
  'service failing': service('failing'),
  'service ambiguous': service('ambiguous'),
  'service torn': service('torn'),
  'service stalled': service('stalled'),
  'stale list': ['store stale'],
  'clock jump': ['clock jump'],
  'disk slow': ['disk slow'],
  'disk failing': ['disk failing'],
  'disk full': ['disk full'],
}

const failpointFaults = ['failpoint kill', 'failpoint throw', 'failpoint freeze'] as const

export class FaultPlan implements Interference {
  readonly #world: World
  readonly #targets: FaultTargets
  readonly #random: SeededRandom
  readonly #counts = new Map<FaultKind, number>()
  /** What this seed does between two steps. */
  readonly #kinds: readonly FaultKind[]
  readonly #failpointKinds: readonly (typeof failpointFaults)[number][]
  /** Failpoints at which this seed strikes often, so that over some seeds each is struck. */
  readonly #focus: ReadonlySet<FailpointName>
  readonly #later: SeededRandom
  /** The one of them at which this seed strikes; undefined: at none. */
  readonly #laterFocus: FailpointName | undefined
  readonly #hitsLeft = new Map<FailpointName, number>()
  readonly #stepsMean: number
  #stepsLeft: number
  #faultsLeft: number

  /** Begins to interfere at once. */
  constructor(world: World, targets: FaultTargets, options: FaultOptions = {}) {
    this.#world = world
    this.#targets = targets
    this.#random = world.random.split('faults')
    const random = this.#random
    this.#kinds = swarm(possibleKinds(targets), random)
    this.#failpointKinds = swarm(failpointFaults, random)
    this.#focus = new Set([random.pick(earlierFailpoints), random.pick(earlierFailpoints)])
    this.#later = random.split('later failpoints')
    this.#laterFocus = this.#later.chance(laterShare) ? this.#later.pick(laterFailpoints) : undefined
    this.#stepsMean = (options.stepsMean ?? 1_500) * random.pick([0.2, 1, 4])
    this.#stepsLeft = this.#drawSteps()
    this.#faultsLeft = 1 + random.below(options.faultsMax ?? 30)
    world.tell(
      () => `faults: ${this.#kinds.join(', ')}; ${this.#failpointKinds.join(', ')} (${[...this.#focus].join(', ')})`,
    )
    for (const { weather } of targets.services ?? []) foresee(weather, random.split(`foreseen for ${weather.name}`))
    world.interference = this
  }

  /** Whether the seed's number of faults is used up; at least one of them then really happened. */
  get exhausted(): boolean {
    return this.#faultsLeft === 0
  }

  /** What really happened to somebody, by kind: a window of loss in which nothing was sent counts nothing. */
  get counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = Object.fromEntries(this.#counts)
    const { network, services = [], disks } = this.#targets
    if (network !== undefined) addCounts(counts, 'network', network.weather.counts)
    for (const { weather } of services) addCounts(counts, weather.name, weather.counts)
    for (const disk of disks?.() ?? []) addCounts(counts, 'disk', disk.weather.counts)
    return counts
  }

  /** Sum of `counts`. */
  get happened(): number {
    return Object.values(this.counts).reduce((sum, count) => sum + count, 0)
  }

  /** Faults stop here and convergence is demanded: what is broken heals, the frozen wake by their time, nothing new happens. */
  stop(): void {
    this.#world.tell('faults stop')
    if (this.#world.interference === this) this.#world.interference = undefined
    this.#faultsLeft = 0
    this.#targets.network?.calm()
    for (const { weather } of this.#targets.services ?? []) weather.calm()
    for (const disk of this.#targets.disks?.() ?? []) disk.weather.calm()
  }

  beforeStep(): boolean {
    if (this.#faultsLeft === 0 || --this.#stepsLeft > 0) return false
    this.#stepsLeft = this.#drawSteps()
    // A plan of trouble that met nobody would end a run in which nothing failed: its last fault is then a kill.
    const kind = this.#faultsLeft === 1 && this.happened === 0 ? 'kill' : this.#random.pick(this.#kinds)
    if (!this.#strike(kind)) return false
    this.#faultsLeft--
    return true
  }

  atFailpoint(process: SimProcess, name: FailpointName): 'pass' | 'throw' {
    if (this.#faultsLeft === 0 || this.#failpointKinds.length === 0) return 'pass'
    if (laterNames.has(name) && name !== this.#laterFocus) return 'pass'
    const hitsLeft = (this.#hitsLeft.get(name) ?? this.#drawHits(name)) - 1
    this.#hitsLeft.set(name, hitsLeft)
    if (hitsLeft > 0 || !this.#targets.processes().includes(process)) return 'pass'
    this.#hitsLeft.set(name, this.#drawHits(name))
    this.#faultsLeft--
    const kind = this.#random.pick(this.#failpointKinds)
    this.#count(kind)
    this.#world.tell(() => `${kind} at ${name} of ${process.name}`)
    if (kind === 'failpoint kill') process.kill(`killed at failpoint ${name}`)
    if (kind === 'failpoint freeze') process.freeze(this.#freezeMs())
    return kind === 'failpoint throw' ? 'throw' : 'pass'
  }

  /** Does one thing; false if there was nobody to do it to. */
  #strike(kind: FaultKind): boolean {
    const random = this.#random
    const processes = this.#targets.processes()
    const machines = this.#targets.machines?.() ?? []
    const clocks = this.#targets.clocks?.() ?? []
    const durationMs = Math.min(troubleMsMax, random.exponential(random.pick([50, 500, 3_000])))
    const onProcess = kind === 'kill' || kind === 'freeze' || kind.endsWith('connection')
    if ((onProcess && processes.length === 0) || (kind === 'power loss' && machines.length === 0)) return false
    if (kind === 'clock jump' && clocks.length === 0) return false
    switch (kind) {
      case 'kill':
        random.pick(processes).kill('killed by the plan')
        break
      case 'freeze':
        random.pick(processes).freeze(this.#freezeMs())
        break
      case 'power loss':
        random.pick(machines).crash('power loss')
        break
      case 'clock jump':
        random.pick(clocks).shiftWall(random.between(-jumpMsMax, jumpMsMax))
        break
      case 'dropped connection': {
        const process = random.pick(processes)
        this.#targets.network?.cut({ from: process }, durationMs)
        this.#targets.network?.cut({ to: process }, durationMs)
        return true
      }
      case 'half-open connection':
        this.#targets.network?.cut({ from: random.pick(processes), to: random.pick(processes) }, durationMs)
        return true
      case 'network restart':
        this.#targets.network?.restart(Math.min(troubleMsMax, random.exponential(300)))
        return true
      default:
        this.#disturb(kind, durationMs)
        return true
    }
    this.#count(kind)
    return true
  }

  #disturb(kind: FaultKind, durationMs: number): void {
    const random = this.#random
    const network = this.#targets.network?.weather
    const services = this.#targets.services ?? []
    const disks = this.#targets.disks?.() ?? []
    const chance = random.pick([0.02, 0.2, 0.7, 1])
    const slowness = random.pick([5, 50, 500])
    if (kind === 'network loss') network?.disturb('loss', chance, durationMs)
    if (kind === 'network repetition') network?.disturb('repetition', chance, durationMs)
    if (kind === 'network echo') network?.disturb('echo', Math.min(chance, 0.2), durationMs)
    if (kind === 'network reordering') network?.disturb('reordering', chance, durationMs)
    if (kind === 'network delay') network?.disturb('delay', random.pick([2, 30, 300]), durationMs)
    if (services.length > 0) {
      const service = random.pick(services).weather
      if (kind === 'service slow') service.disturb('slow', slowness, durationMs)
      if (kind === 'service failing') service.disturb('failing', chance, durationMs)
      if (kind === 'service ambiguous') service.disturb('ambiguous', chance, durationMs)
      if (kind === 'service torn') service.disturb('torn', chance, durationMs)
      if (kind === 'service stalled') service.disturb('stalled', Math.min(chance, 0.2), durationMs)
    }
    if (disks.length === 0) return
    const disk = random.pick(disks).weather
    if (kind === 'disk slow') disk.disturb('slow', slowness, durationMs)
    if (kind === 'disk failing') disk.disturb('failing', chance, durationMs)
    if (kind === 'disk full') disk.disturb('full', 1, durationMs)
  }

  #count(kind: FaultKind): void {
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1)
  }

  #drawSteps(): number {
    return Math.ceil(this.#random.exponential(this.#stepsMean))
  }

  /** Hits of a failpoint until this plan strikes there; the one that is met with each record is struck no more often. */
  #drawHits(name: FailpointName): number {
    // Most of them are passed a few times only.
    if (name === this.#laterFocus) return Math.ceil(this.#later.exponential(2))
    const mean = this.#focus.has(name) ? 3 : 60
    return Math.ceil(this.#random.exponential(name === 'task.process' ? mean * 60 : mean))
  }

  #freezeMs(): number {
    return Math.min(freezeMsMax, this.#random.exponential(this.#random.pick([20, 1_000, 15_000, 60_000])))
  }
}

/** What a plan that knows nothing of the calls rarely meets: lists are few, and so are calls within the short time of a stall. */
function foresee(weather: Weather<ServiceTrouble>, random: SeededRandom): void {
  if (random.chance(0.08)) {
    const fromMs = random.exponential(2_000)
    weather.foresee('stalled', 0.1, { fromMs, untilMs: fromMs + 1_000 })
  }
  if (!random.chance(0.5)) return
  for (let times = 1 + random.below(4); times > 0; times--) {
    const fromMs = random.exponential(3_000)
    const untilMs = fromMs + Math.min(troubleMsMax, random.exponential(random.pick([500, 3_000, 10_000])))
    weather.foresee('stale', random.pick([0.3, 1]), { fromMs, untilMs })
  }
}

function possibleKinds(targets: FaultTargets): FaultKind[] {
  const kinds: FaultKind[] = ['kill', 'freeze']
  if (targets.machines !== undefined) kinds.push('power loss')
  if (targets.network !== undefined)
    kinds.push(
      'network loss',
      'network delay',
      'network repetition',
      'network echo',
      'network reordering',
      'network restart',
      'dropped connection',
      'half-open connection',
    )
  if (targets.services !== undefined)
    kinds.push('service slow', 'service failing', 'service ambiguous', 'service torn', 'service stalled')
  if (targets.clocks !== undefined) kinds.push('clock jump')
  if (targets.disks !== undefined) kinds.push('disk slow', 'disk failing', 'disk full')
  return kinds
}

/** About half of the choices, the first at least: killing belongs to every run. */
function swarm<T>(choices: readonly T[], random: SeededRandom): T[] {
  return choices.filter((_, index) => random.chance(0.5) || index === 0)
}

function addCounts(counts: Record<string, number>, where: string, more: ReadonlyMap<string, number>): void {
  for (const [kind, count] of more) counts[`${where} ${kind}`] = (counts[`${where} ${kind}`] ?? 0) + count
}
