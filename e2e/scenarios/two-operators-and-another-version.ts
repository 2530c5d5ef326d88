import { helmUpgrade } from '../cluster/installation.ts'
import type { Scenario } from '../cluster/scenario.ts'
import { killSystemPods, systemBack, systemPods } from './support/system.ts'
import { inWorld } from './support/world.ts'

/** Two replicas, the leader killed in an upgrade; then helm upgrade to an operator that differs: jobs' pods stay. */
export const scenario: Scenario = {
  name: 'two operators and another version',
  core: false,
  run: (cluster, context) =>
    inWorld(cluster, context, 'operators', async ({ started }) => {
      const job = await started()
      const podsOf = async (): Promise<string> =>
        [...(await job.pods('worker')), ...(await job.pods('coordinator'))]
          .map(({ metadata }) => metadata.uid)
          .toSorted()
          .join()
      try {
        const before = await podsOf()
        await helmUpgrade(cluster, {
          'operator.replicas': '2',
          'operator.podLabels.scenario': 'another',
          'operator.logLevel': 'debug',
        })
        await systemBack(cluster, 'operator', 2)
        await job.checkpoints(1)
        if ((await podsOf()) !== before) throw new Error('an upgrade of the operator replaced pods of a job')
        context.say('helm upgrade to two operators with another label: no pod of the job was replaced')

        const { start } = await job.status()
        await job.patch({ logLevel: 'debug' })
        await job.until('the upgrade to begin', ({ transition }) => transition !== undefined)
        await killSystemPods(cluster, 'operator')
        await systemBack(cluster, 'operator', 2)
        const after = await job.stable('the upgrade by the others', () => true)
        if (after.start !== start + 1) throw new Error(`start ${start} became ${after.start}`)
        context.say(
          `both operators killed in an upgrade: done by the next, ${(await systemPods(cluster, 'operator')).length} there`,
        )
      } finally {
        await helmUpgrade(cluster, {
          'operator.replicas': '1',
          'operator.podLabels.scenario': 'null',
          'operator.logLevel': 'info',
        })
        await systemBack(cluster, 'operator', 1)
      }
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
