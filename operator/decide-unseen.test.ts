import { describe, expect, it } from 'vitest'
import type { Spec, World } from './decide-world.ts'
import { awayText } from './decide-world.ts'
import { begins, condition, deeds, reaches, running, stay, steps } from './decide-story.ts'

const deleteIt = (world: World): void => world.loseRevision(world.status!.revision)

describe('a revision that status names and nobody sees', () => {
  it.each<[string, Spec, (world: World) => void, string]>([
    ['that could not be asked for', {}, (world) => void (world.revisionsAreUnread = true), 'RevisionUnknown'],
    ['that somebody has deleted', {}, deleteIt, 'RevisionDeleted'],
    ['that somebody has deleted, stateless', { upgradeMode: 'stateless' }, deleteIt, 'RevisionDeleted'],
    ['that somebody has deleted, by savepoint', { upgradeMode: 'savepoint' }, deleteIt, 'RevisionDeleted'],
  ])('%s takes nothing down, whatever is edited', (_, spec, lose, reason) => {
    const world = running({ parallelism: 2, ...spec })
    lose(world)
    stay(world, 30)
    for (const edit of [{ logLevel: 'debug' }, { parallelism: 3 }, { parallelism: 1 }]) {
      world.edit(edit)
      stay(world, 10)
    }
    expect(deeds(world, 'took down')).toEqual([])
    expect(world.head).toMatchObject({ start: 1, end: 'none' })
    for (const type of ['UpgradeBlocked', 'Degraded', 'Stalled'] as const)
      expect(condition(world, type)).toMatchObject({ status: 'True', reason })
    expect(world.status).toMatchObject({ phase: 'RUNNING', start: 1 })
    expect(condition(world, 'Ready').status).toBe('True')
  })

  it('that comes to be seen is as it was', () => {
    const world = running()
    world.revisionsAreUnread = true
    stay(world, 10)
    world.revisionsAreUnread = false
    stay(world, 10)
    expect(world.status).toMatchObject({ phase: 'RUNNING', start: 1 })
    expect(condition(world, 'Stalled').status).toBe('False')
    world.editCode('v2')
    reaches(world, 'RUNNING', 2)
  })

  it('that was deleted is gone on without by restartNonce, from the state of the job', () => {
    const world = running()
    const { revision } = world.status!
    deleteIt(world)
    stay(world, 5)
    world.edit({ restartNonce: 1 })
    reaches(world, 'RUNNING', 2)
    expect(begins(world)).toEqual([{ start: 2, from: expect.stringContaining('chk-') }])
    // Its name is not another one's.
    expect(world.status!.revision).not.toBe(revision)
    expect(condition(world, 'Stalled').status).toBe('False')
  })

  it('that was deleted of a suspended job is resumed by the spec', () => {
    const world = running()
    world.edit({ state: 'suspended' })
    reaches(world, 'SUSPENDED', 1)
    deleteIt(world)
    stay(world, 5)
    expect(condition(world, 'Stalled').status).toBe('False')
    world.edit({ state: 'running' })
    reaches(world, 'RUNNING', 2)
    expect(begins(world)).toEqual([{ start: 2, from: expect.stringContaining('chk-') }])
  })

  it('that a rollback leads to and somebody has deleted is not made of the refused spec', () => {
    const world = running({ rollback: { progressDeadline: '10s' } })
    const stable = world.status!.stableRevision
    world.checkpointsStop = true
    world.edit({ logLevel: 'debug' })
    steps(world, () => world.status!.transition?.kind === 'rollback' && world.status!.transition.step === 'closed')
    world.loseRevision(stable)
    stay(world, 20)
    expect(world.revisions.map(({ name }) => name)).not.toContain(stable)
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'RevisionDeleted' })
    world.checkpointsStop = false
    world.edit({ restartNonce: 1 })
    world.run(() => world.status!.phase === 'RUNNING' && world.status!.transition === undefined)
    expect(world.revisions.map(({ name }) => name)).not.toContain(stable)
  })

  it('that was deleted: what it permitted is committed by no other code, and nothing begins before', () => {
    const world = running({ upgradeMode: 'savepoint' })
    world.sinkIsAway = true
    world.edit({ restartNonce: 1, logLevel: 'debug' })
    steps(world, () => world.status!.transition?.step === 'closed' && world.head!.unconfirmed)
    deleteIt(world)
    stay(world, 200)
    expect(begins(world)).toEqual([])
    expect(world.pods.map(({ fact }) => fact.purpose)).not.toContain('admin-commit')
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'CommitsUnconfirmed' })
    expect(condition(world, 'Stalled').message).toContain('whose code wrote them, was deleted')
    expect(condition(world, 'Stalled').message).not.toContain(awayText)
    // By somebody's own hand.
    world.head!.unconfirmed = false
    reaches(world, 'RUNNING', 2)
  })

  it('that was deleted, with a spec that is not valid, waits for one', () => {
    const world = running()
    deleteIt(world)
    world.edit({ parallelism: 'many' })
    stay(world, 10)
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'InvalidSpec' })
    world.edit({ parallelism: 1, restartNonce: 1 })
    reaches(world, 'RUNNING', 2)
  })

  it.each([
    ['elsewhere', 's3://earlier/jobs'],
    ['at an unknown place', undefined],
  ])("that was deleted of a job whose state is %s: the chart's storage of now is not taken", (_, checkpoints) => {
    const world = running()
    deleteIt(world)
    world.traces = { checkpoints, maxParallelism: undefined }
    world.edit({ restartNonce: 1 })
    stay(world, 20)
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'InvalidSpec' })
    expect(condition(world, 'Stalled').message).toContain('spec.storage.checkpoints')
    expect(world.status!.start).toBe(1)
    world.edit({ storage: { checkpoints: 's3://earlier/jobs', s3: { credentialsSecret: 's3' } } })
    reaches(world, 'RUNNING', 2)
  })

  it.each([
    ['', false],
    [' while nobody answers', true],
  ])('that was deleted together with the status%s is not another one that is stored then', (_, isSilent) => {
    const world = running({ parallelism: 2 })
    const { revision } = world.status!
    deleteIt(world)
    world.status = undefined
    world.coordinatorIsSilent = isSilent
    world.edit({ logLevel: 'debug' })
    stay(world, 30)
    expect(world.status).toMatchObject({ start: 1, revision, workers: 2 })
    expect(world.revisions.map(({ name }) => name)).not.toContain(revision)
    expect(world.head).toMatchObject({ start: 1, end: 'none' })
    expect(deeds(world, 'took down')).toEqual([])
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'RevisionDeleted' })
    world.coordinatorIsSilent = false
    world.edit({ restartNonce: 1 })
    reaches(world, 'RUNNING', 2)
  })

  it('that was deleted while the coordinator was stopped by somebody else starts nothing unasked', () => {
    const world = running({ upgradeMode: 'stateless' })
    deleteIt(world)
    world.head!.end = 'suspended'
    stay(world, 20)
    expect(world.status!.start).toBe(1)
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'RevisionDeleted' })
  })
})

describe('HEAD that status has seen and that is not where it should be', () => {
  it('is not begun without', () => {
    const world = running()
    world.edit({ state: 'suspended' })
    reaches(world, 'SUSPENDED', 1)
    world.head = undefined
    world.edit({ state: 'running' })
    stay(world, 60)
    expect(begins(world)).toEqual([])
    expect(world.status!.begin).toEqual({ parallelism: 1, goesOn: true })
    // Given up by its user.
    world.edit({ upgradeMode: 'stateless', restartNonce: 1 })
    world.run(() => begins(world).length > 0)
    expect(begins(world)).toEqual([{ start: 3, from: 'empty' }])
  })

  it('closes nothing when a pod does not find it', () => {
    const world = running()
    const point = world.status!.lastCheckpoint!.path
    world.coordinatorHasNoNode = true
    world.pods = world.pods.filter(({ fact }) => fact.component !== 'coordinator')
    world.head = undefined
    world.editCode('v2')
    stay(world, 60)
    expect(deeds(world, 'took down')).toEqual([])
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'RestorePointUnknown' })
    expect(condition(world, 'Stalled').message).toContain(`has completed ${point}, and there is no HEAD`)
  })
})
