import type { Scenario } from '../cluster/scenario.ts'
import type { LedgerClient } from '../harness/ledger-client.ts'
import { exampleWith } from './support/example.ts'
import type { ScenarioJob } from './support/job.ts'
import { wait } from './support/wait.ts'
import { inWorld, seconds } from './support/world.ts'

/** No snapshot completes from now on. */
const held = (job: ScenarioJob, ledger: LedgerClient): Promise<void> =>
  wait('the ledger to hold', () => ledger.hold({ what: 'preCommit', book: job.name }).then(() => true))

/** A pod closes HEAD while the workers may still write what nobody takes away. */
const closedByPod = 'with its coordinator gone'

/** What brings a job into the state in which it is deleted. */
const states: Readonly<Record<string, (job: ScenarioJob, ledger: LedgerClient) => Promise<void>>> = {
  rescaling: async (job, ledger) => {
    await job.apply()
    await job.running()
    await held(job, ledger)
    await job.patch({ parallelism: 3 })
    await job.until('the rescale to wait for its checkpoint', ({ transition }) => transition?.step === 'rescaling')
    await ledger.waitForHeld(1, heldDeadlineMs)
  },
  'rolling back': async (job) => {
    const spec = { rollback: { enabled: true, progressDeadline: '5s' } }
    await job.apply({ spec })
    await job.stable('a revision to go back to', () => true)
    const code = await exampleWith('checkMagic(record)', "if (record.n >= 0) throw new Error('crash on every record')")
    await job.apply({ spec, code: { 'job.ts': code } })
    await job.until('the rollback to begin', ({ transition }) => transition?.kind === 'rollback')
  },
  restarting: async (job) => {
    await job.apply({ spec: { restartStrategy: { type: 'fixed-delay', attempts: 10, delay: '10m' } } })
    await job.running()
    await job.checkpoints(1)
    await job.killPods('worker', 1)
    await job.until('the restart to be waited for', ({ phase }) => phase === 'RESTARTING')
  },
  'with a savepoint pending': async (job, ledger) => {
    await job.apply()
    await job.running()
    await job.checkpoints(1)
    await held(job, ledger)
    await job.patch({ savepointNonce: 1 })
    const { asked } = await job.until('the savepoint to be asked for', (status) => status.asked !== undefined)
    await wait('the savepoint to be pending', async () => {
      const { body } = await job.request('GET', `/v1/savepoints/${asked!.request}`)
      return (body as { readonly state?: string }).state === 'pending'
    })
    await ledger.waitForHeld(1, heldDeadlineMs)
  },
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
  [closedByPod]: async (job) => {
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
const heldDeadlineMs = 60_000

export const scenario: Scenario = {
  name: 'delete in every state',
  core: false,
  usualMs: 660_000,
  deadlineMs: 1_200_000,
  run: (cluster, context) =>
    inWorld(cluster, context, 'delete', async ({ job: make, ledger }) => {
      for (const [index, [state, bring]] of Object.entries(states).entries()) {
        const job = make({ name: `job-${index}` })
        await bring(job, ledger)
        const tookMs = await job.remove(deletionDeadlineMs, { isClosed: state !== closedByPod })
        await wait('the ledger to release', () => ledger.release().then(() => true))
        context.say(`deleted ${state}: ${seconds(tookMs)}, nothing left`)
      }
    }),
}
