import { describe, expect, it } from 'vitest'
import { begins, condition, deeds, events, isQuiet, program, reaches, running, stay } from './decide-story.ts'
import type { World } from './decide-world.ts'
import { statusOf } from './observe.ts'

describe('a rescale', () => {
  it('goes 2, 4, 1 in the same start: workers first where it grows, last where it shrinks', () => {
    const world = running({ parallelism: 2 })
    const replicas: number[] = []
    const reconcile = world.reconcile.bind(world)
    world.reconcile = () => {
      const decision = reconcile()
      replicas.push(world.children.get('StatefulSet/worker')!.replicas! * 10 + (world.head!.rescaledTo ?? 2))
      return decision
    }
    for (const parallelism of [4, 1]) {
      world.edit({ parallelism })
      world.run(() => isQuiet(world) && world.status!.parallelism === parallelism)
    }
    expect(replicas.filter((pair, index) => pair !== replicas[index - 1])).toEqual([22, 42, 44, 41, 11])
    expect(world.status).toMatchObject({ start: 1, workers: 1, phase: 'RUNNING' })
    expect(begins(world)).toEqual([])
    expect(deeds(world, 'savepoint')).toEqual([])
  })

  it('of a graph with two slot-sharing groups keeps its new workers, which are waited for until they are known', () => {
    const world = running({ parallelism: 2 })
    world.slotsPerSize = 2
    world.run(() => isQuiet(world) && world.status!.workers === 4)
    const replicas: number[] = []
    for (const parallelism of [3, 1]) {
      world.edit({ parallelism })
      world.run(() => {
        replicas.push(world.children.get('StatefulSet/worker')!.replicas!)
        return isQuiet(world) && world.status!.parallelism === parallelism
      })
      stay(world, 5)
      replicas.push(world.children.get('StatefulSet/worker')!.replicas!)
    }
    expect(replicas.filter((count, index) => count !== replicas[index - 1])).toEqual([4, 6, 2])
    expect(world.deeds.filter((deed) => deed.deed === 'event').map(({ reason }) => reason)).not.toContain(
      'RescaleFailed',
    )
    expect(begins(world)).toEqual([])
  })

  it('that finds no room leaves the job at its size, says why, and is tried again at another size', () => {
    const world = running({ parallelism: 2, rollback: { progressDeadline: '20s' } })
    world.room = 3
    world.edit({ parallelism: 5 })
    stay(world, 60)
    expect(world.status).toMatchObject({ phase: 'RUNNING', start: 1, parallelism: 2, workers: 2 })
    expect(condition(world, 'UpgradeBlocked')).toMatchObject({ status: 'True', reason: 'RescaleRefused' })
    expect(condition(world, 'UpgradeBlocked').message).toContain('Unschedulable: no node has room')
    expect(isQuiet(world)).toBe(true)
    world.edit({ parallelism: 3 })
    world.run(() => isQuiet(world) && world.status!.parallelism === 3)
    expect(condition(world, 'UpgradeBlocked')).toMatchObject({ status: 'False' })
  })

  it('that finds no room after the same edit was rolled back leaves it rolled back, and both are said', () => {
    const world = running({ parallelism: 2, rollback: { progressDeadline: '20s' } })
    const stable = world.status!.revision
    world.room = 3
    world.edit({ parallelism: 5, program: { ...program, image: 'bad:1' } })
    world.run(() => events(world).includes('RescaleRefused'))
    stay(world, 120)
    expect(world.status).toMatchObject({ phase: 'RUNNING', start: 3, revision: stable, parallelism: 2, workers: 2 })
    expect(events(world).filter((reason) => /RolledBack|RescaleRefused|Upgrading/.test(reason))).toEqual([
      'Upgrading',
      'RolledBack',
      'RescaleRefused',
    ])
    expect(isQuiet(world)).toBe(true)
    expect(condition(world, 'Degraded')).toMatchObject({ status: 'True', reason: 'RolledBack' })
    expect(condition(world, 'UpgradeBlocked')).toEqual({
      status: 'True',
      reason: 'RolledBack',
      message: expect.stringMatching(/no such image.*raise spec\.restartNonce.*parallelism 5.*no node has room/),
    })
    // Each is settled by itself.
    world.edit({ parallelism: 3 })
    world.run(() => isQuiet(world) && world.status!.parallelism === 3)
    expect(condition(world, 'UpgradeBlocked').message).not.toContain('parallelism 5')
    expect(world.status).toMatchObject({ start: 3, revision: stable, blocked: { reason: 'RolledBack' } })
    world.edit({ program: { ...program, image: 'good:1' } })
    reaches(world, 'RUNNING', 4)
    expect(condition(world, 'UpgradeBlocked')).toMatchObject({ status: 'False' })
  })

  it('that was refused does not have a preflight that refused tried again, nor the other way round', () => {
    const world = running({ parallelism: 2, rollback: { progressDeadline: '20s' } })
    world.room = 3
    world.preflightSays = 'no'
    world.edit({ parallelism: 5, logLevel: 'debug' })
    stay(world, 200)
    expect(events(world).filter((reason) => reason.endsWith('Refused'))).toEqual(['PreflightRefused', 'RescaleRefused'])
    world.editCode('v2')
    stay(world, 200)
    expect(
      events(world)
        .filter((reason) => reason.endsWith('Refused'))
        .slice(2),
    ).toEqual(['PreflightRefused'])
  })

  it('that the operator of before has refused stays refused, until another size is asked for', () => {
    const world = running({ parallelism: 2 })
    world.room = 3
    world.edit({ parallelism: 5 })
    const message = 'The job could not go to parallelism 5.'
    const blocked = { key: 'parallelism-5', reason: 'RescaleRefused', message }
    world.status = statusOf({
      apiVersion: 'millrace.dev/v1alpha1',
      kind: 'StreamJob',
      metadata: { name: 'flights' },
      status: { ...world.status!, blocked },
    })
    stay(world, 30)
    expect(isQuiet(world)).toBe(true)
    expect(world.status!.workers).toBe(2)
    expect(condition(world, 'UpgradeBlocked')).toEqual({ status: 'True', reason: 'RescaleRefused', message })
    world.edit({ parallelism: 3 })
    world.run(() => isQuiet(world) && world.status!.parallelism === 3)
    expect(condition(world, 'UpgradeBlocked')).toMatchObject({ status: 'False' })
  })

  it.each<[string, 'FINISHED' | 'FAILED', (world: World) => void]>([
    ['finishes', 'FINISHED', (world) => void (world.endOfInput = true)],
    ['fails', 'FAILED', (world) => void (world.jobFails = true)],
  ] as const)(
    'of a job that %s while workers are still added ends with it, long before its deadline',
    (_, phase, end) => {
      const world = running({ parallelism: 2, rollback: { progressDeadline: '10m' } })
      world.room = 2
      world.edit({ parallelism: 5 })
      stay(world, 5)
      expect(world.status!.transition).toMatchObject({ kind: 'rescale', step: 'growing' })
      end(world)
      stay(world, 10)
      expect(world.status).toMatchObject({ phase, workers: 0, start: 1 })
      expect(isQuiet(world)).toBe(true)
    },
  )

  it('counts slots, not subtasks', () => {
    const world = running({ parallelism: 4, worker: { slots: 3 } })
    expect(world.status).toMatchObject({ workers: 2, parallelism: 4, labelSelector: '' })
    world.edit({ parallelism: 7 })
    world.run(() => isQuiet(world) && world.status!.parallelism === 7)
    expect(world.status!.workers).toBe(3)
    const single = running({ parallelism: 2 })
    expect(single.status!.labelSelector).toContain('component=worker')
  })

  it('whose checkpoint never comes holds no upgrade up', () => {
    const world = running({ parallelism: 2, program: { ...program, args: { crash: false } } })
    world.checkpointsStop = true
    world.edit({ parallelism: 3 })
    world.run(() => world.status?.transition?.step === 'rescaling')
    world.coordinatorIsSilent = true
    world.edit({ parallelism: 1, logLevel: 'debug' })
    stay(world, 20)
    world.coordinatorIsSilent = false
    world.checkpointsStop = false
    reaches(world, 'RUNNING', 2)
    expect(world.status!.parallelism).toBe(1)
  })
})
