// What a job of version 2 left behind goes on with the code of today, for ever, at the same parallelism and at others, to the results that it
// would have had.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { checkpointId, start } from '../../runtime/base/ids.ts'
import type { RestoreRequest } from '../../runtime/coordinator/coordinator-contract.ts'
import { NodeFiles } from '../../runtime/local/platform/node-files.ts'
import type { ManifestRef } from '../../runtime/storage/head-contract.ts'
import { decodeHead } from '../../runtime/storage/head-format.ts'
import { MemoryHeadStore, MemoryObjectStore } from '../../runtime/storage/memory-store.ts'
import { fileKey } from '../../runtime/storage/paths.ts'
import { decodeManifest } from '../../runtime/checkpoint/manifest.ts'
import { handlesOf } from '../../runtime/checkpoint/handles.ts'
import { recordedOperators } from '../../runtime/checkpoint/recorded-operators.ts'
import { GoldenCluster } from './v2-cluster.ts'
import { below, filesOf, folderOf } from './v2-files.ts'
import type { Folder } from './v2-files.ts'
import { Outside } from './v2-outside.ts'
import { goldenFiles, jobName, manifests, parallelism } from './v2-writing.ts'

const root = fileURLToPath(new URL('v2', import.meta.url))
const expected = readFileSync(`${root}/results.txt`, 'utf8').trimEnd().split('\n')
let stored: Folder
let head: Uint8Array

beforeAll(async () => {
  stored = await folderOf(new NodeFiles(), root)
  head = stored.get('HEAD')!
})

const kinds = ['checkpoint', 'savepoint'] as const
const cases = kinds.flatMap((kind) => [1, 2, 3].map((at) => ({ kind, at })))

describe('the job of version 2', () => {
  it.each(cases)('goes on from its $kind at parallelism $at as another job, exactly', async ({ kind, at }) => {
    const path = manifests[kind]
    const folder = path.slice(0, path.lastIndexOf('/'))
    const savepoints = await filesOf({ [`/kept/${folder}`]: below(stored, `objects/${folder}`) })
    const id = checkpointId({ savepoint: 2, checkpoint: 3 }[kind])
    const from: ManifestRef = { id, kind, path: fileKey(`/kept/${path}`), start: start(1), completedAtMs: 1, bytes: 1 }
    const restore: RestoreRequest = { from, allowNonRestoredState: false, allowDrained: false }
    const empty = { store: new MemoryObjectStore(), head: new MemoryHeadStore() }
    await expectExact({ ...empty, name: 'again', parallelism: at, savepoints, restore })
  })

  it('goes on from its HEAD, whose last checkpoint nobody has committed, exactly', async () => {
    const store = new MemoryObjectStore()
    for (const [key, bytes] of below(stored, 'objects')) await store.create(key as typeof manifests.checkpoint, bytes)
    const heads = new MemoryHeadStore()
    await heads.swap(undefined, head)
    await expectExact({ store, head: heads, name: jobName, parallelism })
  })
})

describe('the folder of version 2', () => {
  it('holds all that its manifests name, and HEAD names its checkpoint', async () => {
    const objects = below(stored, 'objects')
    const named = kinds.flatMap((kind) => {
      const handles = handlesOf(manifestOf(kind))
      return [manifests[kind], ...handles.map(({ object }) => object)]
    })
    expect([...new Set(named)].toSorted()).toEqual([...objects.keys()].toSorted())
    expect(objects.size).toBeGreaterThan(2 * kinds.length)
    const { unconfirmed, restoredFrom, end } = decodeHead(head, 'HEAD')
    expect([unconfirmed?.path, restoredFrom.kind, end.kind]).toEqual([manifests.checkpoint, 'empty', 'none'])
  })

  it.each(kinds)('has in its %s what each operator can keep, and a finished source', (kind) => {
    const operators = recordedOperators(manifestOf(kind))
    const counts = (uid: string, name: string): (number | undefined)[] =>
      operators.get(uid)!.perSubtask.map((snapshot) => snapshot?.operatorState?.[name]?.count)
    for (const uid of ['numbers', 'others']) expect(counts(uid, 'splits')).toEqual([1, 1])
    for (const uid of ['asked-ordered', 'asked-unordered']) expect(counts(uid, 'in-flight')).toEqual([3, 3])
    for (const uid of ['ruled', 'ruled-by-key']) expect(counts(uid, 'rules')).toEqual([2, 2])
    for (const uid of ['holder-split', 'holder-union']) expect(counts(uid, 'writer')).toEqual([6, 6])
    const committables = operators.get('lines')!.perSubtask.map((snapshot) => snapshot?.committables?.length)
    expect(committables).toEqual([1, 1])
    const rules = operators.get('rules')!
    expect([rules.whollyFinished, rules.enumerator !== undefined]).toEqual([true, true])
    const states = [...operators.values()].flatMap(({ perSubtask }) =>
      perSubtask.flatMap((one) => one?.keyed?.states ?? []),
    )
    expect(states.filter(({ ttlMs }) => ttlMs !== undefined).map(({ name }) => name)).toContain('map')
  })
})

type Beginning = Omit<ConstructorParameters<typeof GoldenCluster>[0], 'outside' | 'files'>

async function expectExact(beginning: Beginning): Promise<void> {
  const files = await goldenFiles(below(stored, 'output'))
  const cluster = new GoldenCluster({ ...beginning, files, outside: new Outside('today') })
  try {
    const { outcome, results } = await cluster.toItsEnd()
    expect(outcome).toEqual({ kind: 'finished' })
    expect(results).toEqual(expected)
    expect(cluster.restarts).toEqual([])
  } finally {
    cluster.kill()
  }
}

function manifestOf(kind: (typeof kinds)[number]) {
  return decodeManifest(stored.get(`objects/${manifests[kind]}`)!, manifests[kind])
}
