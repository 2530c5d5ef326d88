// Kills of each part of a job and of what it rests on, each in a window that is held open by the ledger and was seen open.

import type { Cluster } from '../../cluster/contract.ts'
import type { Scenario } from '../../cluster/scenario.ts'
import type { Hold } from '../../harness/ledger-client.ts'
import type { ScenarioJob } from './job.ts'
import { killSystemPods, systemBack } from './system.ts'
import { found, wait } from './wait.ts'
import { inWorld, seconds } from './world.ts'
import type { World } from './world.ts'

const victims = ['worker', 'all workers', 'coordinator', 'operator', 'nats', 's3'] as const
type Victim = (typeof victims)[number]

const windowDeadlineMs = 60_000

/** By subtask; each begins with the incarnation that deployed it. */
export function attemptsOf(job: ScenarioJob): Promise<readonly string[]> {
  return found('the attempts of the subtasks', async () => {
    const { status, body } = await job.request('GET', '/v1/subtasks')
    if (status !== 200) throw new Error(`GET /v1/subtasks: ${status}`)
    const { subtasks } = body as {
      readonly subtasks: readonly { readonly vertex: string; readonly subtask: number; readonly attempt: string }[]
    }
    if (subtasks.length === 0) return undefined
    return subtasks.map(({ vertex, subtask, attempt }) => `${vertex}/${subtask} ${attempt}`).toSorted()
  })
}

export function incarnationOf(job: ScenarioJob): Promise<number> {
  return found('the incarnation', async () => {
    const { status, body } = await job.request('GET', '/v1/job')
    return status === 200 ? (body as { readonly incarnation: number }).incarnation : undefined
  })
}

async function kill(cluster: Cluster, job: ScenarioJob, victim: Victim): Promise<void> {
  if (victim === 'worker') await job.killPods('worker', 1)
  else if (victim === 'all workers') await job.killPods('worker')
  else if (victim === 'coordinator') await job.killPods('coordinator')
  else await killSystemPods(cluster, victim)
}

/** Every one of them killed in turn while the ledger holds such a call of one running job, which is exact in the end. */
export const podsKilledWhileHeld = (name: string, what: 'preCommit' | 'commit'): Scenario => ({
  name,
  core: true,
  run: (cluster, context) =>
    inWorld(cluster, context, `in-${what.toLowerCase()}`, async (world) => {
      const { say } = context
      const job = await world.started({ spec: { checkpointing: { interval: '500ms' } } })
      await killEachWhileHeld(cluster, { world, job, say }, { what })
      await job.expectExactToTheEnd()
      say(`deleted in ${seconds(await job.remove())}`)
    }),
})

/** What the kill must have done, and what it must not, is looked at after. */
async function killEachWhileHeld(
  cluster: Cluster,
  { world, job, say }: { readonly world: World; readonly job: ScenarioJob; readonly say: (text: string) => void },
  hold: Hold,
): Promise<void> {
  for (const victim of victims) {
    const [attemptsBefore, incarnationBefore] = [await attemptsOf(job), await incarnationOf(job)]
    await wait('the ledger to hold', () => world.ledger.hold({ ...hold, book: job.name }).then(() => true))
    await world.ledger.waitForHeld(1, windowDeadlineMs)
    if (hold.what === 'preCommit')
      await wait('a checkpoint to be pending', async () => {
        const { body } = await job.request('GET', '/v1/checkpoints')
        return (body as { readonly pending: { readonly phase: string } | null }).pending?.phase === 'collecting'
      })
    await kill(cluster, job, victim)
    await wait('the ledger to release', () => world.ledger.release().then(() => true))
    if (victim === 'operator' || victim === 'nats' || victim === 's3') await systemBack(cluster, victim)
    await job.checkpoints(1)
    const [attempts, incarnation] = [await attemptsOf(job), await incarnationOf(job)]
    const restarted = attempts.filter((attempt) => !attemptsBefore.includes(attempt)).length
    // Nobody but a worker takes subtasks with it, and it all of them: they are one region.
    const expected = victim === 'worker' || victim === 'all workers' ? attempts.length : 0
    if (restarted !== expected)
      throw new Error(
        `${victim} killed: ${restarted} of ${attempts.length} subtasks were restarted, not ${expected}: ${attemptsBefore.join()} and then ${attempts.join()}`,
      )
    const rise = incarnation - incarnationBefore
    // The kubelet may have begun another one in the pod before it was gone.
    if (victim === 'coordinator' ? rise < 1 || rise > 2 : rise !== 0)
      throw new Error(`${victim} killed: the incarnation rose by ${rise}`)
    say(`${victim} killed with ${hold.what} held: ${restarted} subtasks restarted, checkpoints go on`)
  }
}
