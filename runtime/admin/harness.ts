// HEAD and store of a job in memory, as its coordinator left them, for tests of what the admin commands do to them.

import { crc32 } from 'node:zlib'
import { checkpointId, incarnation, jobId, start, subtaskIndex } from '../base/ids.ts'
import type { OperatorSnapshot } from '../checkpoint/contract.ts'
import type { CollectedSnapshot } from '../checkpoint/core-contract.ts'
import { encodeManifest, fromCollected } from '../checkpoint/manifest.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import { codec, collectedOf, subtaskSnapshot, transaction } from '../checkpoint/test-snapshots.ts'
import { connectorError } from '../connectors/errors.ts'
import type { Sink } from '../connectors/contract.ts'
import type { JobGraph } from '../job/contract.ts'
import type { HeadStore, ObjectKey, ObjectStore } from '../storage/contract.ts'
import { completeCheckpoint, newJob, reserveIds } from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { MemoryHeadStore, MemoryObjectStore } from '../storage/memory-store.ts'
import {
  fileKey,
  isAbsoluteKey,
  isOfSavepoint,
  manifestKey,
  parentOf,
  snapshotDataKey,
  transactionName,
} from '../storage/paths.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import type { AdminWorld } from './admin-world.ts'

export const job = jobId('job')

/** What a sink writes to. */
export class External {
  /** Open or pre-committed. */
  readonly existing = new Set<string>()
  readonly committed: string[] = []
  readonly forgotten = new Set<string>()
  /** Makes each change. */
  changing: (change: () => Promise<void>) => Promise<void> = (change) => change()

  readonly sink: Sink<unknown> = {
    name: 'external',
    createWriter: () => {
      throw new Error('no writer here')
    },
    createCommitter: () => ({
      commit: (committables) =>
        this.changing(async () => {
          for (const { transaction: name } of committables) {
            if (this.forgotten.has(name)) throw connectorError('MR-N12', `${name} is not known.`)
            if (this.existing.delete(name)) this.committed.push(name)
          }
        }),
      list: async () => [...this.existing],
      abort: (names) =>
        this.changing(async () => {
          for (const name of names) this.existing.delete(name)
        }),
    }),
  }
}

/** One keyed-less operator with a list, before a two-phase sink. */
export function graphWith(external: External, settings: Partial<JobGraph['settings']> = {}): JobGraph {
  const graph = graphOf({ vertices: [{ id: 'sums' }, { id: 'sink' }], edges: [['sums', 'hash', 'sink']] })
  return {
    ...graph,
    settings: { ...graph.settings, ...settings },
    vertices: graph.vertices.map((vertex) => ({
      ...vertex,
      chain: vertex.chain.map((operator) =>
        operator.uid === 'sink'
          ? {
              ...operator,
              factory: {
                kind: 'operator' as const,
                create: () => ({ open() {}, process() {} }),
                twoPhase: true,
                sink: external.sink,
              },
            }
          : operator,
      ),
    })),
  }
}

export function nameOf(checkpoint: number, by = 1): string {
  const attempt = { incarnation: incarnation(by), number: 1 }
  return transactionName({ job, uid: 'sink', attempt, subtask: subtaskIndex(0), checkpoint: checkpointId(checkpoint) })
}

export interface SnapshotShape {
  readonly id: number
  readonly kind?: 'checkpoint' | 'savepoint'
  /** Objects that it names beside its own. */
  readonly objects?: readonly string[]
  readonly transactions?: readonly string[]
  readonly start?: number
  readonly incarnation?: number
  readonly job?: string
  readonly drained?: boolean
}

const PLACE = 'file:///place/objects/'
const nameInPlace = (key: ObjectKey): ObjectKey => fileKey(`/place/objects/${key}`)

const bytesOf = (key: string): Uint8Array => new TextEncoder().encode(`what is stored under ${key}`)

export interface Subject {
  readonly world: AdminWorld
  readonly environment: ReturnType<typeof manualEnvironment>
  readonly objects: MemoryObjectStore
  /** Of savepoints alone. */
  readonly place: MemoryObjectStore
  readonly heads: MemoryHeadStore
  readonly external: External
  readonly files: MemoryFiles
  /** Of the coordinator, which is at incarnation 1. */
  readonly keeper: HeadKeeper
  readonly head: () => Promise<Head>
  /** Objects that belong to nobody. */
  readonly put: (...keys: readonly string[]) => Promise<void>
  /** Writes manifest and data; HEAD does not know of it. */
  readonly write: (shape: SnapshotShape) => Promise<ManifestRef>
  /** Writes it, and completes it in HEAD. */
  readonly complete: (shape: SnapshotShape, retainedMax?: number) => Promise<ManifestRef>
  /** What the process sees that is killed right after its `writes`th change of anything: it never hears of that one, nor of anything else. */
  readonly killedAfter: (writes: number) => { readonly world: AdminWorld; readonly killed: Promise<'killed'> }
}

/** `place`: savepoints are written in a place of their own. */
export async function subjectOf(
  options: { readonly begun?: boolean; readonly start?: number; readonly place?: boolean } = {},
): Promise<Subject> {
  const environment = manualEnvironment()
  const objects = new MemoryObjectStore()
  const place = new MemoryObjectStore()
  const heads = new MemoryHeadStore()
  const external = new External()
  const keeper = await HeadKeeper.open(heads, environment)
  if (options.begun !== false) {
    await keeper.begin(() => newJob({ job, start: start(options.start ?? 1), parallelism: 1, maxParallelism: 8 }))
    await keeper.update((head) => reserveIds(head, 1_000).head)
  }
  const worldOf = (stores: { readonly objects: ObjectStore; readonly head: HeadStore }): AdminWorld => ({
    job,
    environment,
    stores: {
      ...stores,
      savepoints:
        options.place === true ? { objects: place, nameOf: nameInPlace, isClaimed: async () => true } : undefined,
      foreign: {
        read: async (key) => place.read(key.replace(PLACE, '') as ObjectKey),
        readRange: async (key, offset, length) => place.readRange(key.replace(PLACE, '') as ObjectKey, offset, length),
      },
      locate: (key) => (isAbsoluteKey(key) ? parentOf(key.slice('file://'.length)) : `/store/objects/${parentOf(key)}`),
      removeLeftovers: async () => undefined,
    },
  })
  const isElsewhere = (key: string): boolean => options.place === true && isOfSavepoint(key)
  const put = async (...keys: readonly string[]): Promise<void> => {
    for (const key of keys) await (isElsewhere(key) ? place : objects).create(key as ObjectKey, bytesOf(key))
  }
  const write = async (shape: SnapshotShape): Promise<ManifestRef> => {
    const { kind = 'checkpoint', transactions = [], drained = false } = shape
    const id = checkpointId(shape.id)
    const own = snapshotDataKey(id, kind, 'data')
    const named = [own, ...(shape.objects ?? [])]
    await put(...named)
    const operators: Record<string, Record<string, OperatorSnapshot>> = {
      sums: {
        sums: {
          operatorState: Object.fromEntries(
            named.map((object, index) => {
              const bytes = bytesOf(object)
              const items = { kind: 'object' as const, object, offset: 0, length: bytes.length, crc: crc32(bytes) }
              return [`list ${index}`, { redistribution: 'union' as const, codec, items, count: 1 }]
            }),
          ),
        },
      },
      sink: { sink: { committables: transactions.map((name) => transaction(name, 1)) } },
    }
    const graph = graphWith(external)
    const collected: CollectedSnapshot = {
      ...collectedOf(graph, (vertex) => subtaskSnapshot(operators[vertex]!)),
      id,
      kind,
      ...(drained && { halt: 'drain' as const }),
    }
    const made = start(shape.start ?? 1)
    const meta = { job: jobId(shape.job ?? job), start: made, incarnation: incarnation(shape.incarnation ?? 1) }
    const bytes = encodeManifest(fromCollected(collected, { ...meta, graph, enumerators: new Map() }))
    const key = manifestKey(id, kind)
    await (isElsewhere(key) ? place : objects).create(key, bytes)
    const path = isElsewhere(key) ? nameInPlace(key) : key
    for (const name of transactions) external.existing.add(name)
    return { id, kind, path, start: made, completedAtMs: 0, bytes: bytes.length, ...(drained && { drained }) }
  }
  const complete = async (shape: SnapshotShape, retainedMax = 1): Promise<ManifestRef> => {
    const manifest = await write(shape)
    const commitsPending = (shape.transactions ?? []).length > 0
    await keeper.update((head) => completeCheckpoint(head, { manifest, retainedMax, commitsPending }))
    return manifest
  }
  const killedAfter = (writes: number): ReturnType<Subject['killedAfter']> => {
    let left = writes
    const death = Promise.withResolvers<'killed'>()
    const never = <T>(): Promise<T> => new Promise(() => undefined)
    const reading = <T>(read: () => Promise<T>): Promise<T> => (left > 0 ? read() : never())
    const writing = async <T>(write: () => Promise<T>): Promise<T> => {
      if (left <= 0) return never()
      const answer = await write()
      if (--left > 0) return answer
      death.resolve('killed')
      return never()
    }
    external.changing = (change) => writing(change)
    const world = worldOf({
      objects: {
        create: (key, bytes) => writing(() => objects.create(key, bytes)),
        read: (key) => reading(() => objects.read(key)),
        readRange: (key, offset, length) => reading(() => objects.readRange(key, offset, length)),
        // Of several keys at once, any may be what was still done.
        delete: async (keys) => {
          for (const key of keys) await writing(() => objects.delete([key]))
        },
        list: (prefix) => reading(() => objects.list(prefix)),
      },
      head: {
        read: () => reading(() => heads.read()),
        swap: (expected, bytes) => writing(() => heads.swap(expected, bytes)),
      },
    })
    return { world, killed: death.promise }
  }
  return {
    world: worldOf({ objects, head: heads }),
    environment,
    objects,
    place,
    heads,
    external,
    files: new MemoryFiles(),
    keeper,
    head: async () => (await keeper.read())!,
    put,
    write,
    complete,
    killedAfter,
  }
}

/**
 * Kills a process after its first change of what `prepare` gives, another one after the second change of the same, and so on until one comes to
 * its end; each is followed by one that nobody kills, and by `check`. Returns how many were killed.
 */
export async function killedAtEach(
  prepare: () => Promise<Subject>,
  act: (world: AdminWorld, subject: Subject) => Promise<unknown>,
  check: (subject: Subject) => Promise<void>,
): Promise<number> {
  for (let writes = 1; ; writes++) {
    const subject = await prepare()
    const { world, killed } = subject.killedAfter(writes)
    const outcome = await Promise.race([act(world, subject), killed])
    subject.external.changing = (change) => change()
    await act(subject.world, subject)
    await check(subject)
    if (outcome !== 'killed') return writes - 1
  }
}
