import { describe, expect, it } from 'vitest'
import { jobId, start } from '../base/ids.ts'
import { beginStart, close, newJob } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import { RaiseAgain } from './raise-again.ts'
import type { RaiseDecision } from './raise-again.ts'

const first: Head = {
  ...newJob({ job: jobId('j'), start: start(2), parallelism: 1, maxParallelism: 8 }),
  writer: 'first',
}
const swapped: Head = { ...first, writer: 'another' }
const next = beginStart(first, {
  start: start(3),
  parallelism: 1,
  maxParallelism: 8,
  restoredFrom: { kind: 'empty' },
  commitsPending: false,
})

interface Story {
  readonly backOffMs?: number
  /** What HEAD shows, from when; undefined: it cannot be read. Default: it stands still. */
  readonly heads?: readonly (readonly [fromMs: number, head: Head | undefined | 'gone'])[]
  /** When each worker comes. */
  readonly workers?: readonly (readonly number[])[]
}

/** Every two seconds from so long on, up to then. */
const tries = (fromMs: number, toMs: number): number[] =>
  Array.from({ length: Math.floor((toMs - fromMs) / 2_000) + 1 }, (_, index) => fromMs + index * 2_000)

/** The first decision that is not to wait and when it was made; or that there is none within two minutes. */
function told({ backOffMs = 20_000, heads = [[0, first]], workers = [] }: Story): readonly [RaiseDecision, number?] {
  const machine = new RaiseAgain({ start: start(2), backOffMs, nowMs: 0 })
  for (let nowMs = 0; nowMs <= 120_000; nowMs += 500) {
    for (const [index, times] of workers.entries()) if (times.includes(nowMs)) machine.seeks(`worker ${index}`, nowMs)
    if (nowMs < machine.wakeAtMs) continue
    const head = heads.findLast(([fromMs]) => fromMs <= nowMs)?.[1]
    if (head === undefined) machine.missedHead(nowMs)
    else {
      const decision = machine.sawHead(head === 'gone' ? undefined : head, nowMs)
      if (decision !== 'wait') return [decision, nowMs]
    }
  }
  return ['wait']
}

describe('a coordinator that was overtaken by another one of its own start', () => {
  it.each<[string, Story, readonly [RaiseDecision, number?]]>([
    [
      'raises when HEAD stood still and a worker has looked in vain',
      { workers: [tries(0, 120_000)] },
      ['begin', 20_000],
    ],
    [
      'does not when HEAD was swapped meanwhile, whatever workers say',
      {
        heads: [
          [0, first],
          [12_000, swapped],
        ],
        workers: [tries(0, 120_000)],
      },
      ['overtaken', 20_000],
    ],
    ['does not while no worker comes: they are with the other one', {}, ['wait']],
    [
      'hears of a swap as long as it waits for workers',
      {
        heads: [
          [0, first],
          [60_500, swapped],
        ],
      },
      ['overtaken', 62_000],
    ],
    [
      'does not for workers that found the other one after some tries',
      { workers: [tries(0, 8_000), tries(0, 12_000), tries(30_000, 38_000)] },
      ['wait'],
    ],
    ['raises as soon as a worker has looked for 10 s', { workers: [tries(40_000, 120_000)] }, ['begin', 50_000]],
    [
      'takes a worker that had one in between for one that has just begun to look',
      { workers: [[0, 2_000, 4_000, 22_000, 24_000]] },
      ['wait'],
    ],
    [
      'takes tries that reach an address that does not answer for tries',
      { workers: [[20_000, 29_500, 39_000, 48_000]] },
      ['begin', 40_000],
    ],
    [
      'does not add up what different workers say',
      { workers: [[20_000, 22_000], [26_000], [30_000, 32_000]] },
      ['wait'],
    ],
    ['waits as long as its back-off', { backOffMs: 90_000, workers: [tries(0, 120_000)] }, ['begin', 90_000]],
    [
      'looks at HEAD for 10 s, however little of its back-off is left',
      { backOffMs: 0, workers: [tries(0, 120_000)] },
      ['begin', 10_000],
    ],
    [
      'looks for as long from when HEAD could first be read',
      {
        heads: [
          [0, undefined],
          [60_000, first],
        ],
        workers: [tries(0, 120_000)],
      },
      ['begin', 70_000],
    ],
    [
      'takes a HEAD that it cannot read for none that stood still',
      {
        heads: [
          [0, first],
          [10_000, undefined],
          [50_000, swapped],
        ],
        workers: [tries(0, 120_000)],
      },
      ['overtaken', 50_000],
    ],
    [
      'finds its start ended',
      {
        heads: [
          [0, first],
          [12_000, { ...close(first), writer: 'closed' }],
        ],
      },
      ['begin', 20_000],
    ],
    ['finds that the next start has begun', { heads: [[0, next]] }, ['begin', 0]],
    [
      'finds no HEAD any more, of which the beginning tells',
      {
        heads: [
          [0, first],
          [12_000, 'gone'],
        ],
      },
      ['begin', 20_000],
    ],
  ])('%s', (_, story, expected) => {
    expect(told(story)).toEqual(expected)
  })
})
