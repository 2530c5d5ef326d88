// What the operator must do in any world, in memory or on a real API server: each is a test of both.

import { expect, it } from 'vitest'
import { FINALIZER } from '../contract.ts'
import type { KubeClient, KubeObject } from '../kubernetes/contract.ts'
import { types } from '../kubernetes/types.ts'
import { codeName, coordinatorName, workerName } from '../resources/names.ts'
import { codeHash } from '../revision.ts'
import { cuttingClient } from './operator-world.ts'
import type { OperatorWorld } from './operator-world.ts'

export interface ScenarioWorld {
  readonly world: OperatorWorld
  /** For operators, each with a connection of its own. */
  readonly client: () => KubeClient
  /** So long nothing is to be written in a settled world, ms. */
  readonly quietMs: number
}

/** Those of a StatefulSet carry the labels of its pods, and are not ours. */
const isRevision = (key: string): boolean => /^ControllerRevision\/.*-r\d+$/.test(key)

const jobFile = {
  'job.ts': "import { half } from './half.ts'\nexport default half\n",
  'half.ts': 'export const half = 1\n',
}

const codeIn = (namespace: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'code', namespace },
  data: jobFile,
})

export function operatorScenarios(newWorld: () => Promise<ScenarioWorld>, timeoutMs: number): void {
  const running = async (spec: Readonly<Record<string, unknown>> = {}) => {
    const made = await newWorld()
    const { world, client } = made
    await world.operate('first', { client: client() })
    const uid = await world.createJob('job', spec)
    await world.until('it runs', () => world.isSettled('job'))
    return { ...made, uid }
  }
  const scenario = (name: string, run: () => Promise<void>): void => it(name, run, timeoutMs)

  scenario('takes a job from nothing to running, and then writes nothing', async () => {
    const { world, client, quietMs } = await newWorld()
    const counted = cuttingClient(client(), Number.POSITIVE_INFINITY)
    await world.operate('first', { client: counted.client })
    const uid = await world.createJob('job', { parallelism: 2 })
    await world.until('it runs', () => world.isSettled('job'))
    expect(world.coordinators.starts).toMatchObject([{ uid, start: 1, from: 'empty' }])
    expect(await world.status('job')).toMatchObject({ start: 1, parallelism: 2, workers: 2, jobId: uid })
    expect(await world.condition('job', 'Ready')).toContain('True Running')
    // The last of the start may still be shown.
    await world.during(quietMs / 4)
    const before = counted.count()
    await world.during(quietMs)
    expect(counted.count() - before).toBe(0)
  })

  scenario('suspends and resumes at the restore point that status has', async () => {
    const { world, uid } = await running()
    await world.edit('job', { state: 'suspended' })
    await world.until('it is suspended', () => world.isSettled('job', 'SUSPENDED'))
    const { restorePoint } = (await world.status('job'))!
    expect(restorePoint).toMatchObject({ kind: 'checkpoint', start: 1, madeBy: 1 })
    await world.until('no pod is left', async () => (await world.owned(uid)).every((key) => !key.startsWith('Pod/')))
    await world.edit('job', { state: 'running' })
    await world.until('it runs again', () => world.isSettled('job'))
    expect(world.coordinators.starts).toMatchObject([{ start: 1 }, { start: 2, from: restorePoint?.path }])
  })

  scenario('upgrades at the newest checkpoint, tried out by a preflight pod; old revisions go', async () => {
    const { world, uid } = await running()
    const before = (await world.status('job'))!
    await world.edit('job', { program: { args: { rows: 7 } } })
    await world.until(
      'it is upgraded',
      async () => (await world.isSettled('job')) && (await world.status('job'))!.start === 2,
    )
    const after = (await world.status('job'))!
    expect(after.revision).not.toBe(before.revision)
    expect(after.stableRevision).toBe(after.revision)
    expect(world.coordinators.starts).toMatchObject([{ start: 1 }, { start: 2, from: `s3://bucket/${uid}/chk-1` }])
    await world.until('only what runs is kept', async () => {
      const owned = await world.owned(uid)
      const of = (kind: string) => owned.filter((key) => key.startsWith(`${kind}/`)).length
      return owned.filter(isRevision).length === 1 && of('Pod') === 2 && of('ConfigMap') === 1
    })
  })

  scenario('a preflight that says no leaves the job as it is, with a condition', async () => {
    const { world } = await running()
    world.coordinators.preflight = 'no'
    await world.edit('job', { program: { args: { rows: 7 } } })
    await world.until('it is blocked', async () =>
      (await world.condition('job', 'UpgradeBlocked')).includes('True PreflightRefused'),
    )
    expect(await world.condition('job', 'UpgradeBlocked')).toContain('A uid is gone.')
    expect(world.coordinators.starts).toHaveLength(1)
    world.coordinators.preflight = 'yes'
    await world.edit('job', { program: { args: { rows: 8 } } })
    await world.until(
      'the next spec runs',
      async () => (await world.isSettled('job')) && (await world.status('job'))!.start === 2,
    )
  })

  scenario('upgrades by a savepoint, asked for once', async () => {
    const { world } = await running({ upgradeMode: 'savepoint' })
    await world.edit('job', { program: { args: { rows: 7 } } })
    await world.until(
      'it is upgraded',
      async () => (await world.isSettled('job')) && (await world.status('job'))!.start === 2,
    )
    expect(world.coordinators.starts[1]!.from).toContain('/savepoint-')
    const stops = world.coordinators.requests.filter(({ path }) => path === '/v1/stop')
    expect(new Set(stops.map(({ body }) => (body as { readonly request: string }).request)).size).toBe(1)
  })

  scenario('rescales in place: workers first where it grows, last where it shrinks', async () => {
    const { world } = await running({ parallelism: 2 })
    await world.edit('job', { parallelism: 3 })
    await world.until(
      'it has grown',
      async () => (await world.isSettled('job')) && (await world.status('job'))!.parallelism === 3,
    )
    await world.edit('job', { parallelism: 1 })
    await world.until('it has shrunk', async () => {
      const status = (await world.status('job'))!
      return (await world.isSettled('job')) && status.parallelism === 1 && status.workers === 1
    })
    expect(world.coordinators.starts).toHaveLength(1)
    expect(world.coordinators.requests.filter(({ path }) => path === '/v1/rescale').length).toBeGreaterThanOrEqual(2)
  })

  scenario('deletes: HEAD is closed as cancelled first, and nothing is left', async () => {
    const { world, uid } = await running()
    expect((await world.job('job'))!.metadata.finalizers).toContain(FINALIZER)
    await world.delete('job')
    await world.until('it is gone', async () => (await world.job('job')) === undefined)
    expect(world.coordinators.heads.get(uid)!.end).toBe('cancelled')
    await world.until('nothing is left', async () => (await world.owned(uid)).length === 0)
  })

  scenario('an invalid spec is a condition; the job runs on, and the next good spec recovers it (O9)', async () => {
    const { world } = await running()
    await world.edit('job', { storage: { checkpoints: 's3://elsewhere/jobs', s3: { credentialsSecret: 's3' } } })
    await world.until('it is told', async () =>
      (await world.condition('job', 'UpgradeBlocked')).includes('InvalidSpec'),
    )
    expect(await world.condition('job', 'UpgradeBlocked')).toContain('spec.storage.checkpoints')
    expect((await world.status('job'))!.phase).toBe('RUNNING')
    await world.edit('job', { storage: null })
    await world.until('it recovers', async () => (await world.condition('job', 'UpgradeBlocked')).startsWith('False'))
    expect(world.coordinators.starts).toHaveLength(1)
  })

  scenario('runs code of a ConfigMap with two files, copied; an edit of it is an upgrade', async () => {
    const { world, client } = await newWorld()
    const { namespace } = world.options
    const admin = world.options.client
    await world.operate('first', { client: client() })
    const uid = await world.createJob('job', { program: { module: { configMap: { name: 'code', key: 'job.ts' } } } })
    await world.until('it waits for its code', async () =>
      (await world.condition('job', 'UpgradeBlocked')).includes('CodeMissing'),
    )
    await admin.create(types.configMap, codeIn(namespace))
    await world.until('it runs', () => world.isSettled('job'))
    const owner = { namespace, name: 'job', uid }
    const copied = await admin.get(types.configMap, { namespace, name: codeName(owner, codeHash(jobFile)) })
    expect(copied).toMatchObject({ immutable: true, data: jobFile })
    await admin.patch(types.configMap, { namespace, name: 'code' }, { data: { 'half.ts': 'export const half = 2\n' } })
    await world.until(
      'it is upgraded',
      async () => (await world.isSettled('job')) && (await world.status('job'))!.start === 2,
    )
    await world.until('the old copy is gone', async () => {
      const maps = (await world.owned(uid)).filter((key) => key.includes('-code-'))
      return maps.length === 1
    })
  })

  scenario('comes on when each operator dies behind its first write that changes anything (O4)', async () => {
    const { world, client } = await newWorld()
    const { namespace, client: admin } = world.options
    await admin.create(types.configMap, codeIn(namespace))
    await world.createJob('job', { program: { module: { configMap: { name: 'code', key: 'job.ts' } } } })
    const cutsMax = 60
    const runs = async (start: number): Promise<boolean> =>
      (await world.isSettled('job')) && (await world.status('job'))!.start === start
    for (const start of [1, 2]) {
      let cuts = 0
      while (!(await runs(start))) {
        if (cuts > cutsMax) throw new Error(`it does not come on\n${await world.describe()}`)
        const cut = cuttingClient(client(), 'change')
        const mortal = await world.operate(`mortal-${start}-${cuts}`, { client: cut.client })
        await world.until('it is cut off, or the job runs', async () => cut.isCut() || (await runs(start)))
        cuts++
        cut.cut()
        await mortal.stop()
        await forgetLease(world)
      }
      // Where the job was to be started, and where it was to be upgraded.
      expect(cuts).toBeGreaterThan(14)
      if (start === 1)
        await admin.patch(
          types.configMap,
          { namespace, name: 'code' },
          { data: { 'half.ts': 'export const half = 2\n' } },
        )
    }
    expect(world.coordinators.starts.map(({ start }) => start)).toEqual([1, 2])
  })

  scenario('repairs what was deleted or edited, with the rendering of the revision (O10)', async () => {
    const { world, uid } = await running()
    const admin = world.options.client
    const { namespace } = world.options
    const owner = { namespace, name: 'job', uid }
    const service = { namespace, name: coordinatorName(owner) }
    const made = (await admin.get(types.service, service))!
    await admin.delete(types.service, service, { precondition: { uid: made.metadata.uid! } })
    await world.until('it is there again', async () => {
      const found = await admin.get(types.service, service)
      return found !== undefined && found.metadata.uid !== made.metadata.uid
    })
    const set = { namespace, name: workerName(owner) }
    await admin.patch(types.statefulSet, set, {
      spec: { replicas: 5 },
      metadata: { annotations: { 'of.others': 'stays' } },
    })
    await world.until('it has its size', async () => {
      const { spec } = (await admin.get(types.statefulSet, set)) as unknown as {
        readonly spec: { readonly replicas: number }
      }
      return spec.replicas === 1
    })
    expect((await admin.get(types.statefulSet, set))!.metadata.annotations).toMatchObject({ 'of.others': 'stays' })
  })

  scenario('leaves alone what is foreign, though it has the name of one of its objects (O2)', async () => {
    const { world, client } = await newWorld()
    const { namespace } = world.options
    const admin = world.options.client
    const uid = await world.createJob('job')
    const name = coordinatorName({ name: 'job', uid })
    const foreign = await admin.create(types.service, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace, name },
      spec: { ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }] },
    })
    await world.operate('first', { client: client() })
    await world.until('it is told', async () => (await world.condition('job', 'Stalled')).includes('ForeignObject'))
    const now = (await admin.get(types.service, { namespace, name }))!
    expect(now.metadata.resourceVersion).toBe(foreign.metadata.resourceVersion)
    await admin.delete(types.service, { namespace, name }, { precondition: { uid: foreign.metadata.uid! } })
    await world.until('it runs', () => world.isSettled('job'))
  })

  scenario("tells the coordinator of a worker pod's end at once", async () => {
    const { world, uid } = await running({ parallelism: 2 })
    const admin = world.options.client
    const { namespace } = world.options
    const name = `${workerName({ name: 'job', uid })}-0`
    const pod = (await admin.get(types.pod, { namespace, name }))!
    world.ignores = ({ metadata }) => metadata.name === name
    await admin.putStatus(types.pod, pod, { ...(pod['status'] as object), phase: 'Failed', reason: 'Evicted' })
    await world.until('it is told', () =>
      world.coordinators.requests.some(({ path }) => path === `/v1/workers/${name}/lost`),
    )
  })

  scenario('a status that somebody overtook is decided anew; foreign labels stay (O8)', async () => {
    const { world } = await running()
    const admin = world.options.client
    const { namespace } = world.options
    for (let edit = 0; edit < 5; edit++) {
      await world.edit('job', { program: { args: { edit } } })
      await admin.patch(types.streamJob, { namespace, name: 'job' }, { metadata: { labels: { mine: `v${edit}` } } })
    }
    await world.until('the last spec runs', async () => {
      const job = (await world.job('job'))!
      return (await world.isSettled('job')) && job.metadata.generation! >= 6 && (await world.status('job'))!.start >= 2
    })
    const job = (await world.job('job'))!
    expect(job.metadata.labels).toMatchObject({ mine: 'v4' })
    expect(job['spec']).toMatchObject({ program: { args: { edit: 4 } } })
  })

  scenario('takes, registers and disposes of savepoints', async () => {
    const { world } = await running()
    const admin = world.options.client
    const { namespace } = world.options
    const at = { namespace, name: 'mine' }
    await admin.create(types.savepoint, {
      apiVersion: types.savepoint.apiVersion,
      kind: types.savepoint.kind,
      metadata: at,
      spec: { job: { name: 'job' }, disposal: 'delete' },
    })
    const stateOf = async () =>
      ((await admin.get(types.savepoint, at))?.['status'] as { readonly state?: string; readonly path?: string }) ?? {}
    await world.until('it is taken', async () => (await stateOf()).state === 'completed')
    expect((await stateOf()).path).toContain('/savepoint-')
    // What it waited for is no more.
    expect(await stateOf()).not.toHaveProperty('detail')
    const made = (await admin.get(types.savepoint, at))!
    expect(made.metadata.finalizers).toContain(FINALIZER)
    await admin.delete(types.savepoint, at, { precondition: { uid: made.metadata.uid! } })
    await world.until('its files are gone', async () => (await admin.get(types.savepoint, at)) === undefined)
  })

  scenario('two operators at once: one leads, the other takes over, and one start is made (O17)', async () => {
    const { world, client } = await newWorld()
    const first = cuttingClient(client(), Number.POSITIVE_INFINITY)
    const operators = [
      await world.operate('first', { client: first.client }),
      await world.operate('second', { client: client() }),
    ]
    await world.createJob('job')
    await world.until('it runs', () => world.isSettled('job'))
    expect(operators.filter(({ leading }) => leading)).toHaveLength(1)
    await operators[0]!.stop()
    await world.edit('job', { program: { args: { rows: 7 } } })
    await world.until(
      'it is upgraded',
      async () => (await world.isSettled('job')) && (await world.status('job'))!.start === 2,
    )
    expect(operators[1]!.leading).toBe(true)
    expect(world.coordinators.starts.map(({ start }) => start)).toEqual([1, 2])
  })
}

/** One upgrade, its operator cut off behind write `after`; another one finishes it. Gives how many writes it takes when nobody is cut off. */
export async function upgradeCutAfter(
  { world, client }: ScenarioWorld,
  after: number,
): Promise<{ readonly writes: number; readonly wasCut: boolean }> {
  const calm = await world.operate('calm', { client: client() })
  const uid = await world.createJob('job', { upgradeMode: 'savepoint' })
  await world.until('it runs', () => world.isSettled('job'))
  await calm.stop()
  await world.edit('job', { program: { args: { rows: 7 } } })
  const isUpgraded = async (): Promise<boolean> =>
    (await world.isSettled('job')) && (await world.status('job'))!.start >= 2
  const cut = cuttingClient(client(), after)
  const victim = await world.operate('victim', { client: cut.client })
  await world.until('it is cut off, or done', async () => cut.isCut() || (await isUpgraded()))
  const wasCut = cut.isCut()
  cut.cut()
  await victim.stop()
  await forgetLease(world)
  await world.operate('heir', { client: client() })
  await world.until('it is upgraded', isUpgraded)
  await world.until('it is tidy', async () => {
    const owned = await world.owned(uid)
    return owned.filter((key) => key.startsWith('Pod/') || isRevision(key)).length === 3
  })
  // One stop, one start, at the savepoint that was taken for it.
  expect(world.coordinators.starts.map(({ start }) => start)).toEqual([1, 2])
  expect(world.coordinators.starts[1]!.from).toContain('/savepoint-')
  const stops = world.coordinators.requests.filter(({ path }) => path === '/v1/stop')
  expect(new Set(stops.map(({ body }) => (body as { readonly request: string }).request)).size).toBe(1)
  expect((await world.status('job'))!.stableRevision).toBe((await world.status('job'))!.revision)
  return { writes: cut.count(), wasCut }
}

/** Of an operator that was cut off: it would be waited for. */
async function forgetLease({ options: { namespace, client: admin } }: OperatorWorld): Promise<void> {
  const lease = await admin.get(types.lease, { namespace, name: 'millrace-operator' })
  if (lease !== undefined)
    await admin.delete(types.lease, lease.metadata, { precondition: { uid: lease.metadata.uid! } })
}
