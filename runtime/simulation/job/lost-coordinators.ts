// Coordinators are lost, or cut off, at the moments at which it is hardest for the next one to take over what runs on (rule 25): one strike
// after the other, each once the job runs again.

import type { FailpointName } from '../../base/failpoints.ts'
import type { FromSlot, ToSlot } from '../../control/contract.ts'
import type { SimProcess } from '../process.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import type { JobCluster } from './cluster.ts'

/** Where a coordinator dies in the middle of something that it does. */
const failpoints = [
  'coordinator.manifest.before',
  'coordinator.manifest.after',
  'coordinator.swap.before',
  'coordinator.swap.after',
  'coordinator.complete.before',
  'coordinator.confirm.before',
  'coordinator.confirm.after',
  'coordinator.discard.before',
] as const satisfies readonly FailpointName[]

const adoptionFailpoints = [
  'coordinator.adopt.before',
  'coordinator.adopt.middle',
  'coordinator.adopt.after',
] as const satisfies readonly FailpointName[]

/**
 * words: when it says, or hears, such a message. beginning: what restarts has restored, and does not hear that it may begin. swapped: HEAD has changed, and it does not know yet. request: one waits in HEAD. partial: a
 * slot or worker dies too. slot of the adopted: soon after. half restarted: it dies while it restarts what one of its workers, which it
 * cannot reach, runs on in its earlier attempts. overtaken: it is silent until another one has taken over, and wakes up. another: two at once. The rest are cuts.
 */
type Moment =
  | 'running'
  | 'failpoint'
  | 'adoption'
  | 'collecting'
  | 'assigning'
  | 'beginning'
  | 'finishing'
  | 'waiting for a checkpoint'
  | 'swapped'
  | 'request'
  | 'partial'
  | 'slot of the adopted'
  | 'half restarted'
  | 'overtaken'
  | 'another'
  | 'cut from its workers'
  | 'half cut from its workers'
  | 'slots cut from each other'
  | 'connections reset'
  | 'worker leaves'

const weights: Readonly<Record<Moment, number>> = {
  running: 4,
  failpoint: 6,
  adoption: 4,
  collecting: 3,
  assigning: 2,
  beginning: 2,
  finishing: 2,
  'waiting for a checkpoint': 2,
  swapped: 3,
  request: 1,
  partial: 3,
  'slot of the adopted': 2,
  'half restarted': 3,
  overtaken: 4,
  another: 1,
  'cut from its workers': 1,
  'half cut from its workers': 1,
  'slots cut from each other': 1,
  'connections reset': 1,
  'worker leaves': 1,
}

const moments = (Object.keys(weights) as Moment[]).flatMap((moment) => Array<Moment>(weights[moment]).fill(moment))

/** They harm nothing but the coordinator. */
const mild: ReadonlySet<Moment> = new Set<Moment>([
  'running',
  'failpoint',
  'adoption',
  'collecting',
  'finishing',
  'waiting for a checkpoint',
  'swapped',
])

const words: Partial<Record<Moment, readonly (FromSlot['type'] | ToSlot['type'])[]>> = {
  collecting: ['trigger', 'acknowledged'],
  assigning: ['assign'],
  beginning: ['begin'],
  finishing: ['finished'],
  'waiting for a checkpoint': ['waitsForCheckpoint'],
}

/** They come while a job ends, as a rule. */
const endings: ReadonlySet<Moment> = new Set<Moment>(['finishing', 'waiting for a checkpoint'])

const strikesMax = 6
/** A moment that does not come in this time will not come: the coordinator is killed as it is. Virtual ms. */
const patienceMs = 4_000
const endingPatienceMs = 15_000
/** So long a job that does not come to run is waited for, before the next strike. Virtual ms. */
const settleMs = 8_000
const lookMs = 25
/** A connection that is reset is known to be at both ends by then, and not yet open again. */
const noticeMs = 5

export class LostCoordinators {
  readonly counts: Record<string, number> = {}
  readonly #world: World
  readonly #cluster: JobCluster
  readonly #random: SeededRandom
  readonly #moments: Moment[] = []
  #failpoint: FailpointName | undefined
  /** What is waited for, and what is done then. */
  #armed: { readonly moment: Moment; readonly strike: () => void } | undefined
  /** What it does goes on until then. */
  #busyUntilMs = 0
  #calm = false

  constructor(world: World, cluster: JobCluster) {
    this.#world = world
    this.#cluster = cluster
    this.#random = world.random.split('lost coordinators')
    const random = this.#random
    if (!cluster.adopts || (cluster.shape.trial === undefined && random.chance(0.1))) return
    const { trial, flow, ending } = cluster.shape
    const strikes = 1 + random.below(strikesMax)
    if (trial === 'given up') this.#moments.push('half restarted')
    const possible = trial === undefined ? moments : moments.filter((moment) => mild.has(moment))
    for (let strike = 0; strike < strikes; strike++) this.#moments.push(random.pick(possible))
    // Only of two regions one goes on when the other has lost a slot.
    if (ending === 'bounded' && random.chance(0.4)) this.#moments.push(random.pick([...endings]))
    if (trial === undefined && (flow === 'regions' || flow === 'pipes'))
      this.#moments.unshift(random.pick(['slot of the adopted', 'half restarted']), 'partial')
    world.tell(() => `coordinators are lost: ${this.#moments.join(', ')}`)
    cluster.onWord = (process, type) => this.#word(process, type)
    cluster.history.onSwap = () => this.#met('swapped')
    this.#next(random.chance(0.4) ? 0 : random.between(0, 1_500))
  }

  /** Nothing is left of its plan. */
  get exhausted(): boolean {
    return this.#calm || (this.#moments.length === 0 && this.#armed === undefined)
  }

  /** Nothing that it still waits for comes before the job's end. */
  get waitsForEnd(): boolean {
    return this.exhausted || (this.#moments.length === 0 && endings.has(this.#armed!.moment))
  }

  stop(): void {
    this.#calm = true
    this.#armed = undefined
  }

  /** Whether the process dies at this failpoint. */
  atFailpoint(process: SimProcess, name: FailpointName): boolean {
    const { newestCoordinator } = this.#cluster
    if (this.#armed === undefined || name !== this.#failpoint || process !== newestCoordinator) return false
    this.#failpoint = undefined
    this.#strike()
    return true
  }

  /** After `inMs`, and once the job runs. */
  #next(inMs: number): void {
    const [moment] = this.#moments
    if (moment === undefined) return
    const untilMs = this.#world.nowMs + inMs + settleMs
    const look = (): void => {
      if (this.#calm || this.#cluster.ended) return this.stop()
      if (!this.#cluster.runs && this.#world.nowMs < untilMs)
        return void this.#world.after(lookMs, 'looking whether the job runs', look)
      this.#moments.shift()
      this.#arm(moment)
    }
    this.#world.after(inMs, 'looking whether the job runs', look)
  }

  #arm(moment: Moment): void {
    const random = this.#random
    const armed = { moment, strike: () => this.#actions(moment) }
    this.#armed = armed
    if (moment === 'failpoint') this.#failpoint = random.pick(failpoints)
    if (moment === 'adoption') {
      // It is in its adoption soon that comes after this one.
      this.#failpoint = random.pick(adoptionFailpoints)
      this.#kill('killed: its slots run on')
    }
    if (moment === 'beginning') this.#killOne(1)
    const awaited = moment in words || moment === 'failpoint' || moment === 'adoption' || moment === 'swapped'
    if (!awaited && moment !== 'request') return this.#after(random.between(0, 300), () => this.#strike())
    if (moment === 'request') this.#awaitRequest()
    this.#world.after(endings.has(moment) ? endingPatienceMs : patienceMs, 'its moment has not come', () => {
      if (this.#armed !== armed) return
      this.#failpoint = undefined
      this.#armed = { moment: 'running', strike: () => this.#actions('running') }
      this.#strike()
    })
  }

  #awaitRequest(): void {
    if (this.#armed?.moment !== 'request') return
    const waits = (this.#cluster.history.newest?.savepointRequests.length ?? 0) > 0
    if (waits) this.#after(this.#random.between(0, 60), () => this.#strike())
    else this.#world.after(lookMs, 'looking for a request', () => this.#awaitRequest())
  }

  #word(process: SimProcess, type: FromSlot['type'] | ToSlot['type']): void {
    const armed = this.#armed
    if (armed === undefined || words[armed.moment]?.includes(type) !== true) return
    if (process === this.#cluster.newestCoordinator) this.#met(armed.moment)
  }

  /** Behind the step in which it happened. */
  #met(moment: Moment): void {
    if (this.#armed?.moment !== moment) return
    const { strike } = this.#armed
    this.#armed = { moment: 'running', strike }
    const inMs = moment === 'swapped' || this.#random.chance(0.5) ? 0 : this.#random.between(0, 60)
    this.#after(inMs, () => this.#strike())
  }

  #strike(): void {
    const armed = this.#armed
    if (armed === undefined || this.#calm || this.#cluster.ended) return this.stop()
    this.#armed = undefined
    armed.strike()
    this.#next(Math.max(this.#busyUntilMs - this.#world.nowMs, 0) + this.#random.between(200, 2_000))
  }

  #actions(moment: Moment): void {
    const random = this.#random
    const { network, connections } = this.#cluster
    const coordinator = this.#cluster.newestCoordinator
    const slots = this.#cluster.slots()
    const workers = this.#cluster.workers()
    this.#count(moment)
    switch (moment) {
      case 'partial':
        // Before, with or behind it; while the next one waits for who is there, too.
        this.#after(random.between(0, 100), () => this.#killOne())
        if (random.chance(0.3)) this.#after(random.between(100, 2_000), () => this.#killOne())
        return this.#after(random.between(0, 100), () => this.#kill('killed: its slots run on'))
      case 'assigning':
      case 'beginning':
        // What it has just said is lost.
        if (coordinator !== undefined) for (const slot of slots) network.cut({ from: coordinator, to: slot }, 2_000)
        return this.#kill(`killed: what it said when ${moment} is lost`)
      case 'slot of the adopted':
        this.#slotOfAdopted(this.#cluster.takeovers)
        return this.#kill('killed: its slots run on')
      case 'half restarted':
        return this.#halfRestart()
      case 'overtaken':
        return this.#overtake()
      case 'another':
        this.#cluster.startAnother()
        connections.reset()
        return this.#after(random.between(0, 3_000), () => void connections.reset())
      case 'cut from its workers':
      case 'half cut from its workers': {
        const durationMs = random.pick([1_500, 8_000, 15_000])
        if (coordinator === undefined) return
        for (const other of [...slots, ...workers]) {
          network.cut({ from: coordinator, to: other }, durationMs)
          if (moment === 'cut from its workers') network.cut({ from: other, to: coordinator }, durationMs)
        }
        return
      }
      case 'slots cut from each other': {
        const durationMs = random.pick([500, 3_000, 8_000])
        for (const from of slots) for (const to of slots) if (from !== to) network.cut({ from, to }, durationMs)
        return
      }
      case 'connections reset':
        return void connections.reset()
      case 'worker leaves':
        if (workers.length > 0) this.#cluster.leave(random.pick(workers))
        return
      default:
        return this.#kill(`killed: ${moment}`)
    }
  }

  /** It freezes until another one is there; its workers find that one, and some of them the first one when it wakes. */
  #overtake(): void {
    const { connections, newestCoordinator } = this.#cluster
    if (newestCoordinator === undefined) return
    const frozenMs = this.#random.pick([6_000, 7_000, 12_000, 60_000])
    newestCoordinator.freeze(frozenMs)
    const ofIt = (process: SimProcess): boolean => process === newestCoordinator
    this.#after(this.#random.between(3_000, 4_400), () => void connections.reset(ofIt))
    // Whoever dials the first one while it is frozen is heard when it wakes, before it knows of the other.
    this.#after(this.#random.between(4_400, frozenMs), () => void connections.reset())
    this.#after(frozenMs - this.#random.between(0, 500), () => void connections.reset())
    this.#after(frozenMs + this.#random.between(0, 300), () => void connections.reset())
  }

  /** Once it has been taken over, and as a rule before the next checkpoint completes. */
  #slotOfAdopted(takeovers: number): void {
    if (this.#calm || this.#cluster.ended) return
    if (this.#cluster.takeovers > takeovers) return this.#after(this.#random.between(0, 300), () => this.#killOne(1))
    this.#world.after(lookMs, 'looking for an adoption', () => this.#slotOfAdopted(takeovers))
  }

  #halfRestart(): void {
    const { connections, network, newestCoordinator: coordinator } = this.#cluster
    const workers = this.#cluster.workers()
    if (coordinator === undefined || workers.length === 0) return
    // Whose slots have the highest numbers waits for room longest: nobody else runs them then.
    const highest = (worker: SimProcess): number =>
      Math.max(...worker.children.flatMap(({ name, alive }) => (alive ? slotNumber(name) : [])))
    const lost = workers.toSorted((left, right) => highest(right) - highest(left))[0]!
    const cutMs = 9_000
    connections.reset((process) => process === lost)
    this.#after(noticeMs, () => {
      network.cut({ from: coordinator, to: lost }, cutMs)
      network.cut({ from: lost, to: coordinator }, cutMs)
    })
    // Half of the job runs, or all of it has, and there are checkpoints of which the lost ones know nothing.
    // Where a slot goes on without the others, what has run elsewhere since is all that was lost.
    const early = this.#cluster.shape.flow !== 'pipes' && this.#random.chance(0.6)
    const untilMs = this.#world.nowMs + (early ? 1_500 : this.#random.pick([3_000, cutMs]))
    if (!early) this.#busyUntilMs = untilMs
    const { restarts } = this.#cluster
    const isHalf = (): boolean => this.#cluster.restarts > restarts && this.#cluster.halfRuns
    const look = (): void => {
      if (this.#calm || this.#cluster.ended || !coordinator.alive) return
      if (early && isHalf()) return coordinator.kill('killed: it restarts')
      if (this.#world.nowMs > untilMs) {
        // Those that were given up are the only ones then that the next one finds.
        for (const other of this.#cluster.workers()) if (other !== lost) other.kill('killed: it had what was given up')
        return coordinator.kill('killed: it has restarted')
      }
      this.#world.after(lookMs, 'looking whether half of the job runs', look)
    }
    this.#after(noticeMs, look)
  }

  #killOne(slots = 0.7): void {
    const whom = this.#random.chance(slots) ? this.#cluster.slots() : this.#cluster.workers()
    if (whom.length > 0) this.#random.pick(whom).kill('killed beside its coordinator')
  }

  #kill(why: string): void {
    this.#cluster.newestCoordinator?.kill(why)
  }

  #after(inMs: number, act: () => void): void {
    this.#world.after(inMs, 'a coordinator is lost', () => {
      if (!this.#calm) act()
    })
  }

  #count(moment: Moment): void {
    const name = `coordinator lost: ${moment}`
    this.counts[name] = (this.counts[name] ?? 0) + 1
  }
}

/** Of a slot's process, `slot <number>#<life>`. */
function slotNumber(name: string): number {
  return Number(/(\d+)#/.exec(name)?.[1])
}
