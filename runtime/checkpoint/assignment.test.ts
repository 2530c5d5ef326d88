import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { incarnation, jobId, start, subtaskIndex, taskKey, vertexId } from '../base/ids.ts'
import type { TaskKey } from '../base/ids.ts'
import type { RestoredOperator } from '../control/contract.ts'
import type { JobGraph } from '../job/contract.ts'
import { assignRestore, committablesOf } from './assignment.ts'
import type { RestoreAssignment, RestoreOptions } from './assignment.ts'
import type { SubtaskSnapshot } from './contract.ts'
import { fromCollected } from './manifest.ts'
import type { EnumeratorSnapshot, Manifest } from './manifest.ts'
import { graphOf } from './test-graph.ts'
import type { VertexShape } from './test-graph.ts'
import { codec, collectedOf, handleIn, keyedOf, listOf, subtaskSnapshot, transaction } from './test-snapshots.ts'

const strict: RestoreOptions = { allowNonRestoredState: false, commitsConfirmed: false }
const maxParallelism = 16

function manifestOf(
  graph: JobGraph,
  snapshotOf: (vertex: string, subtask: number) => SubtaskSnapshot,
  enumerators: ReadonlyMap<string, EnumeratorSnapshot> = new Map(),
): Manifest {
  return fromCollected(collectedOf(graph, snapshotOf), {
    job: jobId('flights'),
    start: start(1),
    incarnation: incarnation(1),
    graph,
    enumerators,
  })
}

function pipeline(
  parallelism: number,
  change: Partial<Record<'source' | 'count' | 'sink', Partial<VertexShape>>> = {},
): JobGraph {
  return graphOf({
    maxParallelism,
    vertices: [
      { id: 'source', parallelism, ...change.source },
      { id: 'count', parallelism, ...change.count },
      { id: 'sink', parallelism, twoPhase: true, ...change.sink },
    ],
    edges: [
      ['source', 'hash', 'count'],
      ['count', 'rebalance', 'sink'],
    ],
  })
}

/** source: split, union and broadcast lists; count: keyed state; sink: two transactions a subtask. */
function pipelineManifest(
  parallelism: number,
  finished: (vertex: string, subtask: number) => boolean = () => false,
): Manifest {
  return manifestOf(
    pipeline(parallelism),
    (vertex, subtask) => {
      const operators = {
        source: {
          operatorState: {
            splits: listOf('split', `split-${subtask}`),
            all: listOf('union', `union-${subtask}`),
            rules: listOf('broadcast', `broadcast-${subtask}`),
          },
        },
        count: { keyed: keyedOf({ parallelism, subtask, maxParallelism }) },
        sink: { committables: [transaction(`t-${subtask}-a`), transaction(`t-${subtask}-b`)] },
      }[vertex]!
      return subtaskSnapshot({ [vertex]: operators }, finished(vertex, subtask))
    },
    new Map([['source', { codec, handle: handleIn('enumerator') }]]),
  )
}

function operatorOf(
  assignment: RestoreAssignment,
  vertex: string,
  subtask: number,
  uid = vertex,
): RestoredOperator | undefined {
  return assignment.subtasks.get(taskKey({ vertex: vertexId(vertex), subtask: subtaskIndex(subtask) }))!.restored
    .operators[uid]
}

function objectsOf(operator: RestoredOperator | undefined, state: string): string[] {
  return (operator?.operatorState?.[state] ?? []).map(({ items }) =>
    items.kind === 'object' ? items.object : 'inline',
  )
}

function itemsOf(operator: RestoredOperator | undefined, state: string): string[] {
  return (operator?.operatorState?.[state] ?? []).flatMap(({ items, from, to }) =>
    Array.from({ length: to - from }, (_, index) => `${items.kind === 'object' && items.object}[${from + index}]`),
  )
}

const keysOf = (vertices: readonly string[], parallelism: number): TaskKey[] =>
  vertices.flatMap((vertex) =>
    Array.from({ length: parallelism }, (_, index) =>
      taskKey({ vertex: vertexId(vertex), subtask: subtaskIndex(index) }),
    ),
  )

describe('what subtasks get from a restore point, at any parallelism', () => {
  const pair = fc.tuple(fc.integer({ min: 1, max: maxParallelism }), fc.integer({ min: 1, max: maxParallelism }))

  it('is every key group exactly once, with its own block, in the subtask whose range holds it', () => {
    fc.assert(
      fc.property(pair, ([before, after]) => {
        const assignment = assignRestore(pipelineManifest(before), pipeline(after), strict)
        const seen: number[] = []
        for (let subtask = 0; subtask < after; subtask++) {
          const groups = (operatorOf(assignment, 'count', subtask)?.keyed ?? []).flatMap((snapshot) => snapshot.groups)
          expect(groups).toEqual(
            keyedOf({ parallelism: after, subtask, maxParallelism }).groups.map((group) => ({
              ...group,
              watermark: expect.any(Number),
            })),
          )
          seen.push(...groups.map(({ keyGroup }) => keyGroup))
        }
        expect(seen).toEqual(Array.from({ length: maxParallelism }, (_, group) => group))
      }),
      { numRuns: 60 },
    )
  })

  it('is every split item and every transaction exactly once, all union lists, one broadcast list', () => {
    fc.assert(
      fc.property(pair, ([before, after]) => {
        const assignment = assignRestore(pipelineManifest(before), pipeline(after), strict)
        const each = Array.from({ length: after }, (_, subtask) => subtask)
        const old = Array.from({ length: before }, (_, subtask) => subtask)
        const split = each.flatMap((subtask) => itemsOf(operatorOf(assignment, 'source', subtask), 'splits'))
        expect(split).toEqual(old.flatMap((subtask) => [`split-${subtask}[0]`, `split-${subtask}[1]`]))
        for (const subtask of each) {
          expect(objectsOf(operatorOf(assignment, 'source', subtask), 'all')).toEqual(
            old.map((index) => `union-${index}`),
          )
          expect(objectsOf(operatorOf(assignment, 'source', subtask), 'rules')).toHaveLength(1)
        }
        const transactions = each.flatMap((subtask) => operatorOf(assignment, 'sink', subtask)?.committables ?? [])
        expect(transactions.map((entry) => entry.transaction).sort()).toEqual(
          old.flatMap((index) => [`t-${index}-a`, `t-${index}-b`]).sort(),
        )
      }),
      { numRuns: 60 },
    )
  })

  it('is its own at the same parallelism', () => {
    const assignment = assignRestore(pipelineManifest(3), pipeline(3), strict)
    expect(objectsOf(operatorOf(assignment, 'source', 2), 'splits')).toEqual(['split-2'])
    expect(operatorOf(assignment, 'count', 1)?.keyed).toEqual([keyedOf({ parallelism: 3, subtask: 1, maxParallelism })])
    expect(operatorOf(assignment, 'sink', 0)?.committables?.map((entry) => entry.transaction)).toEqual([
      't-0-a',
      't-0-b',
    ])
    expect([...assignment.enumerators.keys()]).toEqual(['source'])
  })

  it('follows an operator into another chain', () => {
    const moved = graphOf({
      maxParallelism,
      vertices: [
        { id: 'source', parallelism: 2 },
        { id: 'all', parallelism: 2, uids: ['count', 'sink'], twoPhase: true },
      ],
    })
    const assignment = assignRestore(pipelineManifest(2), moved, strict)
    expect(operatorOf(assignment, 'all', 1, 'count')?.keyed).toEqual([
      keyedOf({ parallelism: 2, subtask: 1, maxParallelism }),
    ])
    expect(operatorOf(assignment, 'all', 0, 'sink')?.committables).toHaveLength(2)
  })

  it('is nothing for an operator that is new', () => {
    const grown = pipeline(2, { count: { uids: ['count', 'alarm'] } })
    expect(operatorOf(assignRestore(pipelineManifest(2), grown, strict), 'count', 0, 'alarm')).toBeUndefined()
  })
})

describe('finished vertices (rule 19)', () => {
  it('that are wholly finished run nothing; the coordinator commits for them and acknowledges with their recorded state', () => {
    const assignment = assignRestore(
      pipelineManifest(2, () => true),
      pipeline(2),
      strict,
    )
    expect([...assignment.finishedBefore]).toEqual(['source', 'count', 'sink'])
    expect([...assignment.subtasks.values()]).toEqual(
      keysOf(['source', 'count', 'sink'], 2).map(() => ({ finishedBefore: true, restored: { operators: {} } })),
    )
    expect([...assignment.enumerators.keys()]).toEqual(['source'])
    expect(assignment.committablesWithoutWriter.get('sink')?.map((entry) => entry.transaction)).toEqual([
      't-0-a',
      't-0-b',
      't-1-a',
      't-1-b',
    ])
    expect([...assignment.finals.keys()]).toEqual(keysOf(['source', 'count', 'sink'], 2))
    const count = assignment.finals.get(keysOf(['count'], 2)[1]!)
    expect(count).toMatchObject({
      finished: true,
      operators: { count: { keyed: keyedOf({ parallelism: 2, subtask: 1, maxParallelism }) } },
    })
    expect(
      assignment.finals.get(keysOf(['sink'], 1)[0]!)?.operators,
      'committed transactions are not pre-committed again',
    ).toEqual({})
  })

  it('that are wholly finished make a manifest without contradiction again, at the same and at another parallelism', () => {
    for (const parallelism of [2, 3]) {
      const { finals } = assignRestore(
        pipelineManifest(2, () => true),
        pipeline(parallelism),
        strict,
      )
      const graph = pipeline(parallelism)
      const again = manifestOf(graph, (vertex, subtask) =>
        finals.get(taskKey({ vertex: vertexId(vertex), subtask: subtaskIndex(subtask) }))!,
      )
      expect([...assignRestore(again, graph, strict).finishedBefore]).toEqual(['source', 'count', 'sink'])
    }
  })

  it('that are partly finished run all their subtasks, with all their state', () => {
    const partly = pipelineManifest(2, (vertex, subtask) => vertex === 'source' && subtask === 0)
    const assignment = assignRestore(partly, pipeline(2), strict)
    expect(assignment.finishedBefore.size).toBe(0)
    expect(objectsOf(operatorOf(assignment, 'source', 0), 'splits')).toEqual(['split-0'])
    expect([...assignment.enumerators.keys()]).toEqual(['source'])
  })

  it('run again where another operator is chained to them, and their source from where it had come to', () => {
    const grown = pipeline(2, { source: { uids: ['source', 'fresh'] } })
    const manifest = pipelineManifest(2, (vertex) => vertex === 'source')
    const assignment = assignRestore(manifest, grown, strict)
    expect([...assignment.finishedBefore]).toEqual([])
    expect([...assignment.enumerators.keys()]).toEqual(['source'])
    const unsaid = { ...manifest, enumerators: {} }
    expect(() => assignRestore(unsaid, grown, strict)).toThrow(/^MR-C19 .*uid source/)
    expect([...assignRestore(unsaid, pipeline(2), strict).finishedBefore]).toEqual(['source'])
  })

  it('are refused when a new input would feed them: they have fired their last timers', () => {
    const graph = graphOf({
      maxParallelism,
      vertices: [{ id: 'source' }, { id: 'fresh' }, { id: 'count' }, { id: 'sink', twoPhase: true }],
      edges: [
        ['source', 'hash', 'count'],
        ['fresh', 'hash', 'count'],
        ['count', 'rebalance', 'sink'],
      ],
    })
    expect(() =>
      assignRestore(
        pipelineManifest(1, () => true),
        graph,
        strict,
      ),
    ).toThrow(/^MR-C16 .*count, from fresh/)
  })
})

describe('what does not fit is refused before anything runs', () => {
  const withoutSink = graphOf({
    maxParallelism,
    vertices: [
      { id: 'source', parallelism: 2 },
      { id: 'count', parallelism: 2 },
    ],
    edges: [['source', 'hash', 'count']],
  })
  const withoutCount = graphOf({
    maxParallelism,
    vertices: [
      { id: 'source', parallelism: 2 },
      { id: 'sink', parallelism: 2, twoPhase: true },
    ],
    edges: [['source', 'rebalance', 'sink']],
  })

  it('state whose uid is missing, named with its states; dropped only if allowed', () => {
    expect(() => assignRestore(pipelineManifest(2), withoutCount, strict)).toThrow(/^MR-C11 .*uid count .*with count/)
    expect(
      assignRestore(pipelineManifest(2), withoutCount, { ...strict, allowNonRestoredState: true }).dropped,
    ).toEqual(['count'])
  })

  it('an enumerator whose source is missing', () => {
    const manifest = manifestOf(
      graphOf({ vertices: [{ id: 'source' }] }),
      () => subtaskSnapshot({}),
      new Map([['source', { codec, handle: handleIn('enumerator') }]]),
    )
    expect(() => assignRestore(manifest, graphOf({ vertices: [{ id: 'other' }] }), strict)).toThrow(
      /^MR-C11 .*uid source/,
    )
  })

  it('transactions whose sink is missing, also where state may be dropped (rule 23), until HEAD shows them committed', () => {
    const lax = { ...strict, allowNonRestoredState: true }
    expect(() => assignRestore(pipelineManifest(2), withoutSink, lax)).toThrow(
      /^MR-C12 .*uid sink .*4 transactions \(t-0-a/,
    )
    expect(assignRestore(pipelineManifest(2), withoutSink, { ...strict, commitsConfirmed: true }).dropped).toEqual([])
  })

  it('two operators with one uid', () => {
    expect(() =>
      assignRestore(pipelineManifest(2), pipeline(2, { sink: { uids: ['sink', 'count'] } }), strict),
    ).toThrow(/^MR-C13 .*uid count/)
  })

  it('an operator without a given uid that would take over state, unless autoUid', () => {
    const unnamed = pipeline(2, { count: { uids: ['count?'] } })
    expect(() => assignRestore(pipelineManifest(2), unnamed, strict)).toThrow(/^MR-C14 .*count/)
    const trusting = { ...unnamed, settings: { ...unnamed.settings, autoUid: true } }
    expect(operatorOf(assignRestore(pipelineManifest(2), trusting, strict), 'count', 0)?.keyed).toHaveLength(1)
  })

  it('another max parallelism of an operator with keyed state; that of the job and of operators without is free', () => {
    const free = { ...pipeline(2, { source: { maxParallelism: 32 }, sink: { maxParallelism: 4 } }), maxParallelism: 32 }
    expect(operatorOf(assignRestore(pipelineManifest(2), free, strict), 'count', 0)?.keyed).toHaveLength(1)
    expect(() => assignRestore(pipelineManifest(2), pipeline(2, { count: { maxParallelism: 8 } }), strict)).toThrow(
      /^MR-C10 .*count has 8.*16/,
    )
  })

  it('but not another max parallelism without keyed state', () => {
    const manifest = manifestOf(graphOf({ vertices: [{ id: 'source' }], maxParallelism: 16 }), () =>
      subtaskSnapshot({}),
    )
    expect(
      assignRestore(manifest, graphOf({ vertices: [{ id: 'source' }], maxParallelism: 32 }), strict).dropped,
    ).toEqual([])
  })

  it('keyed state of an operator that nothing keys any more, or that is not the first behind its keyBy (it would be lost)', () => {
    const unkeyed = pipeline(2, { count: { keyed: false } })
    const behind = pipeline(2, { count: { uids: ['fresh', 'count'] } })
    for (const graph of [unkeyed, behind])
      expect(() => assignRestore(pipelineManifest(2), graph, strict)).toThrow(/^MR-C18 .*uid count.*has count/)
  })

  it('a chain of operators with different recorded max parallelism (B19)', () => {
    const apart = graphOf({ maxParallelism: 128, vertices: [{ id: 'left' }, { id: 'right', maxParallelism: 64 }] })
    const manifest = manifestOf(apart, (vertex) =>
      subtaskSnapshot({
        [vertex]: { keyed: keyedOf({ parallelism: 1, subtask: 0, maxParallelism: vertex === 'left' ? 128 : 64 }) },
      }),
    )
    const chained = graphOf({ maxParallelism: 128, vertices: [{ id: 'left', uids: ['left', 'right'] }] })
    expect(() => assignRestore(manifest, chained, strict)).toThrow(/^MR-C15 .*left 128, right 64/)
  })
})

it('gives all transactions of a manifest by uid, for whoever only commits', () => {
  expect(
    [...committablesOf(pipelineManifest(1))].map(([uid, list]) => [uid, list.map((entry) => entry.transaction)]),
  ).toEqual([['sink', ['t-0-a', 't-0-b']]])
})

it('planted: the last group of a range that holds anything comes up empty, and nothing else differs', () => {
  const right = assignRestore(pipelineManifest(2), pipeline(2), strict)
  const wrong = assignRestore(pipelineManifest(2), pipeline(2), {
    ...strict,
    planted: new Set(['neighbour-key-group']),
  })
  for (const subtask of [0, 1]) {
    const expected = operatorOf(right, 'count', subtask)!.keyed!.flatMap(({ groups }) => groups)
    const last = expected.findLast(({ handle }) => handle !== undefined)!
    expect(operatorOf(wrong, 'count', subtask)!.keyed!.flatMap(({ groups }) => groups)).toEqual(
      expected.map((group) => (group === last ? { keyGroup: group.keyGroup, watermark: group.watermark } : group)),
    )
  }
})
