import { describe, expect, it } from 'vitest'
import { checkpointId, incarnation, jobId, start, subtaskIndex, taskKey, vertexId } from '../base/ids.ts'
import { encodeManifest, fromCollected } from '../checkpoint/manifest.ts'
import { SnapshotDownloader } from '../checkpoint/snapshot-reader.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import { codec, collectedOf, subtaskSnapshot, transaction } from '../checkpoint/test-snapshots.ts'
import type { ObjectStore } from '../storage/contract.ts'
import { newJob } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import { MemoryObjectStore } from '../storage/memory-store.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { readPermittedCommits, readRestorePoint } from './restore.ts'
import { checkpointRef as refOf } from '../storage/test-refs.ts'

const graph = graphOf({
  vertices: [{ id: 'source' }, { id: 'sink', twoPhase: true }],
  edges: [['source', 'hash', 'sink']],
})
const sink = taskKey({ vertex: vertexId('sink'), subtask: subtaskIndex(0) })

/** HEAD retains 6 and 7; `reads` answers for the store. */
async function subject(
  reads?: (path: string, read: () => Promise<Uint8Array | undefined>, count: number) => Promise<Uint8Array | undefined>,
  change: Partial<Head> = {},
) {
  const environment = manualEnvironment()
  const memory = new MemoryObjectStore()
  for (const id of [6, 7]) {
    const collected = {
      ...collectedOf(graph, (vertex) =>
        subtaskSnapshot(vertex === 'sink' ? { sink: { committables: [transaction(`t${id}`, id)] } } : {}),
      ),
      id: checkpointId(id),
    }
    const enumerators = new Map([
      [
        'source',
        { codec, handle: { kind: 'inline' as const, base64: Buffer.from('state').toString('base64'), crc: 0 } },
      ],
    ])
    const manifest = fromCollected(collected, {
      job: jobId('job'),
      start: start(1),
      incarnation: incarnation(1),
      graph,
      enumerators: id === 6 ? enumerators : new Map(),
    })
    await memory.create(refOf(id).path, encodeManifest(manifest))
  }
  const counts = new Map<string, number>()
  const store: ObjectStore = Object.assign(Object.create(memory) as MemoryObjectStore, {
    read: async (path: never) => {
      counts.set(path, (counts.get(path) ?? 0) + 1)
      return reads === undefined ? memory.read(path) : reads(path, () => memory.read(path), counts.get(path)!)
    },
    readRange: (...args: Parameters<ObjectStore['readRange']>) => memory.readRange(...args),
  })
  const head: Head = {
    ...newJob({ job: jobId('job'), start: start(1), parallelism: 1, maxParallelism: 8 }),
    retained: [refOf(6), refOf(7)],
    reservedIds: 1000,
    ...change,
  }
  const sources = { graph, store, environment, snapshotReader: new SnapshotDownloader({ store, environment }) }
  /** With time passing as long as it takes. */
  const restore = async (of = head) => {
    const outcome = readRestorePoint(sources, of).then(
      (plan) => ({ plan }),
      (error: unknown) => ({ error: String(error) }),
    )
    await environment.clock.advanceSettled(1_000_000)
    return outcome
  }
  return { restore, head, counts, memory, sources, environment }
}

describe('reading the restore point', () => {
  it('gives an empty plan for an empty one, with every subtask in it', async () => {
    const { restore } = await subject(undefined, { retained: [] })
    const outcome = await restore()
    expect(outcome).toMatchObject({ plan: { id: undefined } })
    expect('plan' in outcome && [...outcome.plan.subtasks.keys()]).toEqual(['source/0', 'sink/0'])
  })

  it('reads again what could not be read, and never takes an older one (B12)', async () => {
    const { restore, counts } = await subject(async (_, read, count) => {
      if (count <= 2) throw new Error('connection reset')
      return read()
    })
    expect(await restore()).toMatchObject({ plan: { id: 7 } })
    expect([...counts]).toEqual([['chk-7/_metadata', 3]])
  })

  it('fails when the store goes on failing or does not answer, so that it may be tried again; the older one is never read', async () => {
    for (const read of [() => Promise.reject(new Error('down')), () => new Promise<never>(() => undefined)]) {
      const { restore, counts } = await subject(read)
      expect(await restore()).toMatchObject({ error: expect.stringMatching(/down|MR-O21/) })
      expect([...counts]).toEqual([['chk-7/_metadata', 6]])
    }
  })

  it('fails loudly and for good when the manifest is missing or damaged', async () => {
    const missing = await subject(async () => undefined)
    expect(await missing.restore()).toMatchObject({ error: expect.stringMatching(/MR-O20.*MR-O18/s) })
    const damaged = await subject()
    const bytes = (await damaged.memory.read(refOf(7).path))!
    bytes[bytes.length - 20]! ^= 1
    damaged.memory.overwrite(refOf(7).path, bytes)
    expect(await damaged.restore()).toMatchObject({ error: expect.stringMatching(/MR-O20.*MR-C02/s) })
    expect([...damaged.counts]).toEqual([['chk-7/_metadata', 6]])
  })

  it('hands out transactions while HEAD does not show them committed, and not afterwards: they may be forgotten by then', async () => {
    const { restore, head } = await subject(undefined, { unconfirmed: refOf(7) })
    const committablesIn = async (of: Head) => {
      const outcome = await restore(of)
      return 'plan' in outcome
        ? (outcome.plan.subtasks.get(sink)!.restored?.operators['sink']?.committables ?? []).map(
            (entry) => entry.transaction,
          )
        : outcome
    }
    expect(await committablesIn(head)).toEqual(['t7'])
    expect(await committablesIn({ ...head, unconfirmed: undefined })).toEqual([])
  })

  it('finds all transactions of a permitted manifest, by sink', async () => {
    const { sources } = await subject()
    expect([...(await readPermittedCommits(sources, refOf(7)))]).toEqual([['sink', [transaction('t7', 7)]]])
  })
})
