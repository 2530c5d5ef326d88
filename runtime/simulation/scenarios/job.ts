// A whole job: coordinators, slots, network, store and ledger of one seed, with everything that may befall them; the ledger judges.

import { FaultPlan } from '../faults.ts'
import { AimedFaults } from '../job/aimed-faults.ts'
import type { SavepointCut } from '../job/savepoint-cut.ts'
import { readSavepoint } from '../job/savepoint-cut.ts'
import { drawShape } from '../job/draw-shape.ts'
import { SimulatedJob } from '../job/simulated-job.ts'
import type { ScenarioModule, ScenarioResult } from '../scenario.ts'
import type { ManifestRef } from '../../storage/head-contract.ts'
import { manualEnvironment } from '../../testkit/manual-clock.ts'
import type { World } from '../world.ts'

/** The phase with faults ends by then, virtual ms. */
const faultsMs = 60_000
/** Within this everything must have come right once faults have stopped, virtual ms: longer than any freeze, deadline and back-off together. */
const convergenceMs = 400_000
/** How often it is looked whether there is a savepoint to begin another job from, virtual ms. */
const copyLookMs = 50
/** A savepoint that is not there by then will not come, virtual ms. */
const copyMs = 20_000

export const scenario: ScenarioModule['scenario'] = async (world: World): Promise<ScenarioResult> => {
  const random = world.random.split('scenario')
  const shape = drawShape(random)
  world.tell(() => `shape: ${JSON.stringify(shape)}`)
  const jobs: SimulatedJob[] = []
  const mayEnd = (): boolean => enough() && (calm || world.nowMs >= mayEndFromMs)
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
    },
    { stepsMean: 600, faultsMax: 12 },
  )
  const aimed = new AimedFaults(world, shape, cluster)
  const happened = (): number => plan.happened + Object.values(aimed.counts).reduce((sum, count) => sum + count, 0)
  const enough = (): boolean => happened() > 0 && job.enoughCheckpoints
  // Half of the jobs come to their end among faults.
  const mayEndFromMs = random.chance(0.5) ? random.between(500, 6_000) : Infinity
  let calm = false
  job.openEarly(random)
  if (shape.copied !== undefined)
    copyWhenSaved(world, job, (savepoint, cut) => {
      const copyShape = { ...shape, parallelism: shape.copied!, rescaled: undefined, copied: undefined, witness: false }
      const origin = { savepoint, cut, of: cluster }
      const copy = new SimulatedJob(world, { shape: copyShape, origin, mayEnd: () => mayEnd() && copy.hasCheckpoint })
      jobs.push(copy)
      services.push(...copy.cluster.services)
    })

  const ended = (): boolean => jobs.every((each) => each.cluster.ended)
  // Safety: nothing that happens here may be seen in the results.
  await world.run(() => ended() || (plan.exhausted && enough()), { virtualMs: faultsMs })
  plan.stop()
  aimed.stop()
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
  for (const each of jobs) {
    const { cluster: of } = each
    const found = [...of.failures, ...of.history.failures]
    if (end === 'reached') found.push(...(await each.judge()))
    found.push(...(await each.judgeStored()))
    failures.push(...found.map((failure) => (each === job ? failure : `The copy: ${failure}`)))
  }
  const sum = (count: (each: SimulatedJob) => number): number => jobs.reduce((total, each) => total + count(each), 0)
  return {
    failures,
    faults: { ...plan.counts, ...aimed.counts },
    figures: {
      checkpoints: sum((each) => each.cluster.history.completed.size),
      incarnations: sum((each) => each.cluster.history.incarnations),
      coordinators: sum((each) => each.cluster.coordinators),
      starts: sum((each) => each.cluster.starts),
      restarts: sum((each) => each.cluster.restarts),
      partialRestarts: sum((each) => each.cluster.partialRestarts),
      savepoints: sum((each) => each.cluster.savepoints.size),
      results: sum((each) => each.cluster.ledgers.reduce((total, ledger) => total + ledger.entries.length, 0)),
      copies: jobs.length - 1,
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
    else void readSavepoint(job.cluster.objects, manualEnvironment(), savepoint).then((cut) => copy(savepoint, cut))
  })
}
