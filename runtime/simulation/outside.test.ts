import { describe, expect, it } from 'vitest'
import { slotId } from '../base/ids.ts'
import type { HeadStore, ObjectKey, SwapAnswer } from '../storage/contract.ts'
import { MemoryHeadStore, MemoryObjectStore } from '../storage/memory-store.ts'
import { MemoryLedger } from '../connectors/memory-ledger.ts'
import { SimDisk } from './disk.ts'
import { SimLedger } from './ledger.ts'
import { SimNetwork } from './network.ts'
import { SimStore } from './store.ts'
import { World } from './world.ts'

const never = (): boolean => false
const minute = { virtualMs: 60_000 }
const key = 'job/chk-1/_metadata' as ObjectKey
const bytes = (...values: number[]): Uint8Array => new Uint8Array(values)
const address = { slot: slotId('0#1'), subject: 'frames' }

describe('simulated network', () => {
  async function received(prepare: (network: SimNetwork) => void, seed = 1): Promise<number[]> {
    const world = new World(seed)
    const network = new SimNetwork(world)
    const [sender, receiver] = [world.spawn('sender'), world.spawn('receiver')]
    const seen: number[] = []
    network.transport(receiver).subscribe('frames', (frame) => seen.push(frame[0] as number))
    await world.run(() => world.nowMs >= 10, { virtualMs: 10 })
    world.after(10, 'begin', () => prepare(network))
    const transport = network.transport(sender)
    const buffer = bytes(0)
    const send = (number: number): void => {
      buffer[0] = number
      transport.send(address, buffer)
      if (number < 20) sender.environment.clock.timer(1, () => send(number + 1))
    }
    sender.environment.clock.timer(20, () => send(1))
    await world.run(never, minute)
    return seen
  }
  const all = Array.from({ length: 20 }, (_, index) => index + 1)

  it('carries copies in order when nothing is wrong, though the sender uses one buffer again and again', async () => {
    for (let seed = 1; seed <= 10; seed++) expect(await received(() => undefined, seed)).toEqual(all)
  })

  it('loses, repeats and reorders only when told to', async () => {
    expect(await received(({ weather }) => weather.disturb('loss', 1, 1_000))).toEqual([])
    const repeated = await received(({ weather }) => weather.disturb('repetition', 1, 1_000))
    expect(repeated.length).toBe(40)
    const reordered = await received(({ weather }) => {
      weather.disturb('reordering', 1, 1_000)
      weather.disturb('delay', 20, 1_000)
    })
    expect(reordered).not.toEqual(all)
    expect(reordered.toSorted((left, right) => left - right)).toEqual(all)
  })

  it('brings what is echoed once more, long after', async () => {
    const echoed = await received(({ weather }) => weather.disturb('echo', 1, 1_000))
    expect(echoed.slice(0, 20)).toEqual(all)
    expect(echoed.slice(20).toSorted((left, right) => left - right)).toEqual(all)
  })

  it('gives a datagram to whoever listens to its subject then, and to nobody who has stopped', async () => {
    const world = new World(4)
    const network = new SimNetwork(world)
    const [one, other] = [world.spawn('one'), world.spawn('other')]
    const seen: unknown[] = []
    const sender = network.datagrams(one, { own: 'one', peer: 'other' })
    const former = network.datagrams(other, { own: 'other', peer: 'one' })
    former.onMessage((message) => seen.push(`former ${String(message)}`))
    world.after(10, 'first', () => sender.send('first'))
    world.after(50, 'another listens', () => {
      former.close()
      network
        .datagrams(other, { own: 'other', peer: 'one' })
        .onMessage((message) => seen.push(`next ${String(message)}`))
    })
    world.after(60, 'second', () => sender.send('second'))
    await world.run(never, minute)
    expect(seen).toEqual(['former first', 'next second'])
  })

  it('loses one stretch at a restart, and goes on by itself after it', async () => {
    const seen = await received((network) => void network.world.after(15, 'restart', () => network.restart(5)))
    expect(seen.length).toBeGreaterThan(3)
    expect(seen.length).toBeLessThan(20)
    expect(seen.at(-1)).toBe(20)
  })

  it('cuts one direction and leaves the other', async () => {
    const world = new World(2)
    const network = new SimNetwork(world)
    const [left, right] = [world.spawn('left'), world.spawn('right')]
    const [leftPort, rightPort] = network.pair(left, right)
    const seen: unknown[] = []
    leftPort.onMessage((message) => seen.push(message))
    rightPort.onMessage((message) => seen.push(message))
    network.cut({ from: left, to: right }, 1_000)
    leftPort.send('to the right')
    rightPort.send('to the left')
    await world.run(never, minute)
    expect(seen).toEqual(['to the left'])
  })

  it('refuses a message that another thread could not get', () => {
    const world = new World(3)
    const [port] = new SimNetwork(world).pair(world.spawn('one'), world.spawn('other'))
    expect(() => port.send({ callback: () => undefined })).toThrow(/could not be cloned/)
  })
})

describe('simulated store', () => {
  function setUp(seed: number) {
    const world = new World(seed)
    const truth = { objects: new MemoryObjectStore(), head: new MemoryHeadStore() }
    const store = new SimStore(world, truth)
    const process = world.spawn('coordinator')
    return { world, truth, store, process, objects: store.objects(process), head: store.head(process) }
  }
  /** The answer, or the error, once the world has gone on for a minute. */
  async function answerOf<T>(world: World, call: Promise<T>): Promise<T | 'error' | 'none'> {
    let answer: T | 'error' | 'none' = 'none'
    call.then(
      (value) => (answer = value),
      () => (answer = 'error'),
    )
    await world.run(never, minute)
    return answer
  }

  it('answers as the truth does when nothing is wrong, and takes virtual time for it', async () => {
    const { world, objects, head } = setUp(1)
    expect(await answerOf(world, objects.create(key, bytes(1, 2)))).toBe('created')
    expect(await answerOf(world, objects.create(key, bytes(3)))).toBe('exists')
    expect(await answerOf(world, objects.read(key))).toEqual(bytes(1, 2))
    expect(await answerOf(world, objects.list('job/'))).toEqual([key])
    expect(await answerOf(world, head.swap(undefined, bytes(9)))).toMatchObject({ outcome: 'won' })
    expect(await answerOf(world, head.swap(undefined, bytes(8)))).toMatchObject({ outcome: 'lost' })
    expect(await answerOf(world, objects.delete([key]))).toBeUndefined()
    expect(await answerOf(world, objects.read(key))).toBeUndefined()
    expect(world.nowMs).toBeGreaterThan(1)
  })

  it('fails loudly, never with an absent object, when it is failing or an answer is torn', async () => {
    for (const kind of ['failing', 'torn'] as const) {
      const { world, store, objects } = setUp(2)
      await answerOf(world, objects.create(key, bytes(1)))
      store.weather.disturb(kind, 1, 1e6)
      expect(await answerOf(world, objects.read(key))).toBe('error')
      expect(store.weather.happened).toBe(1)
    }
  })

  it('lets an unclear swap have landed, land later than its answer, or never', async () => {
    const fates = new Set<string>()
    for (let seed = 1; seed <= 30; seed++) {
      const { world, truth, store, head } = setUp(seed)
      store.weather.disturb('ambiguous', 1, 1e6)
      let landed: boolean | undefined
      let answer: SwapAnswer | undefined
      void head.swap(undefined, bytes(7)).then(async (outcome) => {
        answer = outcome
        landed = (await truth.head.read()) !== undefined
      })
      await world.run(() => landed !== undefined, minute)
      expect(answer?.outcome).toBe('unclear')
      await world.run(never, minute)
      const landsAtLast = (await truth.head.read()) !== undefined
      fates.add(landed === true ? 'landed' : landsAtLast ? 'later' : 'never')
    }
    expect([...fates].toSorted()).toEqual(['landed', 'later', 'never'])
  })

  it('makes a late swap lose against one that came first', async () => {
    for (let seed = 1; seed <= 30; seed++) {
      const { world, truth, store, head } = setUp(seed)
      store.weather.disturb('ambiguous', 1, 1e6)
      const second = async (store: HeadStore): Promise<void> => {
        await head.swap(undefined, bytes(1))
        await store.swap((await store.read())?.version, bytes(2))
      }
      void second(truth.head)
      await world.run(never, minute)
      expect((await truth.head.read())?.bytes).toEqual(bytes(2))
    }
  })

  it('lets a write of a dead process land or not, and tells nobody', async () => {
    const outcomes = new Set<boolean>()
    for (let seed = 1; seed <= 20; seed++) {
      const { world, truth, process, objects } = setUp(seed)
      let heard = false
      void objects.create(key, bytes(1)).finally(() => (heard = true))
      process.kill('test')
      await world.run(never, minute)
      expect(heard).toBe(false)
      outcomes.add((await truth.objects.read(key)) !== undefined)
      expect(await answerOf(world, objects.read(key))).toBe('none')
    }
    expect(outcomes.size).toBe(2)
  })
})

describe('simulated store whose lists lag behind', () => {
  it('hides what is new and shows what is gone, by any prefix, and reads as ever', async () => {
    const world = new World(1)
    const store = new SimStore(world, { objects: new MemoryObjectStore(), head: new MemoryHeadStore() })
    const process = world.spawn('reader')
    const objects = store.objects(process)
    const keys = ['a/gone', 'a/stays', 'b/other', 'a/new'] as ObjectKey[]
    const [gone, , , fresh] = keys
    const seen: string[] = []
    const run = async (): Promise<void> => {
      for (const each of keys.slice(0, 3)) await objects.create(each, bytes(1))
      await new Promise<void>((resolve) => void process.environment.clock.timer(60_000, resolve))
      await objects.delete([gone!])
      await objects.create(fresh!, bytes(2))
      expect(await objects.list('a/')).toEqual(['a/new', 'a/stays'])
      const untilMs = world.nowMs + 10_000
      store.weather.foresee('stale', 1, { fromMs: world.nowMs, untilMs })
      for (let times = 0; times < 20; times++) seen.push((await objects.list('a/')).join(' '))
      expect(await objects.list('b/')).toEqual(['b/other'])
      expect([await objects.read(gone!), await objects.read(fresh!)]).toEqual([undefined, bytes(2)])
      store.weather.calm()
      expect(await objects.list('a/')).toEqual(['a/new', 'a/stays'])
    }
    let failure: unknown = 'it did not end'
    void run().then(
      () => (failure = undefined),
      (error: unknown) => (failure = error),
    )
    await world.run(() => failure !== 'it did not end', { virtualMs: 200_000 })
    expect(failure).toBeUndefined()
    expect(seen).toContain('a/gone a/stays')
    const stale = seen.filter((list) => list !== 'a/new a/stays').length
    expect(store.weather.counts.get('stale')).toBe(stale)
  })
})

describe('simulated ledger', () => {
  it('lets a commit without an answer have happened, happen later, or never', async () => {
    const fates = new Set<string>()
    for (let seed = 1; seed <= 30; seed++) {
      const world = new World(seed)
      const truth = new MemoryLedger()
      const ledger = new SimLedger(world, truth)
      const handle = ledger.handle(world.spawn('committer'))
      let entriesAtError = -1
      const commit = async (): Promise<void> => {
        await handle.append('one', [{ split: 0, n: 1, magic: 7 }])
        await handle.preCommit('one')
        ledger.weather.disturb('ambiguous', 1, 1e6)
        await handle.commit('one').catch(() => (entriesAtError = truth.entries.length))
      }
      void commit()
      await world.run(never, minute)
      fates.add(`${entriesAtError} then ${truth.entries.length}`)
    }
    expect([...fates].toSorted()).toEqual(['0 then 0', '0 then 1', '1 then 1'])
  })
})

describe('simulated disk', () => {
  it('keeps what was synced through a power loss, and only that surely', async () => {
    let lost = 0
    for (let seed = 1; seed <= 20; seed++) {
      const world = new World(seed)
      const machine = world.machine('host')
      const disk = new SimDisk(machine)
      const files = disk.handle(machine.spawn('worker'))
      const write = async (): Promise<void> => {
        await files.makeDirectory('out')
        await files.sync('.')
        await files.writeNew('out/synced', bytes(1, 2, 3))
        await files.sync('out/synced')
        await files.sync('out')
        await files.writeNew('out/unsynced', bytes(4, 5, 6))
        machine.crash('power loss')
      }
      let heard = false
      void write().finally(() => (heard = true))
      await world.run(never, minute)
      expect(heard).toBe(true)
      expect(await disk.files.readFile('out/synced')).toEqual(bytes(1, 2, 3))
      if (!(await disk.files.exists('out/unsynced'))) lost++
    }
    expect(lost).toBeGreaterThan(0)
  })

  it('fails with the codes of Node when it is full or failing', async () => {
    for (const [kind, code] of [
      ['full', 'ENOSPC'],
      ['failing', 'EIO'],
    ] as const) {
      const world = new World(1)
      const machine = world.machine('host')
      const disk = new SimDisk(machine)
      disk.weather.disturb(kind, 1, 1e6)
      let error: unknown
      disk
        .handle(machine.spawn('worker'))
        .writeNew('file', bytes(1))
        .catch((cause: unknown) => (error = cause))
      await world.run(never, minute)
      expect(error).toMatchObject({ code })
    }
  })
})
