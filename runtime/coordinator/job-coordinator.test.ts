import { describe, expect, it } from 'vitest'
import { incarnation, requestId } from '../base/ids.ts'
import { decodeManifest, encodeManifest, objectsOf } from '../checkpoint/manifest.ts'
import type { Manifest } from '../checkpoint/manifest.ts'
import { MemoryLedger } from '../connectors/memory-ledger.ts'
import type { ObjectKey } from '../storage/contract.ts'
import { close, raiseIncarnation, requestSavepoint, restorePointOf } from '../storage/head.ts'
import { HEAD_SETTLE_DEADLINE_MS, HeadKeeper } from '../storage/head-keeper.ts'
import type { SavepointAnswer } from './coordinator-contract.ts'
import { coordinatorErrors } from './errors.ts'
import { headLookMs } from './head-watch.ts'
import { openDeadlineMs } from '../worker/subtask-builder.ts'

import { Cluster } from '../../tests/support/coordinator-cluster.ts'

describe('a whole job', () => {
  it('runs to its end with every record exactly once, and HEAD says finished with nothing left to confirm (rule 3)', async () => {
    const cluster = new Cluster()
    expect(await cluster.ended(cluster.coordinator().run())).toEqual({ kind: 'finished' })
    cluster.expectExact()
    expect(await cluster.head()).toMatchObject({ end: { kind: 'finished' }, unconfirmed: undefined, restarts: 0 })
    expect(cluster.checkpoints).toBeGreaterThan(3)
    expect(cluster.slots.size).toBe(0)
    expect(await cluster.ledger.list()).toEqual([])
  })

  it('also without periodic checkpoints: the last one is taken because only sinks wait', async () => {
    const cluster = new Cluster()
    const run = cluster.coordinator({ settings: { checkpointIntervalMs: undefined } }).run()
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })

  it('goes on exactly after a slot was lost, after a failing record, and after a failing clean-up', async () => {
    const cluster = new Cluster()
    const run = cluster.coordinator().run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    cluster.slots.values().next().value!.end('its thread ended')
    await cluster.pass(60_000, () => cluster.checkpoints === 4)
    cluster.environment.failpoints.throwAt('coordinator.discard.before', new Error('no clean-up'))
    let once = true
    cluster.onRecord = () => {
      if (once && !(once = false)) throw new Error('bad record')
    }
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    cluster.expectExact()
    expect(cluster.restarts).toEqual([expect.stringContaining('MR-O11'), expect.stringContaining('bad record')])
    expect(cluster.reported.map(({ workers }) => workers)).toEqual([
      undefined,
      [expect.stringMatching(/^worker of \d+#1/)],
    ])
    expect((await cluster.head()).restarts).toBe(2)
  })

  it('goes on when one region comes to run again while the slots of another one, lost meanwhile, still end', async () => {
    const cluster = new Cluster()
    const run = cluster.coordinator({ regions: true }).run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    const [first, second] = [...cluster.slots.values()]
    first!.end('its thread ended')
    await cluster.pass(60_000, () => cluster.restarts.length === 1)
    second!.end('its thread ended')
    // Longer than the first region needs to run; its slots end at once.
    cluster.endingMs = 50
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    cluster.expectExact()
    expect(cluster.restarts.length).toBe(2)
  })

  it('has one owner: a coordinator that was overtaken finds itself fenced at its next swap, and its tasks end', async () => {
    const cluster = new Cluster()
    const first = cluster.coordinator().run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    const second = cluster.coordinator().run()
    expect(await cluster.ended(first)).toMatchObject({ kind: 'fenced', head: { incarnation: 2 } })
    expect(await cluster.ended(second)).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })
})

describe('a savepoint (rule 21, R20)', () => {
  it('lies in a folder of its own, permits no commit, and leaves the job and its checkpoints as they are', async () => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator({ settings: { checkpointIntervalMs: undefined } })
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.appended > 100)
    const answer = await cluster.answerOf(coordinator.savepoint(requestId('mine')))
    expect(answer).toMatchObject({ outcome: 'completed', manifest: { kind: 'savepoint', id: 1 } })
    expect(cluster.ledger.entries, 'nothing is committed').toEqual([])
    const head = await cluster.head()
    expect(head).toMatchObject({ retained: [], unconfirmed: undefined, end: { kind: 'none' } })
    expect(head.savepointResults).toMatchObject([{ request: 'mine', outcome: 'completed' }])
    const manifest = decodeManifest((await cluster.objects.read('savepoint-1/_metadata' as ObjectKey))!, 'here')
    expect([...objectsOf(manifest)].filter((key) => !key.startsWith('savepoint-1/'))).toEqual([])
    expect(await cluster.answerOf(coordinator.savepoint(requestId('mine'))), 'asked again').toEqual(answer)
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })

  it('that nobody had an answer of is taken by the coordinator that comes next, under a new id', async () => {
    const cluster = new Cluster()
    const first = cluster.coordinator()
    const ended = first.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    const keeper = await HeadKeeper.open(cluster.heads, cluster.environment)
    await keeper.amend((head) => requestSavepoint(head, { request: requestId('left'), mode: 'savepoint' }))
    const second = cluster.coordinator()
    const run = second.run()
    expect(await cluster.ended(ended)).toMatchObject({ kind: 'fenced' })
    await cluster.pass(60_000, () => cluster.savepoints.length === 1)
    expect((await cluster.head()).savepointResults).toMatchObject([{ request: 'left', outcome: 'completed' }])
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })

  it('to stop with: everything before it is committed and nothing behind it, and the next start goes on from it', async () => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator({ settings: { checkpointIntervalMs: undefined } })
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.appended > 100)
    const answer = coordinator.stop({ drain: false })
    expect(await cluster.ended(run)).toMatchObject({ kind: 'stopped', savepoint: { id: 1, kind: 'savepoint' } })
    expect(await answer).toMatchObject({ outcome: 'completed' })
    expect(cluster.ledger.entries.length).toBeGreaterThan(100)
    expect(cluster.ledger.entries.length, 'all that was written is committed').toBe(cluster.appended)
    expect(await cluster.head()).toMatchObject({ end: { kind: 'stopped' }, unconfirmed: undefined })
    expect(await cluster.ended(cluster.coordinator().run())).toEqual({ kind: 'finished' })
    expect((await cluster.head()).restoredFrom).toMatchObject({ manifest: { path: 'savepoint-1/_metadata' } })
    cluster.expectExact()
  })

  it('to stop with whose request lies in HEAD without an answer: it is asked for again until it is clear, and not answered as failed', async () => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator({ settings: { checkpointIntervalMs: undefined } })
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.appended > 100)
    const { heads } = cluster
    const [swap, read] = [heads.swap.bind(heads), heads.read.bind(heads)]
    heads.swap = async (version, bytes) => {
      await swap(version, bytes)
      heads.read = () => Promise.reject(new Error('slow'))
      return { outcome: 'unclear', cause: new Error('no answer') }
    }
    // The job must not come to its end meanwhile.
    const { promise: mayGoOn, resolve: goOn } = Promise.withResolvers<void>()
    cluster.system = Object.assign(Object.create(cluster.ledger) as MemoryLedger, {
      append: async (...args: Parameters<MemoryLedger['append']>) => (await mayGoOn, cluster.ledger.append(...args)),
      preCommit: (name: string) => cluster.ledger.preCommit(name),
      commit: (name: string) => cluster.ledger.commit(name),
      abort: (name: string) => cluster.ledger.abort(name),
      list: () => cluster.ledger.list(),
    })
    const answers: SavepointAnswer[] = []
    const stopping = coordinator
      .stop({ drain: false, request: requestId('halt') })
      .then((answer) => answers.push(answer))
    await cluster.pass(2 * HEAD_SETTLE_DEADLINE_MS)
    expect(answers).toEqual([])
    Object.assign(heads, { swap, read })
    await cluster.pass(60_000, () => coordinator.checkpoints?.pending?.request === 'halt')
    goOn()
    expect(await cluster.ended(run)).toMatchObject({ kind: 'stopped' })
    await stopping
    expect(answers).toMatchObject([{ outcome: 'completed', manifest: { kind: 'savepoint' } }])
  })

  it('with drain: event time ends, and with all commits confirmed the job is finished', async () => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator()
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.appended > 100)
    void coordinator.stop({ drain: true })
    expect(await cluster.ended(run)).toMatchObject({ kind: 'stopped', savepoint: { drained: true } })
    expect(await cluster.head()).toMatchObject({ end: { kind: 'finished' }, unconfirmed: undefined })
    const written = cluster.appended
    expect(cluster.ledger.entries.length).toBe(written)
    expect(await cluster.ended(cluster.coordinator().run())).toMatchObject({ kind: 'ended' })
    expect(cluster.appended, 'nothing runs any more').toBe(written)
  })

  it('to stop with that fails leaves the job running, and its checkpoints go on (R20 b, B10)', async () => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator({ settings: { restartStrategy: { type: 'none' } } })
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    cluster.environment.failpoints.throwAt('coordinator.manifest.before', new Error('no manifest'))
    expect(await cluster.answerOf(coordinator.stop({ drain: false }))).toMatchObject({ outcome: 'failed' })
    cluster.environment.failpoints.clear()
    const before = cluster.checkpoints
    await cluster.pass(1_000, () => cluster.checkpoints > before)
    expect(cluster.checkpoints).toBeGreaterThan(before)
    expect(cluster.restarts).toEqual([expect.stringContaining('MR-O24')])
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })

  it('to stop with whose commit fails: the end says so, and the job is not begun again from an older checkpoint (R20 c)', async () => {
    const cluster = new Cluster()
    let broken = false
    cluster.system = Object.assign(Object.create(cluster.ledger) as MemoryLedger, {
      append: (...args: Parameters<MemoryLedger['append']>) => cluster.ledger.append(...args),
      preCommit: (name: string) => cluster.ledger.preCommit(name),
      abort: (name: string) => cluster.ledger.abort(name),
      list: () => cluster.ledger.list(),
      commit: (name: string) => (broken ? Promise.reject(new Error('closed')) : cluster.ledger.commit(name)),
    })
    const coordinator = cluster.coordinator({ settings: { commitDeadlineMs: 1_000 } })
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    broken = true
    void coordinator.stop({ drain: false })
    expect(await cluster.ended(run)).toMatchObject({ kind: 'stopped' })
    const { end, unconfirmed } = await cluster.head()
    expect(end.kind === 'stopped' && end.savepoint.path).toBe(unconfirmed?.path)
    broken = false
    expect(await cluster.ended(cluster.coordinator().run())).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })
})

describe('the ends of a job', () => {
  it('suspended: no new permit, what was permitted is committed, and the same command goes on from there', async () => {
    const cluster = new Cluster()
    // Commits hang in the slots, so that one is permitted and not done when the job is suspended.
    let hang = true
    cluster.system = Object.assign(Object.create(cluster.ledger) as MemoryLedger, {
      append: (...args: Parameters<MemoryLedger['append']>) => cluster.ledger.append(...args),
      preCommit: (name: string) => cluster.ledger.preCommit(name),
      abort: (name: string) => cluster.ledger.abort(name),
      list: () => cluster.ledger.list(),
      commit: (name: string) => (hang ? new Promise<never>(() => undefined) : cluster.ledger.commit(name)),
    })
    const coordinator = cluster.coordinator()
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 3)
    expect(cluster.ledger.entries).toEqual([])
    hang = false
    coordinator.suspend()
    expect(await cluster.ended(run)).toEqual({ kind: 'suspended' })
    expect(cluster.ledger.entries.length).toBeGreaterThan(0)
    expect(await cluster.head()).toMatchObject({ end: { kind: 'suspended' }, unconfirmed: undefined })
    expect(cluster.slots.size).toBe(0)
    expect(await cluster.ended(cluster.coordinator().run())).toEqual({ kind: 'finished' })
    expect((await cluster.head()).start).toBe(2)
    cluster.expectExact()
  })

  it('closed by somebody else: the tasks are cancelled, and what HEAD permits is committed (rule 5)', async () => {
    const cluster = new Cluster()
    const run = cluster.coordinator().run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    await (await HeadKeeper.open(cluster.heads, cluster.environment)).amend(close)
    expect(await cluster.ended(run)).toMatchObject({ kind: 'ended', head: { end: { kind: 'suspended' } } })
    expect([cluster.slots.size, (await cluster.head()).unconfirmed]).toEqual([0, undefined])
    expect(await cluster.ended(cluster.coordinator().run())).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })

  it.each<[string, (other: HeadKeeper) => Promise<unknown>, object]>([
    ['closed by somebody else', (other) => other.amend(close), { kind: 'ended', head: { end: { kind: 'suspended' } } }],
    [
      'taken over by another coordinator',
      (other) => other.begin((head) => raiseIncarnation(head!)),
      { kind: 'fenced', head: { incarnation: 2 } },
    ],
  ])('%s, also while it writes nothing: it is looked for', async (_, change, outcome) => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator({ settings: { checkpointIntervalMs: undefined } })
    cluster.system = Object.assign(Object.create(cluster.ledger) as MemoryLedger, {
      append: () => new Promise<never>(() => undefined),
      list: () => cluster.ledger.list(),
    })
    const run = coordinator.run()
    await cluster.pass(60_000, () => coordinator.execution?.allRunning === true)
    const read = cluster.heads.read.bind(cluster.heads)
    cluster.heads.read = () => Promise.reject(new Error('for a moment'))
    await cluster.pass(headLookMs)
    cluster.heads.read = read
    await change(await HeadKeeper.open(cluster.heads, cluster.environment))
    expect(await cluster.ended(run, headLookMs)).toMatchObject(outcome)
  })

  it('of a later start are its own: a coordinator of an earlier one commits nothing of it, and deletes nothing (rule 23)', async () => {
    const cluster = new Cluster()
    const settings = { onCancellation: 'delete' } as const
    const first = cluster.coordinator({ start: 1, settings })
    const ended = first.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    first.suspend()
    await cluster.ended(ended)
    let mayCommit = false
    cluster.system = Object.assign(Object.create(cluster.ledger) as MemoryLedger, {
      append: (...args: Parameters<MemoryLedger['append']>) => cluster.ledger.append(...args),
      preCommit: (name: string) => cluster.ledger.preCommit(name),
      abort: (name: string) => cluster.ledger.abort(name),
      list: () => cluster.ledger.list(),
      commit: (name: string) => (mayCommit ? cluster.ledger.commit(name) : new Promise<never>(() => undefined)),
    })
    const second = cluster.coordinator({ start: 2 })
    const run = second.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 4)
    const before = await cluster.head()
    expect(before.unconfirmed).toBeDefined()
    mayCommit = true
    const stale = () => cluster.ended(cluster.coordinator({ start: 1, settings }).run())
    expect(await stale()).toMatchObject({ kind: 'ended', head: { start: 2, end: { kind: 'none' } } })
    expect((await cluster.head()).unconfirmed).toEqual(before.unconfirmed)
    second.cancel()
    expect(await cluster.ended(run)).toEqual({ kind: 'cancelled' })
    const { retained } = await cluster.head()
    expect(retained).not.toEqual([])
    expect(await stale()).toMatchObject({ kind: 'ended', head: { start: 2, end: { kind: 'cancelled' } } })
    expect((await cluster.head()).retained).toEqual(retained)
  })

  it('whatever its split enumerators do as they close: restarts succeed, and its slots are ended with it', async () => {
    const cluster = new Cluster()
    cluster.onEnumeratorClose = () => {
      throw new Error('client already closed')
    }
    const run = cluster.coordinator().run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    cluster.slots.values().next().value!.end('its thread ended')
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    expect(cluster.restarts).toEqual([expect.stringContaining('MR-O11')])
    expect(cluster.slots.size).toBe(0)
    cluster.expectExact()
  })

  it('cancelled while a restart waits: at once', async () => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator({
      settings: { restartStrategy: { type: 'fixed-delay', attempts: 3, delayMs: 100_000 } },
    })
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    cluster.slots.values().next().value!.end('its thread ended')
    await cluster.pass(1_000)
    coordinator.cancel()
    expect(await cluster.ended(run, 5_000)).toEqual({ kind: 'cancelled' })
    expect((await cluster.head()).end).toEqual({ kind: 'cancelled' })
  })

  it('failed for good when the restart strategy gives up, with its cause; what to do is for each to say who starts it again', async () => {
    const cluster = new Cluster()
    cluster.onRecord = (n) => {
      if (n === 50) throw new Error('bad record')
    }
    const outcome = await cluster.ended(cluster.coordinator().run())
    expect(outcome).toMatchObject({ kind: 'failed', reason: expect.stringMatching(/MR-O01.*3 times.*bad record/s) })
    const { end } = await cluster.head()
    expect(end).toEqual(outcome)
    expect(end).toMatchObject({
      reason: expect.stringMatching(/no further restart\. It was restarted 3 times.*bad record/s),
    })
    expect(end).not.toMatchObject({ reason: expect.stringContaining(coordinatorErrors['MR-O01'].remedy) })
    expect(cluster.restarts).toHaveLength(3)
    expect((await cluster.head()).unconfirmed).toBeUndefined()
  })

  it('after it has failed another start goes on from where it was', async () => {
    const cluster = new Cluster()
    cluster.onRecord = (n) => {
      if (n === 50) throw new Error('bad record')
    }
    await cluster.ended(cluster.coordinator({ start: 1 }).run())
    const failed = await cluster.head()
    cluster.onRecord = () => undefined
    expect(await cluster.ended(cluster.coordinator({ start: 1 }).run())).toMatchObject({ kind: 'ended' })
    expect(await cluster.ended(cluster.coordinator({ start: 2 }).run())).toEqual({ kind: 'finished' })
    expect((await cluster.head()).restoredFrom).toEqual(restorePointOf(failed))
    cluster.expectExact()
  })

  it('too many failed checkpoints are a failure of the job like another (R7)', async () => {
    const cluster = new Cluster()
    const run = cluster.coordinator({ settings: { tolerableFailures: 1 } }).run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    const create = cluster.objects.create.bind(cluster.objects)
    cluster.objects.create = async () => {
      throw new Error('store down')
    }
    await cluster.pass(60_000, () => cluster.restarts.length === 1)
    cluster.objects.create = create
    expect(cluster.restarts).toEqual([expect.stringMatching(/MR-O02.*2 checkpoints.*store down/s)])
    expect(cluster.reported[0]!.workers, 'it is nobody in particular').toBeUndefined()
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })
})

describe('a job that cannot commit what it may', () => {
  const down = (cluster: Cluster): void => {
    cluster.system = Object.assign(Object.create(cluster.ledger) as MemoryLedger, {
      append: (...args: Parameters<MemoryLedger['append']>) => cluster.ledger.append(...args),
      preCommit: (name: string) => cluster.ledger.preCommit(name),
      abort: (name: string) => cluster.ledger.abort(name),
      list: () => cluster.ledger.list(),
      commit: () => Promise.reject(new Error('the ledger is down')),
    })
  }

  it('stops and asks also while it begins again, however often, and does not give up for good (rule 23)', async () => {
    const cluster = new Cluster()
    const run = cluster.coordinator({ settings: { commitDeadlineMs: 1_000 } }).run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    down(cluster)
    expect(await cluster.ended(run)).toMatch(/MR-O23.*MR-J60/s)
    for (let again = 0; again < 2; again++)
      expect(await cluster.ended(cluster.coordinator({ settings: { commitDeadlineMs: 1_000 } }).run())).toMatch(
        /MR-O23.*MR-J60.*the ledger is down/s,
      )
    expect(await cluster.head()).toMatchObject({ end: { kind: 'none' }, unconfirmed: { kind: 'checkpoint' } })
    cluster.system = cluster.ledger
    expect(await cluster.ended(cluster.coordinator().run())).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })

  it('tries to while it begins again for as long as it was told to: that is no part of the time to open', async () => {
    const cluster = new Cluster()
    const run = cluster.coordinator({ settings: { commitDeadlineMs: 1_000 } }).run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    down(cluster)
    expect(await cluster.ended(run)).toMatch(/MR-O23/)
    const settings = { commitDeadlineMs: 3 * openDeadlineMs }
    const second = cluster.coordinator({ settings }).run()
    const beganMs = cluster.environment.clock.nowMs()
    expect(await cluster.ended(second, 10 * openDeadlineMs)).toMatch(/MR-O23.*MR-J60/s)
    expect(cluster.environment.clock.nowMs() - beganMs).toBeGreaterThan(2 * openDeadlineMs)
    expect(cluster.restarts).toEqual([])
    // Up again behind the time to open, before the deadline of the commits.
    const third = cluster.coordinator({ settings }).run()
    await cluster.pass(2 * openDeadlineMs)
    cluster.system = cluster.ledger
    expect(await cluster.ended(third)).toEqual({ kind: 'finished' })
    expect(cluster.restarts).toEqual([])
    cluster.expectExact()
  })

  it('also of sinks that run no more, which the coordinator commits for itself', async () => {
    const cluster = new Cluster()
    const settings = { commitDeadlineMs: 1_000 }
    const run = cluster.coordinator({ settings, regions: true }).run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    down(cluster)
    expect(await cluster.ended(run)).toMatch(/MR-O23/)
    const point = restorePointOf(await cluster.head())
    const path: ObjectKey = point.kind === 'manifest' ? point.manifest.path : ('' as ObjectKey)
    const manifest = decodeManifest((await cluster.objects.read(path))!, path)
    await cluster.objects.delete([path])
    await cluster.objects.create(path, encodeManifest(whollyFinished(manifest)))
    expect(await cluster.ended(cluster.coordinator({ settings, regions: true }).run())).toMatch(
      /MR-O23.*MR-J60.*the ledger is down/s,
    )
    expect(cluster.restarts).toEqual([])
    cluster.system = cluster.ledger
    const before = cluster.ledger.entries.length
    expect(await cluster.ended(cluster.coordinator({ settings, regions: true }).run())).toEqual({ kind: 'finished' })
    expect(cluster.ledger.entries.length).toBeGreaterThan(before)
  })

  it('and has ended: the end stays, its log and whoever starts it again are told so and what to do, and then it commits', async () => {
    const cluster = new Cluster()
    const settings = { commitDeadlineMs: 1_000 }
    const first = cluster.coordinator({ settings })
    const run = first.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    down(cluster)
    await cluster.pass(60_000, () => cluster.checkpoints === 3)
    first.cancel()
    const said = /MR-O28 The job has ended, .*MR-J60 .*the ledger is down.*HEAD keeps .*millrace admin commit/s
    expect(await cluster.ended(run)).toEqual({ kind: 'cancelled' })
    expect(cluster.environment.lines.filter(({ level }) => level === 'error')).toEqual([
      {
        level: 'error',
        message: 'permitted commits are left in HEAD',
        fields: { end: 'cancelled', error: expect.stringMatching(said) as string },
      },
    ])
    expect(await cluster.ended(cluster.coordinator({ settings }).run())).toMatch(said)
    expect(await cluster.head()).toMatchObject({ end: { kind: 'cancelled' }, unconfirmed: { kind: 'checkpoint' } })
    cluster.system = cluster.ledger
    expect(await cluster.ended(cluster.coordinator().run())).toMatchObject({ kind: 'ended' })
    expect((await cluster.head()).unconfirmed).toBeUndefined()
    expect(cluster.ledger.entries.length).toBeGreaterThan(0)
  })

  it('stops and asks: it is not over, and the same command commits first and goes on exactly (rule 23)', async () => {
    const cluster = new Cluster()
    const run = cluster.coordinator({ settings: { commitDeadlineMs: 1_000 } }).run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    cluster.system = {
      append: (name, entries) => cluster.ledger.append(name, entries),
      preCommit: (name) => cluster.ledger.preCommit(name),
      commit: () => Promise.reject(new Error('the ledger is down')),
      abort: (name) => cluster.ledger.abort(name),
      list: () => cluster.ledger.list(),
    }
    expect(await cluster.ended(run)).toMatch(/MR-O23.*MR-J60.*the ledger is down/s)
    expect(await cluster.head()).toMatchObject({ end: { kind: 'none' }, unconfirmed: { kind: 'checkpoint' } })
    cluster.system = cluster.ledger
    expect(await cluster.ended(cluster.coordinator().run())).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })
})

describe('a job that cannot begin again', () => {
  it('says so and ends nothing when its restore point is missing: brought back, the same command goes on exactly', async () => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator()
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 3)
    coordinator.suspend()
    await cluster.ended(run)
    const point = restorePointOf(await cluster.head())
    const path: ObjectKey = point.kind === 'manifest' ? point.manifest.path : ('' as ObjectKey)
    const manifest = (await cluster.objects.read(path))!
    await cluster.objects.delete([path])
    expect(await cluster.ended(cluster.coordinator().run())).toMatch(/MR-O20.*MR-O18/s)
    expect((await cluster.head()).end).toEqual({ kind: 'none' })
    await cluster.objects.create(path, manifest)
    expect(await cluster.ended(cluster.coordinator().run())).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })

  it('likewise when its slots build another graph; a new job that cannot begin has failed', async () => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator()
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 3)
    coordinator.suspend()
    await cluster.ended(run)
    cluster.graphOfSlots = { ...cluster.graph(), hash: 'another' }
    expect(await cluster.ended(cluster.coordinator().run())).toMatch(/MR-O20.*MR-O14/s)
    expect((await cluster.head()).end).toEqual({ kind: 'none' })
    const fresh = new Cluster()
    fresh.graphOfSlots = cluster.graphOfSlots
    expect(await fresh.ended(fresh.coordinator().run())).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('MR-O14'),
    })
  })

  it('does not give committed transactions to its sinks again: whoever took them away may have done so', async () => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator()
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 3)
    coordinator.suspend()
    await cluster.ended(run)
    const commits: string[] = []
    let runs = false
    cluster.system = Object.assign(Object.create(cluster.ledger) as MemoryLedger, {
      append: (...args: Parameters<MemoryLedger['append']>) => ((runs = true), cluster.ledger.append(...args)),
      preCommit: (name: string) => cluster.ledger.preCommit(name),
      abort: (name: string) => cluster.ledger.abort(name),
      list: () => cluster.ledger.list(),
      commit: (name: string) => (runs || commits.push(name), cluster.ledger.commit(name)),
    })
    expect(await cluster.ended(cluster.coordinator().run())).toEqual({ kind: 'finished' })
    expect(commits).toEqual([])
    cluster.expectExact()
  })

  it('is told that it has ended when its start has, and another incarnation is not raised', async () => {
    const cluster = new Cluster()
    await cluster.ended(cluster.coordinator().run())
    expect(await cluster.ended(cluster.coordinator().run())).toMatchObject({
      kind: 'ended',
      head: { incarnation: incarnation(1), end: { kind: 'finished' } },
    })
  })
})

function whollyFinished(manifest: Manifest): Manifest {
  const vertices = manifest.vertices.map((vertex) => ({ ...vertex, finished: vertex.finished.map(() => true) }))
  return { ...manifest, vertices }
}
