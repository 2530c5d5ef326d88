import type { StreamJobStatus } from '../../operator/contract.ts'
import type { Scenario } from '../cluster/scenario.ts'
import type { ScenarioJob } from './support/job.ts'
import { found, wait } from './support/wait.ts'
import { inWorld } from './support/world.ts'

/** Of one start; a busy machine takes its time. */
const startDeadlineMs = 240_000
/** No checkpoint is due while one is asked for. */
const never = '30m'

/** What a number asks for that is raised; and the upgrade that begins from nothing, with its output doubled and nothing else wrong. */
export const scenario: Scenario = {
  name: 'restarted, restored and begun anew',
  core: false,
  usualMs: 300_000,
  deadlineMs: 900_000,
  run: (cluster, context) =>
    inWorld(cluster, context, 'anew', async ({ job: make }) => {
      const job = make()
      await job.apply({ spec: { parallelism: 2, checkpointing: { interval: never } } })
      await job.stable('the first checkpoint of the start', ({ start }) => start === 1, startDeadlineMs)
      await oneCheckpoint(job)
      context.say('checkpointNonce: one checkpoint, and no other')

      await job.patch({ checkpointing: { interval: '1s' } })
      await job.stable('checkpoints each second', ({ start }) => start === 2, startDeadlineMs)
      await job.checkpoints(1)

      const restarted = await startedBy(job, { restartNonce: 1 })
      if (restarted.answered.restart !== 1) throw new Error(`answered: ${JSON.stringify(restarted.answered)}`)
      context.say('restartNonce: another start of the same revision')

      const restored = await startedBy(job, { restoreFrom: 'latest', restoreNonce: 1 })
      if (restored.answered.restore !== 1) throw new Error(`answered: ${JSON.stringify(restored.answered)}`)
      context.say('restoreNonce: from the latest')

      await begunAnew(job, context.say)
      await job.remove()
    }),
}

/** The way to a coordinator that was replaced is made anew. */
const newestOf = (job: ScenarioJob): Promise<number> => found('the newest checkpoint', () => job.newestCheckpoint())

/** By its effect too: what was pre-committed comes with it. */
async function oneCheckpoint(job: ScenarioJob): Promise<void> {
  const [before, idBefore, { present }] = [await job.status(), await newestOf(job), await job.report()]
  await job.patch({ checkpointNonce: 1 })
  const after = await job.until('the nonce to be answered', ({ answered }) => answered.checkpoint === 1)
  await wait('its records', async () => (await job.report()).present > present)
  const id = await newestOf(job)
  if (id !== idBefore + 1) throw new Error(`checkpoint ${id} came after ${idBefore}: one was asked for`)
  if (after.start !== before.start || after.restarts !== before.restarts)
    throw new Error('the job was restarted for it')
}

/** The same revision by other pods, at the newest checkpoint of the start before. */
async function startedBy(job: ScenarioJob, spec: Readonly<Record<string, unknown>>): Promise<StreamJobStatus> {
  const before = await job.status()
  const podsBefore = await uidsOf(job)
  const idBefore = await newestOf(job)
  await job.patch(spec)
  const after = await job.stable(
    `${Object.keys(spec).join()} to be answered`,
    ({ start }) => start > before.start,
    startDeadlineMs,
  )
  if (after.start !== before.start + 1) throw new Error(`start ${before.start} became ${after.start}`)
  if (after.revision !== before.revision) throw new Error(`revision ${before.revision} became ${after.revision}`)
  const { kind, id = 0, start } = after.restorePoint ?? {}
  if (kind !== 'checkpoint' || start !== before.start || id < idBefore)
    throw new Error(`after checkpoint ${idBefore} it began from ${JSON.stringify(after.restorePoint)}`)
  const left = (await uidsOf(job)).filter((uid) => podsBefore.includes(uid))
  if (left.length > 0) throw new Error(`pods of the start before are there: ${left.join()}`)
  await job.expectSound()
  return after
}

async function uidsOf(job: ScenarioJob): Promise<readonly string[]> {
  const pods = [...(await job.pods('coordinator')), ...(await job.pods('worker'))]
  return pods.map(({ metadata }) => metadata.uid)
}

/** All that the life before had committed comes once more, and each record after that once. */
async function begunAnew(job: ScenarioJob, say: (text: string) => void): Promise<void> {
  const before = await job.status()
  await job.patch({ upgradeMode: 'stateless', logLevel: 'debug' })
  const after = await job.stable('the stateless upgrade', ({ start }) => start > before.start, startDeadlineMs)
  if (after.start !== before.start + 1 || after.revision === before.revision)
    throw new Error(`start ${before.start} of ${before.revision} became ${after.start} of ${after.revision}`)
  if (after.begin?.empty !== true) throw new Error(`it began as ${JSON.stringify(after.begin)}`)
  const { splits } = await found('a report', () => job.report())
  // The life before is over: its end is seen while the new life is behind it.
  const committed = splits.map(({ highest }) => highest + 1)
  for (const [index, { split, doubled, contiguous, highest }] of splits.entries())
    if (contiguous !== highest || doubled >= committed[index]!)
      throw new Error(`split ${split}: ${JSON.stringify(splits[index])}`)
  const doubled = committed.reduce((total, count) => total + count, 0)
  say(`stateless: begun from nothing, ${doubled} records are to come once more`)

  await job.patch({ upgradeMode: 'last-state' })
  const perSplit = Math.max(...committed) + 20_000
  await job.patchArgs({ perSplit, ratePerSecond: undefined })
  await job.until('it to finish', ({ phase }) => phase === 'FINISHED', startDeadlineMs)
  await job.expectDoubled(perSplit, doubled)
}
