import { describe, expect, it } from 'vitest'
import { checkpointId, jobId, start } from '../base/ids.ts'
import type { PlantedFault } from '../base/planted.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import type { ManualEnvironment } from '../testkit/manual-clock.ts'
import type { HeadStore, HeadVersion, SwapAnswer, VersionedHead } from './contract.ts'
import {
  addPin,
  close,
  completeCheckpoint,
  confirmCommits,
  countRestart,
  finish,
  newJob,
  raiseIncarnation,
} from './head.ts'
import type { Head } from './head-contract.ts'
import { decodeHead, encodeHead } from './head-format.ts'
import { HEAD_CALL_DEADLINE_MS, HEAD_SETTLE_DEADLINE_MS, HeadKeeper } from './head-keeper.ts'
import { MemoryHeadStore } from './memory-store.ts'
import { checkpointRef as manifest } from './test-refs.ts'

/** How the next swap goes. late: unclear, and lands when `land` is called. hangs: never answers, and lands when `land` is called. */
type Fate = 'clear' | 'landed, answer lost' | 'never landed, answer lost' | 'throws' | 'late' | 'hangs'

/** A store that does what the script says, then what is right. */
class ScriptedHeadStore implements HeadStore {
  readonly truth = new MemoryHeadStore()
  readonly swaps: string[] = []
  fates: Fate[] = []
  /** Reads fail so many times. */
  failingReads = 0
  /** Runs before a swap reaches the store. */
  beforeSwap: (() => Promise<void>) | undefined
  #late: (() => Promise<SwapAnswer>)[] = []

  async read(): Promise<VersionedHead | undefined> {
    if (this.failingReads > 0) {
      this.failingReads--
      throw new Error('503')
    }
    return this.truth.read()
  }

  async swap(expected: HeadVersion | undefined, bytes: Uint8Array): Promise<SwapAnswer> {
    const before = this.beforeSwap
    this.beforeSwap = undefined
    await before?.()
    const fate = this.fates.shift() ?? 'clear'
    this.swaps.push(fate)
    if (fate === 'clear') return this.truth.swap(expected, bytes)
    if (fate === 'throws') throw new Error('connection reset')
    if (fate === 'landed, answer lost') await this.truth.swap(expected, bytes)
    if (fate === 'late' || fate === 'hangs') this.#late.push(() => this.truth.swap(expected, bytes))
    if (fate === 'hangs') return new Promise(() => undefined)
    return { outcome: 'unclear', cause: new Error(fate) }
  }

  /** The late writes reach the store now; their outcomes. */
  async land(): Promise<string[]> {
    const outcomes: string[] = []
    for (const write of this.#late.splice(0)) outcomes.push((await write()).outcome)
    return outcomes
  }

  async current(): Promise<Head> {
    return decodeHead((await this.truth.read())!.bytes, 'the store')
  }

  /** Somebody else changes HEAD. */
  async elsewhere(transition: (head: Head) => Head): Promise<void> {
    const read = (await this.truth.read())!
    const next = {
      ...transition(decodeHead(read.bytes, 'the store')),
      writer: `elsewhere-${this.swaps.length}-${read.version.token}`,
    }
    await this.truth.swap(read.version, encodeHead(next))
  }
}

const first = () => newJob({ job: jobId('job'), start: start(1), parallelism: 1, maxParallelism: 128 })
const takeOver = (head: Head | undefined) => (head === undefined ? first() : raiseIncarnation(head))
const completed = (id: number) => (head: Head) =>
  completeCheckpoint(head, { manifest: manifest(id), retainedMax: 3, commitsPending: true })

async function running(planted: readonly PlantedFault[] = []) {
  const environment = manualEnvironment({ planted: new Set(planted) })
  const store = new ScriptedHeadStore()
  const keeper = await HeadKeeper.open(store, environment)
  expect(await keeper.begin(takeOver)).toMatchObject({ outcome: 'won' })
  expect(await keeper.reserveIds(100)).toMatchObject({ outcome: 'won', from: 1, to: 100 })
  store.swaps.length = 0
  return { environment, store, keeper }
}

/** Lets the time pass until the call has its answer; at most two minutes. */
async function answerOf<T>(environment: ManualEnvironment, call: Promise<T>): Promise<T> {
  let settled = false
  const done = () => {
    settled = true
  }
  call.then(done, done)
  for (let passedMs = 0; passedMs < 120_000; passedMs += 50) {
    await environment.clock.advanceSettled(50)
    if (settled) break
  }
  expect(settled).toBe(true)
  return call
}

describe('an update of HEAD', () => {
  it('that is clear takes one swap and no read', async () => {
    const { store, keeper } = await running()
    store.failingReads = 1
    expect(await keeper.update(completed(5))).toMatchObject({ outcome: 'won', head: { retained: [{ id: 5 }] } })
    expect(store.swaps).toEqual(['clear'])
    expect(store.failingReads).toBe(1)
  })

  it('has a writer of its own each time', async () => {
    const { store, keeper } = await running()
    const writers = new Set([(await store.current()).writer])
    for (let round = 0; round < 3; round++) {
      await keeper.update((head) => head)
      writers.add((await store.current()).writer)
    }
    expect(writers.size).toBe(4)
  })

  it('goes one after the other, in the order asked', async () => {
    const { store, keeper } = await running()
    const answers = await Promise.all([5, 6, 7].map((id) => keeper.update(completed(id))))
    expect(answers.map((answer) => answer.outcome)).toEqual(['won', 'won', 'won'])
    expect((await store.current()).retained.map((ref) => ref.id)).toEqual([5, 6, 7])
  })

  it('that lost to an amendment is applied on top of it', async () => {
    const { store, keeper } = await running()
    await store.elsewhere((head) => addPin(head, { manifest: manifest(1), reason: 'upgrade' }))
    expect(await keeper.update(completed(5))).toMatchObject({
      outcome: 'won',
      head: { retained: [{ id: 5 }], pins: [{ reason: 'upgrade' }] },
    })
  })

  it('that lost to another incarnation is fenced, and writes nothing', async () => {
    const { store, keeper } = await running()
    await store.elsewhere(raiseIncarnation)
    expect(await keeper.update(completed(5))).toMatchObject({ outcome: 'fenced', head: { incarnation: 2 } })
    expect(await keeper.update(completed(6))).toMatchObject({ outcome: 'fenced' })
    expect((await store.current()).retained).toEqual([])
  })

  it('that lost to an end of the start writes nothing, now and later', async () => {
    const { store, keeper } = await running()
    await keeper.update(completed(4))
    await store.elsewhere(close)
    expect(await keeper.update(completed(5))).toMatchObject({ outcome: 'ended', head: { end: { kind: 'suspended' } } })
    expect(await keeper.update(completed(6))).toMatchObject({ outcome: 'ended' })
    expect((await store.current()).retained.map((ref) => ref.id)).toEqual([4])
    expect(await keeper.amend((head) => confirmCommits(head, checkpointId(4)))).toMatchObject({
      end: { kind: 'suspended' },
      unconfirmed: undefined,
    })
    expect(await keeper.update(completed(7))).toMatchObject({ outcome: 'ended' })
  })

  it('goes on after an end of its own', async () => {
    const { keeper } = await running()
    await keeper.update(completed(5))
    expect(await keeper.update(close)).toMatchObject({ outcome: 'won' })
    expect(await keeper.update((head) => confirmCommits(head, checkpointId(5)))).toMatchObject({
      outcome: 'won',
      head: { end: { kind: 'suspended' }, unconfirmed: undefined },
    })
  })

  it('says that HEAD is gone when somebody took it away, and writes none from empty', async () => {
    const { store, keeper } = await running()
    store.truth.remove()
    await expect(keeper.update(completed(5))).rejects.toMatchObject({ code: 'MR-S16', retry: false })
    await expect(keeper.readBegun()).rejects.toMatchObject({ code: 'MR-S16' })
    expect(await store.truth.read()).toBeUndefined()
  })

  it('whose transition throws writes nothing and leaves the keeper usable', async () => {
    const { store, keeper } = await running()
    await expect(keeper.update(completed(500))).rejects.toThrow(/never reserved/)
    expect(store.swaps).toEqual([])
    expect(await keeper.update(completed(5))).toMatchObject({ outcome: 'won' })
  })
})

describe('an unclear swap', () => {
  it.each<Fate>(['landed, answer lost'])('that shows our writer in a read has won (%s)', async (fate) => {
    const { environment, store, keeper } = await running()
    store.fates = [fate]
    expect(await answerOf(environment, keeper.update(completed(5)))).toMatchObject({
      outcome: 'won',
      head: { retained: [{ id: 5 }] },
    })
    expect(store.swaps).toEqual([fate])
  })

  it.each<Fate>(['never landed, answer lost', 'throws', 'late', 'hangs'])(
    'that does not show is settled by winning a further one (%s)',
    async (fate) => {
      const { environment, store, keeper } = await running()
      store.fates = [fate]
      expect(await answerOf(environment, keeper.update(completed(5)))).toMatchObject({
        outcome: 'won',
        head: { retained: [{ id: 5 }] },
      })
      expect(store.swaps).toEqual([fate, 'clear'])
      // What lands later meets another version: the further swap has made it harmless.
      expect(await store.land()).toEqual(fate === 'late' || fate === 'hangs' ? ['lost'] : [])
      expect((await store.current()).retained.map((ref) => ref.id)).toEqual([5])
    },
  )

  it('that lands between the read and the further swap has won, once', async () => {
    const { environment, store, keeper } = await running()
    store.fates = ['late']
    const call = keeper.update(countRestart)
    await environment.clock.advanceSettled(10)
    store.beforeSwap = async () => {
      expect(await store.land()).toEqual(['won'])
    }
    expect(await answerOf(environment, call)).toMatchObject({ outcome: 'won', head: { restarts: 1 } })
    expect((await store.current()).restarts).toBe(1)
  })

  it('that landed below somebody’s amendment completes nothing twice', async () => {
    const { environment, store, keeper } = await running()
    store.fates = ['landed, answer lost']
    const call = keeper.update(completed(5))
    await environment.clock.advanceSettled(10)
    await store.elsewhere((head) => addPin(head, { manifest: manifest(1), reason: 'upgrade' }))
    expect(await answerOf(environment, call)).toMatchObject({ outcome: 'won' })
    expect((await store.current()).retained.map((ref) => ref.id)).toEqual([5])
  })

  it('below another incarnation’s is fenced; whether it had landed is read from HEAD', async () => {
    const { environment, store, keeper } = await running()
    store.fates = ['landed, answer lost']
    const call = keeper.update(completed(5))
    await environment.clock.advanceSettled(10)
    await store.elsewhere(raiseIncarnation)
    expect(await answerOf(environment, call)).toMatchObject({
      outcome: 'fenced',
      head: { incarnation: 2, retained: [{ id: 5 }] },
    })
    await answerOf(environment, keeper.settled())
  })

  it('of an own end is not taken for somebody else’s', async () => {
    const { environment, store, keeper } = await running()
    store.fates = ['landed, answer lost']
    expect(await answerOf(environment, keeper.update(finish))).toMatchObject({
      outcome: 'won',
      head: { end: { kind: 'finished' } },
    })
    expect(await keeper.update((head) => head)).toMatchObject({ outcome: 'won' })
  })

  it('is repeated with growing pauses up to a deadline, and is then an error to try again that says what the store answered last', async () => {
    const { environment, store, keeper } = await running()
    store.fates = Array.from({ length: 100 }, () => 'never landed, answer lost' as const)
    const begunMs = environment.clock.nowMs()
    await expect(answerOf(environment, keeper.update(completed(5)))).rejects.toMatchObject({
      code: 'MR-S12',
      message: expect.stringContaining('the last answer: never landed, answer lost') as string,
      retry: true,
    })
    const tookMs = environment.clock.nowMs() - begunMs
    expect(tookMs).toBeGreaterThanOrEqual(HEAD_SETTLE_DEADLINE_MS)
    expect(tookMs).toBeLessThan(HEAD_SETTLE_DEADLINE_MS + 10_000)
    expect(store.swaps.length).toBeLessThan(30)
    store.fates = []
    expect(await answerOf(environment, keeper.update(completed(5)))).toMatchObject({ outcome: 'won' })
  })

  it('that was an end, given up and asked again, is not taken for somebody else’s', async () => {
    const { environment, store, keeper } = await running()
    store.fates = ['late', ...Array.from({ length: 100 }, () => 'never landed, answer lost' as const)]
    await expect(answerOf(environment, keeper.update(close))).rejects.toMatchObject({ code: 'MR-S12' })
    expect(await store.land()).toEqual(['won'])
    store.fates = []
    expect(await answerOf(environment, keeper.update(close))).toMatchObject({
      outcome: 'won',
      head: { end: { kind: 'suspended' } },
    })
  })
})

describe('a look at HEAD', () => {
  it('tells of another incarnation and of an end by somebody else, and writes nothing', async () => {
    const { store, keeper } = await running()
    expect(await keeper.look()).toBeUndefined()
    await store.elsewhere(close)
    expect(await keeper.look()).toMatchObject({ outcome: 'ended', head: { end: { kind: 'suspended' } } })
    const { store: other, keeper: former } = await running()
    await other.elsewhere(raiseIncarnation)
    expect(await former.look()).toMatchObject({ outcome: 'fenced', head: { incarnation: 2 } })
    expect([...store.swaps, ...other.swaps]).toEqual([])
  })

  it('takes no end of its own for somebody else’s, whether its swap has its answer or not', async () => {
    const { environment, store, keeper } = await running()
    const { promise: mayAnswer, resolve: letAnswer } = Promise.withResolvers<void>()
    const swap = store.swap.bind(store)
    store.swap = async (...args) => {
      const answer = await swap(...args)
      await mayAnswer
      return answer
    }
    const closing = keeper.update(close)
    await environment.clock.advanceSettled(1)
    const look = keeper.look()
    await environment.clock.advanceSettled(1)
    letAnswer()
    expect(await closing).toMatchObject({ outcome: 'won' })
    expect([await look, await keeper.look()]).toEqual([undefined, undefined])
    const { environment: slow, store: away, keeper: unsettled } = await running()
    away.fates = ['landed, answer lost']
    away.beforeSwap = async () => {
      away.failingReads = 1_000
    }
    await expect(answerOf(slow, unsettled.update(close))).rejects.toMatchObject({ code: 'MR-S12' })
    await expect(unsettled.look()).rejects.toThrow('503')
    away.failingReads = 0
    expect(await unsettled.look()).toBeUndefined()
  })
})

describe('settled', () => {
  it('is immediate when nothing is under way', async () => {
    const { store, keeper } = await running()
    await keeper.settled()
    expect(store.swaps).toEqual([])
  })

  it('waits for a swap in flight', async () => {
    const { environment, store, keeper } = await running()
    store.fates = ['hangs']
    const order: string[] = []
    const update = keeper.update(completed(5)).then(() => order.push('updated'))
    const settled = keeper.settled().then(() => order.push('settled'))
    await environment.clock.advanceSettled(HEAD_CALL_DEADLINE_MS - 1)
    expect(order).toEqual([])
    await answerOf(environment, Promise.all([update, settled]))
    expect(order).toEqual(['updated', 'settled'])
  })

  it('wins a further swap for one that was given up, so that it cannot land after a restore has read HEAD', async () => {
    const { environment, store, keeper } = await running()
    store.fates = Array.from({ length: 100 }, () => 'late' as const)
    await expect(answerOf(environment, keeper.update(completed(5)))).rejects.toMatchObject({ code: 'MR-S12' })
    store.fates = []
    store.swaps.length = 0
    await answerOf(environment, keeper.settled())
    expect(store.swaps).toEqual(['clear'])
    expect(new Set(await store.land())).toEqual(new Set(['lost']))
    expect((await store.current()).retained).toEqual([])
  })

  it('is content when the write that was given up shows', async () => {
    const { environment, store, keeper } = await running()
    store.fates = ['late', ...Array.from({ length: 100 }, () => 'never landed, answer lost' as const)]
    await expect(answerOf(environment, keeper.update(completed(5)))).rejects.toMatchObject({ code: 'MR-S12' })
    expect(await store.land()).toEqual(['won'])
    store.swaps.length = 0
    await answerOf(environment, keeper.settled())
    expect(store.swaps).toEqual([])
    expect((await keeper.read())?.retained.map((ref) => ref.id)).toEqual([5])
  })

  it('fails while the store stays unclear, and may be asked again', async () => {
    const { environment, store, keeper } = await running()
    store.fates = Array.from({ length: 200 }, () => 'never landed, answer lost' as const)
    await expect(answerOf(environment, keeper.update(completed(5)))).rejects.toMatchObject({ code: 'MR-S12' })
    await expect(answerOf(environment, keeper.settled())).rejects.toMatchObject({ code: 'MR-S12', retry: true })
    store.fates = []
    await answerOf(environment, keeper.settled())
  })
})

describe('beginning', () => {
  const opened = async (store: ScriptedHeadStore, planted: readonly PlantedFault[] = []) => {
    const environment = manualEnvironment({ planted: new Set(planted) })
    return { environment, keeper: await HeadKeeper.open(store, environment) }
  }

  it('creates the first HEAD, and raises the incarnation of one that is there', async () => {
    const store = new ScriptedHeadStore()
    expect(await (await opened(store)).keeper.begin(takeOver)).toMatchObject({
      outcome: 'won',
      head: { incarnation: 1 },
    })
    expect(await (await opened(store)).keeper.begin(takeOver)).toMatchObject({
      outcome: 'won',
      head: { incarnation: 2 },
    })
  })

  it('writes nothing when the decision is not to', async () => {
    const store = new ScriptedHeadStore()
    expect(await (await opened(store)).keeper.begin(() => undefined)).toEqual({ outcome: 'declined', head: undefined })
    expect(store.swaps).toEqual([])
  })

  it.each<Fate>(['landed, answer lost', 'never landed, answer lost', 'throws', 'late', 'hangs'])(
    'is settled like any swap (%s)',
    async (fate) => {
      const store = new ScriptedHeadStore()
      const { environment, keeper } = await opened(store)
      store.fates = [fate]
      expect(await answerOf(environment, keeper.begin(takeOver))).toMatchObject({
        outcome: 'won',
        head: { incarnation: 1 },
      })
      expect((await store.land()).every((outcome) => outcome === 'lost')).toBe(true)
      expect((await store.current()).incarnation).toBe(1)
      expect(await keeper.update(countRestart)).toMatchObject({ outcome: 'won' })
    },
  )

  it('is not won by an update of before that was given up and lands meanwhile', async () => {
    const store = new ScriptedHeadStore()
    const { environment, keeper } = await opened(store)
    await keeper.begin(takeOver)
    store.failingReads = 1_000
    store.fates = ['late']
    await expect(answerOf(environment, keeper.update(countRestart))).rejects.toThrow(/MR-S12/)
    store.failingReads = 0
    store.beforeSwap = async () => void (await store.land())
    expect(await keeper.begin(takeOver)).toMatchObject({ outcome: 'won', head: { incarnation: 2 } })
    expect((await store.current()).incarnation).toBe(2)
  })

  it('of two at once is won by one; the other is overtaken, and does not raise over it', async () => {
    const store = new ScriptedHeadStore()
    await (await opened(store)).keeper.begin(takeOver)
    const [one, other] = [await opened(store), await opened(store)]
    const answers = await Promise.all([one.keeper.begin(takeOver), other.keeper.begin(takeOver)])
    expect(answers.map((answer) => answer.outcome).toSorted()).toEqual(['overtaken', 'won'])
    expect((await store.current()).incarnation).toBe(2)
  })

  it('that lost to an amendment decides again on the newest HEAD', async () => {
    const store = new ScriptedHeadStore()
    await (await opened(store)).keeper.begin(takeOver)
    const { keeper } = await opened(store)
    store.beforeSwap = () => store.elsewhere(close)
    const answer = await keeper.begin((head) => (head?.end.kind === 'none' ? raiseIncarnation(head) : undefined))
    expect(answer).toMatchObject({ outcome: 'declined', head: { end: { kind: 'suspended' } } })
  })

  it('is demanded before an update', async () => {
    const { keeper } = await opened(new ScriptedHeadStore())
    await expect(keeper.update(countRestart)).rejects.toThrow(/has not begun/)
  })

  it('retries an unreadable store, and refuses an unreadable HEAD at once', async () => {
    const store = new ScriptedHeadStore()
    await (await opened(store)).keeper.begin(takeOver)
    const environment = manualEnvironment()
    store.failingReads = 5
    await answerOf(environment, HeadKeeper.open(store, environment))
    const read = (await store.truth.read())!
    await store.truth.swap(read.version, new TextEncoder().encode('{}'))
    await expect(HeadKeeper.open(store, environment)).rejects.toThrow(/MR-S10/)
  })
})

describe('an amendment', () => {
  it('is made by somebody who owns nothing, whoever owns HEAD', async () => {
    const { store } = await running()
    const admin = await HeadKeeper.open(store, manualEnvironment())
    store.beforeSwap = () => store.elsewhere(raiseIncarnation)
    expect(await admin.amend(close)).toMatchObject({ incarnation: 2, end: { kind: 'suspended' } })
  })

  it('that is unclear is settled before it counts', async () => {
    const { environment, store, keeper } = await running()
    store.fates = ['late']
    expect(await answerOf(environment, keeper.amend(countRestart))).toMatchObject({ restarts: 1 })
    expect(await store.land()).toEqual(['lost'])
  })
})

describe('ids', () => {
  it('go on after the reserved block, whoever reserved it', async () => {
    const { store, keeper } = await running()
    await keeper.update(completed(7))
    const environment = manualEnvironment()
    const next = await HeadKeeper.open(store, environment)
    await next.begin(takeOver)
    expect(await next.reserveIds(10)).toMatchObject({ from: 101, to: 110 })
    expect(await keeper.reserveIds(10)).toMatchObject({ outcome: 'fenced' })
  })
})

describe('planted faults', () => {
  it('no-fence: an overtaken coordinator completes a checkpoint on top of another’s HEAD', async () => {
    const { store, keeper } = await running(['no-fence'])
    await store.elsewhere(raiseIncarnation)
    expect(await keeper.update(completed(5))).toMatchObject({
      outcome: 'won',
      head: { incarnation: 2, retained: [{ id: 5 }] },
    })
  })

  it('ids-reused: a new incarnation takes the ids after the last completed one again', async () => {
    const { store, keeper } = await running()
    await keeper.update(completed(7))
    const next = await HeadKeeper.open(store, manualEnvironment({ planted: new Set(['ids-reused' as const]) }))
    await next.begin(takeOver)
    expect(await next.reserveIds(10)).toMatchObject({ from: 8, to: 17 })
  })
})
