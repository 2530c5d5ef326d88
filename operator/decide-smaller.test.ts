import { describe, expect, it } from 'vitest'
import { begins, condition, events, isQuiet, program, reaches, running, stay, steps } from './decide-story.ts'
import { World, restorePointOf } from './decide-world.ts'
import type { Spec } from './decide-world.ts'

const long = { rollback: { progressDeadline: '10m' } }

/** Of its four slots the job has three, and no other comes. */
function withoutOneSlot(spec: Spec = {}, prepare?: (world: World) => void): World {
  const world = running({ parallelism: 4, ...spec }, prepare)
  world.room = 3
  world.pods = world.pods.filter(({ fact }) => fact.name !== 'worker-3')
  return stay(world, 2)
}

describe('a smaller size for which there is room', () => {
  it('is the remedy of a first start that finds none', () => {
    const world = new World({ parallelism: 8 })
    world.room = 4
    stay(world, 400)
    expect(condition(world, 'Stalled').message).toContain('no node has room')
    world.edit({ parallelism: 4 })
    reaches(world, 'RUNNING', 2)
    expect(world.status).toMatchObject({ parallelism: 4, workers: 4 })
    expect(events(world)).toEqual(['Starting', 'Restarting', 'Closed', 'Stable'])
    stay(world, 200)
    expect(world.status!.start).toBe(2)
  })

  it('is that of a first start whose coordinator has no node either, at restoreFrom', () => {
    const world = new World({ parallelism: 8, restoreFrom: 's3://other/savepoint-8' })
    world.room = 4
    world.coordinatorHasNoNode = true
    stay(world, 30)
    world.edit({ parallelism: 4 })
    steps(world, () => world.status!.start === 2)
    world.coordinatorHasNoNode = false
    reaches(world, 'RUNNING', 2)
    expect(begins(world)).toEqual([{ start: 2, from: 's3://other/savepoint-8' }])
  })

  it.each(['stateless', 'last-state'] as const)('begins a %s upgrade where it was to begin', (upgradeMode) => {
    const world = running({ parallelism: 2, upgradeMode, ...long })
    world.coordinatorHasNoNode = true
    world.room = 4
    world.edit({ parallelism: 8, logLevel: 'debug' })
    stay(world, 90)
    expect(world.head!.start).toBe(1)
    const { path } = restorePointOf(world.head!)
    world.edit({ parallelism: 4, upgradeMode: 'last-state' })
    steps(world, () => world.status!.start === 3)
    world.coordinatorHasNoNode = false
    reaches(world, 'RUNNING', 3)
    expect(begins(world)).toEqual([{ start: 3, from: upgradeMode === 'stateless' ? 'empty' : path }])
  })

  it('is that of a restart, which cannot be rolled back', () => {
    const world = running({ parallelism: 4, ...long })
    const { revision } = world.status!
    world.room = 3
    world.edit({ restartNonce: 1 })
    stay(world, 90)
    expect(world.status!.transition).toMatchObject({ kind: 'restart', step: 'stabilising' })
    world.edit({ parallelism: 3 })
    reaches(world, 'RUNNING', 3)
    expect(world.status).toMatchObject({ revision, parallelism: 3 })
  })

  it('leaves an upgrade its way back', () => {
    const world = running({ parallelism: 2, rollback: { progressDeadline: '100s' } })
    const { revision } = world.status!
    world.room = 4
    world.edit({ parallelism: 8, program: { ...program, args: { crash: true } } })
    world.run(() => world.status!.transition?.step === 'stabilising')
    const { path } = world.status!.rollbackPoint!
    world.edit({ parallelism: 4 })
    world.run(() => world.status!.start === 3 && world.status!.transition?.step === 'stabilising')
    expect(world.status).toMatchObject({ parallelism: 4, rollbackPoint: { path }, rollbackParallelism: 2 })
    world.run(() => isQuiet(world) && world.status!.revision === revision)
    expect(begins(world).at(-1)).toEqual({ start: 4, from: path })
    expect(world.status).toMatchObject({ blocked: { reason: 'RolledBack' } })
  })

  it('leaves what was rolled back refused', () => {
    const world = running({ parallelism: 4, rollback: { progressDeadline: '20s' } })
    const { revision } = world.status!
    world.edit({ parallelism: 3, program: { ...program, args: { crash: true } } })
    steps(world, () => world.status!.transition?.kind === 'rollback')
    world.room = 3
    reaches(world, 'RUNNING', 4)
    stay(world, 60)
    expect(world.status).toMatchObject({ start: 4, revision, parallelism: 3, blocked: { reason: 'RolledBack' } })
  })

  it('is gone to where a node is lost for good, at the last checkpoint', () => {
    const world = withoutOneSlot()
    world.edit({ parallelism: 3 })
    stay(world, 40)
    expect(world.status).toMatchObject({ phase: 'STARTING', start: 1, parallelism: 4 })
    expect(condition(world, 'Reconciling')).toEqual({
      status: 'True',
      reason: 'Outdated',
      message:
        'The job has parallelism 4, and goes to 3 once all of its subtasks run. Where they get no slots for 60 s it starts again with 3.',
    })
    const { path } = restorePointOf(world.head!)
    reaches(world, 'RUNNING', 2)
    expect(begins(world)).toEqual([{ start: 2, from: path }])
    expect(world.status).toMatchObject({ parallelism: 3, workers: 3 })
    expect(condition(world, 'Reconciling')).toMatchObject({ status: 'False' })
  })

  const withoutCoordinator = (isMissing: boolean, prepare?: (world: World) => void): World => {
    const world = running({ parallelism: 4 }, prepare)
    stay(world, 60)
    world.room = 3
    world.coordinatorHasNoNode = true
    if (isMissing) world.coordinatorPodsAreRefused = true
    world.pods = world.pods.filter(({ fact }) => fact.name !== 'worker-3' && fact.component !== 'coordinator')
    stay(world, 5)
    world.edit({ parallelism: 3 })
    return world
  }

  it.each([false, true])(
    'is gone to where the node took the coordinator along, which finds no other (its pod is not even made: %s)',
    (isMissing) => {
      const world = withoutCoordinator(isMissing)
      const { path } = restorePointOf(world.head!)
      stay(world, 40)
      expect(world.status).toMatchObject({ start: 1, phase: 'RUNNING' })
      expect(condition(world, 'Reconciling').message).toContain('for 60 s it starts again with 3')
      steps(world, () => world.status!.start === 2)
      world.coordinatorHasNoNode = world.coordinatorPodsAreRefused = false
      reaches(world, 'RUNNING', 2)
      expect(begins(world)).toEqual([{ start: 2, from: path }])
      expect(world.status!.parallelism).toBe(3)
    },
  )

  it('is not gone to, nor promised, where such a job has completed nothing that it could go on from', () => {
    const world = withoutCoordinator(false, (each) => void (each.checkpointing = 'off'))
    stay(world, 300)
    expect(world.status).toMatchObject({ start: 1, parallelism: 4 })
    expect(world.status).not.toHaveProperty('transition')
    expect(condition(world, 'Reconciling').message).toMatch(/once all of its subtasks run\.$/)
  })

  it('is not gone to while its tasks may run on and its coordinator is only silent', () => {
    const world = running({ parallelism: 4 })
    world.coordinatorIsSilent = true
    world.edit({ parallelism: 3 })
    stay(world, 300)
    expect(world.status).toMatchObject({ start: 1, parallelism: 4 })
    expect(world.status).not.toHaveProperty('transition')
  })

  it('is gone to in place where the slot comes back meanwhile', () => {
    const world = withoutOneSlot()
    world.edit({ parallelism: 3 })
    stay(world, 40)
    world.room = 4
    world.run(() => isQuiet(world) && world.status!.parallelism === 3)
    expect(world.status).toMatchObject({ phase: 'RUNNING', start: 1 })
  })

  it('is gone to by the spec of when it begins', () => {
    const world = withoutOneSlot()
    world.edit({ parallelism: 3 })
    steps(world, () => world.status!.transition?.kind === 'restart')
    world.edit({ parallelism: 2 })
    reaches(world, 'RUNNING', 2)
    expect(world.status!.parallelism).toBe(2)
  })

  it('is not gone to unasked by a job that would lose its state', () => {
    const world = withoutOneSlot({}, (each) => void (each.checkpointing = 'off'))
    world.edit({ parallelism: 3 })
    stay(world, 200)
    expect(world.status).toMatchObject({ start: 1, parallelism: 4 })
    expect(condition(world, 'Reconciling').message).toContain('raise spec.restartNonce to begin again with 3')
    world.edit({ restartNonce: 1, upgradeMode: 'stateless' })
    reaches(world, 'RUNNING', 2)
    expect(world.status!.parallelism).toBe(3)
  })

  it('that was refused stays refused', () => {
    const world = withoutOneSlot()
    world.edit({ parallelism: 3 })
    world.status = { ...world.status!, refusedSize: { parallelism: 3, message: 'a uid has no place' } }
    stay(world, 200)
    expect(world.status).toMatchObject({ start: 1, refusedSize: { parallelism: 3 } })
    world.edit({ parallelism: 2 })
    reaches(world, 'RUNNING', 2)
    expect(world.status).not.toHaveProperty('refusedSize')
  })
})

it('a larger size than there is room for begins nothing, and is gone to in place when there is', () => {
  const world = withoutOneSlot()
  world.edit({ parallelism: 5 })
  stay(world, 200)
  expect(world.status).toMatchObject({ start: 1, parallelism: 4 })
  expect(condition(world, 'Reconciling').message).toBe(
    'The job has parallelism 4, and goes to 5 once all of its subtasks run.',
  )
  world.room = 5
  world.run(() => isQuiet(world) && world.status!.parallelism === 5)
  expect(world.status!.start).toBe(1)
})
