import { describe, expect, it } from 'vitest'
import { ManualClock, ManualExecutor, SeededRandom, manualEnvironment } from './manual-clock.ts'

describe('a manual clock', () => {
  it('runs timers in the order of their due time, each at its own time, also those made on the way', () => {
    const clock = new ManualClock()
    const seen: string[] = []
    const note = (name: string) => () => seen.push(`${name}@${clock.nowMs()}`)
    clock.timer(20, note('second'))
    clock.timer(10, () => {
      note('first')()
      clock.timer(5, note('made later'))
    })
    clock.timer(20, note('third'))
    clock.timer(15, note('cancelled')).cancel()
    clock.timer(100, note('too late'))
    expect(clock.untilNextMs).toBe(10)
    clock.advance(50)
    expect(seen).toEqual(['first@10', 'made later@15', 'second@20', 'third@20'])
    expect([clock.nowMs(), clock.waiting]).toEqual([50, 1])
  })

  it('lets promises settle between timers', async () => {
    const clock = new ManualClock()
    let ticks = 0
    const run = async () => {
      for (; ticks < 3; ticks++) await new Promise<void>((resolve) => clock.timer(10, resolve))
    }
    const running = run()
    await clock.advanceSettled(30)
    await running
    expect(ticks).toBe(3)
  })
})

describe('a manual executor', () => {
  it('runs turns in order, also those posted meanwhile, and notices turns without end', () => {
    const executor = new ManualExecutor()
    const seen: number[] = []
    executor.post(() => {
      seen.push(1)
      executor.post(() => seen.push(3))
    })
    executor.post(() => seen.push(2))
    expect(executor.runAll()).toBe(3)
    expect(seen).toEqual([1, 2, 3])
    const forEver = () => executor.post(forEver)
    forEver()
    expect(() => executor.runAll(100)).toThrow(/for ever/)
  })
})

describe('seeded randomness', () => {
  it('repeats itself for a seed, and its ids never repeat', () => {
    const [one, other] = [new SeededRandom(5), new SeededRandom(5)]
    expect([one.next(), one.id()]).toEqual([other.next(), other.id()])
    const ids = new Set(Array.from({ length: 1000 }, () => one.id()))
    expect(ids.size).toBe(1000)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/)
  })

  it('comes with an environment in which nothing is real', () => {
    const environment = manualEnvironment()
    environment.log('info', 'said', { a: 1 })
    expect(environment.lines).toEqual([{ level: 'info', message: 'said', fields: { a: 1 } }])
    expect(environment.budget.shouldYield()).toBe(false)
  })
})
