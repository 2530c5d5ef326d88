import type { StreamJobStatus } from '../../operator/contract.ts'
import type { Scenario } from '../cluster/scenario.ts'
import { exampleObjects, exampleWith } from './support/example.ts'
import { untilDoneByMortals, withoutOperator } from './support/mortal-operator.ts'
import type { ScenarioJob } from './support/job.ts'
import { inWorld, seconds } from './support/world.ts'

interface Change {
  readonly what: string
  readonly ask: (job: ScenarioJob) => Promise<unknown>
  readonly isDone: (job: ScenarioJob, before: StreamJobStatus) => Promise<boolean>
  /** Fewer writes than these the change cannot be made with: the operators were not cut where they were to be. */
  readonly cutsMin: number
  /** True: no record comes afterwards. */
  readonly isStill?: boolean
}

type Fits = (status: StreamJobStatus, before: StreamJobStatus) => boolean

/** Nothing is under way any more, and `fits`. */
const settled =
  (fits: Fits): Change['isDone'] =>
  async (job, before) => {
    const { status, metadata } = await job.object()
    const isSettled = status?.transition === undefined && status?.observedGeneration === metadata.generation
    return isSettled && status !== undefined && fits(status, before)
  }

const runs = ({ phase, revision, stableRevision }: StreamJobStatus): boolean =>
  phase === 'RUNNING' && revision === stableRevision
const begunAgain: Fits = (status, { start }) => runs(status) && status.start === start + 1

/** The ConfigMap with other code. */
async function edit(job: ScenarioJob, code: string): Promise<void> {
  const [, map] = await job.manifest({ code: { 'job.ts': code } })
  await job.applyObjects([map!])
}
const editedCode = async (): Promise<string> => `${(await exampleObjects())[1].data['job.ts']}// edited\n`
/** It passes the preflight, and never completes a checkpoint. */
const crashingCode = (): Promise<string> =>
  exampleWith(
    'checkMagic(record)',
    "if (record.n >= 0) throw new Error('crash on every record')\n          checkMagic(record)",
  )

const isThere = async (job: ScenarioJob, kind: string, name: string): Promise<boolean> =>
  (await job.kubectl(['get', kind, name, '--ignore-not-found', '-o', 'name'])).stdout.trim() !== ''

const byHand = {
  apiVersion: 'millrace.dev/v1alpha1',
  kind: 'Savepoint',
  metadata: { name: 'by-hand' },
  spec: { job: { name: 'ledger' }, disposal: 'delete' },
}

const changes: readonly Change[] = [
  {
    what: 'savepoint upgrade',
    ask: (job) => job.patch({ upgradeMode: 'savepoint', logLevel: 'debug' }),
    isDone: settled(begunAgain),
    cutsMin: 12,
  },
  {
    what: 'last-state upgrade',
    ask: (job) => job.patch({ upgradeMode: 'last-state', logLevel: 'info' }),
    isDone: settled(begunAgain),
    cutsMin: 12,
  },
  {
    what: 'edit of the ConfigMap',
    ask: async (job) => edit(job, await editedCode()),
    isDone: settled(begunAgain),
    cutsMin: 12,
  },
  {
    what: 'rollback',
    ask: async (job) => edit(job, await crashingCode()),
    isDone: settled(
      (status, before) =>
        runs(status) &&
        status.revision === before.revision &&
        status.start === before.start + 2 &&
        status.conditions.some(({ type, reason }) => type === 'UpgradeBlocked' && reason === 'RolledBack'),
    ),
    cutsMin: 20,
  },
  {
    what: 'restart by nonce',
    ask: async (job) => {
      await edit(job, await editedCode())
      await job.patch({ restartNonce: 1 })
    },
    isDone: settled((status, before) => begunAgain(status, before) && status.answered.restart === 1),
    cutsMin: 8,
  },
  {
    what: 'rescale',
    ask: (job) => job.patch({ parallelism: 3 }),
    isDone: settled((status) => runs(status) && status.parallelism === 3),
    cutsMin: 3,
  },
  {
    what: 'suspension',
    ask: (job) => job.patch({ state: 'suspended' }),
    isDone: settled(({ phase }) => phase === 'SUSPENDED'),
    cutsMin: 4,
    isStill: true,
  },
  {
    what: 'resumption',
    ask: (job) => job.patch({ state: 'running' }),
    isDone: settled(begunAgain),
    cutsMin: 6,
  },
  {
    what: 'Savepoint object',
    ask: (job) => job.applyObjects([byHand]),
    isDone: async (job) =>
      (await job.kubectl(['get', 'savepoint', 'by-hand', '-o', 'jsonpath={.status.state}'])).stdout === 'completed',
    cutsMin: 2,
  },
  {
    what: 'disposal of the savepoint',
    ask: (job) => job.kubectl(['delete', 'savepoint', 'by-hand', '--wait=false']),
    isDone: async (job) => !(await isThere(job, 'savepoint', 'by-hand')),
    cutsMin: 1,
  },
  {
    what: 'deletion with a savepoint',
    ask: (job) => job.kubectl(['delete', 'streamjob', job.name, '--wait=false']),
    isDone: async (job) => !(await isThere(job, 'streamjob', job.name)),
    cutsMin: 6,
    isStill: true,
  },
]

/** Each operator is cut off from the API server behind the first write that changes anything: so every write of every transition is the last of some operator. */
export const scenario: Scenario = {
  name: 'operator killed at every write',
  core: false,
  usualMs: 720_000,
  deadlineMs: 1_500_000,
  run: (cluster, context) =>
    inWorld(cluster, context, 'writes', async ({ started, job: make, namespace }) => {
      const job = await started({
        spec: {
          rollback: { enabled: true, progressDeadline: '30s' },
          deletion: { savepoint: true, deadline: '4m' },
        },
      })
      const object = await job.object()
      await withoutOperator(cluster, async () => {
        let port = await job.coordinatorPort()
        for (const { what, ask, isDone, cutsMin, isStill = false } of changes) {
          const before = await job.status()
          const beganMs = performance.now()
          await ask(job)
          const cuts = await untilDoneByMortals({
            cluster,
            namespace,
            coordinatorPort: () => port,
            after: 'change',
            deadlineMs: 300_000,
            isDone: async () => {
              // The Service is the same for all starts of a job.
              port = await job.coordinatorPort().catch(() => port)
              return isDone(job, before)
            },
          })
          if (cuts < cutsMin) throw new Error(`${what}: only ${cuts} operators were cut, not ${cutsMin}`)
          context.say(`${what}: done by ${cuts} operators after ${seconds(performance.now() - beganMs)}`)
          if (!isStill) await job.expectSound()
        }
        await job.expectNoLeftovers(object)
      })
      // Another job goes on from the last savepoint, in the same book: each record once over both.
      const { items } = await cluster.get<{ readonly items: readonly SavepointObject[] }>([
        '--namespace',
        namespace,
        'get',
        'savepoints',
      ])
      const last = items.find(({ metadata }) => metadata.name.endsWith('-last'))?.status?.path
      if (last === undefined) throw new Error(`no last savepoint: ${JSON.stringify(items)}`)
      const next = make({ name: 'next', args: { book: 'ledger' } })
      await next.apply({ spec: { restoreFrom: last, checkpointing: { interval: '1s' } } })
      await next.running()
      await next.expectExactToTheEnd()
      await next.remove()
    }),
}

interface SavepointObject {
  readonly metadata: { readonly name: string }
  readonly status?: { readonly path?: string }
}
