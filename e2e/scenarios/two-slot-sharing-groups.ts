import type { Scenario } from '../cluster/scenario.ts'
import { exampleWith } from './support/example.ts'
import { wait } from './support/wait.ts'
import { inWorld } from './support/world.ts'

/** The counter does not share slots with what comes before it: the job needs two slots a subtask, which only its coordinator knows. */
export const scenario: Scenario = {
  name: 'two slot-sharing groups',
  core: false,
  run: (cluster, context) =>
    inWorld(cluster, context, 'groups', async ({ started }) => {
      const counter = ".uid('counter')"
      const code = { 'job.ts': await exampleWith(counter, `${counter}.slotSharingGroup('counting')`) }
      const job = await started({ code })
      const workersAre = (count: number): Promise<void> =>
        wait(`${count} worker pods`, async () => (await job.pods('worker')).length === count)
      await workersAre(4)
      context.say('4 workers at parallelism 2')
      for (const parallelism of [3, 1]) {
        await job.patch({ parallelism })
        await job.until(
          `parallelism ${parallelism}`,
          (status) =>
            status.phase === 'RUNNING' && status.transition === undefined && status.parallelism === parallelism,
        )
        await workersAre(2 * parallelism)
        await job.killPods('worker', 1)
        await job.checkpoints(2)
        await job.expectSound()
        context.say(`${2 * parallelism} workers at parallelism ${parallelism}, one of them killed and replaced`)
      }
      await job.patch({ upgradeMode: 'savepoint' })
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
