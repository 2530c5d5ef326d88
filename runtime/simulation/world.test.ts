import { describe, expect, it } from 'vitest'
import { FaultPlan } from './faults.ts'
import { SimNetwork } from './network.ts'
import { ProcessDeath } from './process.ts'
import { SeededRandom } from './random.ts'
import { World } from './world.ts'

const second = { virtualMs: 1_000 }
const never = (): boolean => false

describe('seeded random', () => {
  it('gives a concern the same stream whatever its parent drew before', () => {
    const [one, other] = [new SeededRandom(7), new SeededRandom(7)]
    other.next()
    expect(one.split('disk').id()).toBe(other.split('disk').id())
    expect(one.split('disk').id()).not.toBe(one.split('network').id())
  })

  it('spreads evenly and differs between neighbouring seeds', () => {
    const buckets = Array.from({ length: 10 }, () => 0)
    for (let seed = 0; seed < 10_000; seed++) buckets[new SeededRandom(seed).below(10)]!++
    for (const count of buckets) expect(count).toBeGreaterThan(880)
    expect(new SeededRandom(1).id()).not.toBe(new SeededRandom(1 + 2 ** 32).id())
  })
})

describe('world', () => {
  it('moves time only when nothing is ready, and a far timer costs no real time', async () => {
    const world = new World(1)
    const seen: number[] = []
    for (const delayMs of [86_400_000, 5, 0]) world.after(delayMs, 'alarm', () => seen.push(world.nowMs))
    expect(await world.run(never, { virtualMs: 1e9 })).toBe('idle')
    expect(seen).toEqual([0, 5, 86_400_000])
  })

  it('drains every microtask between two steps, however long the chain', async () => {
    const world = new World(2)
    const order: string[] = []
    world.after(0, 'first', () => {
      let chain = Promise.resolve()
      for (let link = 0; link < 50; link++) chain = chain.then(() => void order.push('microtask'))
    })
    world.after(1, 'second', () => order.push('second'))
    await world.run(never, second)
    expect(order).toEqual([...Array.from({ length: 50 }, () => 'microtask'), 'second'])
  })

  it('keeps the turns of one executor in order and mixes those of two by seed', async () => {
    const orders = new Set<string>()
    for (let seed = 1; seed <= 20; seed++) {
      const world = new World(seed)
      const order: string[] = []
      const [a, b] = [world.spawn('left'), world.spawn('right')]
      for (let turn = 0; turn < 4; turn++) {
        a.environment.executor.post(() => order.push(`a${turn}`))
        b.environment.executor.post(() => order.push(`b${turn}`))
      }
      await world.run(never, second)
      expect(order.filter((each) => each.startsWith('a'))).toEqual(['a0', 'a1', 'a2', 'a3'])
      expect(order.filter((each) => each.startsWith('b'))).toEqual(['b0', 'b1', 'b2', 'b3'])
      orders.add(order.join(' '))
    }
    expect(orders.size).toBeGreaterThan(10)
  })

  it('does not let a loop that always has work stop the clock', async () => {
    const world = new World(3)
    const { executor, clock } = world.spawn('busy').environment
    const loop = (): void => executor.post(loop)
    loop()
    let rang = false
    clock.timer(20, () => void (rang = true))
    expect(await world.run(() => rang, second)).toBe('reached')
  })

  it('ends at a limit of steps when something never ends', async () => {
    const world = new World(4)
    const again = (): void => void world.after(0, 'again', again)
    again()
    expect(await world.run(never, { virtualMs: 1, stepsMax: 500 })).toBe('steps')
  })
})

describe('a dead process', () => {
  it('never hears again: no then, catch or finally of what it waits for runs', async () => {
    const world = new World(5)
    const process = world.spawn('victim')
    const heard: string[] = []
    const fails = process.completion<void>('fails')
    fails.promise.then(
      () => heard.push('then'),
      () => heard.push('catch'),
    )
    void fails.promise.catch(() => undefined).finally(() => heard.push('finally'))
    fails.settle(10, () => {
      throw new Error('late')
    })
    process.environment.clock.timer(10, () => heard.push('timer'))
    process.environment.executor.post(() => heard.push('turn'))
    world.after(0, 'kill', () => process.kill('test'))
    // The turn may come before the kill, by seed; nothing after it.
    await world.run(never, second)
    expect(heard.filter((each) => each !== 'turn')).toEqual([])
  })

  it('has no hands: what it still does in the turn of its death reaches nobody', async () => {
    const world = new World(6)
    const network = new SimNetwork(world)
    const [victim, other] = [world.spawn('victim'), world.spawn('other')]
    const received: unknown[] = []
    const [left, right] = network.pair(victim, other)
    right.onMessage((message) => received.push(message))
    world.interference = {
      beforeStep: () => false,
      atFailpoint: (process) => {
        process.kill('at a failpoint')
        return 'pass'
      },
    }
    let caught: unknown
    victim.environment.executor.post(() => {
      left.send('before')
      try {
        victim.environment.failpoints.hit('task.process')
      } catch (error) {
        caught = error
      }
      left.send('after')
      victim.environment.executor.post(() => received.push('turn of the dead'))
    })
    await world.run(never, second)
    expect(caught).toBeInstanceOf(ProcessDeath)
    expect(received).toEqual(['before'])
    expect(world.crashes).toEqual([])
  })

  it('takes its children along and tells who watches it', async () => {
    const world = new World(7)
    const parent = world.spawn('parent')
    const child = parent.machine.spawn('child', parent)
    const watcher = world.spawn('watcher')
    const told: string[] = []
    child.onExit(watcher, (reason) => told.push(reason))
    parent.kill('test')
    expect(child.alive).toBe(false)
    await world.run(never, second)
    expect(told).toEqual(['parent died'])
  })

  it('is what an uncaught exception or rejection makes of a process', async () => {
    const world = new World(8)
    const process = world.spawn('faulty')
    process.environment.executor.post(() => {
      throw new Error('a mistake')
    })
    await world.run(never, second)
    expect(process.alive).toBe(false)
    expect(world.crashes.map(({ error }) => String(error))).toEqual(['Error: a mistake'])
  })
})

describe('a frozen process', () => {
  it('runs nothing until it wakes; then all that came meanwhile comes at once', async () => {
    const world = new World(9)
    const network = new SimNetwork(world)
    const [sleeper, other] = [world.spawn('sleeper'), world.spawn('other')]
    const heardAtMs: number[] = []
    const [left, right] = network.pair(other, sleeper)
    right.onMessage(() => heardAtMs.push(world.nowMs))
    sleeper.environment.clock.timer(5, () => heardAtMs.push(world.nowMs))
    sleeper.environment.executor.post(() => heardAtMs.push(world.nowMs))
    sleeper.freeze(500)
    other.environment.clock.timer(50, () => left.send('hello'))
    await world.run(never, second)
    expect(heardAtMs).toEqual([500, 500, 500])
  })

  it('lets nothing out that it sends in the turn in which it froze', async () => {
    const world = new World(10)
    const network = new SimNetwork(world)
    const [sleeper, other] = [world.spawn('sleeper'), world.spawn('other')]
    let heardAtMs = 0
    const [left, right] = network.pair(sleeper, other)
    right.onMessage(() => void (heardAtMs = world.nowMs))
    sleeper.environment.executor.post(() => {
      sleeper.freeze(300)
      left.send('late')
    })
    await world.run(never, second)
    expect(heardAtMs).toBeGreaterThan(300)
  })
})

describe('clocks', () => {
  it('agree in no two processes, and never run backwards in one', async () => {
    const world = new World(11)
    const [one, other] = [world.spawn('one').environment.clock, world.spawn('other').environment.clock]
    expect(one.nowMs()).not.toBe(other.nowMs())
    expect(one.wallMs()).not.toBe(other.wallMs())
    const before = one.nowMs()
    one.timer(100, () => undefined)
    await world.run(never, second)
    expect(one.nowMs() - before).toBeGreaterThanOrEqual(100)
  })

  it('do not call a cancelled timer', async () => {
    const world = new World(12)
    let rang = 0
    const { clock } = world.spawn('one').environment
    clock.timer(10, () => rang++).cancel()
    clock.timer(20, () => rang++)
    await world.run(never, second)
    expect(rang).toBe(1)
  })
})

describe('the fault plan', () => {
  it('strikes at failpoints, at steps and in the network over some seeds, and each run has a fault that really happened', async () => {
    const kinds = new Set<string>()
    for (let seed = 1; seed <= 40; seed++) {
      const world = new World(seed)
      const network = new SimNetwork(world)
      const machine = world.machine('host')
      const processes = new Set<ReturnType<typeof machine.spawn>>()
      const live = (): void => {
        const process = machine.spawn('worker')
        processes.add(process)
        process.onExit(undefined, () => {
          processes.delete(process)
          live()
        })
        const { executor, failpoints } = process.environment
        const [port] = network.pair(process, process)
        const loop = (): void => {
          executor.post(loop)
          port.send('work')
          failpoints.hit('task.snapshot.sync')
        }
        executor.post(loop)
      }
      live()
      const plan = new FaultPlan(world, { processes: () => [...processes], network }, { stepsMean: 50 })
      expect(await world.run(() => plan.exhausted, { virtualMs: 1e6 })).toBe('reached')
      expect(plan.happened).toBeGreaterThan(0)
      plan.stop()
      const counted = plan.happened
      await world.run(never, { virtualMs: 100 })
      expect(plan.happened).toBe(counted)
      for (const kind of Object.keys(plan.counts)) kinds.add(kind)
    }
    expect([...kinds]).toEqual(
      expect.arrayContaining(['kill', 'freeze', 'failpoint kill', 'network loss', 'network restart', 'network cut']),
    )
  })
})
