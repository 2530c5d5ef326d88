import { describe, expect, it } from 'vitest'
import { planOf } from './plan.ts'
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
  scenarioOf('storm of half an hour', { long: true }),
]
const usual = { names: [], all: false, turn: '1', can: { kill: true } }
const namesOf = (some: readonly Scenario[]): string[] => some.map(({ name }) => name)

describe('the plan of a run', () => {
  it('has the core first, then every other scenario in turn, and no long one', () => {
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
    expect(namesOf(planOf(scenarios, { ...usual, names: ['storm-of-half-an-hour', 'first job'] }).fixed)).toEqual([
      'first job',
      'storm of half an hour',
    ])
    expect(() => planOf(scenarios, { ...usual, names: ['first jab'] })).toThrow('there is no scenario "first jab"')
  })

  it('tells apart what is not possible on a cluster', () => {
    const { fixed, impossible } = planOf(scenarios, { ...usual, can: { kill: false } })
    expect(namesOf(fixed)).toEqual(['first job'])
    expect(namesOf(impossible)).toEqual(['node lost'])
  })
})
