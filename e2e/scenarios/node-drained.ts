import type { Cluster } from '../cluster/contract.ts'
import type { Scenario } from '../cluster/scenario.ts'
import { jobLabel } from '../../operator/resources/labels.ts'
import type { JobPart, ScenarioJob } from './support/job.ts'
import { onSparedNodes, sparedNodes, withCordoned } from './support/nodes.ts'
import { found, wait } from './support/wait.ts'
import { attemptsOf, incarnationOf } from './support/windows.ts'
import { inWorld, seconds } from './support/world.ts'

const parts = ['coordinator', 'worker'] as const
/** A worker moves its subtasks within its grace of 25 s; the second one waits for that. */
const drainDeadlineS = 150

/** What tells a move from a restart. */
interface Course {
  readonly attempts: readonly string[]
  readonly incarnation: number
  /** That the restart strategy has counted. */
  readonly restarts: number
  /** Of all that began again, moves too; oldest first. */
  readonly codes: readonly (string | null)[]
}

async function courseOf(job: ScenarioJob): Promise<Course> {
  const { count, restarts } = await found('the restarts', async () => {
    const { status, body } = await job.request('GET', '/v1/restarts')
    if (status !== 200) throw new Error(`GET /v1/restarts: ${status}`)
    return body as { readonly count: number; readonly restarts: readonly { readonly code: string | null }[] }
  })
  const [attempts, incarnation] = [await attemptsOf(job), await incarnationOf(job)]
  return { attempts, incarnation, restarts: count, codes: restarts.map(({ code }) => code) }
}

const nodesOf = async (job: ScenarioJob, part: JobPart): Promise<readonly string[]> =>
  (await job.pods(part)).map(({ spec }) => spec.nodeName ?? 'none')

/** As an administrator does it, of the job's pods alone: others of the cluster may stand there too. */
async function drained(cluster: Cluster, job: ScenarioJob, node: string): Promise<string> {
  const { uid } = (await job.object()).metadata
  const words = ['drain', node, '--ignore-daemonsets', '--delete-emptydir-data', `--timeout=${drainDeadlineS}s`]
  const { stdout, stderr } = await cluster.kubectl([...words, '--pod-selector', `${jobLabel}=${uid}`], {
    deadlineMs: (drainDeadlineS + 10) * 1_000,
  })
  return `${stdout}\n${stderr}`
}

interface Drain {
  readonly node: string
  /** What is on it, and nothing else of the job. */
  readonly of: readonly JobPart[]
}

/** Whatever was on the node has gone in order and runs elsewhere, and the job has lost nothing but time. */
async function drainOf(cluster: Cluster, job: ScenarioJob, { node, of }: Drain, say: (text: string) => void) {
  for (const part of parts) {
    const on = (await nodesOf(job, part)).filter((name) => name === node).length
    const there = (await job.pods(part)).length
    if (on !== (of.includes(part) ? there : 0)) throw new Error(`${on} of ${there} ${part} pods are on ${node}`)
  }
  const before = await courseOf(job)
  const beganMs = performance.now()
  try {
    const said = await drained(cluster, job, node)
    for (const part of parts)
      await wait(`each ${part} to run elsewhere`, async () => {
        const pods = await job.pods(part)
        return (
          pods.length === (part === 'worker' ? 2 : 1) &&
          pods.every(({ spec, status }) => spec.nodeName !== node && status.phase === 'Running')
        )
      })
    await job.checkpoints(2)
    expectInOrder(of, before, await courseOf(job), said)
  } finally {
    await cluster.kubectl(['uncordon', node])
  }
  await job.expectSound()
  say(`${node} drained of ${of.join(' and ')}: in order, after ${seconds(performance.now() - beganMs)}`)
}

function expectInOrder(of: readonly JobPart[], before: Course, after: Course, said: string): void {
  const told = `${JSON.stringify(before)} and then ${JSON.stringify(after)}`
  if (after.restarts !== before.restarts) throw new Error(`a drain counts as a restart: ${told}`)
  const codes = after.codes.slice(before.codes.length)
  const stayed = after.attempts.filter((attempt) => before.attempts.includes(attempt)).length
  const rise = after.incarnation - before.incarnation
  if (rise !== (of.includes('coordinator') ? 1 : 0)) throw new Error(`the incarnation rose by ${rise}: ${told}`)
  if (!of.includes('worker')) {
    if (codes.length > 0 || stayed !== after.attempts.length) throw new Error(`subtasks began again: ${told}`)
    return
  }
  if (stayed > 0) throw new Error(`${stayed} subtasks have not moved: ${told}`)
  // With its coordinator gone too, the next one may find subtasks behind a stop barrier that nobody completes: they begin at the checkpoint before.
  const orderly = of.includes('coordinator') ? ['MR-O27', 'MR-O29'] : ['MR-O27']
  if (codes.length === 0 || codes.some((code) => !orderly.includes(code ?? ''))) throw new Error(`no moves: ${told}`)
  if (!said.includes('disruption budget')) throw new Error(`both workers were let go at once; kubectl said: ${said}`)
}

/** The coordinator alone on a node: it is killed, and comes up where it may. */
async function moveCoordinator(cluster: Cluster, job: ScenarioJob, from: readonly string[]): Promise<void> {
  await withCordoned(cluster, from, async () => {
    await job.killPods('coordinator')
    await wait('the next coordinator to run', async () => {
      const pods = await job.pods('coordinator')
      return pods.length === 1 && pods.every(({ status }) => status.phase === 'Running')
    })
  })
  await job.checkpoints(1)
}

/** kubectl drain: of a node with all of the job, with its coordinator, with its workers. Its pods leave in order, and the job goes on elsewhere. */
export const scenario: Scenario = {
  name: 'node drained',
  core: false,
  run: (cluster, context) =>
    inWorld(cluster, context, 'drain', async ({ started }) => {
      const { say } = context
      const [one, other, ...more] = await sparedNodes(cluster)
      if (one === undefined || other === undefined) throw new Error('there are no two nodes that can be drained')
      const spec = { worker: onSparedNodes, coordinator: onSparedNodes }
      const aside = async (work: () => Promise<void>): Promise<void> =>
        more.length === 0 ? work() : withCordoned(cluster, more, work)
      await aside(async () => {
        const job = await withCordoned(cluster, [other], () => started({ spec }))
        await drainOf(cluster, job, { node: one, of: parts }, say)
        await moveCoordinator(cluster, job, [other])
        await drainOf(cluster, job, { node: one, of: ['coordinator'] }, say)
        await moveCoordinator(cluster, job, [other])
        await drainOf(cluster, job, { node: other, of: ['worker'] }, say)
        await job.expectExactToTheEnd()
        await job.remove()
      })
    }),
}
