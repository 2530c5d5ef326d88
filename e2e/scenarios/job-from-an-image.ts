import { millraceImage } from '../cluster/image.ts'
import type { Scenario } from '../cluster/scenario.ts'
import { inWorld } from './support/world.ts'

const [one, two] = ['docker.io/millrace/ledger-job:1', 'docker.io/millrace/ledger-job:2'] as const

/** The code is in the job's own image; another image is an upgrade. */
export const scenario: Scenario = {
  name: 'job from an image',
  core: false,
  run: async (cluster, context) => {
    await cluster.loadImage(await millraceImage({ names: [one, two], examples: true }))
    await inWorld(cluster, context, 'image', async ({ job: make }) => {
      const job = make()
      const program = { image: one, module: { path: '/opt/examples/ledger/job.ts' } }
      // Without the ConfigMap that the example has.
      const [streamJob] = await job.manifest({ spec: { program, parallelism: 2, checkpointing: { interval: '1s' } } })
      await job.applyObjects([streamJob!])
      await job.running()
      await job.checkpoints(1)
      const before = await job.status()
      await job.patch({ program: { image: two } })
      await job.stable('the other image', ({ revision }) => revision !== before.revision)
      const images = (await job.pods('worker')).flatMap(({ spec }) => spec.containers.map(({ image }) => image))
      if (images.some((image) => image !== two)) throw new Error(`the workers run ${images.join()}`)
      context.say(`upgraded from ${one} to ${two}`)
      await job.expectExactToTheEnd()
      await job.remove()
    })
  },
}
