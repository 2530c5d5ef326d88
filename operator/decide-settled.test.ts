import { describe, expect, it } from 'vitest'
import { begins, condition, deeds, events, isQuiet, program, reaches, running, stay, steps } from './decide-story.ts'
import { restorePointOf } from './decide-world.ts'

describe('a job that ends', () => {
  it('finished stays so, whatever is killed, until what runs changes', () => {
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

  it('failed stays so until restartNonce or what runs changes, and begins where HEAD says', () => {
    const world = running({ upgradeMode: 'savepoint' })
    world.jobFails = true
    reaches(world, 'FAILED', 1)
    expect(condition(world, 'Ready')).toEqual({
      status: 'False',
      reason: 'Failed',
      message:
        'The job failed: MR-O01 The job failed. User code threw. Mend what it names, then raise spec.restartNonce; another program (code, image, args) starts it again too.',
    })
    world.jobFails = false
    // Each holds for the next start, and begins none.
    world.edit({ parallelism: 2, restoreFrom: 's3://other/savepoint-9', allowNonRestoredState: true })
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

  const edits = [
    ['its image is not there', { program: { ...program, image: 'bad:1' } }],
    ['it began from nothing', { program: { ...program, args: { crash: true } }, upgradeMode: 'stateless' }],
  ] as const
  describe.each(edits)('while a revision is rolled back: %s', (_, edit) => {
    const suspendedIn = (step: 'closing' | 'closed') => {
      const world = running({ rollback: { progressDeadline: '20s' } })
      const { path } = restorePointOf(world.head!)
      const { revision } = world.status!
      world.checkpointsStop = true
      world.edit(edit)
      steps(world, () => world.status!.transition?.kind === 'rollback' && world.status!.transition.step === step)
      world.checkpointsStop = false
      world.edit({ state: 'suspended' })
      return { world, path, revision }
    }

    it.each(['closing', 'closed'] as const)('goes on with the one before, where that was: %s', (step) => {
      for (const code of ['there', 'missing'] as const) {
        const { world, path, revision } = suspendedIn(step)
        reaches(world, 'SUSPENDED', 2)
        // What it is called by does not matter: which revision was refused is known.
        if (code === 'missing') world.code = { kind: 'missing', why: 'not found' }
        world.edit({ state: 'running' })
        reaches(world, 'RUNNING', 3)
        expect(world.status).toMatchObject({ revision, stableRevision: revision, blocked: { reason: 'RolledBack' } })
        expect(begins(world).at(-1)).toEqual({ start: 3, from: path })
      }
    })

    it.each(['closing', 'closed'] as const)('taken back, goes on with the one before: %s', (step) => {
      const { world, path, revision } = suspendedIn(step)
      world.reconcile()
      expect(world.status!.transition).toMatchObject({ kind: 'suspend' })
      world.edit({ state: 'running' })
      reaches(world, 'RUNNING', 3)
      expect(world.status).toMatchObject({ revision, blocked: { reason: 'RolledBack' } })
      expect(begins(world).at(-1)).toEqual({ start: 3, from: path })
    })

    it('taken back, is closed as a rollback is, and as upgradeMode says once it is edited', () => {
      const { world } = suspendedIn('closing')
      world.coordinatorIsSilent = true
      world.reconcile()
      world.edit({ state: 'running' })
      stay(world, 2)
      expect(world.status!.transition).toMatchObject({ kind: 'rollback', step: 'closing', mode: 'last-state' })
      world.edit({ program: { ...program, image: 'good:1' }, upgradeMode: 'savepoint' })
      stay(world, 2)
      expect(world.status!.transition).toMatchObject({ kind: 'upgrade', step: 'closing', mode: 'savepoint' })
    })

    it('is tried again by restartNonce', () => {
      const { world, revision } = suspendedIn('closing')
      reaches(world, 'SUSPENDED', 2)
      world.edit({ state: 'running', restartNonce: 1 })
      world.run(() => world.status!.start === 3)
      expect(world.status!.revision).not.toBe(revision)
    })
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

describe('a start that restoreNonce asks for', () => {
  const restoreFrom = 's3://other/savepoint-9'
  const restore = { restoreFrom, restoreNonce: 1 }

  it('is made once, and answered when it begins there', () => {
    const world = running({ upgradeMode: 'savepoint' })
    world.edit(restore)
    for (const step of ['closing', 'closed'] as const) {
      steps(world, () => world.status!.transition?.step === step)
      expect(world.status!.answered.restore).toBeUndefined()
    }
    steps(world, () => world.status!.start === 2)
    expect(world.status!.answered.restore).toBe(1)
    reaches(world, 'RUNNING', 2)
    stay(world, 30)
    expect(begins(world)).toEqual([{ start: 2, from: restoreFrom }])
  })

  it.each(['preparing', 'closing', 'closed'] as const)('is made after a suspension that came first: %s', (step) => {
    const world = running({ upgradeMode: 'savepoint' })
    world.edit({ ...restore, logLevel: 'debug' })
    steps(world, () => world.status!.transition?.step === step)
    world.edit({ state: 'suspended' })
    reaches(world, 'SUSPENDED', 1)
    stay(world, 10)
    world.edit({ state: 'running' })
    reaches(world, 'RUNNING', 2)
    expect(begins(world)).toEqual([{ start: 2, from: restoreFrom }])
  })

  it('is made at its place, by its own way, when a suspension is taken back', () => {
    for (const from of [restoreFrom, 'latest']) {
      const world = running({ upgradeMode: 'last-state' })
      world.coordinatorIsSilent = true
      world.edit({ restoreFrom: from, restoreNonce: 1, upgradeMode: 'stateless' })
      stay(world, 3)
      world.edit({ state: 'suspended' })
      stay(world, 2)
      expect(world.status!.transition).toMatchObject({ kind: 'suspend', step: 'closing', mode: 'stateless' })
      world.edit({ state: 'running' })
      stay(world, 30)
      world.coordinatorIsSilent = false
      reaches(world, 'RUNNING', 2)
      const { path } = restorePointOf(deeds(world, 'began')[0]!.headBefore!)
      expect(begins(world)).toEqual([{ start: 2, from: from === 'latest' ? path : from }])
    }
  })

  it('waits for the code that the preflight refused to be mended', () => {
    const world = running()
    world.preflightSays = 'no'
    world.editCode('v2')
    world.edit(restore)
    stay(world, 60)
    expect(world.status).toMatchObject({ phase: 'RUNNING', start: 1, blocked: { reason: 'PreflightRefused' } })
    expect(events(world).filter((reason) => reason === 'PreflightRefused')).toHaveLength(1)
    expect(condition(world, 'UpgradeBlocked').message).toContain('restoreNonce')
    world.preflightSays = 'yes'
    world.editCode('v3')
    reaches(world, 'RUNNING', 2)
    expect(begins(world)).toEqual([{ start: 2, from: restoreFrom }])
  })

  it('waits for code that cannot be read or is not there: what runs was not meant', () => {
    const world = running()
    world.editCode('v2')
    const { code } = world
    world.edit(restore)
    world.reconcile()
    expect(world.status!.transition).toMatchObject({ step: 'preparing' })
    world.code = { kind: 'missing', why: 'not found' }
    stay(world, 30)
    expect(world.status).toMatchObject({ phase: 'RUNNING', start: 1 })
    world.code = code
    reaches(world, 'RUNNING', 2)
    expect(begins(world)).toEqual([{ start: 2, from: restoreFrom }])
    expect(world.revisions.find(({ name }) => name === world.status!.revision)!.code?.hash).toBe(
      code.kind === 'files' ? code.hash : '',
    )
  })

  it.each(['preparing', 'closing', 'closed'] as const)('leads to where the spec says by then: %s', (step) => {
    const asked = { ...restore, upgradeMode: 'savepoint', logLevel: 'debug' }
    const again = running()
    again.edit(asked)
    steps(again, () => again.status!.transition?.step === step)
    again.edit({ restoreFrom: 's3://other/savepoint-10', restoreNonce: 2 })
    reaches(again, 'RUNNING', 2)
    expect(begins(again)).toEqual([{ start: 2, from: 's3://other/savepoint-10' }])
    const withdrawn = running()
    withdrawn.edit(asked)
    steps(withdrawn, () => withdrawn.status!.transition?.step === step)
    withdrawn.edit({ restoreNonce: undefined })
    reaches(withdrawn, 'RUNNING', 2)
    expect(begins(withdrawn)).toEqual([
      { start: 2, from: restorePointOf(deeds(withdrawn, 'began')[0]!.headBefore!).path },
    ])
  })

  it('is made where an upgrade waits, or has found nothing to go on from', () => {
    const silent = running({ upgradeMode: 'savepoint' })
    silent.coordinatorIsSilent = true
    silent.editCode('v2')
    stay(silent, 30)
    expect(condition(silent, 'UpgradeBlocked')).toMatchObject({ reason: 'CoordinatorUnreachable' })
    const lost = running({}, (world) => void (world.checkpointing = 'off'))
    lost.coordinatorIsSilent = true
    lost.editCode('v2')
    stay(lost, 60)
    expect(condition(lost, 'UpgradeBlocked').message).toContain('spec.restoreFrom and restoreNonce')
    for (const world of [silent, lost]) {
      world.edit(restore)
      stay(world, 30)
      world.coordinatorIsSilent = false
      reaches(world, 'RUNNING', 2)
      expect(begins(world)).toEqual([{ start: 2, from: restoreFrom }])
    }
  })

  it('is not made again when it was rolled back, nor by a restartNonce that came with it', () => {
    const world = running({ rollback: { progressDeadline: '20s' } })
    world.edit({ ...restore, restartNonce: 1, program: { ...program, args: { crash: true } } })
    reaches(world, 'RUNNING', 3)
    stay(world, 30)
    expect(begins(world)[0]).toEqual({ start: 2, from: restoreFrom })
    expect(world.status).toMatchObject({
      start: 3,
      blocked: { reason: 'RolledBack' },
      answered: { restart: 1, restore: 1 },
    })
    expect(world.status!.blocked!.message).toContain('spec.restoreNonce')
  })

  it('that an operator of before began goes on', () => {
    const world = running()
    world.edit(restore)
    steps(world, () => world.status!.transition?.step === 'closing')
    const { modeOfSpec: _, restoreNonce: __, ...transition } = world.status!.transition!
    world.status = { ...world.status!, transition, answered: { restore: 1 } }
    reaches(world, 'RUNNING', 2)
    expect(begins(world)).toEqual([{ start: 2, from: restoreFrom }])
  })
})
