import type { Cluster } from '../cluster/contract.ts'
import type { Scenario } from '../cluster/scenario.ts'
import type { JobPart, ScenarioJob } from './support/job.ts'
import { onSparedNodes, sparedNodes } from './support/nodes.ts'
import { wait } from './support/wait.ts'
import { inWorld, seconds } from './support/world.ts'

/** A node that can be spared and runs this part of the job. */
async function nodeOf(cluster: Cluster, job: ScenarioJob, component: JobPart): Promise<string> {
  const spared = await sparedNodes(cluster)
  for (const { spec } of await job.pods(component))
    if (spec.nodeName !== undefined && spared.includes(spec.nodeName)) return spec.nodeName
  throw new Error(`no ${component} is on a node that can be lost`)
}

/** Kubelet and containers gone at once: the job goes on elsewhere before the node is back, and stays sound when it is. */
export const scenario: Scenario = {
  name: 'node lost and back',
  core: true,
  needs: ['kill'],
  run: (cluster, context) =>
    inWorld(cluster, context, 'node', async ({ started }) => {
      const job = await started({ spec: { worker: onSparedNodes, coordinator: onSparedNodes } })
      for (const component of ['worker', 'coordinator'] as const) {
        const node = await nodeOf(cluster, job, component)
        const onIt = (await job.pods(component)).filter(({ spec: { nodeName } }) => nodeName === node)
        const beganMs = performance.now()
        await cluster.killNode(node)
        try {
          await wait(
            `the ${component} to run on another node`,
            async () => {
              const pods = await job.pods(component)
              return (
                pods.length >= onIt.length &&
                pods.every(({ spec: { nodeName }, status }) => nodeName !== node && status.phase === 'Running')
              )
            },
            180_000,
          )
          await job.checkpoints(2, 180_000)
          context.say(
            `${node} lost with a ${component}: checkpoints again after ${seconds(performance.now() - beganMs)}`,
          )
        } finally {
          await cluster.startNode(node)
        }
        await job.checkpoints(1)
        await job.expectSound()
      }
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
