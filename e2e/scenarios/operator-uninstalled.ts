import { helmInstall, helmUninstall } from '../cluster/installation.ts'
import type { Scenario } from '../cluster/scenario.ts'
import { inWorld, seconds } from './support/world.ts'

/** helm uninstall with a job there: it can be deleted all the same, and nothing is left; the next install finds its way. */
export const scenario: Scenario = {
  name: 'operator uninstalled',
  core: false,
  run: (cluster, context) =>
    inWorld(cluster, context, 'uninstall', async ({ started }) => {
      const job = await started()
      const before = (await job.pods('worker')).map(({ metadata }) => metadata.uid).join()
      await helmUninstall(cluster)
      try {
        if ((await job.pods('worker')).map(({ metadata }) => metadata.uid).join() !== before)
          throw new Error('the job did not keep its pods')
        const tookMs = await job.remove(undefined, { isClosed: false })
        context.say(`deleted without an operator: ${seconds(tookMs)}`)
      } finally {
        await helmInstall(cluster, context.image)
      }
      const next = await started({ name: 'next' })
      await next.expectExactToTheEnd()
      await next.remove()
    }),
}
