import { readFileSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { incarnation, jobId, keyGroup, start } from '../base/ids.ts'
import type { OperatorSnapshot, SubtaskSnapshot } from './contract.ts'
import {
  assertManifest,
  decodeManifest,
  encodeManifest,
  fromCollected,
  objectsOf,
  objectsOfSnapshot,
} from './manifest.ts'
import type { Manifest } from './manifest.ts'
import { graphOf } from './test-graph.ts'
import { codec, collectedOf, handleIn, keyedOf, listOf, subtaskSnapshot, transaction } from './test-snapshots.ts'

const graph = graphOf({
  vertices: [
    { id: 'source', parallelism: 2, uids: ['source', 'parse'] },
    { id: 'count', parallelism: 2 },
    { id: 'sink', parallelism: 1, twoPhase: true },
  ],
  edges: [
    ['source', 'hash', 'count'],
    ['count', 'rebalance', 'sink'],
  ],
  maxParallelism: 4,
})

const meta = {
  job: jobId('flights'),
  start: start(3),
  incarnation: incarnation(5),
  graph,
  enumerators: new Map([['source', { codec, handle: handleIn('chk-7/enumerator') }]]),
}

function snapshotOf(vertex: string, subtask: number): SubtaskSnapshot {
  if (vertex === 'source')
    return subtaskSnapshot(
      subtask === 0 ? { source: { operatorState: { splits: listOf('split', 'chk-7/splits') } } } : {},
      subtask === 1,
    )
  if (vertex === 'count')
    return subtaskSnapshot({ count: { keyed: keyedOf({ parallelism: 2, subtask, maxParallelism: 4 }) } })
  return subtaskSnapshot({ sink: { committables: [transaction('t-1', 6), transaction('t-2')] } })
}

const manifest = fromCollected(collectedOf(graph, snapshotOf), meta)
const where = 'chk-7/_metadata'
const golden = new URL('./testdata/manifest-format-1.json', import.meta.url)

function withVertex(
  id: string,
  change: (vertex: Manifest['vertices'][number]) => Manifest['vertices'][number],
): Manifest {
  return { ...manifest, vertices: manifest.vertices.map((vertex) => (vertex.id === id ? change(vertex) : vertex)) }
}

function withOperator(uid: string, perSubtask: readonly (OperatorSnapshot | null)[]): Manifest {
  return withVertex(uid, (vertex) => ({ ...vertex, operators: { [uid]: perSubtask } }))
}

/** As another program might write it: with a right checksum, whatever stands inside. */
function written(body: unknown, format = 1): Uint8Array {
  const text = JSON.stringify(body)
  const sha256 = createHash('sha256').update(text).digest('hex')
  return new TextEncoder().encode(`{"format":${format},"sha256":"${sha256}","manifest":${text}}`)
}

describe('the manifest', () => {
  it('comes back as it was written', () => {
    expect(decodeManifest(encodeManifest(manifest), where)).toEqual(manifest)
  })

  it('is read as format 1 wrote it', () => {
    if (process.env['MILLRACE_UPDATE_GOLDEN'] === '1') writeFileSync(golden, encodeManifest(manifest))
    const bytes = readFileSync(golden)
    expect(decodeManifest(bytes, where)).toEqual(manifest)
    expect(new TextDecoder().decode(encodeManifest(manifest))).toBe(bytes.toString())
  })

  it('is one JSON object for other tools', () => {
    expect(JSON.parse(new TextDecoder().decode(encodeManifest(manifest)))).toMatchObject({
      format: 1,
      manifest: { id: 7 },
    })
  })

  it('keeps fields that this version does not know', () => {
    const known = {
      ...manifest,
      vertices: manifest.vertices.map((vertex) => ({ ...vertex, hue: 'blue' })),
      base: 6,
      later: { a: 1 },
    }
    const read = decodeManifest(written(known), where)
    expect(read).toEqual(known)
    expect(decodeManifest(encodeManifest(read), where)).toEqual(known)
  })

  it('names every object that it needs, and no other', () => {
    expect([...objectsOf(manifest)].sort()).toEqual(['chk-7/counts', 'chk-7/enumerator', 'chk-7/splits'])
    expect(objectsOfSnapshot(snapshotOf('count', 0))).toEqual(['chk-7/counts'])
    expect(objectsOfSnapshot(snapshotOf('sink', 0))).toEqual([])
  })

  it('says where and what when any single byte was changed', () => {
    const bytes = encodeManifest(manifest)
    for (let at = 0; at < bytes.length; at++) {
      const damaged = bytes.slice()
      damaged[at]! ^= 0x02
      expect(() => decodeManifest(damaged, where), `byte ${at}`).toThrow(/^MR-C0[123] .*chk-7\/_metadata/)
    }
  })

  it('refuses one that is cut short anywhere', () => {
    const bytes = encodeManifest(manifest)
    for (let length = 0; length < bytes.length; length += 7) {
      expect(() => decodeManifest(bytes.subarray(0, length), where)).toThrow(/^MR-C0[12] /)
    }
  })

  it('refuses a newer format before it looks inside', () => {
    expect(() => decodeManifest(written({ everything: 'else' }, 2), where)).toThrow(/^MR-C03 .*format 2/)
  })

  it('names the field that has the wrong shape', () => {
    expect(() => decodeManifest(written({ ...manifest, start: 'first' }), where)).toThrow(/^MR-C04 .*start/)
  })

  it('refuses payloads that are no JSON before anything is written', () => {
    const payload = { checkpoint: manifest.id, transaction: 't', payload: 1n }
    expect(() => encodeManifest(withOperator('sink', [{ committables: [payload] }]))).toThrow(/^MR-C05 /)
  })

  it('refuses transactions of one name, which a sink may give from two of its subtasks, and says that it is the sink', () => {
    const both = withVertex('count', (vertex) => ({
      ...vertex,
      operators: { count: [{ committables: [transaction('t')] }, { committables: [transaction('t')] }] },
    }))
    expect(() => encodeManifest(both)).toThrow(/^MR-C06 .*count: transaction t stands there twice/)
  })

  it('counts a vertex as wholly finished only behind producers that are: they run again, and so must it (rule 19)', () => {
    const finishedOf = (vertices: readonly string[]) => {
      const collected = collectedOf(graph, (vertex) => subtaskSnapshot({}, vertices.includes(vertex)))
      return fromCollected(collected, meta).vertices.map(({ finished }) => finished)
    }
    expect(finishedOf(['source', 'count', 'sink'])).toEqual([[true, true], [true, true], [true]])
    // The word of count's end was still on its way when the sink's was there.
    expect(finishedOf(['source', 'sink'])).toEqual([[true, true], [false, false], [false]])
    expect(finishedOf(['count', 'sink'])).toEqual([[false, false], [false, false], [false]])
  })

  it('refuses to be made of an incomplete snapshot', () => {
    const collected = collectedOf(graph, snapshotOf)
    const subtasks = new Map([...collected.subtasks].slice(1))
    expect(() => fromCollected({ ...collected, subtasks }, meta)).toThrow('lacks source/0')
    const foreign = collectedOf(graph, () => subtaskSnapshot({ other: {} }))
    expect(() => fromCollected(foreign, meta)).toThrow('other')
  })
})

describe('a manifest that contradicts itself is neither written nor restored from', () => {
  const left = keyedOf({ parallelism: 2, subtask: 0, maxParallelism: 4 })
  const right = keyedOf({ parallelism: 2, subtask: 1, maxParallelism: 4 })
  const cases: readonly (readonly [string, Manifest, string])[] = [
    [
      'a key group is missing',
      withOperator('count', [{ keyed: left }, { keyed: { ...right, groups: right.groups.slice(1) } }]),
      'key group 2 is missing',
    ],
    [
      'a subtask with its key groups is missing',
      withOperator('count', [{ keyed: left }, null]),
      'key group 2 is missing',
    ],
    [
      'a key group stands there twice',
      withOperator('count', [{ keyed: left }, { keyed: left }]),
      'key group 0 of subtask 1',
    ],
    [
      'a key group is beyond the max parallelism',
      withOperator('count', [
        { keyed: left },
        { keyed: { ...right, groups: [...right.groups, { keyGroup: keyGroup(4), watermark: 0 }] } },
      ]),
      'is not below 4',
    ],
    ['a subtask is missing', withOperator('count', [{ keyed: left }]), '1 snapshots for 2 subtasks'],
    [
      'a finished flag is missing',
      withVertex('source', (vertex) => ({ ...vertex, finished: [false] })),
      '1 finished flags for 2',
    ],
    [
      'state belongs to no operator of the chain',
      withVertex('sink', (vertex) => ({ ...vertex, operators: { other: [null] } })),
      'other',
    ],
    [
      'a transaction stands there twice',
      withOperator('sink', [{ committables: [transaction('t'), transaction('t')] }]),
      'transaction t',
    ],
    [
      'a transaction is of a later checkpoint',
      withOperator('sink', [{ committables: [transaction('t', 8)] }]),
      'checkpoint 8',
    ],
    [
      'one operator state is dealt out in two ways',
      withVertex('source', (vertex) => ({
        ...vertex,
        operators: {
          source: [{ operatorState: { s: listOf('split', 'a') } }, { operatorState: { s: listOf('union', 'b') } }],
        },
      })),
      'split and union',
    ],
    ['a uid stands there twice', withVertex('sink', (vertex) => ({ ...vertex, uids: ['sink', 'parse'] })), 'uid parse'],
    [
      'a vertex stands there twice',
      { ...manifest, vertices: [...manifest.vertices, manifest.vertices[0]!] },
      'vertex source',
    ],
    [
      'an enumerator belongs to nobody',
      { ...manifest, enumerators: { gone: { codec, handle: handleIn('x') } } },
      'gone',
    ],
    [
      'there are more subtasks than key groups',
      withVertex('sink', (vertex) => ({ ...vertex, maxParallelism: 0 })),
      'above its max',
    ],
  ]
  for (const [claim, broken, message] of cases) {
    it(`when ${claim}`, () => {
      expect(() => encodeManifest(broken)).toThrow(message)
      expect(() => assertManifest(broken)).toThrow(message)
      expect(() => decodeManifest(written(broken), where)).toThrow(/^MR-C04 /)
    })
  }
})
