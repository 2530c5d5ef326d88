import { describe, expect, it } from 'vitest'
import { subtaskIndex, taskKey, vertexId } from '../base/ids.ts'
import type { TaskId } from '../base/ids.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import type { JobGraph } from '../job/contract.ts'
import { failoverScope } from './failover.ts'
import { placeTasks } from './placement.ts'
import { pipelinedRegions } from './regions.ts'

function task(name: string): TaskId {
  const [vertex = '', index] = name.split('/')
  return { vertex: vertexId(vertex), subtask: subtaskIndex(Number(index)) }
}

const names = (tasks: readonly TaskId[]): string => tasks.map(taskKey).join(' ')

/** Slot by slot what it hosts. */
function slotsOf(graph: JobGraph): string[] {
  const { slotCount, tasks } = placeTasks(graph)
  return Array.from({ length: slotCount }, (_, slot) =>
    names(tasks.filter((entry) => entry.slot === slot).map((entry) => entry.task)),
  )
}

function scope(graph: JobGraph, failed: readonly string[], strategy: 'region' | 'full' = 'region'): string {
  const { tasks, slots } = failoverScope({ graph, strategy, placement: placeTasks(graph), failed: failed.map(task) })
  return `${names(tasks)} in ${[...slots].sort((left, right) => left - right).join(' ')}`
}

const shuffled = graphOf({
  vertices: [
    { id: 'source', parallelism: 2 },
    { id: 'count', parallelism: 3 },
  ],
  edges: [['source', 'hash', 'count']],
})
const straight = graphOf({
  vertices: [
    { id: 'source', parallelism: 2 },
    { id: 'map', parallelism: 2 },
  ],
  edges: [['source', 'forward', 'map']],
})
const twoJobs = (groups: readonly [string, string]): JobGraph =>
  graphOf({
    vertices: [
      { id: 'a', slotSharingGroup: groups[0] },
      { id: 'b', slotSharingGroup: groups[0] },
      { id: 'c', parallelism: 2, slotSharingGroup: groups[1] },
      { id: 'd', parallelism: 2, slotSharingGroup: groups[1] },
    ],
    edges: [
      ['a', 'hash', 'b'],
      ['c', 'broadcast', 'd'],
    ],
  })

describe('placement', () => {
  it('gives a slot one subtask of every vertex of its group, and a group as many slots as its largest parallelism', () => {
    expect(slotsOf(shuffled)).toEqual(['source/0 count/0', 'source/1 count/1', 'count/2'])
  })

  it('sums the slots over the groups', () => {
    expect(slotsOf(twoJobs(['left', 'right']))).toEqual(['a/0 b/0', 'c/0 d/0', 'c/1 d/1'])
    expect(slotsOf(twoJobs(['same', 'same']))).toEqual(['a/0 b/0 c/0 d/0', 'c/1 d/1'])
  })
})

describe('pipelined regions', () => {
  const regionsOf = (graph: JobGraph): string[] => {
    const regions: string[][] = []
    for (const [key, region] of pipelinedRegions(graph)) (regions[region] ??= []).push(key)
    return regions.map((keys) => keys.join(' '))
  }

  it('hold everything that exchanges records', () => {
    expect(regionsOf(shuffled)).toEqual(['source/0 source/1 count/0 count/1 count/2'])
    expect(regionsOf(twoJobs(['left', 'right']))).toEqual(['a/0 b/0', 'c/0 c/1 d/0 d/1'])
  })

  it('are one for each subtask where only forward edges connect', () => {
    expect(regionsOf(straight)).toEqual(['source/0 map/0', 'source/1 map/1'])
  })

  it('are joined by one edge that shuffles, however far downstream', () => {
    const graph = graphOf({
      vertices: [{ id: 'source', parallelism: 2 }, { id: 'map', parallelism: 2 }, { id: 'sink' }],
      edges: [
        ['source', 'forward', 'map'],
        ['map', 'rebalance', 'sink'],
      ],
    })
    expect(regionsOf(graph)).toEqual(['source/0 source/1 map/0 map/1 sink/0'])
  })
})

describe('failover', () => {
  it('restarts only the region of the failed subtask where regions have slots of their own (R18)', () => {
    expect(scope(twoJobs(['left', 'right']), ['b/0'])).toBe('a/0 b/0 in 0')
    expect(scope(twoJobs(['left', 'right']), ['c/1'])).toBe('c/0 c/1 d/0 d/1 in 1 2')
    expect(scope(straight, ['map/1'])).toBe('source/1 map/1 in 1')
  })

  it('takes the other regions of a slot along: its thread is the unit of a restart', () => {
    expect(scope(twoJobs(['same', 'same']), ['a/0'])).toBe('a/0 b/0 c/0 c/1 d/0 d/1 in 0 1')
  })

  it('goes on over slots and regions until nothing more is drawn in', () => {
    // x and y share slots 0-1; y reaches slot 2 by its shuffle, where z sits too.
    const graph = graphOf({
      vertices: [
        { id: 'x', slotSharingGroup: 'one' },
        { id: 'y', parallelism: 2, slotSharingGroup: 'one' },
        { id: 'w', parallelism: 1, slotSharingGroup: 'two' },
        { id: 'z', parallelism: 2, slotSharingGroup: 'two' },
        { id: 'alone', slotSharingGroup: 'three' },
      ],
      edges: [['y', 'hash', 'w']],
    })
    expect(scope(graph, ['x/0'])).toBe('x/0 y/0 y/1 w/0 z/0 in 0 1 2')
    expect(scope(graph, ['z/1'])).toBe('z/1 in 3')
  })

  it('restarts everything when the strategy is full', () => {
    expect(scope(straight, ['map/1'], 'full')).toBe('source/0 source/1 map/0 map/1 in 0 1')
  })

  it('restarts nothing when nothing failed', () => {
    expect(scope(straight, [], 'full')).toBe(' in ')
  })
})
