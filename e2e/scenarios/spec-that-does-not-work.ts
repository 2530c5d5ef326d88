import type { Scenario } from '../cluster/scenario.ts'
import type { ScenarioJob } from './support/job.ts'
import { inWorld } from './support/world.ts'

const hopeless = `
import { defineJob, z } from 'millrace'
export default defineJob({ args: z.looseObject({}) }, () => { throw new Error('this code cannot work') })
`

/** Resolves once the job says so, and has gone back to what worked. */
async function rolledBack(job: ScenarioJob, revision: string | undefined): Promise<void> {
  await job.until(
    'the rollback',
    ({ phase, transition, conditions, revision: now }) =>
      phase === 'RUNNING' &&
      transition === undefined &&
      now === revision &&
      conditions.some(
        ({ type, status, reason }) => type === 'UpgradeBlocked' && status === 'True' && reason === 'RolledBack',
      ),
    180_000,
  )
  await job.checkpoints(1)
  await job.expectSound()
}

/** A bad image and code that throws: neither loses the job that ran, and a good spec then goes on from the same state. */
export const scenario: Scenario = {
  name: 'spec that does not work',
  core: false,
  usualMs: 240_000,
  run: (cluster, context) =>
    inWorld(cluster, context, 'bad', async ({ started }) => {
      const spec = {
        parallelism: 2,
        checkpointing: { interval: '1s' },
        rollback: { enabled: true, progressDeadline: '15s' },
      }
      const job = await started({ spec })
      const { revision } = await job.status()

      await job.apply({ spec, code: { 'job.ts': hopeless } })
      await job.until('the preflight to refuse it', ({ conditions }) =>
        conditions.some(
          ({ type, status, reason }) => type === 'UpgradeBlocked' && status === 'True' && reason === 'PreflightRefused',
        ),
      )
      if ((await job.status()).revision !== revision) throw new Error('the job was touched by code that was refused')
      await job.expectSound()
      context.say('code that throws: refused by the preflight, the job runs on')

      await job.apply({ spec })
      await job.patch({ program: { image: 'docker.io/millrace/not-there:0.0.0' } })
      const seen = new Set<string>()
      const watched = job.until('the image to be named', ({ conditions }) => {
        for (const { type, status, reason } of conditions)
          if (type === 'Degraded' && status === 'True') seen.add(reason)
        return seen.has('ImagePullBackOff') || seen.has('ErrImagePull')
      })
      await Promise.all([watched, rolledBack(job, revision)])
      context.say(`image that is not there: ${[...seen].join()}, then rolled back`)

      await job.patch({ program: { image: null }, logLevel: 'debug' })
      await job.stable('the good spec', ({ revision: now }) => now !== revision)
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
