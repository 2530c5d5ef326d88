import type { Scenario } from '../cluster/scenario.ts'
import { scaleSystem } from './support/system.ts'
import { inWorld, seconds } from './support/world.ts'

/** NATS, S3 and the coordinator away: a deletion ends within its deadline all the same, and says what was left. So does a namespace's. */
export const scenario: Scenario = {
  name: 'delete with everything gone',
  core: true,
  run: (cluster, context) =>
    inWorld(cluster, context, 'broken', async ({ started, namespace }) => {
      const spec = { parallelism: 2, checkpointing: { interval: '1s' }, deletion: { deadline: '20s' } }
      const first = await started({ name: 'first', spec })
      const second = await started({ name: 'second', spec })
      try {
        for (const part of ['nats', 's3'] as const) await scaleSystem(cluster, part, 0)
        await first.killPods('coordinator')
        const tookMs = await first.remove(60_000, { isClosed: false })
        const { stdout } = await first.kubectl(['get', 'events.events.k8s.io', '-o', 'jsonpath={.items[*].reason}'])
        if (!stdout.includes('DeletionIncomplete')) throw new Error(`no event says what was left; there are: ${stdout}`)
        context.say(`deleted with NATS, S3 and coordinator gone: ${seconds(tookMs)}`)

        const beganMs = performance.now()
        await cluster.removeNamespace(namespace, 90_000)
        context.say(`namespace with a job in it gone after ${seconds(performance.now() - beganMs)}`)
        await second.close()
      } finally {
        for (const part of ['nats', 's3'] as const) await scaleSystem(cluster, part, 1)
      }
    }),
}
