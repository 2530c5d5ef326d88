// A whole job: coordinators, slots, network, store and ledger of one seed, with everything that may befall them; the ledger judges.

import { FaultPlan } from '../faults.ts'
import type { ScenarioModule, ScenarioResult } from '../scenario.ts'
import { AimedFaults } from '../job/aimed-faults.ts'
import { JobCluster } from '../job/cluster.ts'
import { judgeLedger, judgeStore, mayBeSuspended } from '../job/judge.ts'
import { drawShape } from '../job/shape.ts'
import type { JobShape } from '../job/shape.ts'
import type { World } from '../world.ts'

/** The phase with faults ends by then, virtual ms. */
const faultsMs = 60_000
/** Within this everything must have come right once faults have stopped, virtual ms: longer than any freeze, deadline and back-off together. */
const convergenceMs = 400_000
/** Completed checkpoints before the last split may end: what is restored must have been checkpointed. */
const checkpointsMin = 2
/** How often the scenario looks whether the job may end now, virtual ms. */
const lookMs = 200

export const scenario: ScenarioModule['scenario'] = async (world: World): Promise<ScenarioResult> => {
  const random = world.random.split('scenario')
  const shape = drawShape(random)
  world.tell(() => `shape: ${JSON.stringify(shape)}`)
  const cluster = new JobCluster(world, shape)
  cluster.begin()
  const plan = new FaultPlan(
    world,
    {
      processes: () => cluster.processes(),
      machines: () => cluster.machines(),
      network: cluster.network,
      services: cluster.services,
    },
    { stepsMean: 600, faultsMax: 12 },
  )
  const aimed = new AimedFaults(world, shape, cluster)
  const happened = (): number => plan.happened + Object.values(aimed.counts).reduce((sum, count) => sum + count, 0)
  const enough = (): boolean => happened() > 0 && cluster.history.completed.size >= checkpointsMin
  // Half of the jobs come to their end among faults.
  const mayEndFromMs = random.chance(0.5) ? random.between(500, 6_000) : Infinity
  let calm = false
  const ending = new JobEnding(world, shape, cluster, () => enough() && (calm || world.nowMs >= mayEndFromMs))
  ending.openEarly(random)

  // Safety: nothing that happens here may be seen in the results.
  await world.run(() => cluster.ended || (plan.exhausted && enough()), { virtualMs: faultsMs })
  plan.stop()
  aimed.stop()
  calm = true
  // Liveness: now the job must come to its end.
  const end = await world.run(() => cluster.ended, { virtualMs: convergenceMs })
  const failures = [...cluster.failures, ...cluster.history.failures]
  if (end !== 'reached')
    failures.push(`The job did not end within ${convergenceMs} ms without faults (${end}), with ${ending.progress}.`)
  else if (shape.ending !== 'bounded') {
    cluster.finishCommits()
    const committed = await world.run(() => cluster.ended, { virtualMs: convergenceMs })
    if (committed !== 'reached') failures.push(`The commits of the suspended job did not end (${committed}).`)
  }
  const head = cluster.history.newest
  if (end === 'reached') {
    for (const ledger of cluster.ledgers) failures.push(...judgeLedger(shape, ledger.entries))
    if (head?.unconfirmed !== undefined)
      failures.push(`HEAD still holds unconfirmed commits of ${head.unconfirmed.id}.`)
  }
  if (head !== undefined) failures.push(...(await judgeStore(head, cluster.objects)))
  if (cluster.history.completed.size < (shape.sudden ? 1 : checkpointsMin))
    failures.push(`Only ${cluster.history.completed.size} checkpoints completed.`)
  return {
    failures,
    faults: { ...plan.counts, ...aimed.counts },
    figures: {
      checkpoints: cluster.history.completed.size,
      incarnations: cluster.history.incarnations,
      coordinators: cluster.coordinators,
      starts: cluster.starts,
      restarts: cluster.restarts,
      partialRestarts: cluster.partialRestarts,
      results: cluster.ledgers.reduce((sum, ledger) => sum + ledger.entries.length, 0),
      [`flow ${shape.flow}, ${shape.ending}`]: 1,
    },
  }
}

/** Ends the job as its shape says, when it may. */
class JobEnding {
  readonly #world: World
  readonly #shape: JobShape
  readonly #cluster: JobCluster
  readonly #mayEnd: () => boolean
  readonly #rescaled: JobShape | undefined
  readonly #rescaleAtMs: number
  #open = false

  constructor(world: World, shape: JobShape, cluster: JobCluster, mayEnd: () => boolean) {
    this.#world = world
    this.#shape = shape
    this.#cluster = cluster
    this.#mayEnd = mayEnd
    this.#rescaled = shape.rescaled === undefined ? undefined : { ...shape, parallelism: shape.rescaled }
    this.#rescaleAtMs = world.random.split('rescale').between(300, 5_000)
    this.#look()
  }

  get progress(): string {
    return this.#cluster.ledgers.map(({ entries }) => `${entries.length} results`).join(' and ')
  }

  /** Some splits of a bounded job end while others go on. */
  openEarly(random: { chance(probability: number): boolean; between(low: number, high: number): number }): void {
    if (this.#shape.ending !== 'bounded') return
    for (let split = 0; split < this.#shape.splits; split++)
      if (this.#shape.sudden) this.#cluster.gate.open(split)
      else if (split > 0 && random.chance(0.5))
        this.#world.after(random.between(0, 6_000), 'a split ends early', () => this.#cluster.gate.open(split))
  }

  /** Not before something is there to go on from. */
  get #mayRescale(): boolean {
    if (this.#rescaled === undefined || this.#cluster.starts > 1 || this.#world.nowMs < this.#rescaleAtMs) return false
    return this.#cluster.history.completed.size > 0
  }

  #look(): void {
    this.#world.after(lookMs, 'scenario looks', () => {
      if (this.#cluster.ended) return
      if (this.#mayRescale) this.#cluster.rescale(this.#rescaled!)
      else if (this.#mayEnd()) this.#end()
      this.#look()
    })
  }

  #end(): void {
    if (this.#shape.ending === 'bounded') {
      if (this.#open) return
      this.#open = true
      for (let split = 0; split < this.#shape.splits; split++) this.#cluster.gate.open(split)
      return
    }
    if (this.#cluster.ledgers.every(({ entries }) => mayBeSuspended(this.#shape, entries))) this.#cluster.suspend()
  }
}
