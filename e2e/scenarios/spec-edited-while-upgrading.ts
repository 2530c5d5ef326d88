import type { Scenario } from '../cluster/scenario.ts'
import { inWorld } from './support/world.ts'

/** Three edits, each while the one before is under way: the last one is what runs, and nothing is lost on the way. */
export const scenario: Scenario = {
  name: 'spec edited while upgrading',
  core: false,
  run: (cluster, context) =>
    inWorld(cluster, context, 'edited', async ({ started }) => {
      const job = await started({ spec: { checkpointing: { interval: '500ms' } } })
      await job.patch({ logLevel: 'debug' })
      await job.until('the upgrade to begin', ({ transition }) => transition !== undefined)
      await job.patch({ logLevel: 'warn', upgradeMode: 'savepoint' })
      await job.until('pods to be on their way', ({ transition }) =>
        ['closed', 'starting', 'stabilising'].includes(transition?.step ?? ''),
      )
      await job.patch({ logLevel: 'error', parallelism: 3 })
      const { generation } = (await job.object()).metadata
      await job.stable(
        'the last edit',
        ({ parallelism, observedGeneration }) => parallelism === 3 && observedGeneration === generation,
        180_000,
      )
      const [worker] = await job.pods('worker')
      context.say(`runs ${worker?.metadata.labels['millrace.dev/revision']}`)
      await job.expectSound()
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
