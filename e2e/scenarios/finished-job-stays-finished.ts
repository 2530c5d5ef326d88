import type { Scenario } from '../cluster/scenario.ts'
import { killSystemPods, operatorWords, systemBack } from './support/system.ts'
import { wait } from './support/wait.ts'
import { inWorld } from './support/world.ts'

const perSplit = 5_000

export const scenario: Scenario = {
  name: 'finished job stays finished',
  core: true,
  run: (cluster, context) =>
    inWorld(cluster, context, 'finished', async ({ job: make }) => {
      const job = make({ args: { perSplit, ratePerSecond: 4_000 } })
      await job.apply({ spec: { parallelism: 2 } })
      await job.until('finished', ({ phase }) => phase === 'FINISHED')
      await job.expectExact(perSplit)
      await wait('the workers to be gone', async () => (await job.pods('worker')).length === 0)
      // The coordinator stays, to be asked. The next one finds the job over.
      await job.killPods('coordinator')
      await killSystemPods(cluster, 'operator')
      await systemBack(cluster, 'operator')
      await wait('the next coordinator to say that the job is over', async () => {
        const { status, body } = await job.request('GET', '/v1/job')
        return status === 200 && body.state === 'ended'
      })
      const looks = /^millrace_operator_reconcile_total\{kind="StreamJob",result="ok"\} [1-9]/m
      await wait('the next operator to have looked at it', async () => looks.test(await operatorWords(cluster)))
      if ((await job.pods('worker')).length > 0) throw new Error('workers were made for a job that is over')
      const { phase, start } = await job.status()
      if (phase !== 'FINISHED' || start !== 1) throw new Error(`it is ${phase} in start ${start}`)
      await job.expectExact(perSplit)
      await job.remove()
    }),
}
