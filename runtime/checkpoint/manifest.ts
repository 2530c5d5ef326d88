// The manifest of a checkpoint or savepoint: what it consists of, as one JSON object.
//
//   {"format":1,"sha256":"<of the bytes after `"manifest":`, without the last brace>","manifest":{…}}
//
// Fields that a reader does not know are kept, so that a manifest copied by an older version loses nothing.

import { createHash } from 'node:crypto'
import { InvariantError, invariant } from '../base/errors.ts'
import { subtaskIndex, taskKey } from '../base/ids.ts'
import type { CheckpointId, Incarnation, JobId, Start, VertexId } from '../base/ids.ts'
import type { JobGraph } from '../job/contract.ts'
import type { SnapshotKind } from '../record/element.ts'
import type { CodecDescription } from '../record/contract.ts'
import type { OperatorSnapshot, StateHandle, SubtaskSnapshot } from './contract.ts'
import type { CollectedSnapshot } from './core-contract.ts'
import { checkpointError } from './errors.ts'
import { contradictionIn, contradictionOfSubtasks } from './manifest-check.ts'
import { manifestSchema } from './manifest-schema.ts'

export { objectsOf, objectsOfSnapshot } from './manifest-objects.ts'

/** Readers accept this version and the one before. */
const MANIFEST_FORMAT = 1
const oldestReadableFormat = 1

export interface Manifest {
  readonly format: number
  readonly job: JobId
  /** The start and the incarnation that completed it. */
  readonly start: Start
  readonly incarnation: Incarnation
  readonly id: CheckpointId
  readonly kind: SnapshotKind
  /** By the clock that the checkpoint coordinator is stepped with, ms; for people. */
  readonly triggeredAtMs: number
  readonly graphHash: string
  readonly maxParallelism: number
  /** In the graph's topological order. */
  readonly vertices: readonly ManifestVertex[]
  /** Split enumerators by the source's uid, of the same turn as the triggers (rule 20). */
  readonly enumerators: Readonly<Record<string, EnumeratorSnapshot>>
  /** Bytes of state that the subtasks wrote for it. */
  readonly bytes: number
  /** Of a savepoint: all operators had finished before it, and event time had ended (rule 3). */
  readonly drained?: true
  /** Room for increments (rule 17): the checkpoint that this one builds on. */
  readonly base?: CheckpointId
}

export interface ManifestVertex {
  readonly id: VertexId
  readonly parallelism: number
  readonly maxParallelism: number
  /** All operators of the chain, also those that hold nothing. */
  readonly uids: readonly string[]
  /** By subtask: it had finished (rule 19). */
  readonly finished: readonly boolean[]
  /** By uid of the operators that hold anything, then by subtask; null: that subtask holds nothing. */
  readonly operators: Readonly<Record<string, readonly (OperatorSnapshot | null)[]>>
  /** Room for unaligned checkpoints: channel places and in-flight data. */
  readonly channels?: readonly never[]
}

export interface EnumeratorSnapshot {
  readonly codec: CodecDescription
  readonly handle: StateHandle
}

export interface ManifestMeta {
  readonly job: JobId
  readonly start: Start
  readonly incarnation: Incarnation
  readonly graph: JobGraph
  /** By the source's uid. */
  readonly enumerators: ReadonlyMap<string, EnumeratorSnapshot>
}

export function fromCollected(collected: CollectedSnapshot, meta: ManifestMeta): Manifest {
  const { graph } = meta
  let bytes = 0
  const whollyFinished = new Set<VertexId>()
  const vertices = graph.vertices.map((vertex): ManifestVertex => {
    const snapshots: SubtaskSnapshot[] = []
    for (let index = 0; index < vertex.parallelism; index++) {
      const key = taskKey({ vertex: vertex.id, subtask: subtaskIndex(index) })
      const entry = collected.subtasks.get(key)
      invariant(entry !== undefined, `snapshot ${collected.id} lacks ${key}`)
      snapshots.push(entry.snapshot)
      bytes += entry.snapshot.bytes
    }
    const uids = vertex.chain.map((operator) => operator.uid)
    const operators: Record<string, readonly (OperatorSnapshot | null)[]> = {}
    for (const uid of uids) {
      const perSubtask = snapshots.map(({ operators }) => (Object.hasOwn(operators, uid) ? operators[uid]! : null))
      if (perSubtask.some((snapshot) => snapshot !== null)) operators[uid] = perSubtask
    }
    for (const snapshot of snapshots) {
      const foreign = Object.keys(snapshot.operators).find((uid) => !uids.includes(uid))
      invariant(
        foreign === undefined,
        `a subtask of ${vertex.id} acknowledged ${collected.id} with state of ${foreign}`,
      )
    }
    // A consumer may be heard to have finished before its producer is: the producer will run again, and so must the consumer.
    const mayBeFinished = graph.edges.every(({ source, target }) => target !== vertex.id || whollyFinished.has(source))
    const allFinished = snapshots.every((snapshot) => snapshot.finished)
    if (allFinished && mayBeFinished) whollyFinished.add(vertex.id)
    const finished = snapshots.map((snapshot) => snapshot.finished && (mayBeFinished || !allFinished))
    return {
      id: vertex.id,
      parallelism: vertex.parallelism,
      maxParallelism: vertex.maxParallelism,
      uids,
      finished,
      operators,
    }
  })
  return {
    format: MANIFEST_FORMAT,
    job: meta.job,
    start: meta.start,
    incarnation: meta.incarnation,
    id: collected.id,
    kind: collected.kind,
    triggeredAtMs: collected.triggeredAtMs,
    graphHash: graph.hash,
    maxParallelism: graph.maxParallelism,
    vertices,
    enumerators: Object.fromEntries(meta.enumerators),
    bytes,
    ...(collected.halt === 'drain' && { drained: true }),
  }
}

/** Throws an InvariantError when the manifest contradicts itself (nothing may be written then), MR-C05, and MR-C06. */
export function encodeManifest(manifest: Manifest): Uint8Array {
  const ofSubtasks = contradictionOfSubtasks(manifest)
  if (ofSubtasks !== undefined) throw checkpointError('MR-C06', `Snapshot ${manifest.id}, ${ofSubtasks}.`)
  assertManifest(manifest)
  let body: string
  try {
    body = JSON.stringify(manifest)
  } catch (cause) {
    throw checkpointError('MR-C05', `Snapshot ${manifest.id}: ${String(cause)}.`, cause)
  }
  const bytes = new TextEncoder().encode(body)
  return new TextEncoder().encode(`{"format":${manifest.format},"sha256":"${sha256(bytes)}","manifest":${body}}`)
}

const envelope = /^\{"format":(\d+),"sha256":"([0-9a-f]{64})","manifest":/
const envelopeBytesMax = 128

/** `where` names the object for messages. Throws MR-C01 to MR-C04; nothing of a manifest that does not fit is ever used. */
export function decodeManifest(bytes: Uint8Array, where: string): Manifest {
  const [header = '', format = '', checksum] =
    envelope.exec(new TextDecoder('latin1').decode(bytes.subarray(0, envelopeBytesMax))) ?? []
  if (header === '') throw checkpointError('MR-C01', `At ${where} (${bytes.length} bytes).`)
  if (Number(format) > MANIFEST_FORMAT || Number(format) < oldestReadableFormat) {
    throw checkpointError(
      'MR-C03',
      `At ${where}: format ${format}, this version reads ${oldestReadableFormat} to ${MANIFEST_FORMAT}.`,
    )
  }
  const body = bytes.subarray(header.length, bytes.length - 1)
  if (bytes.at(-1) !== 0x7d || sha256(body) !== checksum)
    throw checkpointError('MR-C02', `At ${where} (${bytes.length} bytes).`)
  const parsed = manifestSchema.safeParse(JSON.parse(new TextDecoder().decode(body)))
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!
    throw checkpointError('MR-C04', `At ${where}: ${issue.path.join('.')}: ${issue.message}.`)
  }
  const manifest = parsed.data as unknown as Manifest
  const contradiction = contradictionIn(manifest)
  if (contradiction !== undefined) throw checkpointError('MR-C04', `At ${where}: ${contradiction}.`)
  return manifest
}

/** Before writing. Throws an InvariantError that names the place. */
export function assertManifest(manifest: Manifest): void {
  const contradiction = contradictionIn(manifest)
  if (contradiction !== undefined)
    throw new InvariantError(`manifest of ${manifest.kind} ${manifest.id}: ${contradiction}`)
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
