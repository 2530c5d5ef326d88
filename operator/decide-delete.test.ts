import { describe, expect, it } from 'vitest'
import { conditionsOf } from './conditions.ts'
import { FINALIZER, FOREGROUND_FINALIZER } from './contract.ts'
import { isQuiet, reaches, running, stay, steps } from './decide-story.ts'
import { World, restorePointOf } from './decide-world.ts'
import type { Spec } from './decide-world.ts'

const events = (world: World): string[] =>
  world.deeds.flatMap((deed) => (deed.deed === 'event' ? [`${deed.reason}: ${deed.message}`] : []))

/** Deletes it, and gives the seconds until it is gone. */
function deleted(world: World): number {
  const begun = world.nowMs
  world.delete()
  world.run(() => false, 200)
  expect(world.job).toBeUndefined()
  return (world.nowMs - begun) / 1_000
}

describe('a job that is deleted', () => {
  it('has HEAD closed as cancelled, and is gone in seconds', () => {
    const world = running({ parallelism: 2 })
    expect(deleted(world)).toBeLessThanOrEqual(10)
    expect(world.head!.end).toBe('cancelled')
    expect(events(world).some((event) => event.startsWith('DeletionIncomplete'))).toBe(false)
  })

  it('in any step of an upgrade, a rescale or a suspension is gone in time, and nothing runs on', () => {
    const changes: Spec[] = [
      { logLevel: 'debug' },
      { parallelism: 3 },
      { state: 'suspended' },
      { logLevel: 'debug', upgradeMode: 'savepoint' },
    ]
    for (const change of changes)
      for (let writes = 1; writes <= 14; writes++) {
        const world = running()
        world.edit(change)
        for (let moment = 0; world.writes < writes && moment < 40; moment++)
          if (world.reconcile().kind === 'wait') world.pass(500)
        expect(deleted(world)).toBeLessThanOrEqual(46)
        expect(world.head!.end).not.toBe('none')
      }
  })

  it('before it has begun is gone at once', () => {
    const world = new World({ state: 'suspended' })
    for (let look = 0; look < 5; look++) world.reconcile()
    expect(deleted(world)).toBe(0)
  })

  describe('whose pods never came up', () => {
    const neverUp = (spec: Spec = {}): World => {
      const world = new World({ program: { module: { path: '/job.ts' }, image: 'bad:1' }, ...spec })
      return stay(world, 20)
    }

    it('is gone in seconds: a pod for HEAD would not come up either, and that is what is said', () => {
      const world = neverUp()
      expect(deleted(world)).toBeLessThanOrEqual(10)
      expect(events(world).some((event) => event.startsWith('DeletionIncomplete'))).toBe(false)
      expect(events(world).filter((event) => event.startsWith('NeverBegan'))).toEqual([
        'NeverBegan: No coordinator of the job was ever seen to begin, and the pod that would look for its HEAD does not run either: ImagePullBackOff: no such image. Should there be a HEAD after all, it and its transactions are left untouched; nobody starts this job again.',
      ])
    })

    it('is gone in seconds also where a savepoint was asked for', () => {
      expect(deleted(neverUp({ deletion: { savepoint: true, deadline: '30m' } }))).toBeLessThanOrEqual(10)
    })

    it('has its HEAD looked for as long as the deadline allows where a start may have begun', () => {
      const lost = neverUp()
      lost.status = undefined
      const ran = neverUp()
      ran.pods[0]!.fact = { ...ran.pods[0]!.fact, phase: 'Running' }
      const again = neverUp()
      again.status = { ...again.status!, start: 2 }
      const restored = neverUp()
      for (const [key, child] of restored.children) restored.children.set(key, { ...child, start: 2 })
      for (const world of [lost, ran, again, restored]) {
        expect(deleted(world)).toBeGreaterThanOrEqual(45)
        expect(events(world).filter((event) => event.startsWith('NeverBegan'))).toEqual([])
        expect(events(world).filter((event) => event.startsWith('DeletionIncomplete'))).toHaveLength(1)
      }
    })

    it('whose HEAD could not be looked for by any pod either is said to have none as far as is known', () => {
      const world = neverUp()
      world.podsCannotBeMade = true
      expect(deleted(world)).toBeGreaterThanOrEqual(45)
      expect(events(world).at(-1)).toBe(
        'DeletionIncomplete: The job was deleted at its deadline: no coordinator of it was ever seen to begin, and whether it has a HEAD could not be read; nobody starts this job again, and transactions, if there are any, are left untouched.',
      )
    })
  })

  it('suspended, finished or failed needs nobody to answer', () => {
    for (const end of ['SUSPENDED', 'FINISHED', 'FAILED'] as const) {
      const world = running()
      if (end === 'SUSPENDED') world.edit({ state: 'suspended' })
      if (end === 'FINISHED') world.endOfInput = true
      if (end === 'FAILED') world.jobFails = true
      world.run(() => isQuiet(world) && world.status!.phase === end)
      world.coordinatorIsSilent = true
      expect(deleted(world)).toBeLessThanOrEqual(20)
      expect(world.head!.end).toBe('cancelled')
    }
  })

  it('that had ended while its coordinator answers on is cancelled too, by a pod', () => {
    for (const spoil of [
      (world: World) => void (world.jobFails = true),
      (world: World) => void (world.endOfInput = true),
    ]) {
      const world = running()
      spoil(world)
      steps(world, () => world.head!.end !== 'none')
      expect(deleted(world)).toBeLessThanOrEqual(20)
      expect(world.head!.end).toBe('cancelled')
    }
  })

  it('while nobody answers is closed by a pod', () => {
    const world = running()
    world.coordinatorIsSilent = true
    expect(deleted(world)).toBeLessThanOrEqual(20)
    expect(world.head!.end).toBe('cancelled')
  })

  it.each<[string, (world: World) => void]>([
    ['the object store away', (world) => void (world.storageIsDown = world.coordinatorIsSilent = true)],
    ['no pods to be had', (world) => void (world.podsCannotBeMade = world.coordinatorIsSilent = true)],
    [
      'the namespace going and nobody answering',
      (world) => void (world.namespaceTerminating = world.coordinatorIsSilent = true),
    ],
    [
      'a status that is lost and nobody answering, without room for a pod',
      (world) => {
        world.status = undefined
        world.podsCannotBeMade = world.coordinatorIsSilent = true
      },
    ],
  ])('with %s goes at its deadline, and says what was left undone', (_, spoil) => {
    const world = running()
    spoil(world)
    const seconds = deleted(world)
    expect(seconds).toBeGreaterThanOrEqual(45)
    expect(seconds).toBeLessThanOrEqual(46)
    expect(world.head!.end).toBe('none')
    expect(events(world).filter((event) => event.startsWith('DeletionIncomplete'))).toEqual([
      expect.stringContaining('HEAD was not closed'),
    ])
  })

  it('says at its deadline what its coordinator says of HEAD', () => {
    const open = running()
    open.storageIsDown = true
    deleted(open)
    expect(open.head!.end).toBe('none')
    expect(events(open).at(-1)).toContain('HEAD was not closed in time, though its coordinator answers')
    const failed = running({ checkpointing: { onCancellation: 'delete' } })
    failed.jobFails = true
    failed.run(() => isQuiet(failed) && failed.status!.phase === 'FAILED')
    failed.podsCannotBeMade = true
    deleted(failed)
    expect(events(failed).at(-1)).toMatch(
      /^DeletionIncomplete: .*: HEAD has ended \(failed\), and checkpoints that onCancellation gives up may still be there\. Its last/,
    )
  })

  it('has a deadline of its own', () => {
    const world = running({ deletion: { deadline: '5s' } })
    world.podsCannotBeMade = world.coordinatorIsSilent = true
    expect(deleted(world)).toBeLessThanOrEqual(6)
  })

  it('in a namespace that goes is cancelled by its coordinator, without a pod', () => {
    const world = running()
    world.namespaceTerminating = true
    expect(deleted(world)).toBeLessThanOrEqual(10)
    expect(world.head!.end).toBe('cancelled')
  })

  it('of a spec that became invalid goes all the same', () => {
    const world = running()
    world.edit({ parallelism: 0 })
    expect(deleted(world)).toBeLessThanOrEqual(10)
  })

  it('without our finalizer is left to the garbage collector', () => {
    const world = running()
    world.job = { ...world.job!, finalizers: ['other'], deletingSince: new Date(world.nowMs).toISOString() }
    world.settle()
    expect(world.deeds).toEqual([{ deed: 'record', why: 'what is observed has changed' }])
    expect(world.status!.phase).toBe('DELETING')
  })

  it.each<[string, Spec]>([
    ['runs', {}],
    ['is upgraded', { logLevel: 'debug' }],
    ['is rescaled', { parallelism: 3 }],
    ['is suspended', { state: 'suspended' }],
    ['has an invalid spec', { parallelism: 0 }],
  ])(
    'that %s has its finalizer put back after an uninstallation took it off: HEAD is closed all the same',
    (_, change) => {
      const world = running()
      world.edit(change)
      for (let look = 0; look < 4; look++) world.reconcile()
      world.job = { ...world.job!, finalizers: [] }
      stay(world, 1)
      expect(world.job.finalizers).toEqual([FINALIZER])
      deleted(world)
      expect(world.head!.end).not.toBe('none')
    },
  )

  it('and has not begun has no finalizer to be put back', () => {
    const world = stay(new World({ state: 'suspended' }), 5)
    expect(world.job!.finalizers).toEqual([])
  })

  it('forces what is stuck at the deadline', () => {
    const world = running({ deletion: { deadline: '10s' } })
    const pod = world.pods.find(({ fact }) => fact.component === 'worker')!
    pod.fact = { ...pod.fact, nodeLost: true, deletingSince: new Date(world.nowMs).toISOString(), graceSeconds: 5 }
    world.delete()
    for (let second = 0; second < 9; second++) {
      world.settle()
      world.pass(1_000)
    }
    expect(world.job).toBeDefined()
    world.nowMs += 1_000
    expect(world.decide()).toMatchObject({
      kind: 'act',
      actions: [
        { type: 'event', reason: 'DeletionIncomplete' },
        { type: 'delete', of: { uid: pod.fact.uid }, force: true },
        { type: 'removeFinalizer' },
      ],
    })
  })
})

describe('a job that is deleted in the foreground', () => {
  /** As the garbage collector does it: all that is owned goes at once, and after it the collector's own finalizer. */
  function takenApart(world: World): void {
    world.job = { ...world.job!, finalizers: [FOREGROUND_FINALIZER, FINALIZER] }
    world.delete()
    world.pods = []
    world.revisions = []
    world.children.clear()
    stay(world, 5)
    expect(world.job).toBeDefined()
    expect(world.revisions).toEqual([])
    world.job = { ...world.job, finalizers: [FINALIZER] }
    world.run(() => false, 200)
    expect(world.job).toBeUndefined()
  }

  it('is told what that does, and HEAD is closed by a pod of a revision made anew, once nobody takes it away', () => {
    const world = running()
    takenApart(world)
    expect(world.head!.end).toBe('cancelled')
    expect(events(world).filter((event) => event.startsWith('ForegroundDeletion'))).toHaveLength(1)
    expect(events(world).some((event) => event.startsWith('DeletionIncomplete'))).toBe(false)
  })

  it('waits for no savepoint that nobody can take: its checkpoints stay', () => {
    const world = running({ deletion: { savepoint: true, deadline: '30m' } })
    const begun = world.nowMs
    takenApart(world)
    expect((world.nowMs - begun) / 1_000).toBeLessThanOrEqual(30)
    expect(world.head!.end).toBe('suspended')
    expect(events(world).filter((event) => event.startsWith('SavepointFailed'))).toHaveLength(1)
  })

  it('whose code is gone too ends at its deadline, and that is why', () => {
    const world = running({ program: { module: { configMap: { name: 'code', key: 'job.ts' } } } })
    world.code = { kind: 'missing', why: 'it went too' }
    takenApart(world)
    expect(world.head!.end).toBe('none')
    expect(events(world).filter((event) => event.startsWith('DeletionIncomplete'))).toEqual([
      expect.stringContaining('its coordinator and revisions were taken away before'),
    ])
  })
})

describe('deletion.savepoint', () => {
  const spec = { deletion: { savepoint: true, deadline: '40s' } }

  it('takes one, which gets a name and outlives the job', () => {
    const world = running(spec)
    expect(deleted(world)).toBeLessThanOrEqual(10)
    expect(world.deeds.filter(({ deed }) => deed === 'savepoint')).toMatchObject([{ stops: true }])
    expect(world.savepoints).toMatchObject([
      { name: expect.stringMatching(/-last$/), path: expect.stringContaining('savepoint-') },
    ])
    // Else it stays the restore point of a start that there will not be, and may not be disposed of (MR-A04).
    expect(world.head!.end).toBe('cancelled')
  })

  it('that leaves no time for a pod is not told as incomplete: HEAD is stopped', () => {
    const world = running({ deletion: { savepoint: true, deadline: '15s' } })
    expect(deleted(world)).toBeLessThanOrEqual(14)
    expect(world.savepoints).toHaveLength(1)
    expect(world.head!.end).toBe('stopped')
    expect(events(world).some((event) => event.startsWith('DeletionIncomplete'))).toBe(false)
  })

  it('that no Savepoint can be made for is told with its place at the deadline, also when nobody answers by then', () => {
    for (const coordinatorIsSilent of [false, true]) {
      const world = running(spec)
      world.edit({ restartNonce: 1 })
      reaches(world, 'RUNNING', 2)
      world.deeds.length = 0
      world.savepointObjectsCannotBeMade = true
      world.delete()
      stay(world, 10)
      world.coordinatorIsSilent = coordinatorIsSilent
      world.run(() => false, 60)
      const { path } = restorePointOf(world.head!)
      expect(path).toContain('savepoint-')
      expect(events(world)).toEqual([
        expect.stringContaining('Deleting'),
        `DeletionIncomplete: The job was deleted at its deadline: it was stopped with a savepoint, and no Savepoint could be made for it; make one with its path to have it by name. Its last known snapshot is ${path}.`,
      ])
    }
  })

  it('of a job that was just stopped with one for an upgrade is that one: nobody needs to answer', () => {
    for (const change of [{ logLevel: 'debug' }, { state: 'suspended' }]) {
      const world = running({ ...spec, upgradeMode: 'savepoint' })
      world.edit(change)
      steps(world, () => world.status!.transition?.step === 'closed')
      world.coordinatorIsSilent = true
      const { path } = world.status!.restorePoint!
      expect(deleted(world)).toBeLessThanOrEqual(10)
      expect(world.savepoints).toMatchObject([{ name: expect.stringMatching(/-last$/), path }])
      expect(events(world).filter((event) => event.startsWith('Savepoint'))).toEqual([
        expect.stringMatching(/^SavepointCompleted: The last savepoint is at s3:.*, Savepoint flights-.*-last\.$/),
      ])
    }
  })

  it('of a job whose start was just ended at a checkpoint for an upgrade is not waited for: its checkpoints stay', () => {
    const world = running({ ...spec, upgradeMode: 'last-state', checkpointing: { onCancellation: 'delete' } })
    world.edit({ logLevel: 'debug' })
    steps(world, () => world.status!.transition?.step === 'closed')
    world.coordinatorIsSilent = true
    world.deeds.length = 0
    expect(deleted(world)).toBeLessThanOrEqual(15)
    expect(events(world)).toEqual([
      'Deleting: The job is deleted, after a savepoint.',
      'SavepointFailed: The job is deleted without the savepoint that deletion.savepoint asks for: its running start had been ended at a checkpoint already. Its checkpoints stay.',
    ])
    expect(world.head!.end).toBe('suspended')
  })

  it('that fails says so, and the job goes', () => {
    const world = running(spec)
    world.savepointsFail = true
    expect(deleted(world)).toBeLessThanOrEqual(15)
    expect(events(world).some((event) => event.startsWith('SavepointFailed'))).toBe(true)
    expect(world.head!.end).toBe('suspended')
    expect(world.savepoints).toEqual([])
  })

  it('of a job that nobody answers for does not hold it up for ever', () => {
    const world = running(spec)
    world.coordinatorIsSilent = true
    world.delete()
    stay(world, 5)
    // It is no change of the spec that it waits for.
    expect(conditionsOf(world.observe(), world.status!).find(({ type }) => type === 'UpgradeBlocked')).toMatchObject({
      status: 'False',
    })
    expect(deleted(world)).toBeLessThanOrEqual(40)
    expect(events(world).filter((event) => event.startsWith('SavepointFailed'))).toHaveLength(1)
    expect(events(world).some((event) => event.startsWith('DeletionIncomplete'))).toBe(false)
    expect(world.head!.end).toBe('suspended')
  })

  it('that is not complete in time is given up, and HEAD is closed', () => {
    const world = running(spec)
    world.savepointsHang = true
    expect(deleted(world)).toBeLessThanOrEqual(40)
    expect(events(world).filter((event) => event.startsWith('SavepointFailed'))).toHaveLength(1)
    expect(events(world).some((event) => event.startsWith('DeletionIncomplete'))).toBe(false)
    expect(world.head!.end).toBe('suspended')
  })

  it('of a job that never completed anything is not waited for', () => {
    const world = new World({ deletion: { savepoint: true, deadline: '30m' } })
    world.natsIsDown = true
    stay(world, 20)
    expect(deleted(world)).toBeLessThanOrEqual(20)
  })

  it('is taken by a coordinator that is back while there is time', () => {
    const world = running(spec)
    world.coordinatorIsSilent = true
    world.delete()
    stay(world, 16)
    world.coordinatorIsSilent = false
    stay(world, 10)
    expect(world.job).toBeUndefined()
    expect(world.deeds.filter(({ deed }) => deed === 'savepoint')).toHaveLength(1)
  })

  it.each([
    ['fails', (world: World) => void (world.savepointsFail = true)],
    ['nobody can take', (world: World) => void (world.coordinatorIsSilent = true)],
  ])('that %s leaves the checkpoints, whatever the policy', (_, spoil) => {
    const world = running({ ...spec, checkpointing: { onCancellation: 'delete' } })
    spoil(world)
    const seen = new Set<string>()
    world.delete()
    world.run(() => {
      for (const { fact } of world.pods) if (fact.purpose !== undefined) seen.add(fact.purpose)
      return world.job === undefined
    }, 100)
    expect(world.head!.end).toBe('suspended')
    expect(seen).not.toContain('admin-dispose-checkpoints')
  })
})

it('at its deadline waits for nothing that is refused, such as pods that are taken away by force', () => {
  const world = running()
  const pod = world.pods.find(({ fact }) => fact.component === 'worker')!
  const deletingSince = new Date(world.nowMs).toISOString()
  pod.fact = { ...pod.fact, nodeLost: true, nodeSilent: true, deletingSince, graceSeconds: 5 }
  world.delete()
  const kinds = () => {
    const decision = world.decide()
    return decision.kind === 'act' ? decision.actions.map(({ type }) => type) : []
  }
  expect(kinds()).not.toContain('removeFinalizer')
  world.nowMs += 46_000
  expect(kinds()).toContain('removeFinalizer')
})

it.each<[string, Spec, (world: World) => void]>([
  ['is suspended', {}, (world) => world.edit({ state: 'suspended' })],
  // Its coordinator stays, and tells of HEAD what a pod has written.
  ['has failed', {}, (world) => void (world.jobFails = true)],
  ['is stopped with a last savepoint', { deletion: { savepoint: true } }, () => undefined],
])('onCancellation: delete has the checkpoints taken away by a pod of a job that %s', (_, spec, change) => {
  const world = running({ ...spec, checkpointing: { onCancellation: 'delete' } })
  change(world)
  world.run(() => isQuiet(world) && (spec['deletion'] !== undefined || world.status!.ended !== undefined))
  const seen = new Set<string>()
  world.delete()
  world.run(() => {
    for (const { fact } of world.pods) if (fact.purpose !== undefined) seen.add(fact.purpose)
    return false
  }, 100)
  expect(world.job).toBeUndefined()
  expect([...seen]).toEqual(['admin-close', 'admin-dispose-checkpoints'])
})

it('onCancellation: delete is not held up by a pod without a node, once the coordinator is back and has cancelled', () => {
  const world = running({ checkpointing: { onCancellation: 'delete' } })
  world.shortPodsHaveNoNode = true
  world.coordinatorIsSilent = true
  world.delete()
  world.run(() => world.pods.some(({ fact }) => fact.purpose === 'admin-close'), 100)
  expect(world.pods.map(({ fact }) => fact.purpose)).toContain('admin-close')
  world.coordinatorIsSilent = false
  const beganMs = world.nowMs
  world.run(() => world.job === undefined, 100)
  expect(world.job).toBeUndefined()
  expect(world.head!.end).toBe('cancelled')
  expect(world.nowMs - beganMs).toBeLessThan(20_000)
})

it('onCancellation: delete is heeded where HEAD tells what a pod has written before the kubelet tells that it runs', () => {
  const world = running({ checkpointing: { onCancellation: 'delete' }, deletion: { savepoint: true } })
  const podOf = (purpose: string) => world.pods.find(({ fact }) => fact.purpose === purpose)
  world.delete()
  world.run(() => podOf('admin-close') !== undefined, 100)
  expect(podOf('admin-close')!.fact).toMatchObject({ phase: 'Pending', trouble: undefined })
  world.head!.end = 'cancelled'
  expect(world.decide()).toMatchObject({ kind: 'wait' })
  world.run(() => podOf('admin-dispose-checkpoints') !== undefined, 100)
  expect(podOf('admin-dispose-checkpoints')).toBeDefined()
})
