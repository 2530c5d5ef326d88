import type { Scenario } from '../cluster/scenario.ts'
import type { ScenarioJob } from './support/job.ts'
import { inWorld, seconds } from './support/world.ts'

/** What brings a job into the state in which it is deleted. */
const states: Readonly<Record<string, (job: ScenarioJob) => Promise<void>>> = {
  'just applied': async (job) => job.apply(),
  'with code that is not there': async (job) => {
    const [streamJob] = (await job.manifest()) as [{ spec: { program: { module: { configMap: { name: string } } } } }]
    streamJob.spec.program.module.configMap.name = 'nobody'
    await job.applyObjects([streamJob])
    await job.until('the code to be missed', ({ conditions }) =>
      conditions.some(({ reason }) => reason === 'CodeMissing'),
    )
  },
  'with an image that is not there': async (job) => {
    await job.apply({ spec: { program: { image: 'docker.io/millrace/not-there:0.0.0' } } })
    await job.until('the image to be missed', ({ conditions }) =>
      conditions.some(({ reason }) => /ImagePull/.test(reason)),
    )
  },
  running: async (job) => {
    await job.apply()
    await job.running()
    await job.checkpoints(1)
  },
  'with its coordinator gone': async (job) => {
    await job.apply()
    await job.running()
    await job.killPods('coordinator')
  },
  upgrading: async (job) => {
    await job.apply()
    await job.running()
    await job.patch({ logLevel: 'debug' })
    await job.until('the upgrade to begin', ({ transition }) => transition !== undefined)
  },
  suspended: async (job) => {
    await job.apply()
    await job.running()
    await job.patch({ state: 'suspended' })
    await job.until('suspended', ({ phase }) => phase === 'SUSPENDED')
  },
  failed: async (job) => {
    await job.apply({ spec: { restartStrategy: { type: 'none' } } })
    await job.running()
    await job.killPods('worker', 1)
    await job.until('failed', ({ phase }) => phase === 'FAILED')
  },
}

const deletionDeadlineMs = 60_000

export const scenario: Scenario = {
  name: 'delete in every state',
  core: false,
  usualMs: 480_000,
  run: (cluster, context) =>
    inWorld(cluster, context, 'delete', async ({ job: make }) => {
      for (const [index, [state, bring]] of Object.entries(states).entries()) {
        const job = make({ name: `job-${index}` })
        await bring(job)
        const tookMs = await job.remove(deletionDeadlineMs)
        context.say(`deleted ${state}: ${seconds(tookMs)}, nothing left`)
      }
    }),
}
