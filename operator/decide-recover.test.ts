import { describe, expect, it } from 'vitest'
import { begins, deeds, events, isQuiet, program, reaches, running, stay } from './decide-story.ts'
import { World, restorePointOf } from './decide-world.ts'
import type { Spec } from './decide-world.ts'

describe('a status that was lost', () => {
  const lost = (spec: Spec = {}): World => {
    const world = running(spec)
    stay(world, 20)
    world.status = undefined
    return world
  }

  it('is no first start: the coordinator says where HEAD is, and nothing is restarted', () => {
    const world = lost()
    const pods = world.pods.map(({ fact }) => fact.uid)
    reaches(world, 'RUNNING', 1)
    expect(begins(world)).toEqual([])
    expect(world.pods.map(({ fact }) => fact.uid)).toEqual(pods)
    expect(events(world)).toEqual(expect.arrayContaining(['StatusLost', 'StatusRecovered']))
    expect(world.status!.stableRevision).toBe(world.status!.revision)
  })

  it('of a job that nobody answers for is read by an admin pod before anything else', () => {
    const world = lost()
    world.coordinatorIsSilent = true
    const start = world.head!.start
    const seen = new Set<string>()
    for (let second = 0; second < 30; second++) {
      if (world.status?.start === 0)
        for (const { fact } of world.pods) if (fact.purpose !== undefined) seen.add(fact.purpose)
      world.settle()
      world.pass(1_000)
    }
    expect([...seen]).toEqual(['admin-restore-point'])
    expect(world.status).toMatchObject({ start, restorePoint: { path: expect.stringMatching(/chk-\d+$/) } })
    expect(world.head!.end).toBe('none')
  })

  it('of a job that has not begun begins at restoreFrom all the same', () => {
    const world = new World({ restoreFrom: 's3://other/savepoint-8', program: { ...program, image: 'bad:1' } })
    stay(world, 20)
    world.status = undefined
    world.edit({ program: { ...program, image: 'good:1' } })
    world.run(() => isQuiet(world) && world.status?.phase === 'RUNNING')
    expect(begins(world)).toEqual([{ start: 2, from: 's3://other/savepoint-8' }])
  })

  it('of a suspended job stays suspended; with nothing left but revisions too', () => {
    const world = running()
    world.edit({ state: 'suspended' })
    reaches(world, 'SUSPENDED', 1)
    world.status = undefined
    reaches(world, 'SUSPENDED', 1)
    world.edit({ state: 'running' })
    reaches(world, 'RUNNING', 2)
    expect(begins(world)).toEqual([{ start: 2, from: restorePointOf(deeds(world, 'began')[0]!.headBefore!).path }])
  })

  it('while the store is away waits: unknown is not a first start', () => {
    const world = lost()
    world.coordinatorIsSilent = true
    world.storageIsDown = true
    stay(world, 60)
    expect(world.status).toMatchObject({ start: 0, transition: { step: 'recovering' } })
    expect(begins(world)).toEqual([])
    world.storageIsDown = false
    stay(world, 200)
    expect(world.status!.start).toBe(1)
  })
})
