import { describe, expect, it } from 'vitest'
import type {
  Condition,
  ConditionType,
  CoordinatorFact,
  Observed,
  StreamJobStatus,
  TransitionStep,
} from './contract.ts'
import { conditionsOf } from './conditions.ts'
import { World } from './decide-world.ts'
import { beginTransition } from './status.ts'
import { refreshed } from './status-refresh.ts'

function running(): World {
  const world = new World({ parallelism: 2 })
  return world.run(
    () => world.status?.phase === 'RUNNING' && world.status.transition === undefined && world.decide().kind === 'wait',
  )
}

function conditions(observed: Observed, status: StreamJobStatus): Readonly<Record<ConditionType, string>> {
  const words = conditionsOf(observed, status).map(({ type, status: is, reason }) => [type, `${is} ${reason}`] as const)
  return Object.fromEntries(words) as Record<ConditionType, string>
}

function withCoordinator(world: World, more: Partial<CoordinatorFact>): Observed {
  const observed = world.observe()
  if (!observed.coordinator.known) throw new Error('nobody answers')
  return { ...observed, coordinator: { known: true, value: { ...observed.coordinator.value, ...more } } }
}

describe('the conditions of a running job', () => {
  const world = running()
  const status = world.status!
  const calm = {
    Ready: 'True Running',
    Progressing: 'False Settled',
    CheckpointHealthy: 'True Completed',
    Degraded: 'False AsExpected',
    UpgradeBlocked: 'False NotBlocked',
    Reconciling: 'False Settled',
    Stalled: 'False NotStalled',
    Isolated: 'True OwnNatsUser',
  }

  it('say that all is well', () => {
    expect(conditions(world.observe(), status)).toEqual(calm)
  })

  it.each([
    ['own', 'True OwnNatsUser'],
    ['shared', 'False SharedNatsCredentials'],
    ['unknown', 'Unknown NatsCredentialsOfSpec'],
    [undefined, 'Unknown RevisionUnknown'],
  ] as const)('say whether others have the credentials for NATS that it was made with: %s', (natsSharing, expected) => {
    const { revisions, ...observed } = world.observe()
    const made = revisions.map((revision) => ({ ...revision, natsSharing }))
    expect(conditions({ ...observed, revisions: made }, status)).toEqual({ ...calm, Isolated: expected })
    expect(conditions({ ...observed, revisions: [] }, status)).toMatchObject({ Isolated: 'Unknown RevisionUnknown' })
    expect(conditions({ ...observed, revisions: made }, { ...status, start: 0 })).toMatchObject({
      Isolated: 'Unknown NotStarted',
    })
  })

  it.each<[string, Partial<CoordinatorFact>, Partial<typeof calm>]>([
    [
      'restarts',
      { state: 'restarting', lastFailure: 'a threw' },
      { Ready: 'False Restarting', Degraded: 'True Restarting' },
    ],
    ['waits for slots', { state: 'starting' }, { Ready: 'False Starting' }],
    [
      'fails checkpoints',
      { consecutiveFailures: 2, lastFailure: 'put failed' },
      { CheckpointHealthy: 'False CheckpointsFail' },
    ],
    ['takes none', { checkpointing: 'off' }, { CheckpointHealthy: 'False CheckpointingOff' }],
    ['has lost its store', { storageAnswers: false }, { Degraded: 'True Outage' }],
    ['has lost NATS', { natsAnswers: false }, { Degraded: 'True Outage' }],
    ['does not know of its store', { storageAnswers: undefined, natsAnswers: undefined }, {}],
  ])('%s', (_, more, differing) => {
    expect(conditions(withCoordinator(world, more), status)).toEqual({ ...calm, ...differing })
  })

  it('say unknown, never false, while nobody answers', () => {
    const observed: Observed = { ...world.observe(), coordinator: { known: false, why: 'connection refused' } }
    expect(conditions(observed, status)).toEqual({
      ...calm,
      Ready: 'Unknown CoordinatorUnreachable',
      CheckpointHealthy: 'Unknown CoordinatorUnreachable',
      Degraded: 'True CoordinatorUnreachable',
    })
    expect(refreshed(observed, status).phase).toBe('RUNNING')
  })

  it('say that a start is under way while its pods come up, and nothing of tasks that may not run yet', () => {
    const silent: Observed = {
      ...world.observe(),
      coordinator: { known: false, why: 'no pod of the coordinator runs' },
    }
    const begun = beginTransition(silent, status, { kind: 'upgrade', step: 'stabilising', mode: 'last-state' })
    const after = (ms: number) => ({ ...silent, nowMs: silent.nowMs + ms })
    const messageOf = (observed: Observed, of: ConditionType) =>
      conditionsOf(observed, begun).find(({ type }) => type === of)!.message
    for (const ms of [0, 59_000])
      expect(conditions(after(ms), begun)).toMatchObject({
        Ready: 'False Starting',
        Degraded: 'False AsExpected',
        CheckpointHealthy: 'Unknown Starting',
      })
    expect(messageOf(silent, 'Ready')).toBe(`The pods of start ${status.start} come up.`)
    // Why they do not is told at once.
    const pods = silent.pods.map((pod) => ({
      ...pod,
      trouble: { reason: 'ImagePullBackOff', message: 'no such image' },
    }))
    expect(conditions({ ...silent, pods }, begun)).toMatchObject({ Degraded: 'True ImagePullBackOff' })
    expect(conditions(after(60_000), begun)).toMatchObject({
      Ready: 'Unknown CoordinatorUnreachable',
      Degraded: 'True CoordinatorUnreachable',
    })
    // A large image takes as long as it takes, until the start is stalled.
    const pulling = silent.pods.map((pod) => ({ ...pod, phase: 'Pending' as const, ready: false }))
    const late = { ...after(299_000), pods: pulling }
    expect(conditions(late, begun)).toMatchObject({ Ready: 'False Starting', Degraded: 'False AsExpected' })
    expect(messageOf(late, 'Ready')).toMatch(/: kubectl describe pod \S+ -n \S+ says for what\.$/)
    expect(conditions({ ...after(301_000), pods: pulling }, begun)).toMatchObject({
      Stalled: 'True ProgressDeadlineExceeded',
    })
    expect(messageOf(after(60_000), 'Degraded')).toBe(
      `The coordinator does not answer: no pod of the coordinator runs. Whether start ${status.start} has begun is not known.`,
    )
    expect(conditionsOf(silent, status).find(({ type }) => type === 'Degraded')!.message).toBe(
      'The coordinator does not answer: no pod of the coordinator runs. Its tasks run on; checkpoints wait.',
    )
  })

  it("name what is refused, and the kubelet's reason", () => {
    expect(conditions({ ...world.observe(), refusedAct: 'exceeded quota' }, status)).toEqual({
      ...calm,
      Degraded: 'True ActRefused',
    })
    const pods = world
      .observe()
      .pods.map((pod) =>
        pod.name === 'worker-1'
          ? { ...pod, trouble: { reason: 'CrashLoopBackOff', message: 'it exits at once' } }
          : pod,
      )
    expect(conditions({ ...world.observe(), pods }, status)).toEqual({ ...calm, Degraded: 'True CrashLoopBackOff' })
    // Also when it is why nobody answers, and while a start is being made.
    const silent: Observed = { ...world.observe(), pods, coordinator: { known: false, why: 'connection refused' } }
    expect(conditions(silent, status)).toMatchObject({ Degraded: 'True CrashLoopBackOff' })
    const at = (step: TransitionStep) =>
      beginTransition(silent, status, { kind: 'upgrade', step, mode: 'last-state', from: undefined, to: undefined })
    expect(conditions(silent, at('starting'))).toMatchObject({ Degraded: 'True CrashLoopBackOff' })
    expect(conditions(silent, at('closed'))).toMatchObject({ Degraded: 'False AsExpected' })
    // What is refused says more than that nothing else is wrong, in each step.
    for (const step of ['preparing', 'closing', 'closed', 'starting', 'stabilising', 'growing'] as const)
      expect(conditions({ ...silent, refusedAct: 'MR-P05' }, at(step))).toMatchObject({ Degraded: 'True ActRefused' })
    // No pod is there to say it.
    const { children } = silent
    const key = 'Deployment/coordinator'
    const refused: Observed = {
      ...silent,
      pods: [],
      children: {
        ...children,
        [key]: { ...children[key]!, podsRefused: 'serviceaccount "x" not found' },
      },
    }
    expect(conditions(refused, status)).toMatchObject({ Degraded: 'True PodsRefused' })
    expect(refreshed(refused, status).conditions.find(({ type }) => type === 'Degraded')!.message).toBe(
      'A pod of Deployment coordinator does not run: serviceaccount "x" not found',
    )
    const short = { kind: 'StatefulSet', name: 'workers', podsMissing: 1, replicas: 2 }
    const restarting = withCoordinator(world, { state: 'restarting', lastFailure: 'slots are missing' })
    const lacking: Observed = {
      ...restarting,
      children: { ...children, 'StatefulSet/workers': { ...children[key]!, ...short } },
    }
    expect(refreshed(lacking, status).conditions.find(({ type }) => type === 'Degraded')!.message).toBe(
      'The job restarts after a failure: slots are missing. 1 of the 2 pods of StatefulSet workers are not made; kubectl describe statefulset workers -n default says why.',
    )
    const late = { ...lacking, nowMs: lacking.nowMs + 600_000 }
    expect(refreshed(late, at('starting')).conditions.find(({ type }) => type === 'Stalled')!.message).toBe(
      'Upgrade makes no progress: 1 of the 2 pods of StatefulSet workers are not made; kubectl describe statefulset workers -n default says why. It is still tried; mend what is named, or change the spec.',
    )
    // What is waited for is said, and nothing that nobody has named is to be mended.
    expect(
      refreshed({ ...silent, pods: [], nowMs: late.nowMs }, at('closed')).conditions.find(
        ({ type }) => type === 'Stalled',
      )!.message,
    ).toBe(
      "Upgrade makes no progress: the restore point is known; what it permits is committed, and what ran is taken down. It is still tried; look at the job's pods and the log of the operator, or change the spec.",
    )
    const lost = world.observe().pods.map((pod) => ({ ...pod, nodeLost: pod.name === 'worker-1' }))
    expect(conditions({ ...world.observe(), pods: lost }, status)).toEqual({ ...calm, Degraded: 'True Outage' })
  })

  it('change their time only with their status', () => {
    const later = world.nowMs + 5_000
    const timeOf = (all: readonly Condition[], type: ConditionType) =>
      all.find((each) => each.type === type)!.lastTransitionTime
    const now = withCoordinator(world, { state: 'restarting' })
    const next = conditionsOf({ ...now, nowMs: later }, status)
    expect(timeOf(next, 'Ready')).toBe(new Date(later).toISOString())
    expect(timeOf(next, 'Stalled')).toBe(timeOf(status.conditions, 'Stalled'))
    const again = conditionsOf({ ...now, nowMs: later + 5_000 }, { ...status, conditions: next })
    expect(again).toEqual(next)
  })

  it('are bounded', () => {
    const [ready] = conditionsOf(
      withCoordinator(world, { state: 'restarting', lastFailure: 'x'.repeat(10_000) }),
      status,
    )
    expect(ready!.message.length).toBeLessThanOrEqual(2_000)
  })
})

describe('the figures of a status', () => {
  it('keep what was known while nobody answers', () => {
    const world = running()
    const status = { ...world.status!, restarts: 3 }
    const silent: Observed = { ...world.observe(), coordinator: { known: false, why: 'connection refused' } }
    expect(refreshed(silent, status)).toMatchObject({
      restarts: 3,
      parallelism: 2,
      lastCheckpoint: status.lastCheckpoint,
    })
    // One that speaks for another start says nothing of this.
    expect(refreshed(withCoordinator(world, { start: 0, parallelism: 9, restarts: 9 }), status)).toMatchObject({
      restarts: 3,
      parallelism: 2,
    })
    expect(refreshed(withCoordinator(world, { parallelism: 3, restarts: 4 }), status)).toMatchObject({
      restarts: 4,
      parallelism: 3,
    })
  })

  it('show a newer checkpoint after 30 s, and never an older one', () => {
    const world = running()
    const status = world.status!
    const known = status.lastCheckpoint!
    const at = (ms: number) => ({ ...known, id: 99, time: new Date(Date.parse(known.time) + ms).toISOString() })
    const shown = (ms: number) =>
      refreshed(withCoordinator(world, { lastCheckpoint: at(ms) }), status).lastCheckpoint!.id
    expect([-60_000, 10_000, 29_999].map(shown)).toEqual([known.id, known.id, known.id])
    expect(shown(30_000)).toBe(99)
  })
})
