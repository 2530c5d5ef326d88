import { describe, expect, it } from 'vitest'
import { keyGroup } from '../base/ids.ts'
import type { KeyedSnapshot } from '../checkpoint/contract.ts'
import { MIN_WATERMARK } from '../record/element.ts'
import { MemorySnapshots, snapshotOf } from '../state/conformance-harness.ts'
import { createHeapBackend } from '../state/heap/backend.ts'
import { ManualClock } from '../testkit/manual-clock.ts'
import type { OperatorChain } from './operator-chain.ts'
import { TimerFiring } from './timer-firing.ts'

/** A chain that writes down what reaches it, and a heap; `mayGoOn` is the test's. */
function firing(options: { readonly mayGoOn?: () => boolean; readonly clock?: ManualClock } = {}) {
  const story: string[] = []
  const clock = options.clock ?? new ManualClock()
  const keyed = createHeapBackend({
    uid: 'timers',
    timerMeaning: 'timers',
    first: keyGroup(0),
    last: keyGroup(7),
    maxParallelism: 8,
    clock,
  })
  const wakes: number[] = []
  const chain = {
    head: {
      onTimer: ({ domain, timestampMs }: { domain: string; timestampMs: number }) =>
        void story.push(`${domain} ${timestampMs - (domain === 'processing' ? clock.wallMs() : 0)}`),
    },
    setHeadWatermark: (watermark: number) => void story.push(`now ${watermark}`),
    forwardWatermark: (watermark: number) => void story.push(`watermark ${watermark}`),
    forwardStatus: (idle: boolean) => void story.push(idle ? 'idle' : 'active'),
  } as unknown as OperatorChain
  const timers = new TimerFiring({
    keyed,
    chain,
    clock,
    mayGoOn: options.mayGoOn ?? (() => true),
    wake: () => wakes.push(clock.nowMs()),
  })
  const register = (key: string, domain: 'event' | 'processing', timestampMs: number): void => {
    keyed.setKey(key)
    keyed.timers.register(domain, timestampMs)
  }
  return { story, clock, keyed, timers, register, wakes }
}

describe('firing timers', () => {
  it('comes before the watermark that made them due is forwarded, earliest first', () => {
    const { story, timers, register } = firing()
    register('a', 'event', 30)
    register('b', 'event', 10)
    register('c', 'event', 31)
    timers.advanceTo(30)
    expect(timers.busy).toBe(true)
    timers.fire()
    expect(story).toEqual(['now 30', 'event 10', 'event 30', 'watermark 30'])
    expect(timers.busy).toBe(false)
  })

  it('stops between two timers when the slice is over, and forwards nothing before the last', () => {
    const { story, timers, register } = firing({ mayGoOn: () => false })
    register('a', 'event', 10)
    register('b', 'event', 20)
    timers.advanceTo(50)
    timers.fire()
    expect(story).toEqual(['now 50', 'event 10'])
    timers.fire()
    timers.fire()
    expect(story).toEqual(['now 50', 'event 10', 'event 20', 'watermark 50'])
    expect(timers.busy).toBe(false)
  })

  it('gets on by one processing-time timer a call even if every slice is over before it began', () => {
    const { story, timers, register, clock } = firing({ mayGoOn: () => false })
    register('a', 'processing', clock.wallMs())
    register('b', 'processing', clock.wallMs())
    expect(timers.processingDue).toBe(true)
    timers.fire()
    timers.fire()
    expect(story).toEqual(['processing 0', 'processing 0'])
    expect(timers.processingDue).toBe(false)
  })

  it('ignores a watermark that does not rise', () => {
    const { story, timers } = firing()
    timers.advanceTo(5)
    timers.fire()
    timers.advanceTo(5)
    timers.advanceTo(4)
    expect(timers.busy).toBe(false)
    expect(story).toEqual(['now 5', 'watermark 5'])
  })

  it('lets idle wait for the timers and their watermark, but not active', () => {
    const { story, timers, register } = firing()
    register('a', 'event', 10)
    timers.advanceTo(20)
    timers.idleness(true)
    timers.fire()
    timers.idleness(false)
    timers.idleness(true)
    expect(story).toEqual(['now 20', 'event 10', 'watermark 20', 'idle', 'active', 'idle'])
  })

  it('wakes for the next processing-time timer, once, also when an earlier one comes later', () => {
    const { timers, register, clock, wakes } = firing()
    timers.arm()
    expect(clock.waiting).toBe(0)
    register('a', 'processing', clock.wallMs() + 50)
    timers.arm()
    timers.arm()
    expect(clock.waiting).toBe(1)
    register('b', 'processing', clock.wallMs() + 20)
    timers.arm()
    expect(clock.waiting).toBe(1)
    clock.advance(100)
    expect(wakes).toEqual([20])
    timers.fire()
    register('c', 'processing', clock.wallMs() + 50)
    timers.arm()
    timers.close()
    expect(clock.waiting).toBe(0)
  })
})

describe('after a restore (rule 27)', () => {
  /** Two old subtasks, four groups each, at their own watermarks. */
  async function snapshots(
    left: { watermark: number; timers: number[] },
    right: { watermark: number; timers: number[] },
  ) {
    const store = new MemorySnapshots()
    const halves = [left, right].map(async ({ watermark, timers }, half) => {
      const backend = createHeapBackend({
        uid: 'timers',
        timerMeaning: 'timers',
        first: keyGroup(half * 4),
        last: keyGroup(half * 4 + 3),
        maxParallelism: 8,
        clock: new ManualClock(),
      })
      const key = Array.from({ length: 100 }, (_, index) => index).find((candidate) => {
        try {
          backend.setKey(candidate)
          return true
        } catch {
          return false
        }
      })!
      backend.setKey(key)
      for (const timestampMs of timers) backend.timers.register('event', timestampMs)
      if (watermark > MIN_WATERMARK) backend.setWatermark(watermark)
      return snapshotOf(backend, store)
    })
    return { store, snapshots: await Promise.all(halves) }
  }

  async function restored(from: { store: MemorySnapshots; snapshots: KeyedSnapshot[] }) {
    const subject = firing()
    await subject.keyed.restore(from.snapshots, from.store)
    subject.timers.restored()
    return subject
  }

  it('each block fires up to its own watermark, then the smallest is forwarded and is the current one', async () => {
    const { story, timers } = await restored(
      await snapshots({ watermark: 100, timers: [40, 90, 110] }, { watermark: 50, timers: [45, 60] }),
    )
    expect(timers.busy).toBe(true)
    timers.fire()
    expect(story[0]).toBe('now 50')
    expect(story.slice(1, -1).toSorted()).toEqual(['event 40', 'event 45', 'event 90'])
    expect(story.at(-1)).toBe('watermark 50')
    timers.advanceTo(50)
    expect(timers.busy).toBe(false)
    timers.advanceTo(120)
    timers.fire()
    expect(story.slice(-4)).toEqual(['now 120', 'event 60', 'event 110', 'watermark 120'])
  })

  it('also when another block had no watermark at all: then nothing is forwarded', async () => {
    const { story, timers } = await restored(
      await snapshots({ watermark: 100, timers: [40] }, { watermark: MIN_WATERMARK, timers: [45] }),
    )
    timers.fire()
    expect(story).toEqual([`now ${MIN_WATERMARK}`, 'event 40'])
    expect(timers.busy).toBe(false)
  })

  it("a snapshot between two of the overdue timers keeps each block's watermark", async () => {
    const from = await snapshots({ watermark: 100, timers: [40, 90] }, { watermark: 50, timers: [45] })
    const subject = firing({ mayGoOn: () => false })
    await subject.keyed.restore(from.snapshots, from.store)
    subject.timers.restored()
    subject.timers.fire()
    const again = await restored({ store: from.store, snapshots: [await snapshotOf(subject.keyed, from.store)] })
    again.timers.fire()
    expect([...subject.story, ...again.story].filter((line) => line.startsWith('event')).toSorted()).toEqual([
      'event 40',
      'event 45',
      'event 90',
    ])
    expect(again.story.at(-1)).toBe('watermark 50')
  })

  it('waits for nothing when nothing was restored', () => {
    const { timers, story } = firing()
    timers.restored()
    timers.fire()
    expect(timers.busy).toBe(false)
    expect(story.filter((line) => line.startsWith('watermark'))).toEqual([])
  })
})
