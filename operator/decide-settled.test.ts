import { describe, expect, it } from 'vitest'
import { begins, condition, deeds, events, isQuiet, reaches, running, stay, steps } from './decide-story.ts'
import { restorePointOf } from './decide-world.ts'

describe('a job that ends', () => {
  it('finished stays so, whatever is killed, until its spec changes', () => {
    const world = running({ parallelism: 2 })
    world.endOfInput = true
    reaches(world, 'FINISHED', 1)
    expect(world.status).toMatchObject({ workers: 0, finishedAt: expect.any(String) })
    expect(condition(world, 'Ready')).toMatchObject({ status: 'False', reason: 'Finished' })
    world.pods = []
    stay(world, 30)
    world.edit({ parallelism: 3, restartNonce: 1 })
    stay(world, 30)
    expect(world.status).toMatchObject({ phase: 'FINISHED', start: 1, answered: { restart: 1 } })
    expect(events(world)).toContain('RestartIgnored')
    world.endOfInput = false
    world.editCode('v2')
    reaches(world, 'RUNNING', 2)
  })

  it('is deleted when ttlAfterFinished is over, not earlier; one that failed is not', () => {
    const world = running({ ttlAfterFinished: '1m' })
    world.endOfInput = true
    reaches(world, 'FINISHED', 1)
    const left = world.decide()
    expect(left).toMatchObject({ kind: 'wait' })
    expect((left as { forMs: number }).forMs).toBeGreaterThan(50_000)
    stay(world, 40)
    expect(world.job!.deletingSince).toBeUndefined()
    world.run(() => false)
    expect(world.job).toBeUndefined()
    const failed = running({ ttlAfterFinished: '1m' })
    failed.jobFails = true
    reaches(failed, 'FAILED', 1)
    stay(failed, 120)
    expect(failed.job!.deletingSince).toBeUndefined()
  })

  it('failed stays so until restartNonce or its spec changes, and begins where HEAD says', () => {
    const world = running({ upgradeMode: 'savepoint' })
    world.jobFails = true
    reaches(world, 'FAILED', 1)
    expect(condition(world, 'Ready')).toEqual({
      status: 'False',
      reason: 'Failed',
      message: 'The job failed: user code threw. Mend what it names, then change the spec or raise spec.restartNonce.',
    })
    world.jobFails = false
    stay(world, 60)
    expect(world.status!.start).toBe(1)
    const point = restorePointOf(world.head!).path!
    world.edit({ restartNonce: 1 })
    reaches(world, 'RUNNING', 2)
    world.jobFails = true
    reaches(world, 'FAILED', 2)
    world.jobFails = false
    world.coordinatorIsSilent = true
    world.editCode('v2')
    stay(world, 30)
    world.coordinatorIsSilent = false
    reaches(world, 'RUNNING', 3)
    expect(begins(world)[0]).toEqual({ start: 2, from: point })
    expect(deeds(world, 'savepoint')).toEqual([])
  })
})

describe('suspend and resume', () => {
  it('leaves no pod, keeps the restore point, and goes on there', () => {
    const world = running({ parallelism: 2 })
    world.edit({ state: 'suspended' })
    reaches(world, 'SUSPENDED', 1)
    expect(world.pods).toEqual([])
    const { path } = world.status!.restorePoint!
    expect(path).toBe(restorePointOf(world.head!).path)
    world.edit({ state: 'running', parallelism: 3 })
    reaches(world, 'RUNNING', 2)
    expect(begins(world)).toEqual([{ start: 2, from: path }])
    expect(world.status!.parallelism).toBe(3)
  })

  it.each(['savepoint', 'last-state'] as const)(
    'by %s waits until what was permitted is committed, by a pod if the coordinator cannot',
    (upgradeMode) => {
      const world = running({ upgradeMode })
      world.head!.unconfirmed = true
      world.commitsAreStuck = true
      world.edit({ state: 'suspended' })
      reaches(world, 'SUSPENDED', 1)
      expect(world.head!.unconfirmed).toBe(false)
      expect(world.status!.restorePoint!.unconfirmed).toBe(false)
      expect(events(world)).not.toContain('CommitsUnconfirmed')
    },
  )

  it('waits for commits that nobody can make for a while only, and says so', () => {
    const world = running({ upgradeMode: 'savepoint' })
    world.commitsAreStuck = true
    world.edit({ state: 'suspended' })
    world.run(() => world.status!.transition?.step === 'closed')
    world.storageIsDown = true
    stay(world, 60)
    expect(world.status!.phase).not.toBe('SUSPENDED')
    reaches(world, 'SUSPENDED', 1)
    expect(world.pods).toEqual([])
    const { unconfirmed, path } = world.status!.restorePoint!
    expect(unconfirmed).toBe(true)
    expect(events(world)).toContain('CommitsUnconfirmed')
    world.storageIsDown = false
    world.commitsAreStuck = false
    world.edit({ state: 'running' })
    reaches(world, 'RUNNING', 2)
    expect(begins(world)).toEqual([{ start: 2, from: path }])
  })

  it('with another spec is an upgrade, tried out before', () => {
    const world = running()
    world.edit({ state: 'suspended' })
    reaches(world, 'SUSPENDED', 1)
    world.edit({ state: 'running', logLevel: 'debug' })
    reaches(world, 'RUNNING', 2)
    expect(events(world)).toContain('PreflightPassed')
  })

  it('asked for in any step of an upgrade ends suspended', () => {
    for (const step of ['preparing', 'closing', 'closed', 'starting', 'stabilising'] as const) {
      const world = running()
      world.editCode('v2')
      steps(world, () => world.status!.transition?.step === step)
      world.edit({ state: 'suspended' })
      world.run(() => isQuiet(world) && world.status!.phase === 'SUSPENDED')
      expect(world.head!.end).toBe('suspended')
    }
  })
})
