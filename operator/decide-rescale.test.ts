import { describe, expect, it } from 'vitest'
import { begins, condition, deeds, isQuiet, program, reaches, running, stay } from './decide-story.ts'
import type { World } from './decide-world.ts'

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
