import { describe, expect, it } from 'vitest'
import type { ChildExit, SupervisorEffect } from './supervisor.ts'
import { Supervisor } from './supervisor.ts'

const killed: ChildExit = { code: null, signal: 'SIGKILL', shellCode: 137 }
const ended = (code: number): ChildExit => ({ code, signal: null, shellCode: 128 })

function play(random = 0) {
  const supervisor = new Supervisor({ random: { next: () => random }, nowMs: 0 })
  let nowMs = 0
  let backOffMs: number | undefined
  const came = (): SupervisorEffect[] => {
    const effects = supervisor.effects.splice(0).filter(({ type }) => type !== 'log')
    for (const effect of effects) if (effect.type === 'spawn') ({ backOffMs } = effect)
    return effects
  }
  expect(came()).toEqual([{ type: 'spawn', backOffMs: undefined }])
  return {
    supervisor,
    came,
    /** What the newest child was told to wait. */
    get backOffMs() {
      return backOffMs
    },
    /** After so long the child says that it owns the job. */
    owns: (afterMs: number) => {
      nowMs += afterMs
      supervisor.owns(nowMs)
    },
    /** The child lives so long and ends so; the answer is how long the next one is waited for, or the exit code. */
    dies: (livedMs: number, exit: ChildExit = killed): number | { readonly code: number } => {
      nowMs += livedMs
      supervisor.exited(exit, nowMs)
      const [effect] = came()
      if (effect?.type === 'exit') return { code: effect.code }
      if (effect?.type === 'spawn') return 0
      const delayMs = supervisor.wakeAtMs! - nowMs
      supervisor.tick(nowMs + delayMs - 1)
      expect(came()).toEqual([])
      nowMs += delayMs
      supervisor.tick(nowMs)
      expect(came().map(({ type }) => type)).toEqual(['spawn'])
      return delayMs
    },
  }
}

describe('a supervisor', () => {
  it('starts a process that dies again at once, twice, and then with a delay that doubles up to 5 s', () => {
    const { dies } = play()
    expect(Array.from({ length: 10 }, () => dies(10))).toEqual([0, 0, 100, 200, 400, 800, 1600, 3200, 5000, 5000])
  })

  it('begins the delays anew after a process that lived for a minute', () => {
    const { dies } = play()
    for (let deaths = 0; deaths < 5; deaths++) dies(10)
    expect(dies(59_999)).toBe(800)
    expect(dies(60_000)).toBe(0)
    expect(dies(10)).toBe(0)
    expect(dies(10)).toBe(100)
  })

  it.each([
    [0, 0],
    [2, 2],
  ])('ends with its child that ends with %i', (code, own) => {
    expect(play().dies(10, ended(code))).toEqual({ code: own })
  })

  it.each([1, 4, 139])('starts a process again that ends with %i', (code) => {
    expect(play().dies(10, ended(code))).toBe(0)
  })

  it('tells whoever follows a fenced coordinator to wait from 10 s up to 5 min, and starts it at once', () => {
    const world = play()
    const fenced = () => {
      expect(world.dies(20_000, ended(3))).toBe(0)
      return world.backOffMs
    }
    world.dies(10)
    expect(world.backOffMs).toBe(undefined)
    expect([fenced(), fenced(), fenced(), fenced(), fenced(), fenced(), fenced()]).toEqual([
      10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000,
    ])
    // One that owned the job for a while begins again from where the waits were.
    world.owns(1_000)
    expect(fenced()).toBe(300_000)
    // This one owned it for longer than two could fence each other.
    world.owns(1_000)
    world.dies(300_000, ended(3))
    expect(world.backOffMs).toBe(10_000)
  })

  it('remembers the wait over other deaths, until a child owns the job: what is over was a wait as well', () => {
    const world = play()
    world.dies(10, ended(3))
    world.dies(4_000)
    expect(world.backOffMs).toBe(6_000)
    world.dies(60_000)
    expect(world.backOffMs).toBe(0)
    world.owns(1_000)
    world.dies(10)
    expect(world.backOffMs).toBe(undefined)
  })

  it('spreads those waits, so that two coordinators do not meet again', () => {
    for (const [random, expected] of [
      [0.5, 12_500],
      [0.9, 14_500],
    ] as const) {
      const world = play(random)
      world.dies(10, ended(3))
      expect(world.backOffMs).toBe(expected)
    }
  })

  it('passes a signal on, and starts nothing afterwards', () => {
    const { supervisor, came, dies } = play()
    supervisor.signalled('SIGTERM')
    expect(came()).toEqual([{ type: 'signal', signal: 'SIGTERM' }])
    expect(dies(10, ended(1))).toEqual({ code: 1 })

    const other = play()
    other.supervisor.signalled('SIGTERM')
    other.came()
    expect(other.dies(10, killed)).toEqual({ code: 137 })
  })

  it('ends at once by a signal while it waits', () => {
    const { supervisor, came } = play()
    for (let deaths = 0; deaths < 3; deaths++) supervisor.exited(killed, 0)
    came()
    supervisor.signalled('SIGINT')
    expect(came()).toEqual([{ type: 'exit', code: 0 }])
    expect(supervisor.wakeAtMs).toBe(undefined)
  })

  it('ends when the process cannot be started at all', () => {
    const { supervisor, came } = play()
    supervisor.spawnFailed('ENOENT')
    expect(came()).toEqual([{ type: 'exit', code: 1 }])
  })
})
