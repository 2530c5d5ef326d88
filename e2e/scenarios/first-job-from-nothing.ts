import { helmInstall, helmUninstall, installation, isInstalled } from '../cluster/installation.ts'
import type { Scenario } from '../cluster/scenario.ts'
import type { ScenarioJob } from './support/job.ts'
import { inWorld, seconds } from './support/world.ts'

/** By the webhook, or by the definition's own rules. */
async function refused(job: ScenarioJob, spec: Readonly<Record<string, unknown>>, naming: string): Promise<void> {
  const error = await job.patch(spec).then(
    () => undefined,
    (reason: unknown) => String(reason),
  )
  if (error === undefined) throw new Error(`${JSON.stringify(spec)} was taken`)
  if (!error.includes(naming)) throw new Error(`the refusal does not name ${naming}: ${error}`)
}

/** What a user does: helm install, kubectl apply; then records come out, each once, and deleting leaves nothing. */
export const scenario: Scenario = {
  name: 'first job from nothing',
  core: true,
  run: async (cluster, context) => {
    const { image, say } = context
    if (await isInstalled(cluster)) await helmUninstall(cluster)
    await helmInstall(cluster, image)
    say(`helm install ${installation.release} charts/millrace`)
    await inWorld(cluster, context, 'first', async ({ job: make, ledger }) => {
      const job = make()
      const appliedMs = await ledger.nowMs()
      await job.apply()
      const { atMs } = await ledger.waitForFirst(appliedMs, 120_000, job.name)
      say(`kubectl apply to the first record: ${seconds(atMs - appliedMs)}`)
      await job.running()
      await job.checkpoints(2)
      await job.expectSound()
      await refused(
        job,
        { worker: { resources: { requests: { memory: '2Gi' }, limits: { memory: '1Gi' } } } },
        'limits.memory',
      )
      await refused(job, { parallelism: 200, maxParallelism: 128 }, 'maxParallelism')
      say('what cannot work is refused when it is applied')
      await job.expectExactToTheEnd()
      say(`deleted in ${seconds(await job.remove())}`)
    })
  },
}
