import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { incarnation, jobId, slotId } from '../base/ids.ts'
import type { ToWorker } from '../control/worker-contract.ts'
import { THREAD_END_MS_MAX } from '../control/contract.ts'
import { WorkerAgent } from './agent.ts'
import type { AgentEffect } from './agent.ts'

function show(effect: AgentEffect): string {
  switch (effect.type) {
    case 'send': {
      const { message } = effect
      if (message.type === 'hello')
        return `> hello, promised ${message.promised}, running [${message.running.join(' ')}]`
      if (message.type === 'slotEnded') return `> slotEnded ${message.slot}: ${message.reason}`
      return message.type === 'leaving' ? `> leaving within ${message.graceMs}` : `> ${message.type}`
    }
    case 'connect':
    case 'disconnect':
      return effect.type
    case 'startSlot':
    case 'terminateSlot':
      return `${effect.type} ${effect.slot}`
    case 'attachSlot':
      return `attachSlot ${effect.slot} to ${effect.incarnation}`
    case 'detachSlot':
      return `detachSlot ${effect.slot}: ${effect.reason}`
    case 'exit':
      return `exit: ${effect.error?.message ?? effect.reason}${effect.final ? ' (for good)' : ''}`
    case 'log':
      return ''
    default:
      return effect satisfies never
  }
}

function play() {
  const agent = new WorkerAgent({
    job: jobId('uid-1'),
    worker: 'w-0',
    instance: 'i-1',
    token: 'secret-token',
    runtimeVersion: '1.0.0',
    slots: 2,
    coordinator: 'coordinator:7000',
    // No jitter: the whole of each back-off.
    random: { next: () => 1 },
    nowMs: 0,
    planted: new Set(),
  })
  let nowMs = 0
  const log: string[] = []
  const came = (): string[] =>
    agent.effects
      .splice(0)
      .filter((effect) => {
        if (effect.type === 'log') log.push(`${effect.message} ${JSON.stringify(effect.fields)}`)
        return effect.type !== 'log'
      })
      .map(show)
  const world = {
    agent,
    log,
    came,
    hear: (message: ToWorker, wallMs = 0) => {
      agent.received(message, { nowMs, wallMs })
      return came()
    },
    welcome: (number: number, keep: readonly string[] = [], wallMs = 0) =>
      world.hear({ type: 'welcome', incarnation: incarnation(number), keep: keep.map(slotId), wallMs }),
    startSlot: (slot: string, number = 1) =>
      world.hear({
        type: 'startSlot',
        slot: slotId(slot),
        start: { incarnation: incarnation(number), parallelism: undefined },
      }),
    connected: () => {
      agent.connected(nowMs)
      return came()
    },
    closed: (reason = 'reset') => {
      agent.closed(reason, nowMs)
      return came()
    },
    linkLost: (slot: string, reason = 'its link was lost') => {
      agent.linkLost(slotId(slot), reason)
      return came()
    },
    beat: () => world.hear({ type: 'heartbeat' }),
    slotEnded: (slot: string, reason = 'asked for') => {
      agent.slotEnded(slotId(slot), reason)
      return came()
    },
    leave: (graceMs: number) => {
      agent.leave(graceMs, nowMs)
      return came()
    },
    /** Each second a heartbeat is heard if `heard`. */
    pass: (ms: number, heard = false) => {
      const untilMs = nowMs + ms
      while (nowMs < untilMs) {
        nowMs = Math.min(untilMs, Math.max(nowMs, agent.wakeAtMs ?? untilMs))
        if (heard) agent.received({ type: 'heartbeat' }, { nowMs, wallMs: 0 })
        agent.tick(nowMs)
      }
      return came().filter((line) => line !== '> heartbeat')
    },
  }
  return world
}

function registered(...slots: string[]) {
  const world = play()
  world.connected()
  world.welcome(1)
  for (const slot of slots) world.startSlot(slot)
  world.came()
  return world
}

describe('a worker', () => {
  it('connects, says hello, is let in, and starts and ends slots on the word of its coordinator', () => {
    const world = play()
    expect(world.came()).toEqual(['connect'])
    expect(world.connected()).toEqual(['> hello, promised 0, running []'])
    expect(world.welcome(1)).toEqual([])
    expect(world.startSlot('0#1.1')).toEqual(['startSlot 0#1.1'])
    // The same word again, and one for a thread that is about to go, change nothing.
    expect(world.startSlot('0#1.1')).toEqual([])
    expect(world.hear({ type: 'terminateSlot', slot: slotId('0#1.1') })).toEqual(['terminateSlot 0#1.1'])
    expect(world.hear({ type: 'terminateSlot', slot: slotId('0#1.1') })).toEqual([])
    expect(world.slotEnded('0#1.1')).toEqual(['> slotEnded 0#1.1: asked for'])
    expect(world.slotEnded('0#1.1')).toEqual([])
    expect(world.hear({ type: 'terminateSlot', slot: slotId('0#1.1') })).toEqual([
      '> slotEnded 0#1.1: there is no such slot',
    ])
  })

  it('tells of a slot that ended by itself', () => {
    const world = registered('0#1.1')
    expect(world.slotEnded('0#1.1', 'its thread ended')).toEqual(['> slotEnded 0#1.1: its thread ended'])
  })

  it('follows its coordinator into the next incarnation, ends what it does not keep, and never goes back', () => {
    const world = registered('0#1.1')
    expect(world.welcome(2)).toEqual([
      'detachSlot 0#1.1: incarnation 2 of the coordinator has begun',
      'terminateSlot 0#1.1',
    ])
    expect(world.agent.promised).toBe(2)
    expect(world.slotEnded('0#1.1')).toEqual(['> slotEnded 0#1.1: asked for'])
    expect(world.startSlot('0#2.1', 2)).toEqual(['startSlot 0#2.1'])
    expect(world.welcome(1)).toEqual([])
    expect(world.welcome(2)).toEqual([])
    expect(world.agent.promised).toBe(2)
  })

  it('takes no more slots than it has, and none of another incarnation', () => {
    const world = registered('0#1.1', '1#1.1')
    expect(world.startSlot('2#1.1')).toEqual(['> slotEnded 2#1.1: all its slots (2) are in use'])
    expect(world.startSlot('3#2.1', 2)).toEqual([`> slotEnded 3#2.1: incarnation 2 is not its coordinator's`])
  })

  it('tries again with back-off, and begins the back-off anew once it was let in', () => {
    const world = play()
    world.came()
    const waits: number[] = []
    for (let tries = 0; tries < 7; tries++) {
      world.closed('connection refused')
      let ms = 0
      while (!world.pass(50).includes('connect')) ms += 50
      waits.push(ms + 50)
    }
    expect(waits).toEqual([100, 200, 400, 800, 1600, 2000, 2000])
    world.connected()
    world.welcome(1)
    world.closed()
    expect(world.pass(99)).toEqual([])
    expect(world.pass(1)).toEqual(['connect'])
    // Said once: the same trouble again is no news.
    expect(world.log.filter((line) => line.startsWith('no coordinator'))).toHaveLength(1)
  })

  it('gives up an attempt that nobody answers', () => {
    const world = play()
    world.came()
    expect(world.pass(5_000)).toEqual(['disconnect'])
    expect(world.pass(100)).toEqual(['connect'])
  })
})

describe('a slot that has lost its link by itself', () => {
  it('ends as soon as the coordinator has shown that it lives, and that one hears why', () => {
    const world = registered('0#1.1', '1#1.1')
    expect(world.linkLost('0#1.1')).toEqual([])
    expect(world.beat()).toEqual(['terminateSlot 0#1.1'])
    expect(world.beat()).toEqual([])
    expect(world.slotEnded('0#1.1')).toEqual(['> slotEnded 0#1.1: its link was lost'])
    expect(world.agent.running).toEqual(['1#1.1'])
  })

  it('runs on if the coordinator is gone, and the next one gives it a new link', () => {
    const world = registered('0#1.1')
    world.linkLost('0#1.1')
    expect(world.closed()).toEqual(['detachSlot 0#1.1: reset'])
    world.pass(100)
    expect(world.connected()).toEqual(['> hello, promised 1, running [0#1.1]'])
    // One that waits for its turn sends heartbeats too.
    expect(world.beat()).toEqual([])
    expect(world.welcome(2, ['0#1.1'])).toEqual(['attachSlot 0#1.1 to 2'])
    expect(world.beat()).toEqual([])
  })

  it('nor does it end when a coordinator that is already known as lost had been silent to it', () => {
    const world = registered('0#1.1')
    world.closed()
    world.linkLost('0#1.1')
    world.pass(100)
    world.connected()
    world.welcome(2, ['0#1.1'])
    expect(world.beat()).toEqual([])
  })

  it('and whose thread has died of something says that', () => {
    const world = registered('0#1.1')
    world.linkLost('0#1.1')
    expect(world.slotEnded('0#1.1', 'out of memory')).toEqual(['> slotEnded 0#1.1: out of memory'])
  })
})

describe('a thread that does not end', () => {
  const end = (world: ReturnType<typeof play>) => world.hear({ type: 'terminateSlot', slot: slotId('0#1.1') })

  it('ends the process within its deadline, which the coordinator hears as the loss of the worker', () => {
    const world = registered('0#1.1', '1#1.1')
    end(world)
    expect(world.pass(THREAD_END_MS_MAX - 1_000, true)).toEqual([])
    expect(world.pass(1_000, true)).toEqual([
      expect.stringMatching(/^exit: MR-D23 .*Slot 0#1\.1 was asked to end 30 s ago\. .*starts it again/),
    ])
    expect(world.agent.wakeAtMs).toBe(undefined)
  })

  it('does no harm if it ends in time', () => {
    const world = registered('0#1.1')
    end(world)
    world.pass(THREAD_END_MS_MAX - 1_000, true)
    world.slotEnded('0#1.1')
    expect(world.pass(60_000, true)).toEqual([])
  })

  it('takes nobody with it while the coordinator is gone: the other slots are to be adopted', () => {
    const world = registered('0#1.1', '1#1.1')
    end(world)
    world.pass(1_000, true)
    world.closed()
    world.pass(100)
    // It lets the worker wait.
    world.connected()
    expect(world.pass(60_000, true)).toEqual([])
    world.welcome(2, ['1#1.1'])
    expect(world.pass(THREAD_END_MS_MAX - 2_000, true)).toEqual([])
    expect(world.pass(1_000, true)).toEqual([expect.stringMatching(/^exit: MR-D23 /)])
  })
})

describe('without its coordinator', () => {
  it('the slots run on, and are kept or ended as the next one says', () => {
    const world = registered('0#1.1', '1#1.1')
    expect(world.closed('the connection was reset')).toEqual([
      'detachSlot 0#1.1: the connection was reset',
      'detachSlot 1#1.1: the connection was reset',
    ])
    world.pass(100)
    expect(world.connected()).toEqual(['> hello, promised 1, running [0#1.1 1#1.1]'])
    expect(world.welcome(2, ['0#1.1'])).toEqual(['attachSlot 0#1.1 to 2', 'terminateSlot 1#1.1'])
    expect(world.slotEnded('1#1.1')).toEqual(['> slotEnded 1#1.1: asked for'])
  })

  it('a slot that ends meanwhile is not brought along, and one that ends after the hello is said to have ended', () => {
    const world = registered('0#1.1', '1#1.1')
    world.closed()
    expect(world.slotEnded('0#1.1')).toEqual([])
    world.pass(100)
    expect(world.connected()).toEqual(['> hello, promised 1, running [1#1.1]'])
    world.slotEnded('1#1.1')
    expect(world.welcome(2, ['1#1.1'])).toEqual(['> slotEnded 1#1.1: it ended meanwhile'])
  })

  it('one that ends after the hello and is not kept is said to have ended too: its place would be taken for ever', () => {
    const world = registered('0#1.1', '1#1.1')
    world.closed()
    world.pass(100)
    world.connected()
    world.slotEnded('1#1.1')
    expect(world.welcome(1, ['0#1.1'])).toEqual(['attachSlot 0#1.1 to 1', '> slotEnded 1#1.1: it ended meanwhile'])
  })

  it('it refuses one that is older than what it has promised', () => {
    const world = registered('0#1.1')
    world.closed()
    world.pass(100)
    world.connected()
    expect(world.welcome(3, ['0#1.1'])).toEqual(['attachSlot 0#1.1 to 3'])
    world.closed()
    world.pass(100)
    world.connected()
    expect(world.welcome(2, ['0#1.1'])).toEqual(['disconnect'])
    expect(world.agent.promised).toBe(3)
    expect(world.agent.running).toEqual(['0#1.1'])
  })

  it('it knows of the loss after ten seconds of silence, not because it was frozen itself', () => {
    const world = registered('0#1.1')
    expect(world.pass(9_999)).toEqual([])
    expect(world.pass(1)).toEqual(['disconnect', 'detachSlot 0#1.1: it was silent for 10 s'])

    const frozen = registered('0#1.1')
    frozen.agent.tick(60_000)
    expect(frozen.came()).toEqual(['> heartbeat'])
  })

  it('it ends after a quarter of an hour, with the last trouble', () => {
    const world = registered('0#1.1')
    const said: string[] = []
    world.closed('reset')
    for (let ms = 0; ms < 15 * 60_000 + 2_000; ms += 50) {
      said.push(...world.pass(50).filter((line) => line.startsWith('exit')))
      world.closed('connection refused')
    }
    expect(said).toEqual([
      expect.stringMatching(
        /^exit: MR-D20 .*coordinator:7000 for 15 min: connection refused\. .* looks for it again\.$/,
      ),
    ])
  })

  it('one that lets it wait is a coordinator, one that only refuses is none', () => {
    const waiting = play()
    waiting.connected()
    waiting.came()
    expect(waiting.pass(20 * 60_000, true)).toEqual([])

    const refused = play()
    const said: string[] = []
    for (let ms = 0; ms < 15 * 60_000 + 5_000; ms += 100) {
      refused.connected()
      refused.hear({ type: 'refused', code: 'MR-D05', message: 'MR-D05 Another worker.', final: false })
      said.push(...refused.pass(100).filter((line) => line.startsWith('exit')))
    }
    expect(said).toHaveLength(1)
  })
})

describe('refused', () => {
  it('for good it ends with what the coordinator says', () => {
    const world = play()
    world.connected()
    world.came()
    const message = "MR-D04 The worker's token is not the job's. Worker w-0. Mend it."
    expect(world.hear({ type: 'refused', code: 'MR-D04', message, final: true })).toEqual([
      expect.stringMatching(/^exit: MR-D22 The coordinator refuses the worker\. MR-D04 .* \(for good\)$/),
    ])
    expect(world.agent.wakeAtMs).toBe(undefined)
  })

  it('for now it tries again, with its slots', () => {
    const world = registered('0#1.1')
    world.closed()
    world.pass(100)
    world.connected()
    const message = 'MR-D05 Another worker is registered.'
    expect(world.hear({ type: 'refused', code: 'MR-D05', message, final: false })).toEqual(['disconnect'])
    world.pass(200)
    expect(world.connected()).toEqual(['> hello, promised 1, running [0#1.1]'])
  })
})

describe('leaving', () => {
  it('ends well on goodbye', () => {
    const world = registered('0#1.1')
    expect(world.leave(25_000)).toEqual(['> leaving within 25000'])
    expect(world.leave(25_000)).toEqual([])
    world.hear({ type: 'terminateSlot', slot: slotId('0#1.1') })
    expect(world.slotEnded('0#1.1')).toEqual(['> slotEnded 0#1.1: asked for'])
    expect(world.hear({ type: 'goodbye', reason: 'its slots have moved' })).toEqual(['exit: its slots have moved'])
  })

  it('ends at the end of its time with what still runs', () => {
    const world = registered('0#1.1')
    world.leave(25_000)
    expect(world.pass(24_999, true)).toEqual([])
    expect(world.pass(1, true)).toEqual([expect.stringMatching(/^exit: MR-D21 .*Slots 0#1\.1 still ran\./)])
  })

  it('says so again, with what is left of its time, to the coordinator that comes meanwhile', () => {
    const world = registered('0#1.1')
    world.leave(25_000)
    world.pass(9_900, true)
    world.closed()
    world.pass(100)
    world.connected()
    expect(world.welcome(2, ['0#1.1'])).toEqual(['attachSlot 0#1.1 to 2', '> leaving within 15000'])
  })

  it('ends at once where it has neither coordinator nor slots, and as soon as it has none', () => {
    const alone = play()
    alone.came()
    expect(alone.leave(25_000)).toEqual(['exit: it was to leave and has no slots'])

    const world = registered('0#1.1')
    world.closed()
    expect(world.leave(25_000)).toEqual([])
    expect(world.slotEnded('0#1.1')).toEqual(['exit: it was to leave and has no slots'])
  })
})

it('a clock that is far from the coordinator’s is a warning', () => {
  const near = play()
  near.connected()
  near.welcome(1, [], 5 * 60_000)
  const far = play()
  far.connected()
  far.welcome(1, [], 5 * 60_000 + 1)
  const warnings = (log: readonly string[]) => log.filter((line) => line.includes('clock is far'))
  expect(warnings(near.log)).toEqual([])
  expect(warnings(far.log)).toHaveLength(1)
})

it('the token is in the hello and nowhere else', () => {
  const world = play()
  world.agent.connected(0)
  const [hello] = world.agent.effects.splice(0).filter(({ type }) => type === 'send')
  expect(hello).toMatchObject({ message: { token: 'secret-token' } })
  world.closed('reset')
  world.pass(60_000)
  expect(world.log.join()).not.toContain('secret-token')
})

it('in whatever order things come, its promise never falls and what it runs is what it was told to start and keep', () => {
  const step = fc.oneof(
    fc.constant({ kind: 'connected' } as const),
    fc.constant({ kind: 'closed' } as const),
    fc.record({ kind: fc.constant('welcome' as const), number: fc.nat(5), keep: fc.subarray(['0', '1', '2', '3']) }),
    fc.record({ kind: fc.constantFrom('start' as const, 'terminate' as const, 'ended' as const), slot: fc.nat(3) }),
    fc.record({ kind: fc.constantFrom('link lost' as const, 'beat' as const), slot: fc.nat(3) }),
    fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(12_000) }),
  )
  fc.assert(
    fc.property(fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }), (steps) => {
      const world = play()
      const { agent } = world
      /** What the process does with the effects. */
      const threads = new Map<string, 'attached' | 'detached' | 'ending'>()
      let promised = 0
      let exited = false
      const carryOut = (): void => {
        for (const effect of agent.effects.splice(0)) {
          if (effect.type === 'exit') {
            expect(effect.error?.code).toBe('MR-D23')
            exited = true
            return
          }
          if (effect.type === 'startSlot') {
            expect(threads.has(effect.slot)).toBe(false)
            threads.set(effect.slot, 'attached')
          }
          if (effect.type === 'attachSlot') {
            expect(threads.get(effect.slot)).toBe('detached')
            expect(effect.incarnation).toBe(agent.promised)
            threads.set(effect.slot, 'attached')
          }
          if (effect.type === 'detachSlot') threads.set(effect.slot, 'detached')
          if (effect.type === 'terminateSlot') threads.set(effect.slot, 'ending')
        }
        const running = [...threads].filter(([, state]) => state !== 'ending').map(([slot]) => slot)
        expect(agent.running.toSorted()).toEqual(running.toSorted())
        expect(running.length).toBeLessThanOrEqual(2)
        // Without a coordinator none is attached, with one all are.
        for (const [, state] of threads)
          if (state !== 'ending') expect(state).toBe(agent.isRegistered ? 'attached' : 'detached')
        expect(agent.promised).toBeGreaterThanOrEqual(promised)
        promised = agent.promised
      }
      let nowMs = 0
      for (const step of steps) {
        if (exited) return
        const at = { nowMs, wallMs: 0 }
        if (step.kind === 'connected') agent.connected(nowMs)
        else if (step.kind === 'closed') agent.closed('reset', nowMs)
        else if (step.kind === 'welcome') {
          const keep = step.keep.map(slotId)
          agent.received({ type: 'welcome', incarnation: incarnation(step.number), keep, wallMs: 0 }, at)
        } else if (step.kind === 'start') {
          const start = { incarnation: agent.promised, parallelism: undefined }
          agent.received({ type: 'startSlot', slot: slotId(String(step.slot)), start }, at)
        } else if (step.kind === 'terminate')
          agent.received({ type: 'terminateSlot', slot: slotId(String(step.slot)) }, at)
        else if (step.kind === 'pass') {
          const untilMs = nowMs + step.ms
          while (nowMs < untilMs && agent.wakeAtMs !== undefined) {
            nowMs = Math.min(untilMs, Math.max(nowMs, agent.wakeAtMs))
            agent.tick(nowMs)
            carryOut()
          }
        } else if (step.kind === 'link lost') agent.linkLost(slotId(String(step.slot)), 'its link was lost')
        else if (step.kind === 'beat') agent.received({ type: 'heartbeat' }, at)
        else {
          agent.slotEnded(slotId(String(step.slot)), 'its thread ended')
          threads.delete(String(step.slot))
        }
        carryOut()
      }
    }),
    { numRuns: 300 },
  )
})
