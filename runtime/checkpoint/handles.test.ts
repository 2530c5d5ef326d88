import { expect, it } from 'vitest'
import { incarnation, jobId, keyGroup, start } from '../base/ids.ts'
import { fileKey } from '../storage/paths.ts'
import type { OperatorSnapshot } from './contract.ts'
import { handlesOf, withAbsoluteHandles } from './handles.ts'
import { decodeManifest, encodeManifest, fromCollected, objectsOf } from './manifest.ts'
import { graphOf } from './test-graph.ts'
import { codec, collectedOf, handleIn, keyedOf, listOf, subtaskSnapshot, transaction } from './test-snapshots.ts'

const graph = graphOf({ vertices: [{ id: 'all', parallelism: 1, maxParallelism: 1 }] })
const operator: OperatorSnapshot = {
  keyed: {
    ...keyedOf({ parallelism: 1, subtask: 0, maxParallelism: 1 }),
    groups: [{ keyGroup: keyGroup(0), watermark: 3, handle: handleIn('chk-7/a'), base: [handleIn('shared/b')] }],
  },
  operatorState: { splits: listOf('split', 'chk-5/c') },
  committables: [transaction('t')],
}
const manifest = fromCollected(
  collectedOf(graph, () => subtaskSnapshot({ all: operator })),
  {
    job: jobId('other'),
    start: start(1),
    incarnation: incarnation(1),
    graph,
    enumerators: new Map([['all', { codec, handle: handleIn('chk-7/d') }]]),
  },
)

it('a manifest read outside of its store names its own folder where it lies now, and the rest around it', () => {
  const at = fileKey('/backup/objects/chk-7/_metadata')
  const absolute = withAbsoluteHandles(manifest, at)
  expect(handlesOf(absolute).map(({ object }) => object)).toEqual([
    'file:///backup/objects/chk-7/a',
    'file:///backup/objects/shared/b',
    'file:///backup/objects/chk-5/c',
    'file:///backup/objects/chk-7/d',
  ])
  expect(absolute.vertices[0]!.operators['all']![0]!.committables).toEqual(operator.committables)
  expect(withAbsoluteHandles(absolute, fileKey('/elsewhere/_metadata'))).toEqual(absolute)
})

it('objects outside of the store are none that the job could delete', () => {
  expect([...objectsOf(manifest)].sort()).toEqual(['chk-5/c', 'chk-7/a', 'chk-7/d', 'shared/b'])
  expect(objectsOf(withAbsoluteHandles(manifest, fileKey('/backup/objects/chk-7/_metadata'))).size).toBe(0)
})

it('a savepoint that was drained says so for ever, and a checkpoint cannot be', () => {
  const { id } = manifest
  const collected = { ...collectedOf(graph, () => subtaskSnapshot({})), kind: 'savepoint', halt: 'drain' } as const
  const meta = { job: jobId('other'), start: start(1), incarnation: incarnation(1), graph, enumerators: new Map() }
  const drained = fromCollected(collected, meta)
  expect(decodeManifest(encodeManifest(drained), 'here')).toMatchObject({ id, kind: 'savepoint', drained: true })
  expect(
    decodeManifest(encodeManifest(fromCollected({ ...collected, halt: 'stop' }, meta)), 'here').drained,
  ).toBeUndefined()
  expect(() => encodeManifest({ ...manifest, drained: true })).toThrow(/a checkpoint that was drained/)
})
