import type { StreamJobStatus } from '../../operator/contract.ts'
import type { Scenario } from '../cluster/scenario.ts'
import { untilDoneByMortals, withoutOperator } from './support/mortal-operator.ts'
import type { ScenarioJob } from './support/job.ts'
import { inWorld } from './support/world.ts'

interface Change {
  readonly what: string
  readonly spec: Readonly<Record<string, unknown>>
  /** Of a job for which nothing is under way any more. */
  readonly isDone: (status: StreamJobStatus) => boolean
  /** Fewer writes than these the change cannot be made with: the operators were not cut where they were to be. */
  readonly cutsMin: number
}

const runs = ({ phase, revision, stableRevision }: StreamJobStatus): boolean =>
  phase === 'RUNNING' && revision === stableRevision

const changes: readonly Change[] = [
  {
    what: 'savepoint upgrade',
    spec: { upgradeMode: 'savepoint', logLevel: 'debug' },
    isDone: (status) => runs(status) && status.start === 2,
    cutsMin: 8,
  },
  {
    what: 'last-state upgrade',
    spec: { upgradeMode: 'last-state', logLevel: 'info' },
    isDone: (status) => runs(status) && status.start === 3,
    cutsMin: 8,
  },
  {
    what: 'rescale',
    spec: { parallelism: 3 },
    isDone: (status) => runs(status) && status.parallelism === 3,
    cutsMin: 3,
  },
  { what: 'suspension', spec: { state: 'suspended' }, isDone: ({ phase }) => phase === 'SUSPENDED', cutsMin: 4 },
  { what: 'resumption', spec: { state: 'running' }, isDone: runs, cutsMin: 4 },
]

async function isDone(job: ScenarioJob, fits: Change['isDone']): Promise<boolean> {
  const { status, metadata } = await job.object()
  const settled = status?.transition === undefined && status?.observedGeneration === metadata.generation
  return settled && status !== undefined && fits(status)
}

/** Each operator is cut off from the API server behind the first write of its act: so every write of every transition is the last of some operator. */
export const scenario: Scenario = {
  name: 'operator killed at every write',
  core: false,
  usualMs: 1_200_000,
  deadlineMs: 1_200_000,
  run: (cluster, context) =>
    inWorld(cluster, context, 'writes', async ({ started, namespace }) => {
      const job = await started()
      await withoutOperator(cluster, async () => {
        let port = await job.coordinatorPort()
        for (const { what, spec, isDone: fits, cutsMin } of changes) {
          await job.patch(spec)
          const cuts = await untilDoneByMortals({
            cluster,
            namespace,
            coordinatorPort: () => port,
            // Before it acts each proves by a write of status that it is not overtaken.
            after: 2,
            deadlineMs: 300_000,
            isDone: async () => {
              // The Service is the same for all starts of a job.
              port = await job.coordinatorPort().catch(() => port)
              return isDone(job, fits)
            },
          })
          if (cuts < cutsMin) throw new Error(`${what}: only ${cuts} operators were cut`)
          context.say(`${what}: done by ${cuts} operators, each cut off behind the first write of its act`)
          if (what !== 'suspension') await job.expectSound()
        }
      })
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
