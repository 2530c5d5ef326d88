import { afterEach, describe, expect, it } from 'vitest'
import { FINALIZER } from './contract.ts'
import { MemoryApi } from './harness/memory-api.ts'
import { fastClock, OperatorWorld, testConfig } from './harness/operator-world.ts'
import { operatorScenarios, upgradeCutAfter } from './harness/scenarios.ts'
import { KubeError } from './kubernetes/contract.ts'
import type { KubeClient, ResourceType } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'
import { secretObject } from './nats-access.ts'
import { newNatsKeys } from './nats-credentials.ts'
import { componentLabel } from './resources/labels.ts'
import { codeName } from './resources/names.ts'
import { codeHash, revisionName } from './revision.ts'

const worlds: OperatorWorld[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

function newWorld(config = testConfig) {
  const clock = fastClock(20)
  const api = new MemoryApi(() => clock.wallMs())
  const client = api.client()
  const world = new OperatorWorld({ client, clock, makesPods: true, namespace: 'n', deadlineMs: 15_000, config })
  worlds.push(world)
  return { api, world, clock, client: () => api.client(), quietMs: 1_000 }
}

const isShort = (key: string): boolean => /-preflight-|-close-/.test(key)

/** From write `n` on everything waits, the lease too: as a process that stands still. */
function holdingClient(inner: KubeClient) {
  let left = Number.POSITIVE_INFINITY
  let isHolding = false
  let wasHeld = false
  const gate = Promise.withResolvers<void>()
  const held = async <Value>(kind: string, send: () => Promise<Value>): Promise<Value> => {
    if (kind !== 'Lease' && kind !== 'Event' && --left <= 0) isHolding = wasHeld = true
    if (isHolding) await gate.promise
    return send()
  }
  const client: KubeClient = {
    ...inner,
    create: (type, object) => held(type.kind, () => inner.create(type, object)),
    apply: (type, object, options) => held(type.kind, () => inner.apply(type, object, options)),
    patch: (type, at, patch) => held(type.kind, () => inner.patch(type, at, patch)),
    putStatus: (type, object, status) => held(type.kind, () => inner.putStatus(type, object, status)),
    delete: (type, at, options) => held(type.kind, () => inner.delete(type, at, options)),
  }
  return {
    client,
    holdFrom: (n: number) => {
      left = n
    },
    isHolding: () => isHolding,
    wasHeld: () => wasHeld,
    release: () => {
      isHolding = false
      gate.resolve()
    },
  }
}

/** Whose list and watch show no ControllerRevision; who asks for one by its name is not answered at first. */
function blindClient(inner: KubeClient) {
  const isHidden = ({ kind }: ResourceType): boolean => kind === 'ControllerRevision'
  let asked = 0
  let answers = false
  const client: KubeClient = {
    ...inner,
    get: async (type, at, options) => {
      if (isHidden(type)) asked++
      if (isHidden(type) && !answers) throw new KubeError(503, 'ServiceUnavailable', 'try again')
      return inner.get(type, at, options)
    },
    list: async (type, options) => {
      const listed = await inner.list(type, options)
      return isHidden(type) ? { ...listed, items: [] } : listed
    },
    watch: (type, options, onEvent) => inner.watch(type, options, isHidden(type) ? () => undefined : onEvent),
  }
  return { client, asked: () => asked, answer: () => void (answers = true) }
}

describe('the operator in a world in memory', () => {
  operatorScenarios(async () => newWorld(), 40_000)

  it('comes to the same end wherever in an upgrade it was killed (O4)', { timeout: 200_000 }, async () => {
    const whole = await upgradeCutAfter(newWorld(), Number.POSITIVE_INFINITY)
    expect(whole.wasCut).toBe(false)
    expect(whole.writes).toBeGreaterThan(8)
    for (let after = 1; after <= whole.writes; after++) {
      const { wasCut } = await upgradeCutAfter(newWorld(), after)
      for (const world of worlds.splice(0)) await world.close()
      // Without events of the watch in between, some looks are saved: the last may not come.
      if (after <= 8) expect(wasCut, `cut after ${after}`).toBe(true)
    }
  })

  it('makes nothing twice while its caches do not show what it has written (O2)', async () => {
    const { api, world } = newWorld()
    const operator = await world.operate('first', { client: api.client() })
    await world.createJob('job')
    await world.until('it is seen', async () => (await world.status('job')) !== undefined)
    api.holdWatches()
    // With what it wrote itself it comes to where it needs to hear of others.
    await world.until('its children are made', () => api.all(types.statefulSet).length === 1)
    await world.during(300)
    const made = api.writes.filter(({ verb, kind }) => kind !== 'Event' && (verb === 'create' || verb === 'apply'))
    const byName = made.filter(({ kind }) => kind === 'StatefulSet' || kind === 'Deployment').map(({ name }) => name)
    expect(byName).toHaveLength(new Set(byName).size)
    // It knew all that it wrote: no write was refused for an old version.
    expect(await operator.metrics.text()).not.toContain('code="409"')
    api.releaseWatches()
    await world.until('it runs', () => world.isSettled('job'))
    expect(world.coordinators.starts).toHaveLength(1)
  })

  it('does not touch the namesake of a job that was deleted while nobody looked (O1)', async () => {
    const { api, world } = newWorld()
    const first = await world.operate('first', { client: api.client() })
    const old = await world.createJob('job')
    await world.until('it runs', () => world.isSettled('job'))
    await first.stop()
    const admin = world.options.client
    await world.delete('job')
    await admin.patch(types.streamJob, { namespace: 'n', name: 'job' }, { metadata: { finalizers: [] } })
    await world.until('it is gone', async () => (await world.job('job')) === undefined)
    const uid = await world.createJob('job')
    await world.operate('second', { client: api.client() })
    await world.until('the new one runs', () => world.isSettled('job'))
    expect(world.coordinators.starts.map((start) => start.uid)).toEqual([old, uid])
    expect((await world.job('job'))!.metadata).toMatchObject({ uid, finalizers: [FINALIZER] })
  })

  it(
    'a write that was held up while another operator took over changes nothing, whichever it was (O17)',
    { timeout: 120_000 },
    async () => {
      let heldUp = 0
      for (let held = 1; held <= 12; held++) {
        const { api, world } = newWorld()
        const slow = holdingClient(api.client())
        const first = await world.operate('first', { client: slow.client })
        const uid = await world.createJob('job')
        await world.until('it runs', () => world.isSettled('job'))
        slow.holdFrom(held)
        await world.edit('job', { program: { args: { rows: 7 } } })
        const isUpgraded = async () => (await world.isSettled('job')) && (await world.status('job'))!.start === 2
        await world.until('it is held up, or done', async () => slow.isHolding() || (await isUpgraded()))
        await world.operate('second', { client: api.client() })
        await world.until('it is upgraded', isUpgraded)
        await world.until('another leads', () => !first.leading)
        await world.until('it is tidy', async () => (await world.owned(uid)).filter(isShort).length === 0)
        const before = { job: await world.job('job'), owned: (await world.owned(uid)).toSorted() }
        slow.release()
        await world.during(100)
        // A pod that it was about to make may come, and goes again.
        await world.until('all is as before', async () => (await world.owned(uid)).filter(isShort).length === 0)
        expect({ job: await world.job('job'), owned: (await world.owned(uid)).toSorted() }, `${held}`).toEqual(before)
        expect(world.coordinators.starts.map(({ start }) => start)).toEqual([1, 2])
        if (slow.wasHeld()) heldUp++
        await world.close()
      }
      expect(heldUp).toBeGreaterThanOrEqual(8)
    },
  )

  it('asks for a revision that its caches do not show, and changes nothing until it is told', async () => {
    const { api, world } = newWorld()
    const first = await world.operate('first', { client: api.client() })
    await world.createJob('job', { upgradeMode: 'stateless' })
    await world.until('it runs', () => world.isSettled('job'))
    await first.stop()
    const blind = blindClient(api.client())
    await world.operate('second', { client: blind.client })
    await world.edit('job', { program: { args: { rows: 7 } } })
    await world.until('it says so', async () =>
      (await world.condition('job', 'Stalled')).startsWith('True RevisionUnknown'),
    )
    await world.during(300)
    expect(blind.asked()).toBeGreaterThan(0)
    // 20 s have passed in there, with many a look.
    expect(blind.asked()).toBeLessThan(15)
    expect((await world.status('job'))!.start).toBe(1)
    blind.answer()
    await world.until('it is upgraded', async () => (await world.status('job'))!.start === 2)
  })

  it("leaves a job whose revision was deleted where its state is, though the chart's storage is another now", async () => {
    const { api, world } = newWorld()
    const first = await world.operate('first', { client: api.client() })
    await world.createJob('job')
    await world.until('it runs', () => world.isSettled('job'))
    await first.stop()
    for (const { metadata } of api.all(types.controllerRevision)) {
      const at = { namespace: 'n', name: metadata.name }
      await world.options.client.delete(types.controllerRevision, at, { precondition: { uid: metadata.uid! } })
    }
    const storage = { checkpoints: 's3://another/jobs', s3: { credentialsSecret: 's3' } }
    const defaults = { ...testConfig.defaults, storage }
    await world.operate('second', { client: api.client(), config: { ...testConfig, defaults } })
    await world.edit('job', { restartNonce: 1 })
    const stalled = (): Promise<string> => world.condition('job', 'Stalled')
    await world.until('it says so', async () => (await stalled()).startsWith('True InvalidSpec'))
    expect(await stalled()).toContain('changes from s3://bucket/jobs to s3://another/jobs')
    expect((await world.status('job'))!.start).toBe(1)
    await world.edit('job', { storage: { checkpoints: 's3://bucket/jobs', s3: { credentialsSecret: 's3' } } })
    await world.until(
      'it has restarted',
      async () => (await world.isSettled('job')) && (await world.status('job'))!.start === 2,
    )
  })

  it('proves before an act that what it decided on is still so (O17)', async () => {
    const { api, world } = newWorld()
    await world.operate('first', { client: api.client() })
    await world.createJob('job')
    await world.until('it runs', () => world.isSettled('job'))
    // Its last write of status is too old to prove anything.
    await world.during(500)
    const [service] = api.all(types.service)
    const before = { writes: api.writes.length, version: (await world.job('job'))!.metadata.resourceVersion }
    const { namespace, name, uid } = service!.metadata
    const at = { namespace: namespace!, name }
    await world.options.client.delete(types.service, at, { precondition: { uid: uid! } })
    await world.until('it is there again', () => api.find(types.service, 'n', name) !== undefined)
    const writes = api.writes.slice(before.writes).map(({ verb, kind }) => `${verb} ${kind}`)
    expect(writes.slice(0, 3)).toEqual(['delete Service', 'status StreamJob', 'apply Service'])
    expect((await world.job('job'))!.metadata.resourceVersion).toBe(before.version)
  })

  it('stores the code that it has decided on, or decides again: it is edited in between', async () => {
    const { api, world } = newWorld()
    const inner = api.client()
    const at = { namespace: 'n', name: 'code' }
    const edit = (text: string) => world.options.client.patch(types.configMap, at, { data: { 'job.ts': text } })
    let reads = 0
    const copies: unknown[] = []
    await world.operate('first', {
      client: {
        ...inner,
        apply: (type, object, options) => {
          const { name } = object.metadata
          if (type === types.configMap && name.includes('-code-')) copies.push([name, object['data']])
          return inner.apply(type, object, options)
        },
        get: async (type, place, options) => {
          // The first is for the look, the second for the copy.
          if (type === types.configMap && place.name === 'code' && ++reads === 2) await edit('second')
          return inner.get(type, place, options)
        },
      },
    })
    await world.options.client.create(types.configMap, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: at,
      data: { 'job.ts': 'first' },
    })
    const uid = await world.createJob('job', { program: { module: { configMap: { name: 'code', key: 'job.ts' } } } })
    await world.until('it runs', () => world.isSettled('job'))
    const second = { 'job.ts': 'second' }
    expect(copies).toEqual([
      [codeName({ name: 'job', uid }, codeHash(second)), expect.objectContaining(second) as unknown],
    ])
  })

  it('hears of what happened while its watches were gone (O3)', async () => {
    const { api, world } = newWorld()
    await world.operate('first', { client: api.client() })
    await world.createJob('job')
    await world.until('it runs', () => world.isSettled('job'))
    api.holdWatches()
    await world.edit('job', { program: { args: { rows: 7 } } })
    api.expireWatches()
    api.releaseWatches()
    await world.until(
      'it is upgraded',
      async () => (await world.isSettled('job')) && (await world.status('job'))!.start === 2,
    )
  })

  it('ends a deletion at its deadline with everything broken, and says so (O7)', async () => {
    const { api, world } = newWorld()
    await world.operate('first', { client: api.client() })
    const uid = await world.createJob('job')
    await world.until('it runs', () => world.isSettled('job'))
    world.coordinators.isSilent = true
    world.ignores = () => true
    await world.delete('job')
    await world.until('it is gone', async () => (await world.job('job')) === undefined)
    const told = api.all(types.event).filter((event) => event['reason'] === 'DeletionIncomplete')
    expect(told).toHaveLength(1)
    expect(world.coordinators.heads.get(uid)!.end).toBe('none')
  })

  it('ends a deletion at its deadline without the right to write anything but the finalizer (O7)', async () => {
    const { api, world, clock } = newWorld()
    let isRevoked = false
    const client = api.client({
      before: ({ verb, kind }) => {
        if (isRevoked && verb !== 'patch' && kind !== 'Lease') throw new KubeError(403, 'Forbidden', 'not any more')
      },
    })
    await world.operate('first', { client })
    await world.createJob('job', { deletion: { deadline: '20s' } })
    await world.until('it runs', () => world.isSettled('job'))
    isRevoked = true
    await world.delete('job')
    const beganMs = clock.nowMs()
    await world.until('it is gone', async () => (await world.job('job')) === undefined)
    expect(clock.nowMs() - beganMs).toBeGreaterThan(15_000)
    // Some 22 s; this clock goes on while the machine does other things.
    expect(clock.nowMs() - beganMs).toBeLessThan(60_000)
  })

  it('names in a condition what the API server refuses, and takes it back once that is made', async () => {
    const { api, world } = newWorld()
    let isFull = true
    const client = api.client({
      before: ({ kind }) => {
        if (isFull && kind === 'StatefulSet') throw new KubeError(403, 'Forbidden', 'exceeded quota: pods')
      },
    })
    await world.operate('first', { client })
    await world.createJob('job')
    const degraded = (): Promise<string> => world.condition('job', 'Degraded')
    await world.until('it is told', async () => (await degraded()).startsWith('True ActRefused'))
    expect(await degraded()).toContain('exceeded quota: pods')
    isFull = false
    await world.until('it runs', () => world.isSettled('job'))
    await world.until('nothing is refused', async () => (await degraded()).startsWith('False'))
    expect(api.all(types.event).filter((event) => event['reason'] === 'ActionRefused').length).toBeGreaterThan(0)
  })

  it('goes on beside a pod that the API server does not let it take away by force, and tries that again', async () => {
    const { api, world, clock } = newWorld()
    let isForbidden = true
    const forcedMs: number[] = []
    const inner = api.client()
    const client: KubeClient = {
      ...inner,
      delete: async (type, at, options) => {
        if (options.gracePeriodSeconds === 0) forcedMs.push(clock.nowMs())
        if (isForbidden && options.gracePeriodSeconds === 0) throw new KubeError(403, 'Forbidden', 'by a policy')
        return inner.delete(type, at, options)
      },
    }
    await world.operate('first', { client })
    await world.createJob('job')
    await world.until('it runs', () => world.isSettled('job'))
    const worker = api.all(types.pod).find(({ metadata }) => metadata.labels?.[componentLabel] === 'worker')!
    const at = { namespace: 'n', name: worker.metadata.name }
    world.ignores = ({ metadata }) => metadata.uid === worker.metadata.uid
    const { uid } = worker.metadata
    await world.options.client.delete(types.pod, at, { precondition: { uid: uid! }, gracePeriodSeconds: 1 })
    await world.until('it is told', async () =>
      (await world.condition('job', 'Degraded')).startsWith('True ActRefused'),
    )
    await world.edit('job', { program: { args: { rows: 7 } } })
    await world.until(
      'HEAD is closed all the same',
      async () => (await world.status('job'))!.transition?.step === 'closed',
    )
    await world.until('it is tried again', () => forcedMs.length > 3)
    for (const [index, atMs] of forcedMs.slice(1).entries())
      expect(atMs - forcedMs[index]!).toBeGreaterThanOrEqual(10_000)
    isForbidden = false
    await world.until(
      'it is upgraded',
      async () => (await world.isSettled('job')) && (await world.status('job'))!.start === 2,
    )
  })

  it('says once why a pod cannot be taken away by force, though the word has other numbers each time', async () => {
    const { api, world } = newWorld()
    const inner = api.client()
    let tries = 0
    const client: KubeClient = {
      ...inner,
      delete: async (type, at, options) => {
        if (options.gracePeriodSeconds !== 0) return inner.delete(type, at, options)
        throw new KubeError(500, 'InternalError', `failed calling webhook: 10.0.0.1:${40_000 + tries++}: refused`)
      },
    }
    await world.operate('first', { client })
    await world.createJob('job')
    await world.until('it runs', () => world.isSettled('job'))
    const worker = api.all(types.pod).find(({ metadata }) => metadata.labels?.[componentLabel] === 'worker')!
    world.ignores = ({ metadata }) => metadata.uid === worker.metadata.uid
    const at = { namespace: 'n', name: worker.metadata.name }
    const precondition = { uid: worker.metadata.uid! }
    await world.options.client.delete(types.pod, at, { precondition, gracePeriodSeconds: 1 })
    const degraded = (): Promise<string> => world.condition('job', 'Degraded')
    await world.until('it is told', async () => (await degraded()).startsWith('True ActRefused'))
    const [said, first] = [await degraded(), tries]
    await world.until('it is tried again', () => tries >= first + 3)
    expect(await degraded()).toBe(said)
    expect(api.all(types.event).filter((event) => event['reason'] === 'ActionRefused')).toHaveLength(1)
  })

  it.each([
    [
      'a webhook that is down',
      (n: number) => new KubeError(500, 'InternalError', `failed calling webhook: :${n}: refused`),
    ],
    [
      'an API server that does not answer',
      (n: number) => Object.assign(new Error(`read ECONNRESET 10.0.0.1:${n}`), { code: 'ECONNRESET' }),
    ],
  ])(
    'names in a condition and in one event what fails twice in a row, and not what fails once: %s',
    async (_, error) => {
      const { api, world } = newWorld()
      let left = 1
      const client = api.client({
        before: ({ kind }) => {
          if (kind === 'StatefulSet' && left-- > 0) throw error(left)
        },
      })
      const told = () => api.all(types.event).filter((event) => event['reason'] === 'ActionRefused')
      const degraded = (): Promise<string> => world.condition('job', 'Degraded')
      await world.operate('first', { client })
      await world.createJob('job')
      await world.until('it runs', () => world.isSettled('job'))
      expect(told()).toEqual([])
      left = 1_000_000
      await world.edit('job', { parallelism: 2 })
      await world.until('it is told', async () => (await degraded()).startsWith('True ActRefused'))
      expect(await degraded()).toMatch(
        /refused, and tried again: .*(failed calling webhook|ECONNRESET).*look at the API server/,
      )
      const before = left
      await world.until('it is tried again', () => Promise.resolve(left < before - 2))
      expect(told()).toHaveLength(1)
      left = 0
      await world.until('it runs at its size', () => world.isSettled('job'))
      await world.until('nothing is refused', async () => (await degraded()).startsWith('False'))
    },
  )

  it('names the Secret without which no job can be made, and makes it once that is there', async () => {
    const natsAccess = { kind: 'signing key', secret: 'key', account: `A${'B'.repeat(55)}` } as const
    const { api, world } = newWorld({ ...testConfig, natsAccess })
    const degraded = (): Promise<string> => world.condition('job', 'Degraded')
    await world.operate('first', { client: api.client() })
    await world.createJob('job')
    await world.until('it is told', async () => (await degraded()).includes('Secret'))
    expect(await degraded()).toMatch(
      /^True ActRefused: .*MR-P05.*Secret \S+\/key has no account's signing key.*natsAccess/,
    )
    const seed = Buffer.from(newNatsKeys(0).signingSeed).toString('base64')
    await world.options.client.create(types.secret, secretObject('n', 'key', { seed }))
    await world.until('it runs', () => world.isSettled('job'))
    await world.until('nothing is refused', async () => (await degraded()).startsWith('False'))
  })

  it('names a Secret that the pods cannot begin without, with what to do, and takes it back once it is there', async () => {
    const { api, world } = newWorld()
    const user = world.options.client
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'n', name: 's3' } }
    await world.operate('first', { client: api.client() })
    // As the kubelet: containers are not created while a volume cannot be mounted.
    world.ignores = () => api.find(types.secret, 'n', 's3') === undefined
    await world.createJob('job')
    await world.until('its pods have nodes', async () => {
      const waiting = api.all(types.pod).filter(({ spec }) => (spec as { nodeName?: string }).nodeName === undefined)
      for (const { metadata } of waiting)
        await user.patch(types.pod, { namespace: 'n', name: metadata.name }, { spec: { nodeName: 'a' } })
      return (await world.condition('job', 'Degraded')).startsWith('True SecretMissing')
    })
    expect(await world.condition('job', 'Degraded')).toMatch(
      /^True SecretMissing: Pod \S+ does not run: namespace n has no Secret s3, which the pod needs; make it in that namespace, or name another in the spec$/,
    )
    await user.create(types.secret, secret)
    await world.until('it runs', () => world.isSettled('job'))
    expect(await world.condition('job', 'Degraded')).toContain('False')
  })

  it('says what a Savepoint of a job that never ran waits for, and takes it when the job runs', async () => {
    const { api, world } = newWorld()
    const stateOf = () => JSON.stringify(api.find(types.savepoint, 'n', 'mine')?.['status'] ?? {})
    await world.operate('first', { client: api.client() })
    await world.createJob('job', { state: 'suspended' })
    await world.until('it is suspended', () => world.isSettled('job', 'SUSPENDED'))
    const { apiVersion, kind } = types.savepoint
    const object = { apiVersion, kind, metadata: { namespace: 'n', name: 'mine' }, spec: { job: { name: 'job' } } }
    await world.options.client.create(types.savepoint, object)
    await world.until('it is told', () => /"pending".*spec\.state to running/.test(stateOf()))
    await world.edit('job', { state: 'running' })
    await world.until('it is taken', () => stateOf().includes('"completed"'))
  })

  describe('the files of a Savepoint that is to take them away', () => {
    const at = { namespace: 'n', name: 'mine' }
    async function withSavepoint(spec: object, prepare: (world: OperatorWorld) => void = () => undefined) {
      const { api, world } = newWorld()
      const user = world.options.client
      await user.create(types.namespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } })
      await world.operate('first', { client: api.client() })
      await world.createJob('job', { storage: { checkpoints: 's3://own', s3: { credentialsSecret: 's3' } } })
      await world.until('it runs', () => world.isSettled('job'))
      prepare(world)
      const { apiVersion, kind } = types.savepoint
      const savepoint = { apiVersion, kind, metadata: at, spec: { job: { name: 'job' }, disposal: 'delete', ...spec } }
      const { uid } = (await user.create(types.savepoint, savepoint)).metadata
      const remove = () => user.delete(types.savepoint, at, { precondition: { uid: uid! } })
      const isGone = () => api.find(types.savepoint, 'n', 'mine') === undefined
      const told = () =>
        api
          .all(types.event)
          .map(({ reason }) => reason)
          .filter((reason) => reason === 'Disposed' || reason === 'FilesLeft')
      return { world, api, remove, isGone, told }
    }

    it('go when it was registered by its path and its job, with a store of its own, is gone before it', async () => {
      const { world, api, remove, isGone, told } = await withSavepoint({ path: 's3://own/n/job/u/objects/savepoint-3' })
      const status = () => api.find(types.savepoint, 'n', 'mine')?.['status']
      await world.until('it is registered', () => status() !== undefined)
      await world.delete('job')
      await world.until('the job is gone', async () => (await world.job('job')) === undefined)
      await remove()
      await world.until('it is gone', isGone)
      expect(told()).toEqual(['Disposed'])
    })

    it('go when it is deleted while its job takes it', async () => {
      const { world, remove, isGone, told } = await withSavepoint({}, ({ coordinators }) => {
        coordinators.isSilent = true
      })
      await world.until('it is asked for', async () => (await world.status('job'))?.asked !== undefined)
      await remove()
      await world.during(200)
      world.coordinators.isSilent = false
      await world.until('it is gone', isGone)
      expect(told()).toEqual(['Disposed'])
    })
  })

  it('tells of each revision once that its jobs share credentials for NATS', async () => {
    const { api, world } = newWorld()
    await world.operate('first', { client: api.client() })
    await world.createJob('job')
    await world.until('it runs', () => world.isSettled('job'))
    const told = () => api.all(types.event).filter((event) => event['reason'] === 'SharedNatsCredentials')
    expect(told()).toHaveLength(1)
    expect(await world.condition('job', 'Isolated')).toContain('False SharedNatsCredentials')
    await world.edit('job', { program: { args: { rows: 7 } } })
    await world.until('it is upgraded', async () => (await world.status('job'))!.start === 2)
    expect(told()).toHaveLength(2)
  })

  it("names in a condition what has the name of a job's revision or pod, leaves it alone, and goes on when it is gone", async () => {
    const { api, world } = newWorld()
    const user = world.options.client
    const uid = await world.createJob('job')
    const name = revisionName({ name: 'job', uid }, 1)
    const { apiVersion, kind } = types.controllerRevision
    const stranger = { apiVersion, kind, metadata: { name, namespace: 'n' }, data: { of: 'somebody' }, revision: 1 }
    await user.create(types.controllerRevision, stranger)
    await world.operate('first', { client: api.client() })
    const degraded = (): Promise<string> => world.condition('job', 'Degraded')
    await world.until('it is told', async () => (await degraded()).startsWith('True ActRefused'))
    expect(await degraded()).toContain(`ControllerRevision n/${name}. Delete or rename it`)
    expect(api.find(types.controllerRevision, 'n', name)).toMatchObject({ data: { of: 'somebody' } })
    const { metadata } = api.find(types.controllerRevision, 'n', name)!
    await user.delete(types.controllerRevision, { namespace: 'n', name }, { precondition: { uid: metadata.uid! } })
    await world.until('it runs', () => world.isSettled('job'))
  })

  it('an operator whose lease another holds writes nothing any more, at once', async () => {
    const { api, world } = newWorld()
    const operator = await world.operate('first', { client: api.client() })
    await world.createJob('job')
    await world.until('it runs', () => world.isSettled('job'))
    const admin = world.options.client
    const place = { namespace: 'n', name: 'millrace-operator' }
    await world.until('the lease is taken from it', async () => {
      const lease = (await admin.get(types.lease, place))!
      await admin.patch(types.lease, place, { spec: { ...(lease['spec'] as object), holderIdentity: 'another' } })
      return !operator.leading
    })
    const before = api.writes.length
    await world.edit('job', { program: { args: { rows: 7 } } })
    await world.during(300)
    const after = api.writes.slice(before).filter(({ kind }) => kind !== 'Pod')
    expect(after).toEqual([{ verb: 'patch', kind: 'StreamJob', name: 'job' }])
  })
})
