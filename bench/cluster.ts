// What a job costs on a real cluster of three nodes: until its first record, when pods are killed under it, when it is changed and deleted. And
// what the operator costs. Needs what `npm run e2e` needs; uses a cluster that `npm run e2e -- --keep` has left up.

import { helmInstall, isInstalled } from '../e2e/cluster/installation.ts'
import type { Cluster } from '../e2e/cluster/contract.ts'
import { kindCluster } from '../e2e/cluster/kind.ts'
import { clusterReady } from '../e2e/cluster/ready.ts'
import type { ScenarioJob } from '../e2e/scenarios/support/job.ts'
import { operatorWords, scaleSystem } from '../e2e/scenarios/support/system.ts'
import { operatorFigures } from '../tests/servers/support/operator-figures.ts'
import { attemptsOf } from '../e2e/scenarios/support/windows.ts'
import { wait } from '../e2e/scenarios/support/wait.ts'
import { inWorld } from '../e2e/scenarios/support/world.ts'
import type { World } from '../e2e/scenarios/support/world.ts'
import type { Figure } from './figure.ts'
import { median } from './measure/median.ts'
import type { MeasureOptions } from './measure/options.ts'
import { eachAsTheFirst } from './measure/restart-strategy.ts'

const killRounds = 10
const startRounds = 5
const changeRounds = 3
const brokenJobs = 5
const operatorMs = 60_000

type Emit = (figure: Figure) => void

export async function run(emit: Emit, { only }: MeasureOptions): Promise<void> {
  const cluster = kindCluster()
  const image = await clusterReady(cluster, { keep: true, image: undefined })
  const wants = (name: string): boolean => name.includes(only)
  try {
    if (!(await isInstalled(cluster))) await helmInstall(cluster, image)
    const say = (text: string): void => console.error(text)
    const context = { image, say, signal: new AbortController().signal }
    await inWorld(cluster, context, 'bench', async (world) => {
      if (wants('first record')) await firstRecord(world, emit)
      if (wants('kill')) await kills(world, emit)
      if (wants('change')) await changes(world, emit)
      if (wants('operator')) await operator(cluster, world, emit)
      if (wants('broken')) await deletionsOfBroken(cluster, world, emit)
    })
  } finally {
    await cluster.down()
  }
}

/** At least once, visible at once: an arrival is a record that the job has emitted. */
const plain = { sink: 'plain', ratePerSecond: 2_000 }

function emitTimes(emit: Emit, place: string, metric: string, times: readonly number[]): void {
  const figure = { bench: 'cluster', case: place, unit: 'ms' } as const
  emit({ ...figure, metric: `${metric}, median`, value: median(times) })
  emit({ ...figure, metric: `${metric}, worst`, value: Math.max(...times) })
}

async function firstRecord(world: World, emit: Emit): Promise<void> {
  const applied: number[] = []
  const deleted: number[] = []
  for (let round = 0; round < startRounds; round++) {
    const job = world.job({ name: `first-${round}`, args: plain })
    const appliedMs = await world.ledger.nowMs()
    await job.apply()
    const { atMs } = await world.ledger.waitForFirst(appliedMs, 120_000, job.name)
    applied.push(atMs - appliedMs)
    await job.running()
    deleted.push(await job.remove())
  }
  const place = `${startRounds} jobs, image on the node`
  emitTimes(emit, place, 'kubectl apply to the first record', applied)
  emitTimes(emit, place, 'kubectl delete until all is gone', deleted)
}

/** The largest gap between arrivals of records never seen before, from the change on. */
async function gapOf(world: World, job: ScenarioJob, change: () => Promise<unknown>): Promise<number> {
  const sinceMs = await world.ledger.nowMs()
  await change()
  await job.running()
  await job.checkpoints(2)
  const { gap } = await world.ledger.report({ book: job.name, sinceMs, atLeastOnce: true })
  if (gap === undefined) throw new Error('nothing came after the change')
  return gap.toMs - gap.fromMs
}

async function kills(world: World, emit: Emit): Promise<void> {
  const { delayMs, ...strategy } = eachAsTheFirst
  const restartStrategy = { ...strategy, delay: `${delayMs}ms` }
  const job = await world.started({ name: 'kills', args: plain, spec: { restartStrategy } })
  for (const component of ['worker', 'coordinator'] as const) {
    const gaps: number[] = []
    const before = await attemptsOf(job)
    for (let round = 0; round < killRounds; round++)
      gaps.push(await gapOf(world, job, () => job.killPods(component, 1)))
    const after = await attemptsOf(job)
    const restarted = after.filter((attempt) => !before.includes(attempt)).length
    const place = `${component} pod killed ${killRounds} times, ${restarted} of ${after.length} subtasks restarted`
    emitTimes(emit, place, 'largest gap at the sink', gaps)
  }
  await job.remove()
}

async function changes(world: World, emit: Emit): Promise<void> {
  const job = await world.started({ name: 'changes', args: plain })
  const upgrades: number[] = []
  for (let round = 0; round < changeRounds; round++)
    upgrades.push(await gapOf(world, job, () => job.patch({ logLevel: round % 2 === 0 ? 'debug' : 'info' })))
  emitTimes(emit, `last-state upgrade, ${changeRounds} times`, 'largest gap at the sink', upgrades)
  const rescales: number[] = []
  for (let round = 0; round < changeRounds; round++)
    rescales.push(await gapOf(world, job, () => job.patch({ parallelism: round % 2 === 0 ? 3 : 2 })))
  emitTimes(emit, `rescale between 2 and 3, ${changeRounds} times`, 'largest gap at the sink', rescales)
  await job.remove()
}

/** Each alone: what another takes of the machine is not part of it. */
async function deletionsOfBroken(cluster: Cluster, world: World, emit: Emit): Promise<void> {
  const jobs: ScenarioJob[] = []
  const args = { ...plain, ratePerSecond: 200 }
  for (let each = 0; each < brokenJobs; each++)
    jobs.push(await world.started({ name: `broken-${each}`, args, spec: { parallelism: 1 } }))
  const deleted: number[] = []
  const servers = ['nats', 's3'] as const
  try {
    for (const part of servers) await scaleSystem(cluster, part, 0)
    for (const job of jobs) await job.killPods('coordinator')
    for (const job of jobs) deleted.push(await job.remove(120_000, { isClosed: false }))
  } finally {
    for (const part of servers) await scaleSystem(cluster, part, 1)
  }
  const place = `${brokenJobs} jobs with NATS, S3 and coordinator gone, deadline as by default`
  emitTimes(emit, place, 'kubectl delete until all is gone', deleted)
}

async function operator(cluster: Cluster, world: World, emit: Emit): Promise<void> {
  const job = await world.started({ name: 'calm', args: plain })
  const before = operatorFigures(await operatorWords(cluster))
  const endMs = performance.now() + operatorMs
  await wait('a minute', async () => performance.now() > endMs)
  const after = operatorFigures(await operatorWords(cluster))
  const figure = { bench: 'cluster', case: 'operator, 1 job that runs' } as const
  emit({ ...figure, metric: 'resident memory', value: after.memoryBytes, unit: 'bytes' })
  const perMinute = 60_000 / operatorMs
  emit({ ...figure, metric: 'API requests', value: (after.requests - before.requests) * perMinute, unit: 'a minute' })
  emit({ ...figure, metric: 'writes', value: (after.writes - before.writes) * perMinute, unit: 'a minute' })
  await job.remove()
}
