import { describe, expect, it } from 'vitest'
import { decide } from './decide.ts'
import { actions, begins, condition, deeds, events, isQuiet, program, reaches, running, stay } from './decide-story.ts'
import { World } from './decide-world.ts'
import type { Spec } from './decide-world.ts'
import { childNameMax } from './revision-names.ts'

describe('a new job', () => {
  it('is written down, stored, and only then made; its first checkpoint makes it stable', () => {
    const world = new World({ savepointNonce: 5 })
    const seen: string[] = []
    world.run(() => {
      return isQuiet(world) && world.status?.phase === 'RUNNING'
    })
    for (const deed of world.deeds)
      if (deed.deed === 'record' && !/observed|progress/.test(deed.why)) seen.push(deed.why)
    expect(seen).toEqual([
      'the job was not seen before',
      'the job is new',
      'the revision is stored',
      'all children are there',
      'a checkpoint completed',
    ])
    expect(world.job!.finalizers).toEqual(['millrace.dev/operator'])
    expect(world.status).toMatchObject({
      version: 1,
      phase: 'RUNNING',
      start: 1,
      parallelism: 1,
      workers: 1,
      // What was there at creation asks for nothing.
      answered: { savepoint: 5 },
      stableRevision: world.status!.revision,
      timeline: [{ step: 'preparing' }, { step: 'starting' }, { step: 'stabilising' }],
    })
    expect(condition(world, 'Ready')).toMatchObject({ status: 'True', reason: 'Running' })
    for (const type of ['Progressing', 'Degraded', 'UpgradeBlocked', 'Reconciling', 'Stalled'] as const)
      expect(condition(world, type)).toMatchObject({ status: 'False' })
    expect(deeds(world, 'savepoint')).toEqual([])
  })

  it('that is suspended is not started', () => {
    const world = stay(new World({ state: 'suspended' }), 5)
    expect(world.status).toMatchObject({ phase: 'SUSPENDED', start: 0 })
    expect(world.revisions).toEqual([])
    world.edit({ state: 'running' })
    reaches(world, 'RUNNING', 1)
  })

  it('whose ConfigMap is not there waits, says so, and starts when it is', () => {
    const world = new World()
    const { code } = world
    world.code = { kind: 'missing', why: 'not found' }
    stay(world, 3)
    expect(world.status!.phase).toBe('PENDING')
    expect(condition(world, 'Stalled')).toEqual({
      status: 'True',
      reason: 'CodeMissing',
      message:
        "The ConfigMap code is not there: not found. Make it in the job's namespace, or mend spec.program.module.configMap.name.",
    })
    world.code = code
    reaches(world, 'RUNNING', 1)
  })

  it('begins at restoreFrom; with latest at the newest Savepoint of its name, and never from nothing instead', () => {
    const world = new World({ restoreFrom: 's3://other/savepoint-9' })
    reaches(world, 'RUNNING', 1)
    expect(begins(world)).toEqual([{ start: 1, from: 's3://other/savepoint-9' }])
    const latest = new World({ restoreFrom: 'latest' })
    stay(latest, 5)
    expect(latest.status!.start).toBe(0)
    expect(condition(latest, 'Stalled')).toMatchObject({ status: 'True', reason: 'RestoreFromNotFound' })
    latest.addSavepoint('a', { status: { state: 'completed', path: 's3://b/savepoint-1' } })
    latest.pass(1_000)
    latest.addSavepoint('b', { status: { state: 'completed', path: 's3://b/savepoint-2' } })
    latest.addSavepoint('c', { status: { state: 'failed' } })
    reaches(latest, 'RUNNING', 1)
    expect(begins(latest)).toEqual([{ start: 1, from: 's3://b/savepoint-2' }])
  })

  it.each([
    ['alone', {}, 's3://other/savepoint-8'],
    ['with another place', { restoreFrom: 's3://other/savepoint-9' }, 's3://other/savepoint-9'],
    ['and restoreFrom is taken out', { restoreFrom: undefined }, 'empty'],
  ])('begins at restoreFrom though its first start never came so far: the image is mended %s', (_, more, from) => {
    const world = new World({ restoreFrom: 's3://other/savepoint-8', program: { ...program, image: 'bad:1' } })
    stay(world, 20)
    expect(begins(world)).toEqual([])
    world.edit({ ...more, program: { ...program, image: 'good:1' } })
    reaches(world, 'RUNNING', 2)
    expect(begins(world)).toEqual([{ start: 2, from }])
  })

  it('that begins from nothing is told of what an earlier one of its name has left, once, and the newest first', () => {
    const told = (spec: Spec, ...left: readonly (readonly [name: string, createdAt: string, jobId: string])[]) => {
      const world = new World(spec)
      for (const [name, createdAt, jobId] of left) {
        const path = `s3://b/${name}`
        const origin = { jobId, image: 'millrace:1', storage: 's3://b' }
        world.addSavepoint(name, { createdAt, status: { state: 'completed', path, origin } })
      }
      reaches(world, 'RUNNING', 1)
      return deeds(world, 'event').flatMap(({ reason, message }) => (reason === 'EarlierNamesake' ? [message] : []))
    }
    const [older, newer] = [
      ['z', '2025-01-01T00:00:00Z', 'an-earlier-uid'],
      ['a', '2025-01-02T00:00:00Z', 'an-earlier-uid'],
    ] as const
    const rest = ' This one begins from nothing; to go on from there, make it anew with spec.restoreFrom.'
    expect(told({}, newer, older)).toEqual([
      `An earlier job of this name has left 2 Savepoints, the newest: a (s3://b/a).${rest}`,
    ])
    expect(told({}, older)).toEqual([`An earlier job of this name has left a Savepoint: z (s3://b/z).${rest}`])
    expect(told({ restoreFrom: 's3://b/z' }, older)).toEqual([])
    expect(told({}, ['mine', '2025-01-01T00:00:00Z', new World().observe().job.uid])).toEqual([])
    expect(told({})).toEqual([])
  })

  it('restored once more before it began is led to where its spec says then', () => {
    const world = running({ restoreFrom: 's3://other/savepoint-8' })
    world.edit({ restoreNonce: 1, program: { ...program, image: 'bad:1' } })
    world.run(() => world.status!.start === 2)
    world.edit({ restoreFrom: 'latest', restoreNonce: 2, program: { ...program, image: 'good:1' } })
    reaches(world, 'RUNNING', 3)
    expect(begins(world)).toEqual([{ start: 3, from: expect.stringContaining('chk-') }])
  })

  it('that was rolled back, and lost before it was, begins as the next edit says', () => {
    const world = running({ restoreFrom: 's3://other/savepoint-8', upgradeMode: 'stateless' })
    world.checkpointsStop = true
    world.edit({ logLevel: 'debug', rollback: { progressDeadline: '10s' } })
    world.run(() => world.status!.transition?.kind === 'rollback' && world.status!.transition.step === 'closed')
    world.storageIsDown = true
    stay(world, 10)
    expect(world.status!.begin).toMatchObject({ from: expect.stringContaining('chk-') })
    world.edit({ logLevel: 'warn' })
    world.storageIsDown = false
    world.checkpointsStop = false
    world.run(() => isQuiet(world) && world.status!.phase === 'RUNNING' && world.status!.start > 3)
    expect(begins(world).at(-1)!.from).toBe('empty')
  })

  it('gets as many workers as its graph needs, which may have several slot-sharing groups', () => {
    const world = new World({ parallelism: 2, worker: { slots: 3 } })
    world.slotsPerSize = 2
    reaches(world, 'RUNNING', 1)
    expect(world.status).toMatchObject({ parallelism: 2, workers: 2 })
    world.edit({ program: { ...program, image: 'good:2' } })
    reaches(world, 'RUNNING', 2)
    expect(world.status).toMatchObject({ parallelism: 2, workers: 2 })
  })

  it('whose image is bad is told of the reason of the kubelet, and goes on when the spec is mended', () => {
    const world = new World({ program: { ...program, image: 'bad:1' }, rollback: { progressDeadline: '20s' } })
    stay(world, 10)
    expect(condition(world, 'Degraded')).toMatchObject({ status: 'True', reason: 'ImagePullBackOff' })
    stay(world, 20)
    expect(condition(world, 'Stalled')).toMatchObject({
      status: 'True',
      reason: 'ProgressDeadlineExceeded',
      message: 'ImagePullBackOff: no such image. It is still tried; mend what is named, or change the spec.',
    })
    // Nothing is stable that it could go back to.
    expect(world.status!.start).toBe(1)
    world.edit({ program: { ...program, image: 'good:1' } })
    reaches(world, 'RUNNING', 2)
    expect(begins(world)).toEqual([{ start: 2, from: 'empty' }])
  })
})

describe('a running job', () => {
  it('is looked at more often while its subtasks are being started', () => {
    const observed = running().observe()
    if (!observed.coordinator.known) throw new Error('nobody answers')
    const { value } = observed.coordinator
    expect(decide(observed)).toMatchObject({ kind: 'wait', forMs: 10_000 })
    const restarting = { ...observed, coordinator: { known: true, value: { ...value, state: 'restarting' } } } as const
    const told = decide(restarting)
    if (told.kind !== 'record') throw new Error(`it is not told, but: ${told.why}`)
    expect(told.status.phase).toBe('RESTARTING')
    expect(decide({ ...restarting, status: told.status })).toMatchObject({ kind: 'wait', forMs: 1_000 })
  })

  it('is not written to while nothing changes, and once in 30 s for its checkpoints', () => {
    const world = running()
    stay(world, 60)
    const { writes } = world
    world.checkpointsStop = true
    stay(world, 300)
    expect(world.writes - writes).toBeLessThanOrEqual(1)
    const before = world.writes
    world.checkpointsStop = false
    stay(world, 300)
    expect(world.writes - before).toBeGreaterThanOrEqual(8)
    expect(world.writes - before).toBeLessThanOrEqual(11)
  })

  it('has its children repaired to the rendering of its revision, not to that of today', () => {
    const world = running()
    world.builder = 'b2'
    world.operatorVersion = '1.1.0'
    stay(world, 30)
    expect(deeds(world, 'took down')).toEqual([])
    expect(world.decide().kind).toBe('wait')
    const edited = world.children.get('Service/coordinator')!
    world.children.set('Service/coordinator', { ...edited, asRendered: false })
    expect(world.decide()).toMatchObject({
      kind: 'act',
      actions: [
        { type: 'applyChildren', revision: world.status!.revision, start: 1, workers: 1, begin: { parallelism: 1 } },
      ],
    })
    for (const key of world.children.keys().toArray()) {
      world.children.delete(key)
      expect(actions(world.decide())).toEqual(['applyChildren'])
      stay(world, 20)
      expect(isQuiet(world)).toBe(true)
    }
    expect(world.status!.start).toBe(1)
  })

  it('of a runtime that this operator does not know is left alone, with a condition', () => {
    const world = running()
    world.operatorVersion = '1.2.0'
    world.children.delete('Service/coordinator')
    stay(world, 3)
    expect(world.children.has('Service/coordinator')).toBe(false)
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'UnsupportedRuntime' })
  })

  it('with a status of a newer operator is left alone', () => {
    const world = running()
    world.status = { ...world.status!, version: 2 as 1 }
    world.editCode('v2')
    world.children.clear()
    expect(world.decide()).toMatchObject({ kind: 'wait' })
  })

  it('leaves alone what is foreign and has a name of its own, and says which', () => {
    const world = running()
    world.children.delete('Service/coordinator')
    world.addForeign('Service/coordinator')
    stay(world, 5)
    expect(world.decide().kind).toBe('wait')
    expect(condition(world, 'Stalled')).toEqual({
      status: 'True',
      reason: 'ForeignObject',
      message:
        "Service/coordinator has the name of one of the job's objects and is not the job's; it is left alone. Delete or rename it.",
    })
    expect(deeds(world, 'touched foreign')).toEqual([])
  })

  it('is told at once of a worker pod that is gone or has failed, once', () => {
    const world = running({ parallelism: 2 })
    const observed = world.observe()
    const lost = (more: Partial<typeof observed>) => {
      const decision = decide({ ...observed, ...more })
      return decision.kind === 'act' ? decision.actions : []
    }
    const vanished = { name: 'worker-1', uid: 'u1', reason: 'evicted' }
    const pods = observed.pods.filter(({ name }) => name !== 'worker-1')
    expect(lost({ lostWorkers: [vanished], pods })).toMatchObject([
      { type: 'request', request: { type: 'lost', start: 1, worker: 'worker-1', reason: 'evicted' } },
    ])
    // It is back, or the coordinator knows, or knows no such worker.
    expect(lost({ lostWorkers: [vanished] })).toEqual([])
    expect(lost({ lostWorkers: [{ name: 'worker-9', uid: 'u9', reason: 'evicted' }], pods })).toEqual([])
    const failed = observed.pods.map((pod) => (pod.name === 'worker-1' ? { ...pod, phase: 'Failed' as const } : pod))
    expect(lost({ pods: failed })).toMatchObject([{ request: { worker: 'worker-1', reason: 'its pod is Failed' } }])
    // An absent pod that nobody has seen go may not have reached the cache yet.
    expect(lost({ pods })).toEqual([])
  })

  it('is told of each worker pod that goes, once: the next pod of the name may go too, while its coordinator is the same', () => {
    const world = running()
    const observed = world.observe()
    const told = (more: Partial<typeof observed>) => {
      const decision = decide({ ...observed, ...more })
      return decision.kind === 'act'
        ? decision.actions.flatMap((action) => (action.type === 'request' ? [action.request.request] : []))
        : []
    }
    const pods = observed.pods.filter(({ component }) => component !== 'worker')
    const [worker] = observed.pods.filter(({ component }) => component === 'worker')
    const gone = (uid: string) => told({ pods, lostWorkers: [{ name: worker!.name, uid, reason: 'its pod is gone' }] })
    const failed = (uid: string) => told({ pods: [...pods, { ...worker!, uid, phase: 'Failed' }] })
    const first = '11111111-aaaa-4000-8000-000000000000'
    const next = '22222222-bbbb-4000-8000-000000000000'
    expect(gone(first)).toHaveLength(1)
    // Its end was seen before it went: that is one loss.
    expect(failed(first)).toEqual(gone(first))
    expect(gone(next)).not.toEqual(gone(first))
    expect(failed(next)).toEqual(gone(next))
  })

  it('of the longest name is told of by requests that say which pod and which coordinator are meant', () => {
    const observed = running().observe()
    const coordinator = observed.coordinator
    if (!coordinator.known) throw new Error('nobody answers')
    const name = `${'a'.repeat(childNameMax)}-12`
    const request = (uid: string, incarnation: number): string => {
      const workers = [{ name, state: 'registered' }] as const
      const decision = decide({
        ...observed,
        coordinator: { known: true, value: { ...coordinator.value, incarnation, workers } },
        lostWorkers: [{ name, uid, reason: '' }],
      })
      if (decision.kind !== 'act') throw new Error(`nothing is told, but: ${decision.why}`)
      const [action] = decision.actions
      return action?.type === 'request' ? action.request.request : ''
    }
    const requests = [request('11111111-a', 1), request('22222222-b', 1), request('11111111-a', 234_567)]
    expect(new Set(requests).size).toBe(3)
    for (const each of requests) expect(each).toMatch(/^[A-Za-z0-9._=-]{1,64}$/)
  })

  it('has a pod that is 30 s past its grace taken away by force, not earlier', () => {
    const world = running()
    const pod = world.pods.find(({ fact }) => fact.component === 'worker')!
    pod.fact = { ...pod.fact, deletingSince: new Date(world.nowMs).toISOString(), graceSeconds: 30, nodeLost: true }
    world.lostWorkers = []
    world.nowMs += 59_000
    const forced = () => {
      const decision = world.decide()
      return decision.kind === 'act' && decision.actions.some((action) => action.type === 'delete' && action.force)
    }
    expect(forced()).toBe(false)
    world.nowMs += 1_000
    expect(forced()).toBe(true)
  })

  it('has one that is being deleted on a node that does not answer taken away by force at once', () => {
    const world = running()
    const pod = world.pods.find(({ fact }) => fact.component === 'worker')!
    pod.fact = { ...pod.fact, nodeLost: true, nodeSilent: true }
    world.lostWorkers = []
    const forced = () => {
      const decision = world.decide()
      return decision.kind === 'act' ? decision.actions.filter((action) => action.type === 'delete') : []
    }
    // Until Kubernetes gives it up, it may come back.
    expect(forced()).toEqual([])
    pod.fact = { ...pod.fact, deletingSince: new Date(world.nowMs).toISOString(), graceSeconds: 30 }
    expect(forced()).toEqual([{ type: 'delete', of: pod.fact, force: true }])
  })

  it.each<[string, (world: World) => void]>([
    ['an upgrade', (world) => world.edit({ logLevel: 'debug' })],
    ['a suspension', (world) => world.edit({ state: 'suspended' })],
    ['a deletion', (world) => world.delete()],
  ])('goes on with %s beside a pod that may not be taken away by force, and says so', (_, change) => {
    const world = running({ parallelism: 2 })
    const [stuck, next] = world.pods.filter(({ fact }) => fact.component === 'worker')
    const deletingSince = new Date(world.nowMs).toISOString()
    for (const pod of [stuck!, next!])
      pod.fact = { ...pod.fact, nodeLost: true, nodeSilent: true, deletingSince, graceSeconds: 30 }
    world.refusedPods.set(stuck!.fact.uid, '403 Forbidden: no force')
    // That the one is refused says nothing of the other.
    expect(world.decide()).toMatchObject({ kind: 'act', actions: [{ type: 'delete', of: next!.fact, force: true }] })
    change(world)
    world.run(() => world.status!.transition?.step === 'closed' && world.head!.end !== 'none')
    expect(condition(world, 'Degraded')).toMatchObject({ status: 'True', reason: 'ActRefused' })
    expect(condition(world, 'Degraded').message).toContain(`${stuck!.fact.name}, which its node does not end`)
    world.refusedPods.clear()
    expect(world.decide()).toMatchObject({ kind: 'act', actions: [{ type: 'delete', of: stuck!.fact, force: true }] })
  })

  it('by a spec that is not valid any more goes on by the last that was, and takes the next good one', () => {
    const world = running({ parallelism: 2 })
    world.edit({ parallelism: 0 })
    stay(world, 20)
    expect(world.status).toMatchObject({ phase: 'RUNNING', start: 1, parallelism: 2 })
    expect(condition(world, 'UpgradeBlocked')).toEqual({
      status: 'True',
      reason: 'InvalidSpec',
      message: 'spec.parallelism is 0; it must be at least 1. The job runs on by the last spec that was good.',
    })
    // Its children are still looked after.
    world.children.delete('Service/coordinator')
    stay(world, 3)
    expect(world.children.has('Service/coordinator')).toBe(true)
    world.edit({ parallelism: 2, logLevel: 'debug' })
    reaches(world, 'RUNNING', 2)
    expect(condition(world, 'UpgradeBlocked')).toMatchObject({ status: 'False' })
  })

  it.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ['size', { parallelism: 2 }, { parallelism: 3 }],
    ['restartNonce', { restartNonce: 1 }, { restartNonce: 2 }],
    ['ttlAfterFinished', { ttlAfterFinished: '1s' }, { ttlAfterFinished: '1h' }],
    ['schedule of savepoints', { savepoints: { every: '5s' } }, { savepoints: undefined }],
  ])('by a spec that is not valid any more keeps to its last %s, not to that of its revision', (_, first, last) => {
    const world = running(first)
    world.edit(last)
    world.run(() => isQuiet(world) && world.status!.phase === 'RUNNING')
    const { start } = world.status!
    const savepoints = world.savepoints.length
    world.edit({ maxParallelism: 1, parallelism: 7 })
    expect(world.observe().spec.fits).toBe(false)
    stay(world, 30)
    expect(world.status).toMatchObject({ phase: 'RUNNING', start, parallelism: last['parallelism'] ?? 1 })
    expect(world.savepoints).toHaveLength(savepoints)
    world.endOfInput = true
    stay(world, 30)
    expect(world.job).toBeDefined()
    expect(world.status!.phase).toBe('FINISHED')
  })

  it('that is suspended stays so when its spec is not valid any more, also with a status that was lost', () => {
    const world = running()
    world.edit({ state: 'suspended' })
    world.run(() => isQuiet(world) && world.status!.phase === 'SUSPENDED')
    world.edit({ state: 'suspended', parallelism: 0 })
    stay(world, 20)
    expect(world.status).toMatchObject({ phase: 'SUSPENDED', start: 1 })
    world.status = undefined
    world.run(() => isQuiet(world))
    stay(world, 20)
    expect(world.status).toMatchObject({ phase: 'SUSPENDED', start: 1 })
    expect(world.status!.settings).toBeUndefined()
  })

  it('keeps its code when the ConfigMap goes or grows too large', () => {
    const world = running()
    for (const code of [
      { kind: 'missing', why: 'not found' },
      { kind: 'too large', bytes: 2_000_000 },
    ] as const) {
      world.code = code
      stay(world, 20)
      expect(world.status).toMatchObject({ phase: 'RUNNING', start: 1 })
      expect(condition(world, 'UpgradeBlocked').reason).toBe(code.kind === 'missing' ? 'CodeMissing' : 'CodeTooLarge')
    }
    world.editCode('v2')
    reaches(world, 'RUNNING', 2)
  })

  it('that somebody stopped goes on where it stopped', () => {
    const world = running()
    world.head!.end = 'suspended'
    reaches(world, 'RUNNING', 2)
    expect(events(world)).toContain('StoppedElsewhere')
  })

  it('does not trust a status that is behind HEAD', () => {
    const world = running()
    world.edit({ restartNonce: 1 })
    const old = world.status!
    reaches(world, 'RUNNING', 2)
    world.status = old
    world.edit({ restartNonce: 2 })
    reaches(world, 'RUNNING', 3)
    expect(begins(world).map(({ start }) => start)).toEqual([2, 3])
  })
})
