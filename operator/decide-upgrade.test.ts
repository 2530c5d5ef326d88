import { describe, expect, it } from 'vitest'
import { begins, condition, deeds, events, isQuiet, reaches, running, stay, steps } from './decide-story.ts'
import { awayText, restorePointOf } from './decide-world.ts'
import type { World } from './decide-world.ts'

describe('an upgrade', () => {
  it('by savepoint stops with one, and begins there', () => {
    const world = running({ upgradeMode: 'savepoint' })
    world.editCode('v2')
    reaches(world, 'RUNNING', 2)
    expect(deeds(world, 'savepoint')).toMatchObject([{ stops: true }])
    expect(begins(world)).toEqual([{ start: 2, from: expect.stringContaining('savepoint-') }])
    expect(world.status!.timeline.map(({ step }) => step)).toEqual([
      'preparing',
      'closing',
      'closed',
      'starting',
      'stabilising',
    ])
    expect(events(world)).toEqual(['Upgrading', 'PreflightPassed', 'Closed', 'Stable'])
    // The one before is no longer needed.
    expect(world.revisions.map(({ name }) => name)).toEqual([world.status!.revision])
  })

  it('by savepoint waits while nobody answers, goes on when somebody does, or by last-state if that is asked for', () => {
    for (const change of ['answer', 'mode'] as const) {
      const world = running({ upgradeMode: 'savepoint' })
      world.coordinatorIsSilent = true
      world.editCode('v2')
      stay(world, 120)
      expect(world.status).toMatchObject({ start: 1, transition: { step: 'closing' } })
      expect(condition(world, 'UpgradeBlocked')).toMatchObject({ status: 'True', reason: 'CoordinatorUnreachable' })
      expect(condition(world, 'Ready')).toMatchObject({ status: 'Unknown', reason: 'CoordinatorUnreachable' })
      expect(deeds(world, 'took down')).toEqual([])
      expect(world.head!.end).toBe('none')
      if (change === 'answer') world.coordinatorIsSilent = false
      else world.edit({ upgradeMode: 'last-state' })
      stay(world, 30)
      world.coordinatorIsSilent = false
      reaches(world, 'RUNNING', 2)
      expect(deeds(world, 'savepoint')).toHaveLength(change === 'answer' ? 1 : 0)
    }
  })

  it('has its coordinator made again while its savepoint waits', () => {
    const world = running({ upgradeMode: 'savepoint' })
    world.coordinatorIsSilent = true
    world.editCode('v2')
    stay(world, 10)
    expect(world.status!.transition?.step).toBe('closing')
    world.children.delete('Deployment/coordinator')
    world.coordinatorIsSilent = false
    reaches(world, 'RUNNING', 2)
    expect(deeds(world, 'savepoint')).toHaveLength(1)
  })

  it('whose savepoint fails takes nothing away, says why, and tries again under another name', () => {
    const world = running({ upgradeMode: 'savepoint' })
    world.savepointsFail = true
    world.editCode('v2')
    stay(world, 60)
    expect(deeds(world, 'took down')).toEqual([])
    expect(world.status).toMatchObject({ start: 1, transition: { retry: { why: 'a subtask declined' } } })
    expect(world.status!.transition!.attempt).toBeGreaterThan(1)
    expect(condition(world, 'UpgradeBlocked')).toEqual({
      status: 'True',
      reason: 'SavepointFailed',
      message: 'It is tried again: a subtask declined. Nothing was taken away.',
    })
    world.savepointsFail = false
    reaches(world, 'RUNNING', 2)
    expect(deeds(world, 'savepoint')).toHaveLength(1)
  })

  it('takes the mode of the same edit', () => {
    const world = running({ upgradeMode: 'stateless' })
    const point = () => restorePointOf(world.head!).path
    world.edit({ upgradeMode: 'last-state', logLevel: 'debug' })
    const before = point()
    reaches(world, 'RUNNING', 2)
    expect(begins(world)).toEqual([{ start: 2, from: before }])
    world.edit({ upgradeMode: 'stateless', logLevel: 'warn' })
    reaches(world, 'RUNNING', 3)
    expect(begins(world)[1]).toEqual({ start: 3, from: 'empty' })
  })

  it.each(['off', undefined] as const)(
    'never becomes stateless by itself: without checkpoints (%s) last-state is refused, also where only HEAD could say so',
    (checkpointing) => {
      const world = running({}, (each) => void (each.checkpointing = checkpointing))
      world.editCode('v2')
      stay(world, 60)
      expect(world.status!.start).toBe(1)
      expect(condition(world, 'UpgradeBlocked')).toMatchObject({ status: 'True', reason: 'NothingToRestore' })
      world.edit({ upgradeMode: 'savepoint' })
      reaches(world, 'RUNNING', 2)
      const silent = running({}, (each) => void (each.checkpointing = checkpointing))
      silent.coordinatorIsSilent = true
      silent.editCode('v2')
      stay(silent, 60)
      expect(silent.status).toMatchObject({ start: 1, transition: { step: 'closed' } })
      expect(condition(silent, 'UpgradeBlocked')).toMatchObject({ status: 'True', reason: 'NothingToRestore' })
      expect(deeds(silent, 'took down')).toEqual([])
      silent.coordinatorIsSilent = false
      silent.edit({ upgradeMode: 'stateless' })
      reaches(silent, 'RUNNING', 2)
    },
  )

  it('to begin at the latest of a job without checkpoints is refused with what the user can do about that', () => {
    const world = running({}, (each) => void (each.checkpointing = 'off'))
    world.edit({ restoreFrom: 'latest', restoreNonce: 1, upgradeMode: 'stateless' })
    stay(world, 60)
    expect(world.status!.start).toBe(1)
    expect(condition(world, 'UpgradeBlocked')).toMatchObject({ status: 'True', reason: 'NothingToRestore' })
    expect(condition(world, 'UpgradeBlocked').message).toContain('or take restoreNonce back')
    world.edit({ restoreNonce: undefined })
    reaches(world, 'RUNNING', 2)
  })

  it('that the preflight refuses blocks, and is not tried again until something changes', () => {
    const world = running()
    world.preflightSays = 'no'
    world.editCode('v2')
    stay(world, 60)
    expect(world.status).toMatchObject({ phase: 'RUNNING', start: 1, blocked: { reason: 'PreflightRefused' } })
    expect(condition(world, 'UpgradeBlocked').message).toContain('uid a has no place.')
    expect(isQuiet(world)).toBe(true)
    expect(events(world).filter((reason) => reason === 'PreflightRefused')).toHaveLength(1)
    world.preflightSays = 'yes'
    stay(world, 30)
    expect(world.status!.start).toBe(1)
    world.edit({ allowNonRestoredState: true })
    reaches(world, 'RUNNING', 2)
    expect(world.status!.begin).toEqual({ parallelism: 1, goesOn: true, allowNonRestoredState: true })
    expect(world.status!.blocked).toBeUndefined()
  })

  it('is tried out against what the job has, not against where it once began, also while its coordinator is silent', () => {
    const world = running({ upgradeMode: 'last-state', restoreFrom: 's3://other/savepoint-8' })
    stay(world, 20)
    world.coordinatorIsSilent = true
    world.editCode('v2')
    steps(world, () => world.pods.some(({ fact }) => fact.purpose === 'preflight'))
    expect(world.pods.find(({ fact }) => fact.purpose === 'preflight')!.begin).toEqual({ parallelism: 1, goesOn: true })
  })

  it('goes on with an event if the preflight could not run', () => {
    for (const prevent of [
      (world: World) => void (world.preflightSays = 'could not run'),
      (world: World) => void (world.podsCannotBeMade = true),
    ]) {
      const world = running()
      prevent(world)
      world.editCode('v2')
      reaches(world, 'RUNNING', 2)
      expect(events(world)).toContain('PreflightCouldNotRun')
    }
  })

  it('that is edited again while it is prepared, closed or unstable leads to the newest spec, over one savepoint each', () => {
    for (const step of ['preparing', 'closing', 'closed'] as const) {
      const world = running({ upgradeMode: 'savepoint' })
      world.editCode('v2')
      for (let moment = 0; moment < 100 && world.status!.transition?.step !== step; moment++) {
        const decision = world.reconcile()
        if (decision.kind === 'wait') world.pass(500)
      }
      expect(world.status!.transition?.step).toBe(step)
      world.editCode('v3')
      reaches(world, 'RUNNING', 2)
      expect(world.revisions.find(({ name }) => name === world.status!.revision)!.code?.hash).toBe(
        world.code.kind === 'files' ? world.code.hash : '',
      )
      expect(deeds(world, 'savepoint')).toHaveLength(1)
    }
  })

  it('that is set back before anything was taken away is none', () => {
    const world = running()
    world.editCode('v2')
    world.reconcile()
    world.editCode('v1')
    reaches(world, 'RUNNING', 1)
    expect(begins(world)).toEqual([])
  })

  it('to code that is edited again is tried out again: what a pod said of other code does not count', () => {
    const world = running()
    world.preflightSays = 'no'
    world.editCode('v2')
    steps(world, () => world.status!.blocked !== undefined)
    expect(world.status!.blocked!.reason).toBe('PreflightRefused')
    const { generation } = world.job!
    world.preflightSays = 'yes'
    world.editCode('v3')
    expect(world.job!.generation).toBe(generation)
    const tried = new Set<string>()
    world.run(() => {
      for (const { fact } of world.pods) if (fact.purpose === 'preflight') tried.add(fact.uid)
      return isQuiet(world) && world.status!.start === 2
    })
    expect(tried.size).toBe(2)
  })

  it('waits for commits that nobody can make, and says which and why, for as long as that is so', () => {
    const world = running()
    world.editCode('v2')
    steps(world, () => world.status!.transition?.step === 'closed' || world.head!.unconfirmed)
    world.head!.unconfirmed = true
    world.sinkIsAway = true
    world.run(() => condition(world, 'UpgradeBlocked').status === 'True')
    const { path } = restorePointOf(world.head!)
    const word = {
      status: 'True',
      reason: 'CommitsUnconfirmed',
      message: `The transactions that ${path} permits could not be committed: ${awayText}. Nothing else begins before they are, and it is tried again: bring back the system that they go to. If it has forgotten them and you know that they were committed: millrace admin commit --assume-committed.`,
    }
    // Also while the next pod tries it.
    for (let second = 0; second < 400; second++) {
      stay(world, 1)
      for (const type of ['UpgradeBlocked', 'Degraded', 'Stalled'] as const)
        expect(condition(world, type)).toEqual(word)
    }
    expect(world.status!.start).toBe(1)
    expect(deeds(world, 'took down')).toEqual([])
    expect(events(world).filter((reason) => reason === 'CommitsUnconfirmed')).toHaveLength(1)
    world.sinkIsAway = false
    reaches(world, 'RUNNING', 2)
    for (const type of ['UpgradeBlocked', 'Degraded', 'Stalled'] as const)
      expect(condition(world, type)).toMatchObject({ status: 'False' })
  })

  it.each<[string, (world: World) => void, string]>([
    [
      'close HEAD',
      (world) => {
        world.coordinatorIsSilent = true
        world.edit({ restartNonce: 1 })
      },
      'admin-close-restart-1-2-0',
    ],
    [
      'commit',
      (world) => {
        world.head!.unconfirmed = true
        world.commitsAreStuck = true
        world.checkpointsStop = true
        world.edit({ restoreNonce: 1, restoreFrom: 's3://other/savepoint-9' })
      },
      'admin-commit-restart-1-2-0',
    ],
    [
      'read HEAD',
      (world) => {
        world.coordinatorIsSilent = true
        world.status = undefined
      },
      'admin-restore-point-start-0-1-0',
    ],
  ])('and all else says why the pod that is to %s has no node', (_, change, pod) => {
    const world = running()
    world.shortPodsHaveNoNode = true
    change(world)
    stay(world, 60)
    expect(condition(world, 'Degraded')).toEqual({
      status: 'True',
      reason: 'Unschedulable',
      message: `Pod ${pod} does not run: no node has room`,
    })
    stay(world, 300)
    expect(condition(world, 'Stalled').message).toContain('Unschedulable: no node has room')
    world.shortPodsHaveNoNode = false
    world.coordinatorIsSilent = false
    world.checkpointsStop = false
    world.run(() => isQuiet(world) && world.status!.phase === 'RUNNING')
    expect(condition(world, 'Degraded')).toMatchObject({ status: 'False' })
  })

  it('of a restored namesake first has what was permitted committed by the code that wrote it', () => {
    const world = running({ upgradeMode: 'stateless' })
    world.checkpointsStop = true
    world.head!.unconfirmed = true
    world.commitsAreStuck = true
    world.coordinatorIsSilent = true
    world.editCode('v2')
    const seen = new Set<string>()
    for (let second = 0; second < 40; second++) {
      world.settle()
      for (const { fact } of world.pods)
        if (fact.purpose !== undefined) seen.add(`${fact.purpose} ${fact.revision.slice(-2)}`)
      if (world.status!.start === 2) break
      expect(world.status!.start).toBe(1)
      world.pass(1_000)
    }
    expect([...seen]).toContain('admin-commit r1')
    expect(world.head!.unconfirmed).toBe(false)
  })
})

describe('upgradeMode while HEAD is being closed', () => {
  it.each<[string, (world: World) => void]>([
    ['a restart by restartNonce', (world) => world.edit({ restartNonce: 1 })],
    [
      'an upgrade that is set back',
      (world) => {
        world.editCode('v2')
        world.run(() => world.status!.transition?.step === 'closing')
        world.editCode('v1')
      },
    ],
    [
      'a suspension that is taken back',
      (world) => {
        world.edit({ state: 'suspended' })
        world.run(() => world.status!.transition?.step === 'closing')
        world.edit({ state: 'running' })
      },
    ],
  ])('ends the wait of %s for a savepoint', (_, begin) => {
    for (const fault of ['coordinatorIsSilent', 'savepointsFail'] as const) {
      const world = running({ upgradeMode: 'savepoint' })
      const { revision } = world.status!
      world[fault] = true
      begin(world)
      stay(world, 60)
      const asked = fault === 'savepointsFail' ? 'SavepointFailed' : 'CoordinatorUnreachable'
      expect(condition(world, 'UpgradeBlocked')).toMatchObject({ status: 'True', reason: asked })
      expect(world.status).toMatchObject({ start: 1, transition: { kind: 'restart', step: 'closing' } })
      world.edit({ upgradeMode: 'last-state' })
      stay(world, 30)
      world.coordinatorIsSilent = false
      reaches(world, 'RUNNING', 2)
      expect(world.status!.revision).toBe(revision)
      expect(deeds(world, 'savepoint')).toEqual([])
      expect(begins(world)).toEqual([{ start: 2, from: expect.stringContaining('chk-') }])
    }
  })

  it.each<[string, (world: World) => void]>([
    ['a restart from latest', (world) => world.edit({ restoreNonce: 1, restoreFrom: 'latest' })],
    [
      'a restart from latest that is edited again',
      (world) => {
        world.edit({ restoreNonce: 1, restoreFrom: 'latest' })
        steps(world, () => world.status!.transition?.step === 'closing')
        world.editCode('v2')
        world.reconcile()
      },
    ],
    ['a job that somebody stopped', (world) => void (world.head!.end = 'suspended')],
  ])('takes no state from %s', (_, begin) => {
    for (const upgradeMode of ['savepoint', 'stateless'] as const) {
      const world = running({ upgradeMode })
      begin(world)
      steps(world, () => world.status!.transition?.step === 'closing')
      world.coordinatorIsSilent = true
      stay(world, 30)
      world.coordinatorIsSilent = false
      reaches(world, 'RUNNING', 2)
      expect(deeds(world, 'savepoint')).toEqual([])
      expect(begins(world)).toEqual([{ start: 2, from: expect.stringContaining('chk-') }])
    }
  })

  it('takes none from a restart either of which the operator of before did not say whose its mode is', () => {
    const world = running({ upgradeMode: 'stateless' })
    world.edit({ restoreNonce: 1, restoreFrom: 'latest' })
    steps(world, () => world.status!.transition?.kind === 'restart')
    const { modeOfSpec: _, restoreNonce: __, ...transition } = world.status!.transition!
    world.status = { ...world.status!, transition, answered: { restore: 1 } }
    reaches(world, 'RUNNING', 2)
    expect(begins(world)).toEqual([{ start: 2, from: expect.stringContaining('chk-') }])
  })
})
