import type { Cluster } from '../cluster/contract.ts'
import type { Scenario } from '../cluster/scenario.ts'
import type { ScenarioJob } from './support/job.ts'
import { untilDoneByMortals, withoutOperator } from './support/mortal-operator.ts'
import { killSystemPods, systemBack } from './support/system.ts'
import { inWorld } from './support/world.ts'

const victims = ['all workers', 'coordinator', 'nats', 's3'] as const
type Victim = (typeof victims)[number]

/** Operators bring the transition on until `isDone`; they are gone then. The window is the job's own: nobody takes its pods down. */
async function broughtOn(
  cluster: Cluster,
  job: ScenarioJob,
  port: number,
  isDone: () => Promise<boolean>,
): Promise<void> {
  await untilDoneByMortals({
    cluster,
    namespace: job.namespace,
    coordinatorPort: () => port,
    after: 2,
    deadlineMs: 120_000,
    isDone,
  })
}

async function kill(cluster: Cluster, job: ScenarioJob, victim: Victim): Promise<void> {
  if (victim === 'all workers') await job.killPods('worker')
  else if (victim === 'coordinator') await job.killPods('coordinator')
  else {
    await killSystemPods(cluster, victim)
    await systemBack(cluster, victim)
  }
}

/**
 * The operator is paused when the stop with its savepoint stands in HEAD and the pods still run; each part is killed then. Nothing goes on behind the
 * savepoint meanwhile, and the upgrade begins there. An upgrade by last state is paused too, while a checkpoint completes that it had not seen.
 */
export const scenario: Scenario = {
  name: 'killed between savepoint and scale-down',
  core: false,
  usualMs: 300_000,
  run: (cluster, context) =>
    inWorld(cluster, context, 'between', async ({ started }) => {
      const job = await started()
      const port = await job.coordinatorPort()
      for (const [turn, victim] of victims.entries()) {
        const before = await job.status()
        const savepoint = await withoutOperator(cluster, async () => {
          await job.patch({ upgradeMode: 'savepoint', logLevel: turn % 2 === 0 ? 'debug' : 'info' })
          let stoppedAt: string | undefined
          await broughtOn(cluster, job, port, async () => {
            const { body } = await job.request('GET', '/v1/job')
            stoppedAt = body.end.kind === 'stopped' ? (body.restorePoint.manifest.path as string) : undefined
            return stoppedAt !== undefined
          })
          const pods = await job.pods('worker')
          if (pods.length === 0) throw new Error(`${victim}: the workers were gone before the kill`)
          await kill(cluster, job, victim)
          return stoppedAt
        })
        const after = await job.stable(`the upgrade with ${victim} killed`, ({ start }) => start > before.start)
        if (after.start !== before.start + 1) throw new Error(`start ${before.start} became ${after.start}`)
        if (after.restorePoint?.path !== savepoint)
          throw new Error(`it began from ${JSON.stringify(after.restorePoint)}, not from ${savepoint}`)
        await job.expectSound()
        context.say(`${victim} killed behind the savepoint: the upgrade began at it`)
      }

      const before = await job.status()
      const newest = await withoutOperator(cluster, async () => {
        await job.patch({ upgradeMode: 'last-state', logLevel: 'warn' })
        await broughtOn(cluster, job, port, async () => (await job.status()).transition !== undefined)
        await job.checkpoints(1)
        return job.newestCheckpoint()
      })
      const after = await job.stable('the upgrade by last state', ({ start }) => start > before.start)
      if ((after.restorePoint?.id ?? 0) < newest)
        throw new Error(`it began from ${JSON.stringify(after.restorePoint)}, and ${newest} had completed`)
      context.say(
        `checkpoint ${newest} completed while the upgrade had begun: it went on from ${after.restorePoint?.id}`,
      )
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
