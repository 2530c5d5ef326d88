import type { Scenario } from '../cluster/scenario.ts'
import { serversBesideControlPlane, sparedNodes, withCordoned } from './support/nodes.ts'
import { wait } from './support/wait.ts'
import { inWorld, seconds } from './support/world.ts'

const parts = ['coordinator', 'worker'] as const
/** The nodes are missed, then the pods' tolerations run out, then they are taken away by force. */
const elsewhereMs = 240_000

/** The third node has room for all of it, beside what is there. */
const small = { resources: { requests: { cpu: '50m', memory: '192Mi' } } }

/**
 * The two nodes that have all of a job are gone at once: it goes on where the control plane is, and stays sound when they are back. NATS, S3, the
 * operator and the ledger are there too: of three nodes the third is the only one that can outlive this.
 */
export const scenario: Scenario = {
  name: 'two nodes lost at once',
  core: false,
  needs: ['kill'],
  run: (cluster, context) =>
    inWorld(cluster, context, 'two-nodes', async ({ started }) => {
      await serversBesideControlPlane(cluster)
      const spared = await sparedNodes(cluster)
      if (spared.length !== 2) throw new Error(`${spared.length} nodes can be spared, not two`)
      const controlPlane = (await cluster.nodes()).filter((node) => node.controlPlane).map(({ name }) => name)
      const spec = { worker: small, coordinator: small }
      const job = await withCordoned(cluster, controlPlane, () => started({ spec }))
      const lost = (await Promise.all(parts.map((part) => job.pods(part)))).flat()
      for (const node of spared)
        if (!lost.some(({ spec }) => spec.nodeName === node)) throw new Error(`nothing of the job is on ${node}`)
      const { start } = await job.status()
      const uids = new Set(lost.map(({ metadata }) => metadata.uid))

      const beganMs = performance.now()
      const deaths = spared.map((node) => cluster.killNode(node))
      try {
        await Promise.all(deaths)
        await wait('both nodes to be missed', async () =>
          (await cluster.nodes()).every(({ name, ready }) => ready !== spared.includes(name)),
        )
        for (const part of parts)
          await wait(
            `each ${part} to run on the third node`,
            async () => {
              const pods = await job.pods(part)
              return (
                pods.length === (part === 'worker' ? 2 : 1) &&
                pods.every(
                  ({ metadata, spec, status }) =>
                    !uids.has(metadata.uid) && !spared.includes(spec.nodeName ?? '') && status.phase === 'Running',
                )
              )
            },
            elsewhereMs,
          )
        await job.checkpoints(2, 180_000)
        context.say(`${spared.join(' and ')} lost: checkpoints again after ${seconds(performance.now() - beganMs)}`)
      } finally {
        // One that was still dying would be started before it is dead.
        await Promise.allSettled(deaths)
        await Promise.all(spared.map((node) => cluster.startNode(node)))
      }
      await job.checkpoints(1)
      await job.expectSound()
      const { start: now } = await job.status()
      if (now !== start) throw new Error(`start ${start} became ${now}`)
      context.say('both nodes are back')
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
