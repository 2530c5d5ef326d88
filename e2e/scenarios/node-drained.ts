import type { Scenario } from '../cluster/scenario.ts'
import { wait } from './support/wait.ts'
import { inWorld } from './support/world.ts'

/** kubectl drain of the coordinator's node, then of a worker's: pods leave in order, the job goes on elsewhere. */
export const scenario: Scenario = {
  name: 'node drained',
  core: false,
  run: (cluster, context) =>
    inWorld(cluster, context, 'drain', async ({ started }) => {
      const job = await started()
      for (const component of ['coordinator', 'worker'] as const) {
        const controlPlanes = new Set(
          (await cluster.nodes()).filter((node) => node.controlPlane).map(({ name }) => name),
        )
        const node = (await job.pods(component))
          .map(({ spec }) => spec.nodeName!)
          .find((name) => !controlPlanes.has(name))
        if (node === undefined) {
          context.say(`no ${component} is on a node that can be drained`)
          continue
        }
        try {
          const words = ['drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=120s']
          const pods = ['--pod-selector', 'app.kubernetes.io/name=millrace']
          await cluster.kubectl([...words, ...pods], { deadlineMs: 130_000 })
          await wait(`the ${component} to be elsewhere`, async () => {
            const now = await job.pods(component)
            return (
              now.length > 0 && now.every(({ spec, status }) => spec.nodeName !== node && status.phase === 'Running')
            )
          })
          await job.checkpoints(2)
          context.say(`${node} drained of its ${component}`)
        } finally {
          await cluster.kubectl(['uncordon', node])
        }
        await job.expectSound()
      }
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
