import { describe, expect, it } from 'vitest'
import { desiredOf } from './decide-desired.ts'
import { begins, condition, deeds, program, reaches, running, stay, steps } from './decide-story.ts'
import { restorePointOf } from './decide-world.ts'
import type { Spec, World } from './decide-world.ts'
import { attemptKey } from './revision.ts'

describe('an upgrade that is not stable', () => {
  const short = { rollback: { progressDeadline: '20s' } }

  it('goes back to the stable revision at the restore point of before, and says why', () => {
    const world = running(short)
    const stable = world.status!.revision!
    world.edit({ program: { ...program, image: 'bad:1' } })
    reaches(world, 'RUNNING', 3)
    const [bad, ...others] = [begins(world)[0], ...begins(world).slice(1)]
    // Its image was never there: it began nothing.
    expect(bad).toMatchObject({ start: 3 })
    expect(others).toEqual([])
    expect(world.status).toMatchObject({ revision: stable, stableRevision: stable, blocked: { reason: 'RolledBack' } })
    expect(condition(world, 'UpgradeBlocked').message).toContain('ImagePullBackOff: no such image')
    expect(condition(world, 'Degraded')).toMatchObject({ status: 'True', reason: 'RolledBack' })
    stay(world, 60)
    expect(world.status!.start).toBe(3)
    world.edit({ program: { ...program, image: 'good:1' } })
    reaches(world, 'RUNNING', 4)
    expect(condition(world, 'Degraded')).toMatchObject({ status: 'False' })
  })

  it.each<Spec>([
    { upgradeMode: 'last-state' },
    { allowNonRestoredState: true },
    { restoreFrom: 's3://other/savepoint-9' },
  ])('is not tried again for a setting that changes nothing now: %j', (settings) => {
    const world = running({ ...short, upgradeMode: 'savepoint' })
    world.edit({ program: { ...program, args: { crash: true } } })
    reaches(world, 'RUNNING', 3)
    world.edit(settings)
    stay(world, 30)
    expect(world.status).toMatchObject({ start: 3, phase: 'RUNNING' })
    expect(condition(world, 'UpgradeBlocked')).toMatchObject({ status: 'True', reason: 'RolledBack' })
  })

  it('stays refused with a status of an operator whose key held those settings too', () => {
    const world = running(short)
    world.edit({ program: { ...program, args: { crash: true } } })
    reaches(world, 'RUNNING', 3)
    const desired = desiredOf(world.observe())
    if (desired.kind !== 'known') throw new Error(desired.message)
    world.status = {
      ...world.status!,
      blocked: { ...world.status!.blocked!, key: attemptKey(desired.hash, desired.spec) },
    }
    stay(world, 30)
    expect(world.status).toMatchObject({ start: 3, phase: 'RUNNING' })
  })

  it('says so in sentences, where the reason is some too', () => {
    const world = running(short)
    const stable = world.status!.revision!
    world.edit({ program: { ...program, args: { rows: 2 } } })
    steps(world, () => world.status!.transition?.step === 'stabilising')
    world.jobFails = true
    steps(world, () => world.status!.blocked !== undefined)
    world.jobFails = false
    reaches(world, 'RUNNING', 3)
    expect(condition(world, 'Degraded').message).toMatch(
      new RegExp(
        `^Revision \\S+ was not stable: MR-O01 The job failed\\. User code threw\\. The job is back at ${stable}\\. Mend the spec, or raise spec\\.restartNonce to try it again\\.$`,
      ),
    )
  })

  it('is not spoken of any more while the next edit is tried, of which is said why it does not come up', () => {
    const world = running(short)
    world.edit({ program: { ...program, args: { crash: true } } })
    reaches(world, 'RUNNING', 3)
    world.edit({ program: { ...program, image: 'bad:1' } })
    steps(world, () => world.pods.some(({ fact }) => fact.purpose === 'preflight' && fact.trouble !== undefined))
    stay(world, 1)
    expect(world.status).toMatchObject({ transition: { step: 'preparing' }, blocked: { reason: 'RolledBack' } })
    expect(condition(world, 'Degraded')).toMatchObject({ status: 'False', reason: 'AsExpected' })
    expect(condition(world, 'Progressing').message).toMatch(
      /^Upgrade to revision \S+: the revision is stored and tried out\. Pod \S+ does not run: ImagePullBackOff: no such image$/,
    )
  })

  it('is tried again by restartNonce', () => {
    const world = running(short)
    world.edit({ program: { ...program, args: { crash: true } } })
    reaches(world, 'RUNNING', 3)
    world.edit({ restartNonce: 1 })
    stay(world, 15)
    expect(world.status).toMatchObject({ start: 4, transition: { kind: 'upgrade' } })
  })

  it('and began from nothing goes back to the state of before', () => {
    const world = running({ ...short, upgradeMode: 'stateless' })
    world.edit({ program: { ...program, args: { crash: true } } })
    reaches(world, 'RUNNING', 3)
    const [stateless, back] = deeds(world, 'began')
    expect(stateless).toMatchObject({ start: 2, from: 'empty' })
    expect(back).toMatchObject({ start: 3, from: restorePointOf(stateless!.headBefore!).path })
  })

  it('and went on from one that began from nothing goes back to the state of before', () => {
    const world = running({ rollback: { progressDeadline: '60s' }, upgradeMode: 'stateless' })
    world.edit({ program: { ...program, args: { crash: true } } })
    world.run(() => world.head!.start === 2)
    world.edit({ upgradeMode: 'last-state', logLevel: 'debug' })
    reaches(world, 'RUNNING', 4)
    const [stateless, next, back] = deeds(world, 'began')
    expect([stateless, next]).toMatchObject([{ from: 'empty' }, { from: 'empty' }])
    expect(back).toMatchObject({ start: 4, from: restorePointOf(stateless!.headBefore!).path })
  })

  // Each of them is to begin elsewhere than where HEAD says, and finds a node only when it has been given up.
  const elsewhere: readonly (readonly [string, Spec])[] = [
    ['stateless', { upgradeMode: 'stateless', logLevel: 'debug' }],
    ['at restoreFrom', { restoreNonce: 1, restoreFrom: 's3://other/savepoint-9', logLevel: 'debug' }],
  ]
  const late = (spec: Spec, step: 'closed' | 'starting') => {
    const world = running({ ...short, upgradeMode: 'last-state' })
    steps(world, () => !world.head!.unconfirmed)
    world.coordinatorHasNoNode = true
    world.checkpointsStop = true
    world.edit(spec)
    steps(world, () => world.status!.transition?.kind === 'rollback' && world.status!.transition.step === step)
    expect(world.head).toMatchObject({ start: 1, end: 'suspended' })
    const { path } = restorePointOf(world.head!)
    world.coordinatorHasNoNode = false
    return { world, path }
  }

  it.each(elsewhere)('%s, whose coordinator comes while it is taken back, is closed once more', (_, spec) => {
    const { world, path } = late(spec, 'closed')
    for (let second = 0; second < 5; second++) world.pass(1_000)
    expect(world.head).toMatchObject({ start: 2, end: 'none' })
    steps(world, () => world.head!.start === 3)
    world.checkpointsStop = false
    reaches(world, 'RUNNING', 3)
    const back = deeds(world, 'began').at(-1)!
    expect(back).toMatchObject({ start: 3, from: path, headBefore: { start: 2, end: 'suspended' } })
    expect(world.status).toMatchObject({ blocked: { reason: 'RolledBack' } })
  })

  it.each(elsewhere)('%s, whose coordinator comes after all and is seen by nobody, loses no state', (_, spec) => {
    const { world, path } = late(spec, 'starting')
    world.coordinatorIsSilent = true
    for (let second = 0; second < 5; second++) world.pass(1_000)
    expect(world.head).toMatchObject({ start: 2, end: 'none' })
    world.coordinatorIsSilent = false
    world.checkpointsStop = false
    reaches(world, 'RUNNING', 3)
    expect(begins(world).at(-1)).toEqual({ start: 3, from: path })
  })

  it('is never taken back once HEAD shows that it completed something', () => {
    const world = running(short)
    world.edit({ program: { ...program, args: { crash: true } } })
    world.run(() => world.status?.transition?.kind === 'rollback')
    // Its first checkpoint, in the last moment.
    const head = world.head!
    head.completed.push({ id: head.nextId++, kind: 'checkpoint', start: head.start, path: 's3://bucket/late' })
    const next = world.status!.transition!.from!
    stay(world, 20)
    expect(world.status).toMatchObject({ start: 3, revision: next, stableRevision: next })
    expect(begins(world).at(-1)).toEqual({ start: 3, from: 's3://bucket/late' })
  })

  it('is where the next goes back to once HEAD shows that it completed something, though it was replaced before anybody saw it', () => {
    const world = running({ ...short, upgradeMode: 'stateless' })
    world.edit({ program: { ...program, args: { rows: 2 } } })
    const hasCompleted = (): boolean => {
      const { coordinator } = world.observe()
      return coordinator.known && coordinator.value.start === 2 && coordinator.value.completedInStart
    }
    // Seen by nobody: the operator does not look again before the next edit.
    for (let second = 0; second < 100 && !hasCompleted(); second++) {
      world.reconcile()
      world.pass(1_000)
    }
    expect(world.status!.transition).toMatchObject({ kind: 'upgrade', step: 'stabilising' })
    const [second, completed] = [world.status!.revision!, world.head!.completed.at(-1)!]
    world.edit({ program: { ...program, args: { crash: true } } })
    reaches(world, 'RUNNING', 4)
    expect(world.status).toMatchObject({ revision: second, stableRevision: second, blocked: { reason: 'RolledBack' } })
    expect(begins(world).at(-1)).toEqual({ start: 4, from: completed.path })
  })

  /** Begun, and no checkpoint completes. */
  const unstable = (): World => {
    const world = running(short)
    world.checkpointsStop = true
    world.editCode('v2')
    return steps(world, () => world.status!.transition?.step === 'stabilising' && world.head!.start === 2)
  }

  it('is left its time for as long as it comes further, and no longer', () => {
    const world = unstable()
    const begunMs = world.nowMs
    let untilMs = begunMs + 200_000
    world.restoredBytes = () => [Math.min(world.nowMs, untilMs) - begunMs]
    stay(world, 150)
    expect(world.status).toMatchObject({ start: 2, transition: { kind: 'upgrade', step: 'stabilising' } })
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'False' })
    untilMs = world.nowMs
    stay(world, 15)
    expect(world.status!.transition).toMatchObject({ kind: 'upgrade' })
    stay(world, 15)
    expect(world.status!.blocked).toMatchObject({ reason: 'RolledBack' })
  })

  it('is taken back where it comes no further', () => {
    const world = unstable()
    stay(world, 40)
    expect(world.status!.blocked).toMatchObject({ reason: 'RolledBack' })
  })

  it('is taken back where it restores, runs and restarts again and again', () => {
    const world = unstable()
    const begunMs = world.nowMs
    const isFor = (): number => (world.nowMs - begunMs) / 1_000
    world.restoredBytes = () => [(isFor() % 10) * 100]
    for (let second = 0; second < 90; second++) {
      world.restarts = Math.floor(isFor() / 10)
      stay(world, 1)
    }
    expect(world.status!.blocked).toMatchObject({ reason: 'RolledBack' })
  })

  it('is stable by the first checkpoint of its start, though the interval is longer than its deadline', () => {
    const world = running({ ...short, checkpointing: { interval: '1h' } }, (each) => {
      each.checkpointEveryMs = 3_600_000
    })
    world.editCode('v2')
    reaches(world, 'RUNNING', 2)
    expect(world.status!.blocked).toBeUndefined()
    expect(begins(world)).toEqual([{ start: 2, from: restorePointOf(deeds(world, 'began')[0]!.headBefore!).path }])
    stay(world, 300)
    expect(world.head!.completed.filter(({ start }) => start === 2)).toHaveLength(1)
  })

  it('stays as it is where rollback is off', () => {
    const world = running({ rollback: { enabled: false, progressDeadline: '20s' } })
    world.edit({ program: { ...program, image: 'bad:1' } })
    stay(world, 120)
    expect(world.status).toMatchObject({ start: 2, phase: 'UPGRADING' })
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'ProgressDeadlineExceeded' })
  })

  it.each(['storageIsDown', 'natsIsDown'] as const)(
    'has its clock stopped while its coordinator waits: %s',
    (fault) => {
      const world = running(short)
      world.editCode('v2')
      steps(world, () => world.status!.transition?.step === 'starting')
      world[fault] = true
      stay(world, 300)
      expect(world.head!.start).toBe(1)
      expect(world.status).toMatchObject({
        start: 2,
        transition: { kind: 'upgrade', held: { why: expect.stringContaining('does not answer') } },
      })
      expect(condition(world, 'Degraded')).toMatchObject({ status: 'True', reason: 'Outage' })
      world[fault] = false
      reaches(world, 'RUNNING', 2)
      expect(world.status!.blocked).toBeUndefined()
    },
  )

  it('to an address where nothing answers is rolled back: that is no outage', () => {
    const world = running(short)
    world.edit({ nats: { url: 'nats://typo:4222' } })
    steps(world, () => world.status!.transition?.step === 'starting')
    world.natsIsDown = true
    steps(world, () => world.status!.blocked?.reason === 'RolledBack')
    world.natsIsDown = false
    reaches(world, 'RUNNING', 3)
  })

  it.each(['storageIsDown', 'natsIsDown'] as const)('has its clock stopped while %s', (fault) => {
    const world = running(short)
    world.checkpointsStop = true
    world.editCode('v2')
    world.run(() => world.status?.transition?.step === 'stabilising' && world.head!.start === 2)
    world[fault] = true
    stay(world, 300)
    expect(world.status).toMatchObject({
      start: 2,
      transition: { kind: 'upgrade', held: { why: expect.stringContaining('does not answer') } },
    })
    expect(condition(world, 'Degraded')).toMatchObject({ status: 'True', reason: 'Outage' })
    world[fault] = false
    stay(world, 10)
    expect(world.status!.transition).toMatchObject({ kind: 'upgrade' })
    stay(world, 60)
    expect(world.status).toMatchObject({ start: 3 })
  })
})

/** The start that was tried has begun elsewhere; the rollback finds no node, and what comes next takes its place. */
describe('a rollback that has not begun', () => {
  const short = { parallelism: 2, rollback: { progressDeadline: '30s' } }
  const crash = { program: { ...program, args: { crash: true } } }
  const asked = { restoreFrom: 's3://other/savepoint-8', restoreNonce: 1 }

  function stuck(spec: Spec = {}, tried: Spec = asked) {
    const world = running({ ...short, upgradeMode: 'last-state', ...spec })
    stay(world, 20)
    world.edit({ ...tried, ...crash })
    steps(world, () => world.status!.transition?.kind === 'rollback' && world.head!.end !== 'none')
    expect(begins(world)).toEqual([{ start: 2, from: tried['restoreFrom'] ?? 'empty' }])
    world.coordinatorHasNoNode = true
    steps(world, () => world.status!.transition?.kind === 'rollback' && world.status!.transition.step === 'stabilising')
    const { path } = world.status!.rollbackPoint!
    expect(world.status!.begin).toMatchObject({ from: path })
    world.deeds.length = 0
    return { world, path }
  }
  const freed = (world: World, start: number): void => {
    world.coordinatorHasNoNode = false
    reaches(world, 'RUNNING', start)
  }

  it.each<[string, Spec]>([
    ['another program', { program: { ...program, args: { rows: 2 } } }],
    ['a restart', { restartNonce: 7, program }],
  ])('is followed by %s from where it was to begin', (_, edit) => {
    const { world, path } = stuck()
    world.edit(edit)
    steps(world, () => world.status!.start === 4)
    freed(world, 4)
    expect(begins(world)).toEqual([{ start: 4, from: path }])
    expect(world.status).not.toHaveProperty('rolledBackStart')
    expect(world.status).not.toHaveProperty('rollbackPoint')
  })

  it.each<[string, Spec]>([
    ['as it is', {}],
    ['with another program', { program: { ...program, args: { rows: 2 } } }],
  ])('is resumed %s where it was to begin', (_, edit) => {
    const { world, path } = stuck()
    world.edit({ state: 'suspended' })
    world.run(() => world.status!.phase === 'SUSPENDED')
    world.edit({ state: 'running', ...edit })
    freed(world, 4)
    expect(begins(world)).toEqual([{ start: 4, from: path }])
  })

  it.each(['closing', 'closed'] as const)('is that too where it is still %s', (step) => {
    const world = running({ ...short, upgradeMode: 'last-state' })
    world.edit({ ...asked, ...crash })
    steps(world, () => world.status!.transition?.kind === 'rollback' && world.status!.transition.step === step)
    const { path } = world.status!.rollbackPoint!
    world.edit({ program: { ...program, args: { rows: 2 } } })
    reaches(world, 'RUNNING', 3)
    expect(begins(world).at(-1)).toEqual({ start: 3, from: path })
  })

  it('is followed by a smaller size from where it was to begin', () => {
    const { world, path } = stuck()
    world.edit({ parallelism: 1 })
    steps(world, () => world.status!.start === 4)
    freed(world, 4)
    expect(begins(world)).toEqual([{ start: 4, from: path }])
    expect(world.status).toMatchObject({ parallelism: 1, blocked: { reason: 'RolledBack' } })
  })

  it('is where the next goes back to as well', () => {
    const { world, path } = stuck()
    world.edit({ program: { ...program, args: { crash: true, rows: 2 } } })
    steps(world, () => world.status!.start === 4)
    freed(world, 5)
    expect(begins(world)).toEqual([
      { start: 4, from: path },
      { start: 5, from: path },
    ])
  })

  it('of a stateless try blocks nothing: its state is where it was', () => {
    const { world, path } = stuck({ upgradeMode: 'stateless' }, {})
    world.edit({ upgradeMode: 'last-state', program: { ...program, args: { rows: 2 } } })
    steps(world, () => world.status!.start === 4)
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'False' })
    freed(world, 4)
    expect(begins(world)).toEqual([{ start: 4, from: path }])
  })

  it('is gone on from behind a stateless start that did not begin either', () => {
    const { world, path } = stuck()
    world.edit({ upgradeMode: 'stateless', program: { ...program, args: { rows: 2 } } })
    steps(world, () => world.status!.start === 4 && world.status!.transition!.step === 'stabilising')
    expect(world.status!.begin).toMatchObject({ empty: true })
    world.edit({ upgradeMode: 'last-state', program: { ...program, args: { rows: 3 } } })
    steps(world, () => world.status!.start === 5)
    freed(world, 5)
    expect(begins(world)).toEqual([{ start: 5, from: path }])
  })

  it('gives way to what restoreNonce asks for', () => {
    const { world } = stuck()
    world.edit({ restoreFrom: 's3://other/savepoint-9', restoreNonce: 2, program })
    steps(world, () => world.status!.start === 4)
    freed(world, 4)
    expect(begins(world)).toEqual([{ start: 4, from: 's3://other/savepoint-9' }])
  })

  it('that has begun meanwhile, seen by nobody, is gone on from', () => {
    const { world, path } = stuck()
    world.coordinatorIsSilent = true
    world.coordinatorHasNoNode = false
    stay(world, 12)
    const newest = world.head!.completed.at(-1)!
    expect(newest).toMatchObject({ start: 3 })
    world.edit({ program: { ...program, args: { rows: 2 } } })
    steps(world, () => world.status!.start === 4)
    world.coordinatorIsSilent = false
    reaches(world, 'RUNNING', 4)
    const [first, second] = begins(world)
    expect(first).toEqual({ start: 3, from: path })
    expect(second!.from).not.toBe(path)
  })
})
