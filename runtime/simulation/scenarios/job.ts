// A whole job: coordinators, slots, network, store and ledger of one seed, with everything that may befall them; the ledger judges.

import { FaultPlan, freezeMsMax } from '../faults.ts'
import { AimedFaults } from '../job/aimed-faults.ts'
import { LostCoordinators } from '../job/lost-coordinators.ts'
import { Outage } from '../job/outage.ts'
import type { SavepointCut } from '../job/savepoint-cut.ts'
import { readCut } from '../job/savepoint-cut.ts'
import { drawShape } from '../job/draw-shape.ts'
import type { FlowName } from '../job/shape.ts'
import { SimulatedJob } from '../job/simulated-job.ts'
import { wentBack } from '../job/judge.ts'
import type { ScenarioModule, ScenarioResult } from '../scenario.ts'
import type { ManifestRef } from '../../storage/head-contract.ts'
import { manualEnvironment } from '../../testkit/manual-clock.ts'
import type { SimProcess } from '../process.ts'
import type { World } from '../world.ts'

const wallClocked: ReadonlySet<FlowName> = new Set<FlowName>([
  'processing timers',
  'processing windows',
  'time to live',
])
/** The phase with faults ends by then, virtual ms. */
const faultsMs = 60_000
/** Within this everything must have come right once faults have stopped, virtual ms: longer than any freeze, deadline and back-off together. */
const convergenceMs = 400_000
/** So long after faults workers of a job that has ended need to find its coordinator, which stays for a while. Virtual ms. */
const goodbyeMs = 10_000
/** How often it is looked whether there is a savepoint to begin another job from, virtual ms. */
const copyLookMs = 50
/** A savepoint that is not there by then will not come, virtual ms. */
const copyMs = 20_000

export const scenario: ScenarioModule['scenario'] = async (world: World): Promise<ScenarioResult> => {
  const random = world.random.split('scenario')
  const shape = drawShape(random)
  world.tell(() => `shape: ${JSON.stringify(shape)}`)
  const jobs: SimulatedJob[] = []
  const mayEnd = (): boolean =>
    enough() && (calm || (world.nowMs >= mayEndFromMs && (endsAnyhow || (lost?.waitsForEnd ?? over()))))
  // What is to be copied runs until there is a savepoint, or none is to be expected any more.
  const copied = (): boolean => shape.copied === undefined || jobs.length > 1 || world.nowMs > copyMs
  const job = new SimulatedJob(world, { shape, mayEnd: () => mayEnd() && copied() })
  const { cluster } = job
  jobs.push(job)
  const services = [...cluster.services]
  const plan = new FaultPlan(
    world,
    {
      processes: () => jobs.flatMap((each) => each.cluster.processes()),
      machines: () => cluster.machines(),
      network: cluster.network,
      services,
      ...(shape.files && { disks: () => cluster.disks() }),
      // What waits by the wall clock would wait for hours with it.
      ...(!wallClocked.has(shape.flow) && { clocks: () => cluster.machines() }),
    },
    { stepsMean: 600, faultsMax: cluster.adopts && random.chance(0.6) ? 4 : 12 },
  )
  const { trial } = shape
  const outage = trial === 'outage' || trial === 'long outage' ? new Outage(world, cluster) : undefined
  const aimed = trial === undefined ? new AimedFaults(world, shape, cluster) : undefined
  const lost = outage === undefined ? new LostCoordinators(world, cluster) : undefined
  if (trial !== undefined) plan.stop()
  world.interference = {
    beforeStep: () => plan.beforeStep(),
    atFailpoint: (process, name) => {
      if (lost?.atFailpoint(process, name) === true) return 'pass'
      return plan.atFailpoint(process, name)
    },
  }
  const counts = (): Record<string, number> => ({ ...plan.counts, ...aimed?.counts, ...lost?.counts })
  const happened = (): number => Object.values(counts()).reduce((sum, count) => sum + count, 0)
  const enough = (): boolean => happened() > 0 && job.enoughCheckpoints
  // Half of the jobs come to their end among faults.
  const mayEndFromMs = random.chance(0.5) ? random.between(500, 6_000) : Infinity
  const endsAnyhow = trial === undefined && random.chance(0.3)
  const over = (): boolean => lost?.exhausted ?? outage?.exhausted ?? true
  let calm = false
  job.openEarly(random)
  if (shape.copied !== undefined)
    copyWhenSaved(world, job, (savepoint, cut) => {
      const less = { rescaled: undefined, copied: undefined, witness: false, removable: false }
      const copyShape = { ...shape, parallelism: shape.copied!, ...less }
      const origin = { savepoint, cut, of: cluster, drops: shape.removable }
      const copy = new SimulatedJob(world, { shape: copyShape, origin, mayEnd: () => mayEnd() && copy.hasCheckpoint })
      jobs.push(copy)
      services.push(...copy.cluster.services)
    })

  const ended = (): boolean => jobs.every((each) => each.cluster.ended)
  // Safety: nothing that happens here may be seen in the results.
  const virtualMs = faultsMs + (outage?.durationMs ?? 0)
  await world.run(() => ended() || (plan.exhausted && over() && enough()), { virtualMs })
  plan.stop()
  aimed?.stop()
  lost?.stop()
  world.interference = undefined
  calm = true
  // Liveness: now the job must come to its end.
  let end = await world.run(ended, { virtualMs: convergenceMs })
  const failures: string[] = []
  if (end !== 'reached') {
    const progress = jobs.map((each) => each.progress).join('; ')
    failures.push(`The job did not end within ${convergenceMs} ms without faults (${end}), with ${progress}.`)
  } else {
    for (const each of jobs) each.finishCommits()
    end = await world.run(ended, { virtualMs: convergenceMs })
    if (end !== 'reached') failures.push(`The commits of the ended job did not end (${end}).`)
  }
  // Whoever is left is told, once it is awake: nothing runs on for ever.
  const workers = (): readonly SimProcess[] => jobs.flatMap((each) => each.cluster.workers())
  await world.run(() => workers().every(({ wakesInMs }) => wakesInMs === 0), { virtualMs: freezeMsMax })
  for (const each of jobs) if (end === 'reached') each.cluster.sayGoodbye()
  await world.run(() => workers().length === 0, { virtualMs: goodbyeMs })
  for (const each of jobs) {
    const { cluster: of } = each
    const left = of.leftWorkers()
    if (end === 'reached' && left.length > 0)
      of.failures.push(`${left.join(', ')} run on ${goodbyeMs} ms after the job's end.`)
    const found = [...of.failures, ...of.history.failures]
    if (end === 'reached') found.push(...(await each.judge()))
    found.push(...(await each.judgeStored()))
    failures.push(...found.map((failure) => (each === job ? failure : `The copy: ${failure}`)))
  }
  const sum = (count: (each: SimulatedJob) => number): number => jobs.reduce((total, each) => total + count(each), 0)
  return {
    failures,
    faults: counts(),
    figures: {
      checkpoints: sum((each) => each.cluster.history.completed.size),
      incarnations: sum((each) => each.cluster.history.incarnations),
      coordinators: sum((each) => each.cluster.coordinators),
      starts: sum((each) => each.cluster.starts),
      restarts: sum((each) => each.cluster.restarts),
      partialRestarts: sum((each) => each.cluster.partialRestarts),
      adoptions: sum((each) => each.cluster.adoptions),
      partialAdoptions: sum((each) => each.cluster.partialAdoptions),
      returns: sum((each) => each.cluster.returns),
      waysGiven: sum((each) => each.cluster.waysGiven),
      rescalesInPlace: sum((each) => each.cluster.rescales),
      savepoints: sum((each) => each.cluster.savepoints.count),
      results: sum((each) => each.cluster.ledgers.reduce((total, ledger) => total + ledger.entries.length, 0)),
      copies: jobs.length - 1,
      ...(trial !== undefined && { [`trial ${trial}`]: 1 }),
      ...(shape.witness && !wentBack(cluster) && { witnessedTakeovers: cluster.takeovers }),
      [`flow ${shape.flow}, ${shape.ending}`]: 1,
    },
  }
}

/** As soon as the first savepoint is there, while the job runs on. */
function copyWhenSaved(
  world: World,
  job: SimulatedJob,
  copy: (savepoint: ManifestRef, cut: SavepointCut) => void,
): void {
  world.after(copyLookMs, 'looking for a savepoint to begin from', () => {
    if (job.cluster.ended) return
    const savepoint = job.firstSavepoint
    if (savepoint === undefined) copyWhenSaved(world, job, copy)
    else void readCut(job.cluster.objects, manualEnvironment(), savepoint).then((cut) => copy(savepoint, cut))
  })
}
