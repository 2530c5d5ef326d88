import { describe, expect, it } from 'vitest'
import * as fc from 'fast-check'
import { checkSavepoints } from './decide-world-savepoints.ts'
import { OperatorKilled, World, restorePointOf } from './decide-world.ts'
import type { Spec } from './decide-world.ts'

interface Story {
  readonly name: string
  /** The job before; settled. */
  readonly spec?: Spec
  readonly before?: (world: World) => void
  readonly change: (world: World) => void
  /** When the transition is over. */
  readonly until: (world: World) => boolean
  /** Savepoints that stop the job. */
  readonly stops?: number
  readonly readings?: (world: World) => unknown
}

const isQuiet = (world: World): boolean =>
  world.status !== undefined && world.status.transition === undefined && world.decide().kind === 'wait'
const isAt = (phase: string, start: number) => (world: World) =>
  isQuiet(world) && world.status!.phase === phase && world.status!.start === start

const stories: readonly Story[] = [
  { name: 'the first start', change: () => undefined, until: isAt('RUNNING', 1) },
  {
    name: 'an upgrade by savepoint',
    spec: { upgradeMode: 'savepoint' },
    change: (world) => world.editCode('v2'),
    until: isAt('RUNNING', 2),
    stops: 1,
  },
  { name: 'an upgrade by last-state', change: (world) => world.editCode('v2'), until: isAt('RUNNING', 2) },
  {
    name: 'a stateless upgrade',
    spec: { upgradeMode: 'stateless' },
    change: (world) => world.editCode('v2'),
    until: isAt('RUNNING', 2),
  },
  {
    name: 'an upgrade while nobody answers',
    before: (world) => void (world.coordinatorIsSilent = true),
    change: (world) => world.editCode('v2'),
    until: (world) => {
      if (world.status?.transition?.step === 'stabilising') world.coordinatorIsSilent = false
      return isAt('RUNNING', 2)(world)
    },
  },
  { name: 'suspend', change: (world) => world.edit({ state: 'suspended' }), until: isAt('SUSPENDED', 1) },
  {
    name: 'suspend by savepoint, and resume',
    spec: { upgradeMode: 'savepoint' },
    change: (world) => world.edit({ state: 'suspended' }),
    until: (world) => {
      if (isAt('SUSPENDED', 1)(world)) world.edit({ state: 'running' })
      return isAt('RUNNING', 2)(world)
    },
    stops: 1,
  },
  { name: 'restart by a nonce', change: (world) => world.edit({ restartNonce: 1 }), until: isAt('RUNNING', 2) },
  {
    name: 'restore by a nonce',
    change: (world) => world.edit({ restoreNonce: 1, restoreFrom: 's3://other/savepoint-9' }),
    until: isAt('RUNNING', 2),
  },
  {
    name: 'rescale 2 to 4',
    spec: { parallelism: 2 },
    change: (world) => world.edit({ parallelism: 4 }),
    until: (world) => isQuiet(world) && world.status!.parallelism === 4,
  },
  {
    name: 'rescale 4 to 1',
    spec: { parallelism: 4 },
    change: (world) => world.edit({ parallelism: 1 }),
    until: (world) => isQuiet(world) && world.status!.parallelism === 1,
  },
  {
    name: 'a smaller size while a worker has no node',
    spec: { parallelism: 4 },
    before: (world) => squeeze(world, 3),
    change: (world) => world.edit({ parallelism: 3 }),
    until: (world) => isAt('RUNNING', 2)(world) && world.status!.parallelism === 3,
  },
  {
    name: 'a bad image, rolled back',
    spec: { rollback: { progressDeadline: '20s' } },
    change: (world) => world.edit({ program: { ...program, image: 'bad:1' } }),
    until: isAt('RUNNING', 3),
  },
  {
    name: 'a bad image at a size that there is no room for, rolled back and refused',
    spec: { parallelism: 2, rollback: { progressDeadline: '20s' } },
    before: (world) => void (world.room = 3),
    change: (world) => world.edit({ parallelism: 4, program: { ...program, image: 'bad:1' } }),
    until: (world) => isAt('RUNNING', 3)(world) && world.status!.refusedSize !== undefined,
    readings: (world) => world.status!.refusedSize,
  },
  {
    name: 'code that completes nothing, upgraded stateless, rolled back',
    spec: { upgradeMode: 'stateless', rollback: { progressDeadline: '20s' } },
    change: (world) => world.edit({ program: { ...program, args: { crash: true } } }),
    until: isAt('RUNNING', 3),
  },
  {
    name: 'a savepoint by a nonce',
    change: (world) => world.edit({ savepointNonce: 1 }),
    until: (world) => isQuiet(world) && world.status!.answered.savepoint === 1 && world.status!.asked === undefined,
    readings: (world) => world.status!.savepoints.length,
  },
  {
    name: 'a Savepoint object',
    change: (world) => world.addSavepoint('mine'),
    until: (world) =>
      isQuiet(world) && world.savepoints[0]?.status?.state === 'completed' && world.status!.asked === undefined,
    readings: (world) => [world.status!.savepoints.length, world.savepoints.map(({ status }) => status)],
  },
  {
    name: 'a job that finishes',
    change: (world) => void (world.endOfInput = true),
    until: isAt('FINISHED', 1),
  },
  { name: 'deletion', change: (world) => world.delete(), until: () => false },
  {
    name: 'deletion with a savepoint',
    spec: { deletion: { savepoint: true } },
    change: (world) => world.delete(),
    until: () => false,
    stops: 1,
    readings: (world) => world.savepoints.map(({ path }) => path),
  },
  {
    name: 'deletion while nobody answers',
    before: (world) => void (world.coordinatorIsSilent = true),
    change: (world) => world.delete(),
    until: () => false,
  },
]
const program = { module: { configMap: { name: 'code', key: 'job.ts' } } }

/** A node is lost with one of its workers. */
function squeeze(world: World, room: number): void {
  const lost = world.pods.findLast(({ fact }) => fact.component === 'worker')
  world.pods = world.pods.filter((pod) => pod !== lost)
  world.room = room
}

function begun({ spec, before, name }: Story): World {
  const world = new World(spec)
  if (name !== 'the first start') world.run(() => isAt('RUNNING', 1)(world)).pass(1)
  before?.(world)
  world.deeds.length = 0
  world.writes = 0
  return world
}

/** What every state of the world must show, whoever died. */
function check(world: World): void {
  checkSavepoints(world)
  for (const deed of world.deeds) {
    if (deed.deed === 'touched foreign') throw new Error(`foreign: ${deed.what}`)
    if (deed.deed !== 'began' || deed.headBefore === undefined) continue
    const { headBefore: head, start, from, begin } = deed
    if (head.end === 'none') throw new Error(`start ${start} began while start ${head.start} had not ended`)
    const point = restorePointOf(head).path ?? 'empty'
    if (begin.empty === undefined && begin.from === undefined && from !== point)
      throw new Error(`start ${start} began at ${from}, not at ${point}`)
    if (begin.empty === true && !world.wasAskedForStateless)
      throw new Error(`start ${start} began from nothing unasked`)
  }
}

/** As check, at the very moment of a write. */
function watch(world: World): void {
  const { head, status } = world
  const last = world.deeds.at(-1)
  if (
    last?.deed === 'took down' &&
    head !== undefined &&
    status !== undefined &&
    head.start === status.start &&
    world.job !== undefined
  ) {
    if (head.end === 'none') throw new Error(`${last.what} went while HEAD was open`)
    if (status.restorePoint?.path !== restorePointOf(head).path)
      throw new Error(`${last.what} went before the restore point stood in status`)
  }
  check(world)
}

function runWatched(world: World, until: (world: World) => boolean): void {
  const reconcile = world.reconcile.bind(world)
  world.reconcile = () => {
    try {
      return reconcile()
    } finally {
      watch(world)
    }
  }
  for (let lives = 0; lives < 1_000; lives++)
    try {
      world.run(() => until(world), 900)
      return
    } catch (error) {
      // A new operator knows nothing but what is written; it is killed no more.
      if (!(error instanceof OperatorKilled)) throw error
    }
}

function outcome(world: World, story: Story): unknown {
  const { status, head, revisions, job } = world
  return {
    isGone: job === undefined,
    phase: status?.phase,
    start: status?.start,
    runs: revisions.find(({ name }) => name === status?.revision)?.hash,
    stable: revisions.find(({ name }) => name === status?.stableRevision)?.hash,
    parallelism: status?.parallelism,
    workers: status?.workers,
    replicas: world.children.get('StatefulSet/worker')?.replicas,
    children: [...world.children.keys()].sort(),
    answered: status?.answered,
    blocked: status?.blocked?.reason,
    end: head?.end,
    starts: head?.start,
    stops: world.deeds.filter((deed) => deed.deed === 'savepoint' && deed.stops).length,
    more: story.readings?.(world),
  }
}

describe('an operator that is killed after any one write leads to the same end:', () => {
  it.each(stories)('$name', (story) => {
    const undisturbed = begun(story)
    story.change(undisturbed)
    runWatched(undisturbed, story.until)
    const wanted = outcome(undisturbed, story)
    expect(wanted).toMatchObject({ stops: story.stops ?? 0 })
    expect(undisturbed.writes).toBeGreaterThan(1)
    for (let kill = 1; kill <= undisturbed.writes; kill++) {
      const world = begun(story)
      world.killAfter = kill
      story.change(world)
      runWatched(world, story.until)
      expect({ kill, ...(outcome(world, story) as object) }).toEqual({ kill, ...(wanted as object) })
    }
  })
})

type Step =
  | { readonly do: 'edit'; readonly spec: Spec }
  | { readonly do: 'code'; readonly text: string }
  | { readonly do: 'nonce'; readonly name: (typeof nonceNames)[number] }
  | { readonly do: 'savepoint' }
  | { readonly do: 'break'; readonly what: Fault }
  | { readonly do: 'room'; readonly slots: number }
  /** Another size is asked for while slots are missing, and nothing else happens for a while. */
  | { readonly do: 'squeeze'; readonly slots: number; readonly size: number }
  | {
      readonly do: 'lose'
      readonly what: 'worker' | 'coordinator' | 'child' | 'status' | 'config' | 'revision'
      readonly index: number
    }
  | { readonly do: 'pass'; readonly seconds: number }
  | { readonly do: 'kill'; readonly afterWrites: number }

const nonceNames = ['restartNonce', 'restoreNonce', 'savepointNonce', 'checkpointNonce'] as const

const faults = [
  'storageIsDown',
  'natsIsDown',
  'coordinatorIsSilent',
  'savepointsFail',
  'checkpointsStop',
  'podsCannotBeMade',
  'revisionsAreUnread',
] as const
type Fault = (typeof faults)[number]

/** Slots for any size of these. */
const roomEnough = 100

const specs: Spec[] = [
  { parallelism: 1 },
  { parallelism: 3 },
  { parallelism: 0 },
  { upgradeMode: 'savepoint' },
  { upgradeMode: 'last-state' },
  { upgradeMode: 'stateless' },
  { state: 'suspended' },
  { state: 'running' },
  { program: { ...program, image: 'bad:1' } },
  { program: { ...program, image: 'good:2' } },
  { program: { ...program, args: { crash: true } } },
  { program },
  { savepoints: { every: '20s', keep: { count: 2 } } },
]

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...specs).map((spec) => ({ do: 'edit', spec }) as const) },
  { weight: 2, arbitrary: fc.constantFrom('v1', 'v2', 'v3').map((text) => ({ do: 'code', text }) as const) },
  fc.constantFrom(...nonceNames).map((name) => ({ do: 'nonce', name }) as const),
  fc.constant({ do: 'savepoint' } as const),
  { weight: 2, arbitrary: fc.constantFrom(...faults).map((what) => ({ do: 'break', what }) as const) },
  fc.constantFrom(1, 2, roomEnough).map((slots) => ({ do: 'room', slots }) as const),
  fc.record({ do: fc.constant('squeeze' as const), slots: fc.constantFrom(1, 2), size: fc.constantFrom(1, 2, 3) }),
  fc.record({
    do: fc.constant('lose' as const),
    what: fc.constantFrom('worker', 'coordinator', 'child', 'status', 'config', 'revision'),
    index: fc.nat(5),
  }),
  { weight: 5, arbitrary: fc.integer({ min: 1, max: 40 }).map((seconds) => ({ do: 'pass', seconds }) as const) },
  {
    weight: 3,
    arbitrary: fc.integer({ min: 1, max: 12 }).map((afterWrites) => ({ do: 'kill', afterWrites }) as const),
  },
)

function apply(world: World, step: Step, nonces: Record<string, number>): void {
  switch (step.do) {
    case 'edit':
      return world.edit(step.spec)
    case 'code':
      return world.editCode(step.text)
    case 'nonce':
      nonces[step.name] = (nonces[step.name] ?? 0) + 1
      return world.edit({
        [step.name]: nonces[step.name],
        ...(step.name === 'restoreNonce' && { restoreFrom: 'latest' }),
      })
    case 'savepoint':
      // A name that was used once is not used again, though its object may be gone.
      nonces['savepoint'] = (nonces['savepoint'] ?? 0) + 1
      return world.addSavepoint(`mine-${nonces['savepoint']}`)
    case 'break':
      world[step.what] = !world[step.what]
      return
    case 'room':
      return void (world.room = step.slots)
    case 'squeeze':
      squeeze(world, step.slots)
      world.edit({ parallelism: step.size })
      return apply(world, { do: 'pass', seconds: 70 }, nonces)
    case 'lose': {
      if (step.what === 'status') return void (world.status = undefined)
      if (step.what === 'revision') return world.loseRevision(world.status?.revision)
      const own = [...world.children].filter(([, child]) => child.ownedByJob).map(([key]) => key)
      if (step.what === 'child') return void world.children.delete(own[step.index] ?? '')
      if (step.what === 'config') {
        for (const key of own) if (key.startsWith('ConfigMap/')) world.children.delete(key)
        return
      }
      const { what } = step
      const lost = world.pods.filter(({ fact }) => fact.component === what)[step.index % 2]
      world.pods = world.pods.filter((pod) => pod !== lost)
      return
    }
    case 'pass':
      for (let second = 0; second < step.seconds; second++) {
        world.pass(1_000)
        live(world)
      }
      return
    case 'kill':
      world.killAfter = world.writes + step.afterWrites
      return
    default:
      step satisfies never
  }
}

function live(world: World): void {
  try {
    world.settle()
  } catch (error) {
    if (!(error instanceof OperatorKilled)) throw error
    live(world)
  } finally {
    check(world)
  }
}

/** Schedules that once went wrong. */
const found: Step[][] = [
  // HEAD was begun with the size of the start before the status was lost, and had too few workers for ever.
  [
    { do: 'code', text: 'v2' },
    { do: 'pass', seconds: 4 },
    { do: 'edit', spec: { parallelism: 1 } },
    { do: 'break', what: 'storageIsDown' },
    { do: 'lose', what: 'status', index: 0 },
    { do: 'pass', seconds: 1 },
  ],
  // HEAD was to be read with an image that is not there, again and again, though the spec had another one.
  [
    { do: 'edit', spec: { program: { ...program, image: 'bad:1' } } },
    { do: 'pass', seconds: 32 },
    { do: 'pass', seconds: 31 },
    { do: 'lose', what: 'status', index: 0 },
    { do: 'edit', spec: { program: { ...program, image: 'good:2' } } },
    { do: 'edit', spec: { parallelism: 1 } },
    { do: 'kill', afterWrites: 1 },
    { do: 'kill', afterWrites: 1 },
  ],
]

describe('any schedule of edits, losses, outages and kills', () => {
  it('never runs two starts at once or takes a state away, and ends where the spec says', () => {
    let upgrades = 0
    fc.assert(
      fc.property(fc.array(step, { minLength: 3, maxLength: 25 }), (steps) => {
        const world = new World({ parallelism: 2, rollback: { progressDeadline: '30s' } })
        world.addForeign('Secret/flights')
        world.run(() => isAt('RUNNING', 1)(world))
        const nonces: Record<string, number> = {}
        for (const each of steps) {
          apply(world, each, nonces)
          live(world)
        }
        // Faults stop: now it must converge.
        for (const fault of faults) world[fault] = false
        world.room = roomEnough
        world.killAfter = Number.POSITIVE_INFINITY
        world.edit({ savepoints: undefined, ...(world.observe().spec.fits ? {} : { parallelism: 2 }) })
        const hopeless = world.spec().program.image === 'bad:1' || world.spec().program.args['crash'] === true
        if (hopeless) {
          // Rolled back or not, by what status still knows: nothing more is claimed than at every step.
          for (let second = 0; second < 120; second++) apply(world, { do: 'pass', seconds: 1 }, nonces)
          return
        }
        world.run(() => {
          const { phase, asked, conditions } = world.status!
          // What somebody has deleted is gone on without when the user says so.
          if (conditions.some(({ type, reason }) => type === 'Stalled' && reason === 'RevisionDeleted')) {
            apply(world, { do: 'nonce', name: 'restartNonce' }, nonces)
            return false
          }
          const answers = world.observe().coordinator.known
          const isDown = !world.pods.some(({ fact }) => fact.component === 'worker' || fact.component === 'coordinator')
          const isThere = phase === 'SUSPENDED' ? isDown : phase === 'RUNNING' && answers
          return isQuiet(world) && asked === undefined && isThere
        }, 900)
        check(world)
        const { status, head } = world
        upgrades += head!.start - 1
        const spec = world.spec()
        const runs = world.revisions.find(({ name }) => name === status!.revision)!
        if (spec.state === 'suspended') {
          expect(status).toMatchObject({ phase: 'SUSPENDED' })
          expect(head!.end).not.toBe('none')
          expect(
            world.pods.filter(({ fact }) => fact.component === 'worker' || fact.component === 'coordinator'),
          ).toEqual([])
        } else {
          if (status!.blocked === undefined) {
            expect({ phase: status!.phase, image: runs.image, code: runs.code?.hash }).toEqual({
              phase: 'RUNNING',
              image: spec.program.image,
              code: world.code.kind === 'files' ? world.code.hash : '',
            })
            if (status!.refusedSize === undefined)
              expect([status!.parallelism, head!.rescaledTo ?? head!.parallelism]).toEqual([
                spec.parallelism,
                spec.parallelism,
              ])
            expect(status!.answered.restore).toBe(spec.restoreNonce)
            expect({ start: head!.start, end: head!.end }).toEqual({ start: status!.start, end: 'none' })
          }
        }
        expect(world.children.get('Secret/flights')).toMatchObject({ uid: 'foreign' })
        // Settled, it decides to wait, whenever it is asked.
        for (let second = 0; second < 15; second++) {
          expect(world.decide().kind).toBe('wait')
          world.nowMs += 100
        }
      }),
      { numRuns: 60, examples: found.map((steps) => [steps]) },
    )
    expect(upgrades).toBeGreaterThan(20)
  }, 120_000)
})
