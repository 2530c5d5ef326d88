import { describe, expect, it } from 'vitest'
import { nextTurn, planOf } from './plan.ts'
import type { Scenario } from './scenario.ts'

const scenarioOf = (name: string, more: Partial<Scenario> = {}): Scenario => ({
  name,
  core: false,
  run: () => Promise.resolve(),
  ...more,
})
const scenarios = [
  scenarioOf('first job', { core: true }),
  scenarioOf('node lost', { core: true, needs: ['kill'] }),
  scenarioOf('a'),
  scenarioOf('b'),
  scenarioOf('c'),
  scenarioOf('d'),
]
const usual = { names: [], all: false, turn: '1', can: { kill: true } }
const namesOf = (some: readonly Scenario[]): string[] => some.map(({ name }) => name)

describe('the plan of a run', () => {
  it('has the core first, then every other scenario in turn', () => {
    const { fixed, turns } = planOf(scenarios, usual)
    expect(namesOf(fixed)).toEqual(['first job', 'node lost'])
    expect(namesOf(turns).toSorted()).toEqual(['a', 'b', 'c', 'd'])
  })

  it('has the others in an order that is the same for the same turn, and lets each be first in some turn', () => {
    expect(planOf(scenarios, usual)).toEqual(planOf(scenarios, usual))
    const firsts = Array.from(
      { length: 50 },
      (_, turn) => planOf(scenarios, { ...usual, turn: `${turn}` }).turns[0]!.name,
    )
    expect([...new Set(firsts)].toSorted()).toEqual(['a', 'b', 'c', 'd'])
  })

  it('has every scenario with --all', () => {
    expect(namesOf(planOf(scenarios, { ...usual, all: true }).fixed)).toEqual(namesOf(scenarios))
  })

  it('has only those that were named, by words or as files are called', () => {
    expect(namesOf(planOf(scenarios, { ...usual, names: ['NODE-lost', 'first job'] }).fixed)).toEqual([
      'first job',
      'node lost',
    ])
    expect(() => planOf(scenarios, { ...usual, names: ['first jab'] })).toThrow('there is no scenario "first jab"')
  })

  it('leaves to another turn what would not end in time', () => {
    const turns = [scenarioOf('storm', { usualMs: 420_000 }), scenarioOf('a'), scenarioOf('short', { usualMs: 60_000 })]
    expect(nextTurn(turns, 420_000)!.name).toBe('storm')
    expect(nextTurn(turns, 419_999)!.name).toBe('a')
    expect(nextTurn(turns, 179_999)!.name).toBe('short')
    expect(nextTurn(turns, 59_999)).toBeUndefined()
  })

  it('tells apart what is not possible on a cluster', () => {
    const { fixed, impossible } = planOf(scenarios, { ...usual, can: { kill: false } })
    expect(namesOf(fixed)).toEqual(['first job'])
    expect(namesOf(impossible)).toEqual(['node lost'])
  })
})
