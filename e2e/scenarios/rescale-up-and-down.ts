import type { Scenario } from '../cluster/scenario.ts'
import { wait } from './support/wait.ts'
import { inWorld, seconds } from './support/world.ts'

/** 2 → 4 → 1: by spec.parallelism and by kubectl scale, without another start. */
export const scenario: Scenario = {
  name: 'rescale up and down',
  core: true,
  run: (cluster, context) =>
    inWorld(cluster, context, 'rescale', async ({ started }) => {
      const job = await started()
      const { start, restarts } = await job.status()
      for (const parallelism of [4, 1]) {
        const beganMs = performance.now()
        if (parallelism === 4) await job.patch({ parallelism })
        else await job.kubectl(['scale', `streamjob/${job.name}`, `--replicas=${parallelism}`])
        const after = await job.until(
          `parallelism ${parallelism}`,
          (status) =>
            status.phase === 'RUNNING' && status.transition === undefined && status.parallelism === parallelism,
        )
        if (after.start !== start) throw new Error(`a rescale in place made start ${after.start} of ${start}`)
        await wait(`${parallelism} worker pods`, async () => (await job.pods('worker')).length === parallelism)
        await job.checkpoints(1)
        await job.expectSound()
        // New workers stay: the job goes on at its new size once, not twice.
        const now = await job.status()
        if (now.restarts !== restarts) throw new Error(`the rescale made ${now.restarts - restarts} restarts`)
        context.say(`parallelism ${parallelism} after ${seconds(performance.now() - beganMs)}`)
      }
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
