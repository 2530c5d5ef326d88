import { crc32 } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { checkpointId, incarnation, jobId, start } from '../base/ids.ts'
import type { OperatorSnapshot, StateHandle } from '../checkpoint/contract.ts'
import { encodeManifest, fromCollected } from '../checkpoint/manifest.ts'
import { SnapshotDownloader } from '../checkpoint/snapshot-reader.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import type { GraphShape } from '../checkpoint/test-graph.ts'
import { codec, collectedOf, keyedOf, subtaskSnapshot, transaction } from '../checkpoint/test-snapshots.ts'
import { cancel, completeCheckpoint, newJob, reserveIds, restorePointOf } from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { ForeignFiles } from '../storage/foreign-files.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { MemoryHeadStore, MemoryObjectStore } from '../storage/memory-store.ts'
import { fileKey, manifestKey } from '../storage/paths.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { beginJob } from './begin.ts'
import type { RestoreRequest } from './coordinator-contract.ts'
import { readRestorePoint } from './restore.ts'

const folder = '/copies/renamed'
const text = (value: string): Uint8Array => new TextEncoder().encode(value)
const shape: GraphShape = {
  vertices: [{ id: 'count' }, { id: 'sink', twoPhase: true }],
  edges: [['count', 'hash', 'sink']],
}
const strict = { allowNonRestoredState: false, allowDrained: false }

interface SubjectOptions {
  readonly today?: GraphShape
  readonly drained?: boolean
  readonly restore?: Partial<RestoreRequest>
  /** HEAD as it is before; undefined: there is none. */
  readonly head?: (head: Head) => Head
}

/** A savepoint 7 of job `other`, copied and renamed: `data` holds a list and a key group, the sink a transaction. */
async function subject({ today = shape, drained = false, restore = {}, head }: SubjectOptions = {}) {
  const environment = manualEnvironment()
  const files = new MemoryFiles()
  const heads = new MemoryHeadStore()
  const store = new MemoryObjectStore()
  await files.makeDirectory(folder)
  await files.writeNew(`${folder}/data`, text('0123456789'))
  const handle = (offset: number, length: number): StateHandle => ({
    kind: 'object',
    object: 'savepoint-7/data',
    offset,
    length,
    crc: crc32(text('0123456789').subarray(offset, offset + length)),
  })
  const keyed = keyedOf({ parallelism: 1, subtask: 0, maxParallelism: 8 })
  const operators: Record<string, OperatorSnapshot> = {
    count: {
      keyed: { ...keyed, groups: keyed.groups.map((group) => ({ ...group, handle: handle(0, 5) })) },
      operatorState: { list: { redistribution: 'split', codec, items: handle(5, 5), count: 1 } },
    },
    sink: { committables: [transaction('t-of-other', 7)] },
  }
  const graph = graphOf(shape)
  const manifest = fromCollected(
    {
      ...collectedOf(graph, (vertex) => subtaskSnapshot({ [vertex]: operators[vertex]! })),
      kind: 'savepoint',
      halt: drained ? 'drain' : undefined,
    },
    { job: jobId('other'), start: start(1), incarnation: incarnation(1), graph, enumerators: new Map() },
  )
  await files.writeNew(`${folder}/_metadata`, encodeManifest(manifest))
  const from: ManifestRef = {
    id: checkpointId(7),
    kind: 'savepoint',
    path: fileKey(`${folder}/_metadata`),
    start: start(1),
    completedAtMs: 0,
    bytes: 0,
  }
  const foreign = new ForeignFiles(files)
  const sources = {
    graph: graphOf(today),
    store,
    foreign,
    environment,
    snapshotReader: new SnapshotDownloader({ store, foreign, environment }),
    restore: { ...strict, from, ...restore },
  }
  const begin = async (request: RestoreRequest = sources.restore) => {
    const keeper = await HeadKeeper.open(heads, environment)
    const options = { ...sources, restore: request, keeper, job: jobId('mine'), start: undefined }
    const outcome = beginJob(options).then(
      (begun) => begun,
      (error: unknown) => String(error),
    )
    await environment.clock.advanceSettled(100_000)
    return outcome
  }
  if (head !== undefined) {
    await begin(strict)
    await (await HeadKeeper.open(heads, environment)).amend((begun) => head(reserveIds(begun, 100).head))
  }
  const before = await heads.read()
  return { begin, from, files, sources, environment, unchanged: async () => expect(await heads.read()).toEqual(before) }
}

const checkpoint: ManifestRef = {
  id: checkpointId(5),
  kind: 'checkpoint',
  path: manifestKey(checkpointId(5), 'checkpoint'),
  start: start(1),
  completedAtMs: 0,
  bytes: 1,
}

describe("a start from another job's savepoint, copied and renamed", () => {
  it('writes where it begins and the permit for its transactions in one swap, and takes ids above it', async () => {
    const { begin, from } = await subject()
    expect(await begin()).toMatchObject({
      outcome: 'begun',
      head: { start: 1, restoredFrom: { kind: 'manifest', manifest: from }, unconfirmed: from, reservedIds: 7 },
    })
  })

  it('permits nothing again that its own job is known to have committed', async () => {
    const { begin } = await subject({ restore: { committed: true } })
    expect(await begin()).toMatchObject({ outcome: 'begun', head: { unconfirmed: undefined } })
  })

  it('gives the subtasks its state where it lies now, and its transactions', async () => {
    const { begin, sources } = await subject()
    const begun = await begin()
    const plan = await readRestorePoint(sources, (begun as { head: Head }).head)
    const { count, sink } = Object.assign({}, ...[...plan.subtasks.values()].map(({ restored }) => restored.operators))
    expect(count.operatorState.list).toMatchObject([{ items: { object: `file://${folder}/data` }, from: 0, to: 1 }])
    expect(await sources.snapshotReader.read(count.operatorState.list[0].items)).toEqual(text('56789'))
    expect(sink.committables).toEqual([transaction('t-of-other', 7)])
  })

  it('is a new start of a job that has not ended; the same command again goes on with that start, whatever became of the savepoint', async () => {
    const { begin, from, files } = await subject({ head: (head) => head })
    expect(await begin()).toMatchObject({ outcome: 'begun', head: { start: 2, incarnation: 2, unconfirmed: from } })
    await files.remove(`${folder}/_metadata`)
    expect(await begin()).toMatchObject({ outcome: 'begun', head: { start: 2, incarnation: 3, unconfirmed: from } })
  })

  it('is refused while HEAD has unconfirmed commits', async () => {
    const { begin, unchanged } = await subject({
      head: (head) => completeCheckpoint(head, { manifest: checkpoint, retainedMax: 1, commitsPending: true }),
    })
    expect(await begin()).toMatch(/MR-S15.*chk-5/)
    await unchanged()
  })

  it('of the own job is refused from a checkpoint that is retained no more', async () => {
    const { begin, sources, unchanged } = await subject({ head: (head) => head })
    const manifest = fromCollected(
      { ...collectedOf(sources.graph, () => subtaskSnapshot({})), id: checkpointId(5) },
      {
        job: jobId('mine'),
        start: start(1),
        incarnation: incarnation(1),
        graph: sources.graph,
        enumerators: new Map(),
      },
    )
    await sources.store.create(checkpoint.path, encodeManifest(manifest))
    expect(await begin({ ...strict, from: checkpoint })).toMatch(/MR-S18.*chk-5.*not retained/)
    await unchanged()
  })
})

describe('what is refused before HEAD is written', () => {
  it.each<[string, SubjectOptions & { damage?: (files: MemoryFiles) => Promise<void> }, RegExp]>([
    [
      'a missing file',
      { damage: (files) => files.remove(`${folder}/data`) },
      /MR-C54.*\/copies\/renamed\/data is not there/,
    ],
    ['a file that is cut short', { damage: (files) => files.truncate(`${folder}/data`, 9) }, /MR-C54.*has 9 bytes/],
    ['a flipped bit in the manifest', { damage: flipManifest }, /MR-O20.*MR-C02.*renamed\/_metadata/],
    ['a manifest of a newer format', { damage: newerManifest }, /MR-O20.*MR-C03.*format 9/],
    [
      'another max parallelism of a keyed operator',
      { today: { ...shape, vertices: [{ id: 'count', maxParallelism: 16 }, shape.vertices[1]!] } },
      /MR-C10.*Operator count has 16, savepoint 7 of other has 8/,
    ],
    [
      'a removed uid, named with its states',
      { today: { ...shape, vertices: [{ id: 'count', uids: ['renamed'] }, shape.vertices[1]!] } },
      /MR-C11.*uid count.*with count, list/,
    ],
    [
      'the same uid twice',
      { today: { ...shape, vertices: [{ id: 'count', uids: ['count', 'sink'] }, shape.vertices[1]!] } },
      /MR-C13.*uid sink/,
    ],
    [
      'a removed sink with transactions, also where state may be dropped',
      { today: { vertices: [{ id: 'count' }] }, restore: { allowNonRestoredState: true } },
      /MR-C12.*uid sink.*t-of-other/,
    ],
    ['a drained savepoint', { drained: true }, /MR-C17.*renamed/],
  ])('%s', async (_, { damage, ...options }, message) => {
    const { begin, files, unchanged } = await subject(options)
    await damage?.(files)
    expect(await begin()).toMatch(message)
    await unchanged()
  })

  it('but a drained savepoint where that is allowed begins', async () => {
    const { begin } = await subject({ drained: true, restore: { allowDrained: true } })
    expect(await begin()).toMatchObject({ outcome: 'begun' })
  })

  it('and state whose uid is missing is dropped where that is allowed, with a word about it', async () => {
    const today = { ...shape, vertices: [{ id: 'count', uids: ['renamed'] }, shape.vertices[1]!] }
    const { begin, sources, environment } = await subject({ today, restore: { allowNonRestoredState: true } })
    const begun = (await begin()) as { head: Head }
    const plan = await readRestorePoint(sources, begun.head)
    expect([...plan.subtasks.values()].map(({ restored }) => Object.keys(restored.operators))).toEqual([[], ['sink']])
    expect(environment.lines).toContainEqual(expect.objectContaining({ message: 'state was dropped, as allowed' }))
  })
})

it.each<[string, (head: Head) => Head]>([
  ['', (head) => head],
  [', which was deleted after', (head) => cancel(head, { deleted: true })],
])("the next start from HEAD's own drained savepoint%s is refused too, unless that is allowed", async (_, after) => {
  const { sources, environment } = await subject()
  const heads = new MemoryHeadStore()
  const job = jobId('mine')
  const keeper = await HeadKeeper.open(heads, environment)
  const savepoint: ManifestRef = { ...checkpoint, kind: 'savepoint', path: manifestKey(checkpointId(5), 'savepoint') }
  const drained = { ...savepoint, drained: true }
  await keeper.begin(() => newJob({ job, start: start(1), parallelism: 1, maxParallelism: 8 }))
  const ended = await keeper.amend((head) => after({ ...head, end: { kind: 'stopped', savepoint: drained } }))
  const options = { ...sources, keeper: await HeadKeeper.open(heads, environment), job, start: start(2) }
  await expect(beginJob({ ...options, restore: undefined })).rejects.toThrow(/MR-C17.*savepoint-5/)
  const begun = await beginJob({ ...options, restore: { ...strict, allowDrained: true } })
  expect(begun.head.restoredFrom).toEqual(restorePointOf(ended))
})

async function flipManifest(files: MemoryFiles): Promise<void> {
  await rewritten(files, (bytes) => void (bytes[bytes.length - 20]! ^= 1))
}

async function newerManifest(files: MemoryFiles): Promise<void> {
  await rewritten(files, (bytes) => void (bytes['{"format":'.length] = '9'.charCodeAt(0)))
}

async function rewritten(files: MemoryFiles, change: (bytes: Uint8Array) => void): Promise<void> {
  const bytes = await files.readFile(`${folder}/_metadata`)
  change(bytes)
  await files.remove(`${folder}/_metadata`)
  await files.writeNew(`${folder}/_metadata`, bytes)
}
