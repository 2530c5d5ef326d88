import type { Scenario } from '../cluster/scenario.ts'
import { inWorld } from './support/world.ts'

export const scenario: Scenario = {
  name: 'suspend and resume',
  core: true,
  run: (cluster, context) =>
    inWorld(cluster, context, 'suspend', async ({ started }) => {
      const job = await started()
      for (const upgradeMode of ['last-state', 'savepoint'] as const) {
        await job.patch({ state: 'suspended', upgradeMode })
        const { restorePoint } = await job.until(`suspended by ${upgradeMode}`, ({ phase }) => phase === 'SUSPENDED')
        if (restorePoint === undefined || restorePoint.unconfirmed || restorePoint.path === undefined)
          throw new Error(`suspended at ${JSON.stringify(restorePoint)}`)
        const kind = upgradeMode === 'savepoint' ? 'savepoint' : 'checkpoint'
        if (restorePoint.kind !== kind) throw new Error(`suspended by ${upgradeMode} at a ${restorePoint.kind}`)
        for (const component of ['coordinator', 'worker'] as const) {
          const left = await job.pods(component)
          if (left.length > 0) throw new Error(`suspended, and ${left.length} ${component} pods are there`)
        }
        const still = (await job.report()).present
        context.say(`suspended by ${upgradeMode} at ${kind} ${restorePoint.id}: ${still} records, no pods`)
        await job.patch({ state: 'running' })
        await job.running()
        await job.expectSound()
        await job.checkpoints(1)
      }
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
