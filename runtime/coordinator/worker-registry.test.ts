import { describe, expect, it } from 'vitest'
import { incarnation, jobId, slotId } from '../base/ids.ts'
import { workerError } from '../control/worker-errors.ts'
import type { Hello } from '../control/worker-contract.ts'
import { hello, one, options, start } from './test-workers.ts'
import { WorkerRegistry } from './worker-registry.ts'
import type { RegistryEffect } from './worker-registry.ts'

/** One line for each effect; the log's lines are left out. */
function show(effect: RegistryEffect): string {
  switch (effect.type) {
    case 'send': {
      const { message } = effect
      if (message.type === 'refused')
        return `${effect.connection} < refused ${message.code}${message.final ? ' for good' : ''}`
      return `${effect.connection} < ${message.type}${'slot' in message ? ` ${message.slot}` : ''}`
    }
    case 'welcome':
      return `${effect.connection} < welcome to ${effect.incarnation}, keep [${effect.keep.join(' ')}]`
    case 'close':
      return `close ${effect.connection}`
    case 'bind':
      return `bind ${effect.slot}${effect.survivor ? ', a survivor' : ''}`
    case 'lost':
      return `lost ${effect.slot}: ${effect.reason}`
    case 'ended':
      return `ended ${effect.slot}`
    case 'leaving':
      return `${effect.worker} leaves within ${effect.graceMs}: ${effect.slots.join(' ')}`
    case 'seeking':
      return `${effect.instance} seeks`
    case 'log':
      return ''
    default:
      return effect satisfies never
  }
}

function play() {
  const registry = new WorkerRegistry(options)
  const log: string[] = []
  const warnings: string[] = []
  let nowMs = 0
  const came = (): string[] =>
    registry.effects
      .splice(0)
      .filter((effect) => {
        if (effect.type === 'log') log.push(effect.message)
        if (effect.type === 'log' && effect.level === 'warn') warnings.push(effect.message)
        return effect.type !== 'log'
      })
      .map(show)
  return {
    registry,
    log,
    warnings,
    came,
    get nowMs() {
      return nowMs
    },
    connect: (id: number, overrides: Partial<Hello> = {}) => {
      registry.connected(id, `host-${id}`, nowMs)
      registry.received(id, hello(overrides), nowMs)
      return came()
    },
    start: (...slots: string[]) => {
      for (const slot of slots) registry.start(slotId(slot), start, nowMs)
      return came()
    },
    terminate: (slot: string) => {
      registry.terminate(slotId(slot))
      return came()
    },
    slotEnded: (id: number, slot: string, reason = 'asked for') => {
      registry.received(id, { type: 'slotEnded', slot: slotId(slot), reason }, nowMs)
      return came()
    },
    /** Time passes; those of `alive` are heard each second. */
    pass: (ms: number, alive: readonly number[] = []) => {
      const untilMs = nowMs + ms
      while (nowMs < untilMs) {
        nowMs = Math.min(untilMs, Math.max(nowMs, registry.wakeAtMs ?? untilMs))
        for (const id of alive) registry.received(id, { type: 'heartbeat' }, nowMs)
        registry.tick(nowMs)
      }
      return came().filter((line) => !line.endsWith('< heartbeat'))
    },
    close: (id: number, reason = 'reset') => {
      registry.closed(id, reason, nowMs)
      return came()
    },
  }
}

describe('a worker that says hello', () => {
  it('waits until the incarnation is known, and is then let in', () => {
    const world = play()
    expect(world.connect(1)).toEqual([])
    expect(world.registry.slotsOffered).toBe(0)
    world.registry.begin(one, { survivors: false, nowMs: 0 })
    expect(world.came()).toEqual(['1 < welcome to 1, keep []'])
    expect(world.registry.workers).toEqual([
      { name: 'w-0', address: 'host-1', slots: 2, running: [], state: 'registered', sinceMs: 0 },
    ])
  })

  it('waits for half a minute, is then sent to look for another coordinator too, and waits again', () => {
    const world = play()
    world.connect(1)
    expect(world.pass(29_000, [1])).toEqual([])
    expect(world.pass(1_000, [1])).toEqual(['1 < refused MR-D10', 'close 1'])
    expect(world.connect(2)).toEqual([])
    world.registry.begin(one, { survivors: false, nowMs: 0 })
    expect(world.came()).toEqual(['2 < welcome to 1, keep []'])
    expect(world.pass(60_000, [2])).toEqual([])
    expect(world.log).toEqual(['a worker has registered'])
  })

  it('is sent on by a coordinator that was overtaken, until that one may begin', () => {
    const world = play()
    world.registry.sendOn()
    expect(world.connect(1)).toEqual(['i-w-0 seeks', '1 < refused MR-D06', 'close 1'])
    expect(world.connect(2, { token: 'another' })).toEqual(['2 < refused MR-D04 for good', 'close 2'])
    world.registry.letIn()
    expect(world.connect(3)).toEqual([])
    world.registry.begin(one, { survivors: false, nowMs: 0 })
    expect(world.came()).toEqual(['3 < welcome to 1, keep []'])
    expect(() => world.registry.sendOn()).toThrow(/lets its workers in/)
  })

  it('is told when its coordinator goes on in its next incarnation, and keeps nothing of the one before (a rescale in place)', () => {
    const world = play()
    world.start('0#1.1')
    world.connect(1)
    world.terminate('0#1.1')
    world.slotEnded(1, '0#1.1')
    world.registry.begin(incarnation(2), { survivors: true, nowMs: 0 })
    expect(world.came()).toEqual(['1 < welcome to 2, keep []'])
    expect(world.registry.survivorsPending).toBe(false)
    world.registry.start(slotId('0#2.1'), { ...start, incarnation: incarnation(2) }, 0)
    expect(world.came()).toEqual(['1 < startSlot 0#2.1', 'bind 0#2.1'])
    expect(() => world.registry.begin(one, { survivors: false, nowMs: 0 })).toThrow(/an incarnation only rises/)
  })

  it.each<[string, Partial<Hello>, string]>([
    ['of another job', { job: jobId('uid-2') }, 'MR-D03 for good'],
    ['with another token', { token: 'secret-tokem' }, 'MR-D04 for good'],
    ['with no token', { token: '' }, 'MR-D04 for good'],
    ['of another version', { runtimeVersion: '1.0.1' }, 'MR-D02 for good'],
    ['of another start, or with other code', { build: 'other' }, 'MR-D09'],
    ['without slots', { slots: 0 }, 'MR-D07 for good'],
    ['with half a slot', { slots: 1.5 }, 'MR-D07 for good'],
    ['with too many slots', { slots: 257 }, 'MR-D07 for good'],
    ['with a name that is too long', { worker: 'w'.repeat(254) }, 'MR-D07 for good'],
    ['that has seen a newer coordinator', { promised: incarnation(2) }, 'MR-D06'],
  ])('is refused when it comes %s', (_, overrides, code) => {
    const world = play()
    world.registry.begin(one, { survivors: false, nowMs: 0 })
    expect(world.connect(1, overrides)).toEqual([`1 < refused ${code}`, 'close 1'])
    expect(world.registry.workers).toEqual([])
    expect(world.log.join()).not.toContain('secret')
  })

  it('is refused again and again, and the log says so once for each reason, until a worker is let in', () => {
    const world = play()
    world.start()
    world.registry.begin(one, { survivors: false, nowMs: 0 })
    world.connect(1, { build: 'other' })
    world.connect(2, { build: 'other' })
    expect(world.warnings).toHaveLength(1)
    world.connect(3, { build: 'another' })
    world.connect(4, { job: jobId('uid-2') })
    world.connect(5, { job: jobId('uid-2') })
    expect(world.warnings).toHaveLength(2)
    world.connect(6, { worker: 'w9' })
    world.connect(7, { build: 'other' })
    expect(world.warnings).toHaveLength(2)
    world.connect(8)
    world.connect(9, { build: 'other' })
    expect(world.warnings).toHaveLength(3)
  })

  it('is refused under a name in use, and lets in once the other is silent for three heartbeats', () => {
    const world = play()
    world.start()
    world.registry.begin(one, { survivors: false, nowMs: 0 })
    world.connect(1)
    expect(world.connect(2, { instance: 'another' })).toEqual(['2 < refused MR-D05', 'close 2'])
    world.pass(2_999)
    expect(world.connect(3, { instance: 'another' })).toEqual(['3 < refused MR-D05', 'close 3'])
    world.pass(1)
    expect(world.connect(4, { instance: 'another' })).toEqual(['close 1', '4 < welcome to 1, keep []'])
  })

  it('replaces its own former connection at once, whose slots are lost', () => {
    const world = play()
    world.start('0#1.1')
    world.connect(1)
    expect(world.connect(2, { running: [slotId('0#1.1')] })).toEqual([
      'close 1',
      'lost 0#1.1: worker w-0 is lost: it has connected anew',
      '2 < welcome to 1, keep []',
    ])
    // The end of the former connection, when its transport comes to tell, harms nobody.
    expect(world.close(1)).toEqual([])
    expect(world.registry.workers[0]).toMatchObject({ state: 'registered', running: ['0#1.1'] })
  })

  it('and never speaks again is not waited for', () => {
    const world = play()
    world.registry.connected(1, 'somebody', 0)
    expect(world.pass(4_999)).toEqual([])
    expect(world.pass(1_001)).toEqual(['close 1'])
  })

  it('is too many above a thousand connections', () => {
    const world = play()
    for (let id = 1; id <= 1_000; id++) world.registry.connected(id, 'host', 0)
    expect(world.came()).toEqual([])
    expect(world.connect(1_001)).toEqual(['1001 < refused MR-D08', 'close 1001'])
  })

  it('and then something that is not understood loses its connection', () => {
    const world = play()
    world.start('0#1.1')
    world.connect(1)
    world.registry.broken(1, workerError('MR-D01', 'At type: invalid.'), 0)
    expect(world.came()[0]).toBe('1 < refused MR-D01')
    expect(world.registry.workers[0]?.state).toBe('lost')
  })
})

describe('slots', () => {
  it('wait for workers in their order, and it is said how many are missing', () => {
    const world = play()
    expect(world.start('0#1.1', '1#1.1', '2#1.1', '3#1.1')).toEqual([])
    expect(world.log.at(-1)).toBe('the job waits for workers: it needs 4 slots, 0 registered')
    expect(world.connect(1)).toEqual([
      '1 < welcome to 1, keep []',
      '1 < startSlot 0#1.1',
      'bind 0#1.1',
      '1 < startSlot 1#1.1',
      'bind 1#1.1',
    ])
    expect(world.log.at(-1)).toBe('the job waits for workers: it needs 4 slots, 2 registered')
    expect(world.connect(2, { worker: 'w-1' })).toContain('2 < startSlot 3#1.1')
  })

  it('are spread over the workers with most room', () => {
    const world = play()
    world.registry.begin(one, { survivors: false, nowMs: 0 })
    world.connect(1)
    world.connect(2, { worker: 'w-1', slots: 3 })
    const started = world.start('0#1.1', '1#1.1', '2#1.1', '3#1.1', '4#1.1').filter((line) => line.includes('start'))
    expect(started).toEqual([
      '2 < startSlot 0#1.1',
      '1 < startSlot 1#1.1',
      '2 < startSlot 2#1.1',
      '1 < startSlot 3#1.1',
      '2 < startSlot 4#1.1',
    ])
  })

  it('come back to the worker that had their number before', () => {
    const world = play()
    world.registry.begin(one, { survivors: false, nowMs: 0 })
    world.connect(1)
    world.connect(2, { worker: 'w-1', slots: 4 })
    world.start('0#1.1')
    world.start('1#1.1')
    world.start('2#1.1')
    expect(world.terminate('1#1.1')).toEqual(['2 < terminateSlot 1#1.1'])
    expect(world.terminate('2#1.1')).toEqual(['1 < terminateSlot 2#1.1'])
    world.slotEnded(2, '1#1.1')
    world.slotEnded(1, '2#1.1')
    expect(world.start('2#1.2')[0]).toBe('1 < startSlot 2#1.2')
    expect(world.start('1#1.2')[0]).toBe('2 < startSlot 1#1.2')
  })

  it("are known by their worker's name as long as their number is not started anew: what ended them is told later", () => {
    const world = play()
    const workerOf = (slot: string): string | undefined => world.registry.workerOf(slotId(slot))
    world.registry.begin(one, { survivors: false, nowMs: 0 })
    world.connect(1)
    world.start('0#1.1')
    expect(workerOf('0#1.1')).toBe('w-0')
    world.slotEnded(1, '0#1.1', 'its thread ended')
    expect(workerOf('0#1.1')).toBe('w-0')
    world.close(1)
    expect(workerOf('0#1.1')).toBe('w-0')
    world.start('0#1.2')
    expect(workerOf('0#1.2')).toBe(undefined)
    world.connect(2, { worker: 'w-1' })
    expect([workerOf('0#1.1'), workerOf('0#1.2')]).toEqual([undefined, 'w-1'])
  })

  it('that no worker has room for are lost at the deadline, with the numbers', () => {
    const world = play()
    world.start('0#1.1', '1#1.1', '2#1.1')
    world.connect(1)
    expect(world.pass(299_999, [1])).toEqual([
      'lost 0#1.1: worker w-0 did not bring it to register within 60 s',
      'lost 1#1.1: worker w-0 did not bring it to register within 60 s',
    ])
    expect(world.pass(1, [1])).toEqual([
      'lost 2#1.1: no worker had room for it within 300 s: the job needs 3 slots, 2 registered (w-0: 2)',
    ])
  })

  it('that have registered have no deadline', () => {
    const world = play()
    world.start('0#1.1')
    world.connect(1)
    world.registry.slotRegistered(slotId('0#1.1'))
    expect(world.pass(1_000_000, [1])).toEqual([])
  })

  it('end on the word of their worker, or when it is lost, or at once where nobody started them', () => {
    const world = play()
    world.start('0#1.1', '1#1.1', '2#1.1')
    world.connect(1)
    expect(world.terminate('2#1.1')).toEqual(['ended 2#1.1'])
    expect(world.terminate('9#1.1')).toEqual(['ended 9#1.1'])
    expect(world.terminate('0#1.1')).toEqual(['1 < terminateSlot 0#1.1'])
    expect(world.terminate('0#1.1')).toEqual([])
    expect(world.slotEnded(1, '0#1.1')).toEqual(['ended 0#1.1'])
    world.terminate('1#1.1')
    expect(world.close(1)).toEqual(['ended 1#1.1'])
  })

  it('take the room of a thread until its worker says that it is gone', () => {
    const world = play()
    world.start('0#1.1', '1#1.1')
    world.connect(1)
    world.terminate('0#1.1')
    expect(world.start('0#1.2')).toEqual([])
    expect(world.slotEnded(1, '0#1.1')).toEqual(['ended 0#1.1', '1 < startSlot 0#1.2', 'bind 0#1.2'])
  })

  it('whose thread dies are lost with what their worker says', () => {
    const world = play()
    world.start('0#1.1', '1#1.1')
    world.connect(1)
    expect(world.slotEnded(1, '0#1.1', 'its thread ended')).toEqual(['lost 0#1.1: worker w-0: its thread ended'])
    expect(world.terminate('0#1.1')).toEqual(['ended 0#1.1'])
  })
})

describe('a worker is lost with all of its slots', () => {
  const lost = (reason: string) => [
    `lost 0#1.1: worker w-0 is lost: ${reason}`,
    `lost 1#1.1: worker w-0 is lost: ${reason}`,
  ]

  function running() {
    const world = play()
    world.start('0#1.1', '1#1.1')
    world.connect(1)
    for (const slot of ['0#1.1', '1#1.1']) world.registry.slotRegistered(slotId(slot))
    return world
  }

  it('when its connection is reset', () => {
    const world = running()
    expect(world.close(1, 'the connection was reset')).toEqual(lost('the connection was reset'))
    expect(world.registry.workers).toEqual([
      { name: 'w-0', address: 'host-1', slots: 2, running: [], state: 'lost', sinceMs: 0 },
    ])
    expect(world.registry.slotsOffered).toBe(0)
  })

  it('when it was silent for ten seconds, not before', () => {
    const world = running()
    expect(world.pass(9_999)).toEqual([])
    expect(world.pass(1)).toEqual(['close 1', ...lost('it was silent for 10 s')])
  })

  it('but not because the coordinator itself was frozen for longer', () => {
    const world = running()
    world.registry.tick(60_000)
    expect(world.came()).toEqual(['1 < heartbeat'])
  })

  it('when somebody outside says so, who also learns that there is none', () => {
    const world = running()
    expect(world.registry.reportLost('w-9', 'pod gone', 0)).toBe(false)
    expect(world.registry.reportLost('w-0', 'pod gone', 0)).toBe(true)
    expect(world.came()).toEqual(['close 1', ...lost('pod gone')])
    expect(world.registry.reportLost('w-0', 'pod gone', 0)).toBe(true)
    expect(world.came()).toEqual([])
  })

  it('and when it comes back with them, they are to end', () => {
    const world = running()
    world.close(1)
    expect(world.connect(2, { running: [slotId('0#1.1'), slotId('1#1.1')] })).toEqual(['2 < welcome to 1, keep []'])
    // No room before they are gone.
    expect(world.start('0#1.2')).toEqual([])
    expect(world.slotEnded(2, '0#1.1')).toEqual(['2 < startSlot 0#1.2', 'bind 0#1.2'])
  })

  it('and is remembered for a while', () => {
    const world = play()
    world.registry.begin(one, { survivors: false, nowMs: 0 })
    for (let id = 1; id <= 40; id++) {
      world.connect(id, { worker: `w-${id}` })
      world.close(id)
      world.pass(1)
    }
    const names = world.registry.workers.map(({ name }) => name)
    expect(names).toHaveLength(32)
    expect(names[0]).toBe('w-9')
  })
})

describe('a worker that leaves', () => {
  it('gets no new slots, and goodbye when the last of its slots has ended', () => {
    const world = play()
    world.start('0#1.1')
    world.connect(1)
    world.registry.received(1, { type: 'leaving', graceMs: 25_000 }, 0)
    expect(world.came()).toEqual(['w-0 leaves within 25000: 0#1.1'])
    expect(world.registry.slotsOffered).toBe(0)
    expect(world.start('1#1.1')).toEqual([])
    world.terminate('0#1.1')
    expect(world.slotEnded(1, '0#1.1')).toEqual(['ended 0#1.1', '1 < goodbye'])
    expect(world.connect(2, { worker: 'w-1' })).toContain('2 < startSlot 1#1.1')
    expect(world.close(1)).toEqual([])
    expect(world.log.at(-1)).toBe('a worker has left')
  })

  it('without slots gets goodbye at once', () => {
    const world = play()
    world.registry.begin(one, { survivors: false, nowMs: 0 })
    world.connect(1)
    world.registry.received(1, { type: 'leaving', graceMs: 25_000 }, 0)
    expect(world.came()).toEqual(['1 < goodbye'])
  })

  it('is dismissed with all others when the job has ended, as are those that come later', () => {
    const world = play()
    world.start('0#1.1')
    world.connect(1)
    world.registry.dismiss('the job has finished')
    expect(world.came()).toEqual(['1 < goodbye'])
    expect(world.connect(2, { worker: 'w-1' })).toEqual(['2 < goodbye'])
    expect(world.connect(3, { worker: 'w-2', token: 'wrong' })).toEqual(['3 < refused MR-D04 for good', 'close 3'])
  })

  it('since the job has ended is not warned of: one that was lost before is', () => {
    const world = play()
    world.start('0#1.1')
    world.connect(1)
    world.connect(2, { worker: 'w-1' })
    world.close(2)
    expect(world.warnings).toEqual(['a worker is lost'])
    world.registry.dismiss('the job has finished')
    world.close(1)
    expect(world.log.at(-1)).toBe('a worker has left')
    expect(world.warnings).toEqual(['a worker is lost'])
    expect(world.registry.workers.map(({ state }) => state)).toEqual(['lost', 'lost'])
  })
})

describe('slots that outlived their coordinator', () => {
  const two = incarnation(2)
  const old = (...slots: string[]) => ({ running: slots.map(slotId), promised: one })

  it('are kept while survivors are awaited, whether their worker came before or after', () => {
    const world = play()
    world.connect(1, old('0#1.1', '1#1.1'))
    world.registry.begin(two, { survivors: true, nowMs: 0 })
    expect(world.came()).toEqual([
      '1 < welcome to 2, keep [0#1.1 1#1.1]',
      'bind 0#1.1, a survivor',
      'bind 1#1.1, a survivor',
    ])
    expect(world.connect(2, { worker: 'w-1', ...old('2#1.1') })).toEqual([
      '2 < welcome to 2, keep [2#1.1]',
      'bind 2#1.1, a survivor',
    ])
  })

  it('that have not registered when the wait is over are ended, and so is what comes later', () => {
    const world = play()
    world.registry.begin(two, { survivors: true, nowMs: 0 })
    world.connect(1, old('0#1.1', '1#1.1'))
    world.registry.slotRegistered(slotId('0#1.1'))
    world.registry.survivorsOver()
    expect(world.came()).toEqual(['1 < terminateSlot 1#1.1'])
    expect(world.connect(2, { worker: 'w-1', ...old('2#1.1') })).toEqual(['2 < welcome to 2, keep []'])
  })

  it('are not kept twice', () => {
    const world = play()
    world.registry.begin(two, { survivors: true, nowMs: 0 })
    world.connect(1, old('0#1.1'))
    expect(world.connect(2, { worker: 'w-1', ...old('0#1.1') })).toEqual(['2 < welcome to 2, keep []'])
    // The end of the one that is not kept is no loss of the other.
    expect(world.slotEnded(2, '0#1.1')).toEqual([])
  })

  it('are preferred by their numbers for the slots that come after them', () => {
    const world = play()
    world.registry.begin(two, { survivors: true, nowMs: 0 })
    world.connect(1, old('0#1.1'))
    world.connect(2, { worker: 'w-1', slots: 8 })
    world.registry.survivorsOver()
    world.came()
    world.slotEnded(1, '0#1.1')
    world.registry.start(slotId('0#2.1'), { incarnation: two, parallelism: undefined }, 0)
    expect(world.came()[0]).toBe('1 < startSlot 0#2.1')
  })
})
