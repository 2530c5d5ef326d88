import type { Cluster } from '../cluster/contract.ts'
import type { Scenario } from '../cluster/scenario.ts'
import { SeededRandom } from '../../runtime/testkit/manual-clock.ts'
import type { ScenarioJob } from './support/job.ts'
import { killSystemPods, systemBack } from './support/system.ts'
import { wait } from './support/wait.ts'
import { inWorld } from './support/world.ts'

const minutes = Number(process.env['MILLRACE_STORM_MINUTES'] ?? 6)
const seed = Number(process.env['MILLRACE_STORM_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
/** Five kills and more than three completed checkpoints a minute. */
const [killsMin, checkpointsMin] = [5 * minutes, Math.ceil((20 / 6) * minutes)]
const betweenMs = { least: 1_000, most: 9_000 }

const kills: Readonly<Record<string, (cluster: Cluster, job: ScenarioJob) => Promise<unknown>>> = {
  'worker pod': (_, job) => job.killPods('worker', 1),
  'all worker pods': (_, job) => job.killPods('worker'),
  'coordinator pod': (_, job) => job.killPods('coordinator'),
  'worker process': (_, job) => job.killContainers('worker', 1),
  'coordinator process': (_, job) => job.killContainers('coordinator'),
  operator: (cluster) => killSystemPods(cluster, 'operator'),
  nats: (cluster) => killSystemPods(cluster, 'nats'),
  s3: (cluster) => killSystemPods(cluster, 's3'),
}

/** Random kills of everything for minutes. MILLRACE_STORM_MINUTES=30 is the long one; MILLRACE_STORM_SEED repeats another's choice. */
export const scenario: Scenario = {
  name: 'storm',
  core: false,
  usualMs: (minutes + 3) * 60_000,
  needs: ['kill'],
  deadlineMs: (minutes + 10) * 60_000,
  run: (cluster, context) =>
    inWorld(cluster, context, 'storm', async ({ started }) => {
      const job = await started({
        args: { ratePerSecond: 1_000 },
        spec: {
          parallelism: 2,
          checkpointing: { interval: '500ms' },
          restartStrategy: { type: 'fixed-delay', attempts: 1_000_000, delay: '200ms' },
        },
      })
      context.say(`seed ${seed}`)
      const random = new SeededRandom(seed)
      const names = Object.keys(kills)
      const done: Record<string, number> = {}
      let total = 0
      let completed = 0
      let newest: number | undefined
      let unanswered: unknown
      /** At most one between two looks counts: fewer than there were, never more. */
      const look = async (): Promise<void> => {
        // The coordinator may just have been killed.
        const id = await job.newestCheckpoint().catch((error: unknown) => {
          unanswered = error
          return undefined
        })
        if (id === undefined) return
        if (newest !== undefined && id > newest) completed++
        newest = Math.max(id, newest ?? 0)
      }
      const endMs = performance.now() + minutes * 60_000
      while (performance.now() < endMs) {
        const nextMs = performance.now() + betweenMs.least + random.next() * (betweenMs.most - betweenMs.least)
        await wait('the next moment', async () => {
          await look()
          return performance.now() >= nextMs
        })
        const name = names[Math.floor(random.next() * names.length)]!
        // Nobody may be there to be killed just now.
        const hit = await kills[name]!(cluster, job).then(
          () => true,
          (error: unknown) => {
            if (!/to be killed|no such running container/.test(String(error))) throw error
            return false
          },
        )
        if (!hit) continue
        done[name] = (done[name] ?? 0) + 1
        total++
      }
      for (const part of ['operator', 'nats', 's3'] as const) await systemBack(cluster, part)
      await job.running(180_000)
      await job.checkpoints(1)
      context.say(JSON.stringify({ minutes, total, done, completed }))
      if (total < killsMin) throw new Error(`only ${total} kills hit, not ${killsMin}`)
      if (completed < checkpointsMin)
        throw new Error(
          `only ${completed} checkpoints were seen to complete, not ${checkpointsMin}; last error of a look: ${String(unanswered)}`,
        )
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
