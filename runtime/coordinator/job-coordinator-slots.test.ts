import { describe, expect, it } from 'vitest'
import { InvariantError } from '../base/errors.ts'
import { pause } from '../base/deadline.ts'
import { requestId } from '../base/ids.ts'
import type { SlotId } from '../base/ids.ts'
import { close, requestSavepoint } from '../storage/head.ts'
import { decodeHead } from '../storage/head-format.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import type { SavepointAnswer } from './coordinator-contract.ts'
import { reconnectMs } from './remote-slots.ts'
import { Cluster, perSplit, splits } from '../../tests/support/coordinator-cluster.ts'

describe('a job that runs on in other slots', () => {
  it('is rescaled in place behind a checkpoint: same start, nothing lost or repeated, and the answer stands in HEAD (rule 25)', async () => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator()
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    expect(await cluster.answerOf(coordinator.rescale(3, requestId('bigger')))).toMatchObject({
      outcome: 'completed',
      manifest: { kind: 'checkpoint' },
    })
    await cluster.pass(60_000, () => coordinator.execution?.allRunning === true && cluster.slots.size === 3)
    const head = await cluster.head()
    expect(head).toMatchObject({ start: 1, incarnation: 2, rescaledTo: 3, restarts: 0, savepointRequests: [] })
    // The same request is the same rescale.
    expect(await cluster.answerOf(coordinator.rescale(3, requestId('bigger')))).toMatchObject({ outcome: 'completed' })
    expect(await cluster.answerOf(coordinator.rescale(1, requestId('smaller')))).toMatchObject({ outcome: 'completed' })
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    cluster.expectExact()
    expect(cluster.appended, 'nothing was read twice').toBe(splits * perSplit)
    expect(cluster.restarts).toEqual([])
  })

  it('answers a savepoint that waited behind the rescale: the job goes on (rule 21)', async () => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator()
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    const rescaled = coordinator.rescale(3, requestId('bigger'))
    const savepoint = coordinator.savepoint(requestId('kept'))
    const answers = await Promise.all([cluster.answerOf(rescaled), cluster.answerOf(savepoint)])
    expect(answers).toMatchObject([
      { outcome: 'completed', manifest: { kind: 'checkpoint', id: 3 } },
      // Of the next block of ids: the run before this one did not take it.
      { outcome: 'completed', manifest: { kind: 'savepoint', id: 1001 } },
    ])
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })

  it('stops when that was asked for just as the rescale had its swap: the run at the new size is asked, and whoever asked hears of it', async () => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator()
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    const swap = cluster.heads.swap.bind(cluster.heads)
    let stopped: Promise<SavepointAnswer> | undefined
    cluster.heads.swap = async (version, bytes) => {
      const { rescaledTo, savepointRequests } = decodeHead(bytes, 'a swap')
      const isRescale = rescaledTo === 3 && stopped === undefined
      if (isRescale) stopped = coordinator.stop({ drain: false, request: requestId('halt') })
      // The stop is in HEAD only when the run before has been left.
      const asksToStop = rescaledTo === 3 && savepointRequests.length > 0
      await pause(cluster.environment.clock, asksToStop || isRescale ? 20 : 0)
      return swap(version, bytes)
    }
    expect(await cluster.answerOf(coordinator.rescale(3, requestId('bigger')))).toMatchObject({ outcome: 'completed' })
    expect(await cluster.answerOf(stopped!)).toMatchObject({ outcome: 'completed', manifest: { kind: 'savepoint' } })
    expect(await cluster.ended(run)).toMatchObject({ kind: 'stopped' })
    expect((await cluster.head()).savepointResults).toMatchObject([{ request: 'bigger' }, { request: 'halt' }])
  })

  it('keeps the size that it was rescaled to under the next coordinator, and begins the next start at its own', async () => {
    const cluster = new Cluster()
    const first = cluster.coordinator()
    const run = first.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 1)
    await cluster.answerOf(first.rescale(3))
    await cluster.pass(60_000, () => cluster.slots.size === 3)
    const second = cluster.coordinator()
    const resumed = second.run()
    expect(await cluster.ended(run)).toMatchObject({ kind: 'fenced' })
    await cluster.pass(60_000, () => second.execution?.allRunning === true)
    expect(second.execution!.tasks.size).toBe(6)
    second.suspend()
    expect(await cluster.ended(resumed)).toEqual({ kind: 'suspended' })
    const third = cluster.coordinator()
    const next = third.run()
    await cluster.pass(60_000, () => third.execution?.allRunning === true)
    expect(third.execution!.tasks.size).toBe(4)
    expect((await cluster.head()).rescaledTo).toBeUndefined()
    expect(await cluster.ended(next)).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })

  it('refuses a rescale that cannot be, and runs on', async () => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator()
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 1)
    expect(await cluster.answerOf(coordinator.rescale(2))).toEqual({
      outcome: 'failed',
      detail: 'it runs at parallelism 2 already',
    })
    expect(await cluster.answerOf(coordinator.rescale(100_000))).toMatchObject({
      outcome: 'failed',
      detail: expect.stringContaining('MR-J'),
    })
    expect((await cluster.head()).savepointRequests).toEqual([])
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })

  it('goes to the size of now behind a rescale that waits: it is not the size that it will find', async () => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator()
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 1)
    // Asked while the first stands in HEAD and has not had its turn.
    const swap = cluster.heads.swap.bind(cluster.heads)
    let back: Promise<SavepointAnswer> | undefined
    cluster.heads.swap = async (version, bytes) => {
      const swapped = await swap(version, bytes)
      const [waiting] = decodeHead(bytes, 'a swap').savepointRequests
      if (waiting?.request === 'bigger') back ??= coordinator.rescale(2, requestId('back'))
      return swapped
    }
    expect(await cluster.answerOf(coordinator.rescale(3, requestId('bigger')))).toMatchObject({ outcome: 'completed' })
    expect(await cluster.answerOf(back!)).toMatchObject({ outcome: 'completed' })
    await cluster.pass(60_000, () => coordinator.execution?.allRunning === true)
    expect(coordinator.execution!.tasks.size).toBe(4)
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })

  describe('with a request to rescale in HEAD', () => {
    function longRunning(ratePerSecond: number): Cluster {
      const cluster = new Cluster()
      cluster.ratePerSecond = ratePerSecond
      return cluster
    }

    /** The coordinator that was asked is lost before it comes to that, and so are workers that had room. */
    async function takenOver(cluster: Cluster) {
      cluster.adopts = true
      const first = cluster.coordinator().run()
      await cluster.pass(60_000, () => cluster.checkpoints === 2)
      await cluster.loseCoordinator(first)
      const keeper = await HeadKeeper.open(cluster.heads, cluster.environment)
      const bigger = { request: requestId('bigger'), mode: 'rescale', parallelism: 3 } as const
      await keeper.amend((head) => requestSavepoint(head, bigger))
      cluster.slotsOffered = 2
      const coordinator = cluster.coordinator()
      return { coordinator, run: coordinator.run() }
    }

    it('answers it as failed when there is no room any more, and runs on as it was: it can be stopped and asked for another size', async () => {
      const cluster = longRunning(1)
      const { coordinator, run } = await takenOver(cluster)
      await cluster.pass(2 * reconnectMs)
      const { rescaledTo, savepointResults } = await cluster.head()
      expect(rescaledTo).toBeUndefined()
      expect(savepointResults).toMatchObject([
        { request: 'bigger', outcome: 'failed', detail: 'it needs 3 slots, and the workers offer 2' },
      ])
      expect(cluster.restarts).toEqual([])
      expect(await cluster.answerOf(coordinator.rescale(1))).toMatchObject({ outcome: 'completed' })
      expect(await cluster.answerOf(coordinator.stop({ drain: false }))).toMatchObject({ outcome: 'completed' })
      expect(await cluster.ended(run)).toMatchObject({ kind: 'stopped' })
    })

    it('carries it out once its workers have found the next coordinator, which is a moment after their subtasks run', async () => {
      const cluster = longRunning(1)
      const { coordinator, run } = await takenOver(cluster)
      await cluster.pass(60_000, () => coordinator.execution?.allRunning === true)
      await cluster.pass(reconnectMs)
      cluster.slotsOffered = 3
      await cluster.pass(10_000, () => cluster.slots.size === 3)
      expect(await cluster.head()).toMatchObject({ rescaledTo: 3, savepointResults: [{ outcome: 'completed' }] })
      coordinator.suspend()
      await cluster.ended(run)
    })

    it('fails it where a worker is lost for good before its turn: nothing halts', async () => {
      const cluster = longRunning(40)
      const coordinator = cluster.coordinator()
      const run = coordinator.run()
      await cluster.pass(60_000, () => cluster.checkpoints === 2)
      // It waits for its turn while the job restarts after another loss.
      cluster.endingMs = 500
      cluster.slots.get([...cluster.slots.keys()][0]!)!.end('its worker is gone')
      await cluster.pass(100, () => coordinator.execution?.allRunning === false)
      const swap = cluster.heads.swap.bind(cluster.heads)
      cluster.heads.swap = (expected, bytes) => {
        if (decodeHead(bytes, 'HEAD').savepointRequests.length > 0) cluster.slotsOffered = 2
        return swap(expected, bytes)
      }
      expect(await cluster.answerOf(coordinator.rescale(3))).toEqual({
        outcome: 'failed',
        detail: 'it needs 3 slots, and the workers offer 2',
      })
      expect(cluster.restarts).toEqual([expect.stringContaining('its worker is gone')])
      expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
      cluster.expectExact()
    })
  })

  it('moves behind a checkpoint, without the restart strategy: nothing is read twice', async () => {
    const cluster = new Cluster()
    const coordinator = cluster.coordinator()
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    const before = [...cluster.slots.keys()]
    coordinator.move()
    // Another worker begins to leave: it is left by the same stop.
    coordinator.move()
    await cluster.pass(60_000, () => cluster.slots.size === 2 && !before.some((slot) => cluster.slots.has(slot)))
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    cluster.expectExact()
    expect(cluster.appended).toBe(splits * perSplit)
    expect((await cluster.head()).restarts).toBe(0)
    expect(cluster.restarts).toEqual([expect.stringContaining('MR-O27')])
  })

  it('leaves its slots to the next coordinator when HEAD stays unclear, and not when something is broken (rules 4, 25)', async () => {
    const cluster = new Cluster()
    const run = cluster.coordinator().run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    cluster.heads.swap = async () => ({ outcome: 'unclear', cause: new Error('no answer') })
    expect(await cluster.ended(run)).toContain('MR-S12')
    expect(cluster.abandoned).toBe(true)
    const broken = new Cluster()
    const second = broken.coordinator().run()
    await broken.pass(60_000, () => broken.checkpoints === 2)
    broken.heads.swap = async () => {
      throw new InvariantError('broken')
    }
    expect(await broken.ended(second)).toContain('broken')
    expect(broken.abandoned).toBe(false)
  })

  it("leaves its slots to the next coordinator when a source's own client does not connect as it takes them over (rule 25)", async () => {
    const cluster = new Cluster()
    cluster.adopts = true
    const first = cluster.coordinator().run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    await cluster.loseCoordinator(first)
    const slots = [...cluster.slots.keys()]
    cluster.onEnumeratorStart = async () => {
      throw new Error('connect ECONNREFUSED')
    }
    expect(await cluster.ended(cluster.coordinator().run())).toContain('ECONNREFUSED')
    expect(cluster.abandoned).toBe(true)
    expect([...cluster.slots.keys()]).toEqual(slots)
    cluster.onEnumeratorStart = async () => undefined
    expect(await cluster.ended(cluster.coordinator().run())).toEqual({ kind: 'finished' })
    cluster.expectExact()
    expect(cluster.appended, 'nothing was read twice').toBe(splits * perSplit)
    expect(cluster.restarts).toEqual([])
  })

  it.each([
    { regions: true, what: 'region', tasks: 1, failed: 1 },
    { regions: false, what: 'job', tasks: 4, failed: 4 },
  ])(
    'tells of the $what that restarts since a slot has gone with the coordinator before, which asks no restart strategy',
    async ({ regions, tasks, failed }) => {
      const cluster = new Cluster()
      cluster.adopts = true
      const first = cluster.coordinator({ regions }).run()
      await cluster.pass(60_000, () => cluster.checkpoints === 2)
      await cluster.loseCoordinator(first)
      cluster.slots.get([...cluster.slots.keys()][0]!)!.end('its worker is gone')
      const before = cluster.reported.length
      expect(await cluster.ended(cluster.coordinator({ regions }).run())).toEqual({ kind: 'finished' })
      cluster.expectExact()
      const [restart, ...others] = cluster.reported.slice(before)
      expect(restart).toMatchObject({ code: 'MR-O29', tasks, inMs: 0 })
      expect(restart!.message).toMatch(/numbers\S*\/0: nobody runs it/)
      expect(restart!.failed).toHaveLength(failed)
      expect(others).toEqual([])
      expect((await cluster.head()).restarts).toBe(0)
    },
  )

  it.each([
    ['before the next coordinator comes', 'nobody asks for survivors'],
    ['while the next coordinator looks for what runs on', 'survivors are there'],
  ])('ends, closed %s: its tasks are ended, and then what HEAD permits is committed (rule 5)', async (_when, how) => {
    const cluster = new Cluster()
    cluster.adopts = true
    const first = cluster.coordinator({ start: 1 }).run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    await cluster.loseCoordinator(first)
    expect(cluster.slots.size).toBeGreaterThan(0)
    const closeIt = async () => void (await (await HeadKeeper.open(cluster.heads, cluster.environment)).amend(close))
    if (how === 'survivors are there') cluster.onSurvivors = closeIt
    else await closeIt()
    expect(await cluster.ended(cluster.coordinator({ start: 1 }).run())).toMatchObject({
      kind: 'ended',
      head: { end: { kind: 'suspended' } },
    })
    expect([cluster.slots.size, (await cluster.head()).unconfirmed]).toEqual([0, undefined])
    cluster.onSurvivors = async () => undefined
    expect(await cluster.ended(cluster.coordinator({ start: 2 }).run())).toEqual({ kind: 'finished' })
    cluster.expectExact()
  })

  it('names each slot in HEAD before it starts, and no more the life that it gave up: nobody is to adopt that (rule 25)', async () => {
    const cluster = new Cluster()
    cluster.adopts = true
    let named: readonly SlotId[] = []
    const swap = cluster.heads.swap.bind(cluster.heads)
    cluster.heads.swap = async (expected, bytes) => {
      const answer = await swap(expected, bytes)
      if (answer.outcome === 'won') named = decodeHead(bytes, 'HEAD').deployed ?? []
      return answer
    }
    const unnamed: SlotId[] = []
    cluster.onStart = (slot) => void (named.includes(slot) || unnamed.push(slot))
    const run = cluster.coordinator({ regions: true }).run()
    await cluster.pass(60_000, () => cluster.checkpoints === 2)
    const [lost, other] = [...cluster.slots.keys()]
    expect(named).toEqual([lost, other])
    cluster.slots.get(lost!)!.end('its worker cannot be reached')
    await cluster.pass(60_000, () => cluster.checkpoints === 4)
    expect(named).toEqual([[...cluster.slots.keys()].find((slot) => slot !== other), other])
    expect(named).not.toContain(lost)
    expect(await cluster.ended(run)).toEqual({ kind: 'finished' })
    expect(unnamed).toEqual([])
    cluster.expectExact()
  })
})
