import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LEDGER_MAGIC } from './ledger-entry.ts'
import { LedgerStore } from './ledger-store.ts'

let root = ''
let folders = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'ledger-store-'))
})
const opened: LedgerStore[] = []
afterAll(async () => {
  for (const store of opened) await store.close()
  await rm(root, { recursive: true, force: true })
})

const rows = (...numbers: readonly number[]): string => JSON.stringify(numbers.map((n) => [0, n, LEDGER_MAGIC]))

class World {
  clockMs = 5_000
  readonly folder = join(root, String(++folders))
  store!: LedgerStore

  static async begin(): Promise<World> {
    const world = new World()
    await world.restart()
    return world
  }

  /** The store before is left as a kill leaves it: nothing is closed. */
  async restart(): Promise<void> {
    this.store = await LedgerStore.open({
      folder: this.folder,
      nowMs: () => this.clockMs,
      fail: (error) => expect.unreachable(String(error)),
    })
    opened.push(this.store)
  }

  async numbers(book = 'main'): Promise<unknown[]> {
    return (await this.store.entries(book)).map(([, n]) => n)
  }

  /** What must be the same behind a restart. */
  async state(book = 'main') {
    const { judge, transactions, writers, committed, aborted } = await this.store.read(book)
    const states = [...transactions].map(([name, { state, batches }]) => [name, state, batches])
    return { report: judge.report({}), states, writers: [...writers], committed, aborted }
  }
}

const done = { kind: 'done' }

describe('the store', () => {
  it('shows a transaction at its commit, whole and once, however often it is asked', async () => {
    const world = await World.begin()
    const { store } = world
    expect(await store.append('main', 't', 0, rows(0, 1))).toEqual(done)
    expect(await store.append('main', 't', 1, rows(2))).toEqual(done)
    expect(await store.append('main', 't', 0, rows(0, 1))).toEqual(done)
    for (let time = 0; time < 2; time++) expect(await store.preCommit('main', 't', 2)).toEqual(done)
    expect(await world.numbers()).toEqual([])
    const commits = await Promise.all([store.commit('main', 't'), store.commit('main', 't')])
    expect(commits).toEqual([done, done])
    expect(await store.commit('main', 't')).toEqual(done)
    expect(await store.append('main', 't', 1, rows(2))).toEqual(done)
    expect(await store.preCommit('main', 't', 2)).toEqual(done)
    expect(await world.numbers()).toEqual([0, 1, 2])
    expect((await world.state()).report).toMatchObject({ present: 3, exact: true })
  })

  it('refuses what would lose or double entries', async () => {
    const { store } = await World.begin()
    expect(await store.commit('main', 'never')).toMatchObject({ kind: 'unknown' })
    expect(await store.preCommit('main', 'never', 0)).toMatchObject({ kind: 'unknown' })
    expect(await store.append('main', 't', 1, rows(1))).toMatchObject({ kind: 'refused', why: /leave a gap/ })
    await store.append('main', 't', 0, rows(0))
    expect(await store.commit('main', 't')).toMatchObject({ kind: 'refused', why: 't was not pre-committed' })
    expect(await store.preCommit('main', 't', 2)).toMatchObject({ kind: 'refused', why: 't has 1 batches of 2' })
    await store.preCommit('main', 't', 1)
    expect(await store.append('main', 't', 1, rows(1))).toMatchObject({ kind: 'refused', why: /takes no more/ })
    await store.commit('main', 't')
    expect(await store.abort('main', 't')).toMatchObject({ kind: 'refused', why: /cannot be aborted/ })
  })

  it('forgets what was aborted, and takes nothing more of it behind its first batches', async () => {
    const world = await World.begin()
    const { store } = world
    await store.append('main', 't', 0, rows(0))
    await store.preCommit('main', 't', 1)
    expect(await store.abort('main', 't')).toEqual(done)
    expect(await store.abort('main', 't')).toEqual(done)
    expect(await store.commit('main', 't')).toMatchObject({ kind: 'unknown' })
    expect(await store.append('main', 't', 1, rows(1))).toMatchObject({ kind: 'refused' })
    expect(await world.state()).toMatchObject({ states: [], aborted: 1, report: { present: 0 } })
  })

  it('takes each batch of a plain writer once, and shows it at once', async () => {
    const world = await World.begin()
    const { store } = world
    await store.plain('main', 'w', 0, rows(0))
    await store.plain('main', 'w', 0, rows(0))
    await store.plain('main', 'w', 1, rows(1))
    expect(await store.plain('main', 'w', 3, rows(3))).toMatchObject({ kind: 'refused' })
    expect(await store.plain('main', 'other', 0, rows(2))).toEqual(done)
    expect(await world.numbers()).toEqual([0, 1, 2])
  })

  it('keeps books apart', async () => {
    const world = await World.begin()
    await world.store.plain('left', 'w', 0, rows(0))
    await world.store.append('right', 't', 0, rows(5))
    expect(await world.numbers('left')).toEqual([0])
    expect((await world.state('right')).states).toEqual([['t', 'open', 1]])
    expect((await world.state('left')).states).toEqual([])
  })

  it('is the same behind a kill, and goes on from there', async () => {
    const world = await World.begin()
    const { store } = world
    await store.append('main', 'committed', 0, rows(0))
    await store.append('main', 'committed', 1, rows(1))
    await store.preCommit('main', 'committed', 2)
    world.clockMs = 7_000
    await store.commit('main', 'committed')
    await store.append('main', 'pending', 0, rows(2))
    await store.preCommit('main', 'pending', 1)
    await store.append('main', 'open', 0, rows(3))
    await store.append('main', 'gone', 0, rows(9))
    await store.abort('main', 'gone')
    await store.plain('main', 'w', 0, rows(4))
    const before = await world.state()
    expect(before.states).toEqual([
      ['committed', 'committed', 2],
      ['pending', 'pre-committed', 1],
      ['open', 'open', 1],
    ])
    await world.restart()
    expect(await world.state()).toEqual(before)
    await world.store.commit('main', 'pending')
    await world.store.commit('main', 'committed')
    await world.store.append('main', 'open', 0, rows(3))
    await world.store.preCommit('main', 'open', 1)
    await world.store.commit('main', 'open')
    await world.store.plain('main', 'w', 0, rows(4))
    expect(await world.numbers()).toEqual([0, 1, 4, 2, 3])
    expect((await world.state()).report).toMatchObject({ present: 5, doubled: 0, lost: 0 })
  })

  it('stamps arrivals by a clock that never goes back, also when the machine was set back meanwhile', async () => {
    const world = await World.begin()
    await world.store.plain('main', 'w', 0, rows(0))
    world.clockMs = 1_000
    await world.restart()
    await world.store.plain('main', 'w', 1, rows(1))
    expect((await world.state()).report).toMatchObject({ lastArrival: { atMs: 5_000 } })
    world.clockMs = 6_000
    await world.store.plain('main', 'w', 2, rows(2))
    expect((await world.state()).report.gap).toEqual({ ms: 1_000, fromMs: 5_000, toMs: 6_000 })
  })
})
