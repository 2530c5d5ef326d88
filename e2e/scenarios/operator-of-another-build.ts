import { millraceImage } from '../cluster/image.ts'
import { helmUpgrade } from '../cluster/installation.ts'
import type { Cluster } from '../cluster/contract.ts'
import type { Scenario } from '../cluster/scenario.ts'
import { jobLabel } from '../../operator/resources/labels.ts'
import type { ScenarioJob } from './support/job.ts'
import { operatorWords, systemPods } from './support/system.ts'
import { wait } from './support/wait.ts'
import { inWorld } from './support/world.ts'

const image = 'docker.io/millrace/operator:another'
const label = 'millrace.dev/scenario'
/** Its builder gives all that a job owns one label more. */
const edit = {
  file: 'operator/resources/labels.js',
  from: `'app.kubernetes.io/managed-by': 'millrace',`,
  to: `'app.kubernetes.io/managed-by': 'millrace', '${label}': 'another',`,
}

interface Owned {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly uid: string
    /** Of what has none every write counts. */
    readonly generation?: number
    readonly resourceVersion: string
  }
}

const podsOf = async (job: ScenarioJob) => [...(await job.pods('worker')), ...(await job.pods('coordinator'))]

/** What would show that anything of a running job was touched: other pods, restarted ones, other objects that were written. */
async function traces(cluster: Cluster, job: ScenarioJob): Promise<string> {
  const pods = (await podsOf(job)).map(({ metadata, status }) => {
    const restarts = status.containerStatuses?.map(({ restartCount }) => restartCount).join()
    return `pod ${metadata.name} ${metadata.uid} restarted ${restarts}`
  })
  const { uid } = (await job.object()).metadata
  const kinds = 'deployments.apps,statefulsets.apps,services,configmaps,secrets,poddisruptionbudgets.policy'
  const words = ['--namespace', job.namespace, 'get', kinds, '--selector', `${jobLabel}=${uid}`]
  const { items } = await cluster.get<{ readonly items: readonly Owned[] }>(words)
  const owned = items.map(
    ({ kind, metadata }) =>
      `${kind} ${metadata.name} ${metadata.uid} version ${metadata.generation ?? metadata.resourceVersion}`,
  )
  return [...pods, ...owned].toSorted().join('\n')
}

/** Resolves once the one operator is of this image, leads, and has looked at the jobs a few times. */
async function leads(cluster: Cluster, fits: (operatorImage: string) => boolean): Promise<void> {
  const looked = /^millrace_operator_reconcile_total\{kind="StreamJob",result="ok"\} (\d+)/m
  await wait('the operator of this build to lead', async () => {
    const pods = await systemPods(cluster, 'operator')
    if (pods.length !== 1 || !pods[0]!.spec.containers.every((container) => fits(container.image))) return false
    const words = await operatorWords(cluster)
    return /^millrace_operator_leading 1$/m.test(words) && Number(looked.exec(words)?.[1] ?? 0) >= 3
  })
}

/** Helm upgrade to an operator whose builder makes other objects: what runs is as its own revision says, until the spec changes. */
export const scenario: Scenario = {
  name: 'operator of another build',
  core: false,
  run: async (cluster, context) => {
    await cluster.loadImage(await millraceImage({ names: [image], edit }))
    await inWorld(cluster, context, 'build', async ({ started }) => {
      const job = await started()
      const before = { traces: await traces(cluster, job), status: await job.status() }
      const expectUntouched = async (by: string, was: string): Promise<void> => {
        await job.checkpoints(2)
        await job.expectSound()
        const now = await traces(cluster, job)
        if (now !== was) throw new Error(`${by} touched the job; it was\n${was}\nand is\n${now}`)
      }
      const usual = (await systemPods(cluster, 'operator'))[0]!.spec.containers[0]!.image
      let labelled: string
      try {
        await helmUpgrade(cluster, { 'operator.image': image })
        await leads(cluster, (name) => name === image)
        await expectUntouched('the operator of another build', before.traces)
        context.say('helm upgrade to a builder with another label: nothing of the job was touched')

        await job.killPods('worker', 1)
        await job.checkpoints(2)
        const strange = (await podsOf(job)).filter(({ metadata }) => label in metadata.labels)
        if (strange.length > 0) throw new Error('a replaced pod has the label of another build')

        await job.patch({ logLevel: 'debug' })
        const after = await job.stable('the upgrade', ({ revision }) => revision !== before.status.revision)
        if (after.start !== before.status.start + 1) throw new Error(`${before.status.start} became ${after.start}`)
        const plain = (await podsOf(job)).filter(({ metadata }) => metadata.labels[label] !== 'another')
        if (plain.length > 0) throw new Error('pods of the new revision are without the label')
        await job.expectSound()
        context.say('the next change of the spec brings the label')
        labelled = await traces(cluster, job)
      } finally {
        await helmUpgrade(cluster, { 'operator.image': usual })
      }
      await leads(cluster, (name) => name === usual)
      await expectUntouched('the operator before', labelled)
      context.say('back at the operator before: nothing of the job was touched')
      await job.expectExactToTheEnd()
      await job.remove()
    })
  },
}
