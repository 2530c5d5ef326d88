import { describe, expect, it } from 'vitest'
import type { CoordinatorFact } from './contract.ts'
import { FINALIZER } from './contract.ts'
import { decideRequests } from './decide-requests.ts'
import { uid } from './decide-world-cluster.ts'
import { childName } from './revision-names.ts'
import { deeds, events, reaches, running, stay } from './decide-story.ts'

describe('a snapshot that is asked for', () => {
  it('by nonces is answered once each, one at a time', () => {
    const world = running()
    world.edit({ savepointNonce: 1 })
    world.reconcile()
    world.edit({ savepointNonce: 2, checkpointNonce: 7 })
    stay(world, 30)
    expect(world.status).toMatchObject({
      answered: { savepoint: 2, checkpoint: 7 },
      savepoints: [{ request: expect.any(String) }, {}],
    })
    expect(deeds(world, 'savepoint').map(({ stops }) => stops)).toEqual([false, false])
    expect(events(world)).toEqual(['SavepointCompleted', 'SavepointCompleted', 'CheckpointCompleted'])
    stay(world, 60)
    expect(deeds(world, 'savepoint')).toHaveLength(2)
  })

  it('that fails is answered too, and the job runs on', () => {
    const world = running()
    world.savepointsFail = true
    world.edit({ savepointNonce: 1 })
    stay(world, 30)
    expect(world.status).toMatchObject({ phase: 'RUNNING', answered: { savepoint: 1 }, savepoints: [] })
    expect(events(world)).toEqual(['SavepointFailed'])
  })

  it('as a checkpoint that fails is answered once, and holds nothing up that waits behind it', () => {
    // As without an interval: no other checkpoint comes.
    const world = running({}, (before) => (before.clockAheadMs = -60_000))
    world.checkpointsStop = true
    world.checkpointsFail = true
    world.edit({ checkpointNonce: 1 })
    stay(world, 5)
    world.edit({ savepointNonce: 1 })
    stay(world, 30)
    expect(world.status).toMatchObject({ phase: 'RUNNING', answered: { savepoint: 1, checkpoint: 1 } })
    expect(events(world)).toEqual(['CheckpointFailed', 'SavepointCompleted'])
    world.checkpointsFail = false
    world.edit({ checkpointNonce: 2 })
    stay(world, 30)
    expect(world.status!.answered.checkpoint).toBe(2)
    expect(events(world).slice(2)).toEqual(['CheckpointCompleted'])
  })

  it.each([-60_000, 60_000])('as a checkpoint is known when the clocks of two hosts differ by %d ms', (aheadMs) => {
    const world = running({}, (before) => (before.clockAheadMs = aheadMs))
    world.checkpointsStop = true
    const { id } = world.head!.completed.at(-1)!
    world.edit({ checkpointNonce: 1 })
    stay(world, 30)
    expect(world.status!.answered.checkpoint).toBe(1)
    expect(deeds(world, 'event').map(({ message }) => message)).toEqual([expect.stringContaining(`chk-${id + 1}.`)])
  })

  it.each<[string, Partial<CoordinatorFact['snapshots']> & { readonly completed?: number }, string]>([
    ['nothing has come since', {}, 'wait'],
    ['one that was pending then has completed', { completed: 5 }, 'wait'],
    ['one that was pending then has failed', { lastFailed: { id: 5, detail: 'expired' } }, 'wait'],
    ['the next has completed', { completed: 6 }, 'CheckpointCompleted'],
    ['the next has failed', { lastFailed: { id: 6, detail: 'expired' } }, 'CheckpointFailed'],
    ['the next has failed and another is taken', { lastFailed: { id: 6, detail: '' }, isPending: true }, 'wait'],
  ])('as a checkpoint after 5: %s', (_, { completed = 4, ...more }, expected) => {
    const world = running()
    const observed = world.observe()
    if (!observed.coordinator.known) throw new Error('nobody answers')
    const { value } = observed.coordinator
    const coordinator: CoordinatorFact = {
      ...value,
      lastCheckpoint: { ...value.lastCheckpoint!, id: completed },
      snapshots: { newest: 6, isPending: false, lastFailed: undefined, ...more },
      requests: { c: { state: 'pending' } },
    }
    const asked = { kind: 'checkpoint', request: 'c', at: '', nonce: 1, after: 5 } as const
    const decision = decideRequests(
      { ...observed, coordinator: { known: true, value: coordinator } },
      { ...world.status!, asked },
    )
    expect(decision?.kind === 'record' ? decision.events[0]?.reason : decision?.kind).toBe(expected)
  })

  it('as a checkpoint by an operator that wrote no id down is asked for all the same', () => {
    const world = running()
    world.checkpointsStop = true
    world.edit({ checkpointNonce: 1 })
    world.reconcile()
    expect(world.status!.asked).not.toHaveProperty('after')
    stay(world, 10)
    expect(world.status!.answered.checkpoint).toBe(1)
  })

  it('while the coordinator is lost is taken when it is back', () => {
    const world = running()
    world.edit({ savepointNonce: 1 })
    world.reconcile()
    world.coordinatorIsSilent = true
    stay(world, 60)
    expect(world.status!.asked).toBeDefined()
    world.coordinatorIsSilent = false
    stay(world, 30)
    expect(deeds(world, 'savepoint')).toHaveLength(1)
    expect(world.status!.answered.savepoint).toBe(1)
  })

  it('by an object is told to the object; of a job that has ended at once', () => {
    const world = running()
    world.addSavepoint('mine')
    world.addSavepoint('known', { path: 's3://b/old' })
    stay(world, 20)
    expect(world.savepoints.find(({ name }) => name === 'mine')!.status).toEqual({
      state: 'completed',
      path: expect.stringContaining('savepoint-'),
    })
    expect(deeds(world, 'savepoint')).toHaveLength(1)
    world.endOfInput = true
    reaches(world, 'FINISHED', 1)
    world.addSavepoint('late')
    stay(world, 10)
    expect(world.savepoints.find(({ name }) => name === 'late')!.status).toMatchObject({ state: 'failed' })
  })

  it('by an object that is deleted meanwhile is told to it: its files go with it', () => {
    const world = running()
    world.addSavepoint('mine', { disposal: 'delete', finalizers: [FINALIZER] })
    world.reconcile()
    expect(world.status!.asked).toMatchObject({ object: 'uid-mine' })
    world.savepoints = world.savepoints.map((savepoint) => ({ ...savepoint, deleting: true }))
    world.addSavepoint('never asked for', { deleting: true, finalizers: [FINALIZER] })
    stay(world, 20)
    expect(world.savepoints.map(({ status }) => status?.state)).toEqual(['completed', undefined])
    expect(world.status!.asked).toBeUndefined()
    expect(deeds(world, 'savepoint')).toHaveLength(1)
  })

  it('by spec.savepoints is made each time, and kept by count: only what the operator made', () => {
    const world = running({ savepoints: { every: '20s', keep: { count: 2 } } })
    world.addSavepoint('mine', { status: { state: 'completed', path: 's3://b/mine' } })
    stay(world, 130)
    const made = world.savepoints
      .filter(({ madeBy }) => madeBy === 'operator')
      .map(({ name }) => Number(/\d+$/.exec(name)?.[0]))
    expect(made).toEqual([5, 6])
    expect(world.savepoints.some(({ name }) => name === 'mine')).toBe(true)
    expect(world.status!.periodic!.number).toBe(6)
  })

  it('by spec.savepoints leaves those that an earlier job of this name has left, its last one too', () => {
    const world = running({ savepoints: { every: '20s', keep: { count: 1 } } })
    const earlier = { name: 'flights', uid: 'an-earlier-uid' }
    const left = ['p1', 'p2', 'last'].map((suffix) => childName(earlier, suffix))
    for (const name of left)
      world.addSavepoint(name, {
        madeBy: 'operator',
        createdAt: '2025-01-01T00:00:00Z',
        status: { state: 'completed', path: `s3://b/${name}` },
      })
    stay(world, 70)
    const names = world.savepoints.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(left))
    expect(names.slice(left.length)).toEqual([childName({ name: 'flights', uid }, 'p3')])
  })

  it('by spec.savepoints is kept by count also where the name of the job is cut in the names of its objects', () => {
    const world = running({ savepoints: { every: '1h', keep: { count: 1 } } })
    const job = { ...world.observe().job, name: 'a-job-with-a-name-that-is-longer-than-its-objects-may-have' }
    for (const number of [9, 10, 11])
      world.addSavepoint(childName(job, `p${number}`), {
        madeBy: 'operator',
        createdAt: `2025-01-01T00:00:${number + 10}Z`,
        status: { state: 'completed', path: `s3://b/${number}` },
      })
    const decision = decideRequests({ ...world.observe(), job }, world.status!)
    expect(decision?.kind === 'act' ? decision.actions : decision).toMatchObject([
      { type: 'delete', of: { name: childName(job, 'p10') } },
      { type: 'delete', of: { name: childName(job, 'p9') } },
    ])
  })

  it.each(['', '/'])(
    'by spec.savepoints is kept while restoreFrom names it, though its start waits: path%s',
    (slash) => {
      const world = running({ savepoints: { every: '20s', keep: { count: 2 } } })
      stay(world, 30)
      const { name, status } = world.savepoints.at(-1)!
      world.preflightSays = 'no'
      world.edit({ logLevel: 'debug', restoreFrom: `${status!.path}${slash}`, restoreNonce: 1 })
      stay(world, 200)
      expect(world.status).toMatchObject({ start: 1, blocked: { reason: 'PreflightRefused' } })
      expect(world.savepoints.map((savepoint) => savepoint.name)).toContain(name)
      expect(world.savepoints).toHaveLength(3)
      // The spec before it is what holds while it is not valid.
      world.edit({ parallelism: 0, restoreFrom: undefined })
      stay(world, 100)
      expect(world.savepoints.map((savepoint) => savepoint.name)).toContain(name)
      world.edit({ parallelism: 1, restoreNonce: undefined })
      stay(world, 100)
      expect(world.savepoints).toHaveLength(2)
    },
  )

  it('is kept by age, and never taken away while the job may begin there', () => {
    const world = running({ savepoints: { every: '20s', keep: { age: '30s' } } })
    stay(world, 130)
    const names = () => world.savepoints.map(({ name }) => Number(/\d+$/.exec(name)?.[0]))
    expect(names()).toEqual([5, 6])
    const [first] = world.savepoints
    world.status = {
      ...world.status!,
      restorePoint: { kind: 'savepoint', path: first!.status!.path!, start: 1, unconfirmed: false, readAt: '' },
    }
    stay(world, 60)
    expect(names()).toContain(5)
    // Where HEAD is is not known: any of them may be needed.
    world.coordinatorIsSilent = true
    const before = names()
    stay(world, 15)
    expect(names()).toEqual(expect.arrayContaining(before))
  })
})
