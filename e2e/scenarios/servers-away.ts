import type { Scenario } from '../cluster/scenario.ts'
import { scaleSystem } from './support/system.ts'
import { wait } from './support/wait.ts'
import { inWorld } from './support/world.ts'

const awayMs = 20_000

/** NATS away for a while costs a pause; S3 away in an upgrade by savepoint holds the upgrade, and takes no pod. */
export const scenario: Scenario = {
  name: 'servers away',
  core: false,
  run: (cluster, context) =>
    inWorld(cluster, context, 'away', async ({ started }) => {
      const job = await started()
      for (const part of ['nats', 's3'] as const) {
        const before = (await job.pods('worker')).map(({ metadata }) => metadata.uid).toSorted()
        const { start } = await job.status()
        try {
          await scaleSystem(cluster, part, 0)
          const sinceMs = performance.now()
          if (part === 's3') await job.patch({ upgradeMode: 'savepoint', logLevel: 'debug' })
          await wait(`${part} to have been away`, async () => performance.now() - sinceMs > awayMs)
          const during = (await job.pods('worker')).map(({ metadata }) => metadata.uid).toSorted()
          if (during.join() !== before.join()) throw new Error(`${part} away: pods were replaced`)
          const { start: now } = await job.status()
          if (now !== start) throw new Error(`${part} away: start ${now} was begun`)
        } finally {
          await scaleSystem(cluster, part, 1)
        }
        if (part === 's3')
          await job.stable('the upgrade after the outage', ({ start: now }) => now === start + 1, 240_000)
        await job.checkpoints(2, 180_000)
        await job.expectSound()
        context.say(`${part} away for ${awayMs / 1000} s: no pod was replaced by it, checkpoints go on`)
      }
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
