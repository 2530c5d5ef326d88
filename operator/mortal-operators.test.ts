// Every transition of a job by operators of which each dies behind its first write that changes anything (scenarios.md O4): each write is the last
// of one of them. e2e does the same on a cluster.

import { afterEach, expect, it } from 'vitest'
import type { StreamJobStatus } from './contract.ts'
import { MemoryApi } from './harness/memory-api.ts'
import { cuttingClient, fastClock, OperatorWorld } from './harness/operator-world.ts'
import { types } from './kubernetes/types.ts'

const namespace = 'n'
const cutsMax = 150
/** Writes that a transition cannot do without, or so; status is refreshed on the way besides. */
const cutsMin = {
  'first start': 14,
  'savepoint upgrade': 14,
  'last-state upgrade': 13,
  'edit of the ConfigMap': 14,
  rollback: 24,
  'restart by nonce': 9,
  rescale: 4,
  suspension: 4,
  resumption: 7,
  'Savepoint object': 3,
  disposal: 2,
  deletion: 7,
} as const

const worlds: OperatorWorld[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

function newWorld() {
  const clock = fastClock(20)
  const api = new MemoryApi(() => clock.wallMs())
  const world = new OperatorWorld({ client: api.client(), clock, makesPods: true, namespace, deadlineMs: 15_000 })
  worlds.push(world)
  return { api, world }
}

/** Resolves with how many died. */
async function byMortals(
  { api, world }: ReturnType<typeof newWorld>,
  isDone: () => boolean | Promise<boolean>,
): Promise<number> {
  let cuts = 0
  while (!(await isDone())) {
    if (cuts > cutsMax) throw new Error(`it does not come on\n${await world.describe()}`)
    const cut = cuttingClient(api.client(), 'change')
    const mortal = await world.operate(`mortal-${cuts}`, { client: cut.client })
    await world.until('it is cut off, or all is done', async () => cut.isCut() || (await isDone()))
    if (cut.isCut()) cuts++
    cut.cut()
    await mortal.stop()
    // Of an operator that was cut off: it would be waited for.
    const lease = api.find(types.lease, namespace, 'millrace-operator')
    if (lease !== undefined)
      await world.options.client.delete(types.lease, lease.metadata, { precondition: { uid: lease.metadata.uid! } })
  }
  return cuts
}

it('a job comes through each of its transitions when each operator dies behind its first write that changes anything (O4)', async () => {
  const made = newWorld()
  const { api, world } = made
  const { client } = world.options
  const code = { namespace, name: 'code' }
  await client.create(types.namespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
  await client.create(types.configMap, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: code,
    data: { 'job.ts': 'export default 1\n' },
  })
  const edit = (text: string) => client.patch(types.configMap, code, { data: { 'job.ts': text } })
  const status = async (): Promise<StreamJobStatus> => (await world.status('job'))!
  const settled =
    (fits: (now: StreamJobStatus) => boolean, phase: StreamJobStatus['phase'] = 'RUNNING') =>
    async (): Promise<boolean> =>
      (await world.isSettled('job', phase)) && fits(await status())
  const stableAt = (start: number) => settled((now) => now.start === start && now.revision === now.stableRevision)
  const { apiVersion, kind } = types.savepoint
  const place = { namespace, name: 'mine' }
  const savepointState = (): unknown =>
    (api.find(types.savepoint, namespace, 'mine')?.['status'] as { readonly state?: string } | undefined)?.state

  const uid = await world.createJob('job', {
    program: { module: { configMap: { name: 'code', key: 'job.ts' } } },
    rollback: { enabled: true, progressDeadline: '20s' },
    deletion: { savepoint: true, deadline: '10m' },
  })
  const cuts: Partial<Record<keyof typeof cutsMin, number>> = {}
  const through = async (what: keyof typeof cutsMin, isDone: () => boolean | Promise<boolean>): Promise<void> => {
    cuts[what] = await byMortals(made, isDone)
  }
  await through('first start', stableAt(1))
  await world.edit('job', { upgradeMode: 'savepoint', logLevel: 'debug' })
  await through('savepoint upgrade', stableAt(2))
  await world.edit('job', { upgradeMode: 'last-state', logLevel: 'info' })
  await through('last-state upgrade', stableAt(3))
  await edit('export default 2\n')
  await through('edit of the ConfigMap', stableAt(4))

  const { revision } = await status()
  world.coordinators.completes = (_, start) => start !== 5
  await edit('export default 3\n')
  await through('rollback', async () => (await stableAt(6)()) && (await status()).revision === revision)
  expect(await world.condition('job', 'UpgradeBlocked')).toContain('True RolledBack')

  await edit('export default 2\n')
  await world.edit('job', { restartNonce: 1 })
  await through('restart by nonce', stableAt(7))
  await world.edit('job', { parallelism: 3 })
  await through(
    'rescale',
    settled((now) => now.parallelism === 3),
  )
  await world.edit('job', { state: 'suspended' })
  await through(
    'suspension',
    settled(() => true, 'SUSPENDED'),
  )
  await world.edit('job', { state: 'running' })
  await through('resumption', stableAt(8))
  await client.create(types.savepoint, {
    apiVersion,
    kind,
    metadata: place,
    spec: { job: { name: 'job' }, disposal: 'delete' },
  })
  await through('Savepoint object', () => savepointState() === 'completed')
  const { metadata } = api.find(types.savepoint, namespace, 'mine')!
  await client.delete(types.savepoint, place, { precondition: { uid: metadata.uid! } })
  await through('disposal', () => api.find(types.savepoint, namespace, 'mine') === undefined)
  await world.delete('job')
  await through('deletion', async () => (await world.job('job')) === undefined)

  expect(world.coordinators.starts.map(({ start }) => start)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  expect(world.coordinators.heads.get(uid)!.end).toBe('cancelled')
  // Each was asked for once, by whomever: stops of the savepoint upgrade and of the deletion, and the Savepoint.
  const requestsOf = (path: string): number =>
    new Set(
      world.coordinators.requests
        .filter((request) => request.path === path)
        .map(({ body }) => (body as { readonly request: string }).request),
    ).size
  expect([requestsOf('/v1/stop'), requestsOf('/v1/savepoints')]).toEqual([2, 1])
  expect(api.all(types.savepoint).map(({ metadata: { name } }) => name)).toEqual([expect.stringMatching(/-last$/)])
  const tooFew = Object.entries(cutsMin).filter(([what, least]) => !(cuts[what as keyof typeof cutsMin]! >= least))
  expect(tooFew, JSON.stringify(cuts)).toEqual([])
}, 60_000)
