import { describe, expect, it } from 'vitest'
import type { Condition, PodFact, StreamJobStatus } from './contract.ts'
import type { ObservedSavepoint, SavepointDecision, SavepointFact, SavepointOrigin } from './savepoint-contract.ts'
import { FINALIZER } from './contract.ts'
import { decideSavepoint, disposalMs, takenMs } from './decide-savepoint.ts'
import { condition, deeds, reaches, running, stay, steps } from './decide-story.ts'
import { World } from './decide-world.ts'

const nowMs = Date.parse('2026-01-01T01:00:00Z')
const at = (agoMs: number): string => new Date(nowMs - agoMs).toISOString()
const origin: SavepointOrigin = { jobId: 'u', image: 'millrace:1', storage: 's3://b/jobs/default/flights/u' }
const path = 's3://b/jobs/default/flights/u/savepoint-7'

const savepoint: SavepointFact = {
  kind: 'Savepoint',
  namespace: 'default',
  name: 'mine',
  uid: 'sp',
  resourceVersion: '1',
  path: undefined,
  disposal: 'retain',
  deleting: false,
  deletingSince: undefined,
  finalizers: [],
  madeBy: 'user',
  createdAt: at(1_000),
  status: undefined,
}
const doomed: Partial<SavepointFact> = {
  disposal: 'delete',
  deleting: true,
  deletingSince: at(1_000),
  finalizers: [FINALIZER],
  status: { state: 'completed', path, origin },
}
function podWith(more: Partial<PodFact>): PodFact {
  return {
    kind: 'Pod',
    namespace: 'default',
    name: 'disposal',
    uid: 'p',
    resourceVersion: '1',
    component: 'admin',
    revision: '',
    purpose: 'admin-dispose',
    request: 'sp',
    createdAt: at(1_000),
    node: 'n',
    nodeLost: false,
    nodeSilent: false,
    phase: 'Running',
    ready: true,
    deletingSince: undefined,
    graceSeconds: 30,
    trouble: undefined,
    exitCode: undefined,
    output: undefined,
    ...more,
  }
}

/** Of a job that runs. */
const settled = running().status!

/** And one that is upgraded since long ago. */
const changing: StreamJobStatus = {
  ...settled,
  transition: {
    kind: 'upgrade',
    step: 'closing',
    request: 'upgrade-1-2-0',
    mode: 'savepoint',
    attempt: 0,
    begunAt: at(3 * takenMs),
    stepAt: at(3 * takenMs),
    progressAt: at(3 * takenMs),
    progress: '',
  },
}
function asStalled(condition: Condition, reason: string): Condition {
  return condition.type === 'Stalled' ? { ...condition, status: 'True', reason } : condition
}

/** Of a job that is settled and cannot take one. */
function withoutWord(lack: 'silent' | 'gone' | 'unread', since = at(2 * takenMs)): StreamJobStatus {
  const world = running()
  if (lack === 'silent') world.coordinatorIsSilent = true
  else if (lack === 'unread') world.revisionsAreUnread = true
  else {
    world.loseRevision(world.status!.revision)
    world.edit({ parallelism: 0 })
  }
  const status = stay(world, 3).status!
  expect(status).not.toHaveProperty('transition')
  return { ...status, conditions: status.conditions.map((each) => ({ ...each, lastTransitionTime: since })) }
}

function decision(fact: Partial<SavepointFact>, more: Partial<ObservedSavepoint> = {}): SavepointDecision {
  return decideSavepoint({
    nowMs,
    savepoint: { ...savepoint, ...fact },
    job: 'there',
    jobStatus: settled,
    namespaceTerminating: false,
    fallback: undefined,
    isBeingTaken: false,
    pod: undefined,
    ...more,
  })
}

/** What is written into the object, and the event after it. */
function records(...given: Parameters<typeof decision>) {
  const made = decision(...given)
  const [record, event] = made.kind === 'act' ? made.actions : []
  return [record?.type === 'recordSavepoint' ? record : undefined, event] as const
}

function decided(...given: Parameters<typeof decision>): string {
  const made = decision(...given)
  if (made.kind === 'wait') return 'wait'
  return made.actions
    .map((action) =>
      action.type === 'event'
        ? action.reason
        : action.type === 'recordSavepoint'
          ? [action.state, action.path, action.origin && `of ${action.origin.jobId}`].filter(Boolean).join(' ')
          : action.type,
    )
    .join(', ')
}

describe('a Savepoint', () => {
  it('with a path is registered, once', () => {
    expect(decided({ path })).toBe(`completed ${path}`)
    expect(decided({ path }, { job: 'gone' })).toBe(`completed ${path}`)
    expect(decided({ path, status: { state: 'completed', path } })).toBe('wait')
  })

  it('with a path keeps whose it is, as its job may be gone before it; also where that is known later', () => {
    const more = { fallback: origin }
    expect(decided({ path }, more)).toBe(`completed ${path} of u`)
    expect(decided({ path, status: { state: 'completed', path } }, more)).toBe(`completed ${path} of u`)
    expect(decided({ path, status: { state: 'completed', path, origin } }, more)).toBe('wait')
    expect(decided({ status: { state: 'completed', path } }, more)).toBe('wait')
  })

  it("without one is its job's to take; without a job nobody's, after a while", () => {
    expect(decided({})).toBe('pending')
    expect(decided({}, { job: 'unknown' })).toBe('wait')
    expect(decided({}, { job: 'gone' })).toBe('pending')
    expect(decided({ createdAt: at(120_000) }, { job: 'gone' })).toBe('failed, NoJob')
    expect(decided({ createdAt: at(120_000) }, { job: 'unknown' })).toBe('wait')
  })

  it('says what it waits for, once', () => {
    const [first] = records({})
    expect(first).toMatchObject({ state: 'pending', detail: 'Its job takes it.' })
    const status = { state: 'pending', detail: first!.detail } as const
    expect(decided({ status })).toBe('wait')
    expect(decided({ status }, { isBeingTaken: true })).toBe('wait')
    // Behind others: each is answered.
    expect(decided({ status, createdAt: at(2 * takenMs) })).toBe('wait')
    expect(decided({ status, createdAt: at(2 * takenMs) }, { isBeingTaken: true })).toBe('wait')
    expect(decided({ status }, { jobStatus: changing })).toBe('pending')
  })

  it.each<[string, StreamJobStatus | undefined, RegExp]>([
    ['was not seen yet', undefined, /not seen by the operator yet/],
    ['is suspended from its creation', stay(new World({ state: 'suspended' }), 3).status, /suspended.*spec\.state/],
    ['was never valid', stay(new World({ parallelism: 0 }), 3).status, /has not started \(InvalidSpec: /],
    ['is in the middle of a change', changing, /a change of it is under way, upgrade/],
    ['has a coordinator that does not answer', withoutWord('silent'), /its coordinator does not answer/],
    ['has neither a valid spec nor its revision', withoutWord('gone'), /its revision is gone.*InvalidSpec/],
    ['has a revision that cannot be read', withoutWord('unread'), /left alone \(RevisionUnknown: /],
    [
      'has a runtime that is not driven',
      { ...settled, conditions: settled.conditions.map((each) => asStalled(each, 'UnsupportedRuntime')) },
      /left alone \(UnsupportedRuntime: /,
    ],
  ])('waits for a job that %s for an hour, and is failed then, asked for or not', (_, jobStatus, lack) => {
    for (const [createdAt, state, isBeingTaken] of [
      [at(takenMs - 1), 'pending', false],
      [at(takenMs - 1), 'pending', true],
      [at(takenMs), 'failed', false],
      [at(takenMs), 'failed', true],
    ] as const) {
      const [record, event] = records({ createdAt }, { jobStatus, isBeingTaken })
      expect(record).toMatchObject({ state, detail: expect.stringMatching(lack) })
      expect(event).toEqual(
        state === 'pending'
          ? undefined
          : { type: 'event', kind: 'Warning', reason: 'NotTaken', message: record!.detail },
      )
    }
  })

  it('that has waited for its turn has its hour from the beginning of the change', () => {
    const begunAt = at(1_000)
    const jobStatus = { ...changing, transition: { ...changing.transition!, begunAt } }
    expect(decided({ createdAt: at(2 * takenMs) }, { jobStatus })).toBe('pending')
  })

  it('has its hour from when its coordinator was last heard of', () => {
    const silent = withoutWord('silent', at(1_000))
    expect(decided({ createdAt: at(2 * takenMs) }, { jobStatus: silent, isBeingTaken: true })).toBe('pending')
  })

  it('that was given up in the middle of a change is not taken after it', () => {
    const world = running({ parallelism: 2, upgradeMode: 'savepoint' })
    world.addSavepoint('mine')
    steps(world, () => world.status!.asked !== undefined)
    world.coordinatorIsSilent = true
    world.edit({ logLevel: 'debug' })
    stay(world, takenMs / 1_000 + 10)
    expect(condition(world, 'Stalled')).toMatchObject({ status: 'True', reason: 'CoordinatorUnreachable' })
    const [mine] = world.savepoints
    const decision = decideSavepoint({
      nowMs: world.nowMs,
      savepoint: mine!,
      job: 'there',
      jobStatus: world.status,
      namespaceTerminating: false,
      fallback: undefined,
      isBeingTaken: world.status!.asked?.object === mine!.uid,
      pod: undefined,
    })
    expect(decision).toMatchObject({ actions: [{ type: 'recordSavepoint', state: 'failed' }, { reason: 'NotTaken' }] })
    world.savepoints = [{ ...mine!, status: { state: 'failed' } }]
    world.coordinatorIsSilent = false
    reaches(world, 'RUNNING', 2)
    expect(world.status).not.toHaveProperty('asked')
    const taken = deeds(world, 'savepoint').map(({ stops }) => stops)
    expect(taken).toEqual([true])
  }, 30_000)

  it('has a finalizer only if its deletion has files to take away', () => {
    expect(decided({ disposal: 'delete', path })).toBe('addFinalizer')
    expect(decided({ disposal: 'retain', finalizers: [FINALIZER], status: { state: 'completed', path } })).toBe(
      'removeFinalizer',
    )
  })
})

describe('a Savepoint that is deleted', () => {
  it('to be retained, or never made, just goes', () => {
    expect(decided({ ...doomed, finalizers: [] })).toBe('wait')
    expect(decided({ ...doomed, disposal: 'retain' })).toBe('removeFinalizer')
    expect(decided({ ...doomed, status: { state: 'failed' } })).toBe('removeFinalizer')
  })

  it('while its job takes it waits for the files that come, for a while', () => {
    const asked = { ...doomed, status: undefined }
    const more = { isBeingTaken: true }
    expect(decided(asked, more)).toBe('wait')
    expect(decided({ ...asked, deletingSince: at(disposalMs + 1) }, more)).toBe('FilesLeft, removeFinalizer')
    expect(decided(doomed, more)).toBe('runDisposal')
    expect(decided(asked)).toBe('removeFinalizer')
    expect(decided({ ...asked, disposal: 'retain' }, more)).toBe('removeFinalizer')
    expect(decided(asked, { ...more, namespaceTerminating: true })).toBe('removeFinalizer')
  })

  it('takes its files away by a pod made of what it says of its origin, its job there or gone', () => {
    for (const job of ['there', 'gone', 'unknown'] as const)
      expect(
        decideSavepoint({
          nowMs,
          savepoint: { ...savepoint, ...doomed },
          job,
          jobStatus: undefined,
          namespaceTerminating: false,
          fallback: undefined,
          isBeingTaken: false,
          pod: undefined,
        }),
      ).toMatchObject({
        actions: [{ type: 'runDisposal', origin, arguments: ['admin', 'dispose', path, '--yes', '--output', 'json'] }],
      })
    const pod = podWith({})
    expect(decided(doomed, { pod })).toBe('wait')
    const output = JSON.stringify({ command: 'dispose', outcome: 'done', job: null, savepoint: path, objects: [] })
    expect(decided(doomed, { pod: podWith({ phase: 'Succeeded', exitCode: 0, output }) })).toBe(
      'Disposed, removeFinalizer',
    )
  })

  it('whose path has no file is not said to be gone: they may be where the pod did not look', () => {
    const output = JSON.stringify({ command: 'dispose', outcome: 'nothing to do', job: null, savepoint: path })
    const decision = decideSavepoint({
      nowMs,
      savepoint: { ...savepoint, ...doomed },
      job: 'gone',
      jobStatus: undefined,
      namespaceTerminating: false,
      fallback: undefined,
      isBeingTaken: false,
      pod: podWith({ phase: 'Succeeded', exitCode: 0, output }),
    })
    expect(decision).toMatchObject({
      actions: [{ type: 'event', kind: 'Warning', reason: 'NothingFound' }, { type: 'removeFinalizer' }],
    })
    const message = JSON.stringify(decision)
    for (const word of [path, origin.storage, 'millrace admin dispose']) expect(message).toContain(word)
    expect(message).not.toContain('are gone')
  })

  it("that was registered takes the chart's place; without one its files stay, and it says so", () => {
    const registered = { ...doomed, path, status: { state: 'completed', path } } as const
    expect(decided(registered, { fallback: origin })).toBe('runDisposal')
    expect(decided(registered)).toBe('FilesLeft, removeFinalizer')
  })

  it('is tried again when the store does not answer, and given up at the deadline', () => {
    const failed = podWith({
      phase: 'Failed',
      exitCode: 4,
      output: '{"outcome":"unclear","job":null,"error":{"code":"MR-S01","message":"no answer"}}',
    })
    expect(decided(doomed, { pod: failed })).toBe('wait')
    expect(decided(doomed, { pod: { ...failed, createdAt: at(20_000) } })).toBe('delete')
    const late = { ...doomed, deletingSince: at(disposalMs + 1) }
    expect(decided(late, { pod: failed })).toBe('FilesLeft, removeFinalizer')
    expect(decided(late, { pod: podWith({}) })).toBe('FilesLeft, removeFinalizer')
    expect(decided(late)).toBe('FilesLeft, removeFinalizer')
    expect(decided(doomed, { namespaceTerminating: true })).toBe('FilesLeft, removeFinalizer')
  })
})
