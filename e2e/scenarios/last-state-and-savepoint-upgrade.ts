import type { Scenario } from '../cluster/scenario.ts'
import { inWorld, seconds } from './support/world.ts'

/** New arguments, code, and resources, by either way of ending the start before; a checkpoint may complete meanwhile. */
export const scenario: Scenario = {
  name: 'last-state and savepoint upgrade',
  core: true,
  run: (cluster, context) =>
    inWorld(cluster, context, 'upgrade', async ({ started }) => {
      const job = await started({ spec: { checkpointing: { interval: '500ms' } } })
      for (const [upgradeMode, change] of [
        ['last-state', { logLevel: 'debug' }],
        ['savepoint', { worker: { resources: { requests: { cpu: '200m' } } } }],
      ] as const) {
        const before = await job.status()
        const beganMs = performance.now()
        await job.patch({ upgradeMode, ...change })
        const after = await job.stable(`the ${upgradeMode} upgrade`, ({ start }) => start > before.start)
        if (after.start !== before.start + 1) throw new Error(`start ${before.start} became ${after.start}`)
        if (after.revision === before.revision) throw new Error(`still ${after.revision}`)
        const kind = upgradeMode === 'savepoint' ? 'savepoint' : 'checkpoint'
        if (after.restorePoint?.kind !== kind) throw new Error(`it began from ${JSON.stringify(after.restorePoint)}`)
        await job.expectSound()
        const steps = after.timeline.map(({ step, seconds }) => `${step} ${seconds} s`).join(', ')
        context.say(`${upgradeMode} upgrade stable after ${seconds(performance.now() - beganMs)}: ${steps}`)
      }
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
