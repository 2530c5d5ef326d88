// The job whose snapshots lie in tests/golden/v1, and what its subtasks wrote. Two subtasks of each vertex, but of `past` and `archive`,
// which had finished.
//
//   numbers (a source) → everything (keyed) → windows (keyed) → files (a sink)      past (a source) → archive (a sink)

import { incarnation, jobId, keyGroup, subtaskIndex } from '../../runtime/base/ids.ts'
import type { CheckpointId } from '../../runtime/base/ids.ts'
import type {
  Committable,
  KeyedSnapshot,
  OperatorSnapshot,
  OperatorStateSnapshot,
  SnapshotWriter,
} from '../../runtime/checkpoint/contract.ts'
import { graphOf } from '../../runtime/checkpoint/test-graph.ts'
import { sequence } from '../../runtime/connectors/sequence.ts'
import type { NumberedEnumeratorState, NumberedSplit } from '../../runtime/connectors/numbered-source.ts'
import type { JobGraph } from '../../runtime/job/contract.ts'
import { createWriter } from '../../runtime/record/bytes.ts'
import type { Codec, Key } from '../../runtime/record/contract.ts'
import { keyGroupOf, keyGroupRange } from '../../runtime/record/key-group.ts'
import { typeInfoOf } from '../../runtime/record/type-info.ts'
import { WallClock } from '../../runtime/state/conformance-harness.ts'
import type { KeyedStateBackend } from '../../runtime/state/contract.ts'
import { createHeapBackend } from '../../runtime/state/heap/backend.ts'
import { writeOperatorState } from '../../runtime/state/operator-state.ts'
import { transactionName } from '../../runtime/storage/paths.ts'
import { everythingStates, keys, windowState, writeEverything, writeWindows, writtenAtMs } from './v1-states.ts'

export const parallelism = 2
export const maxParallelism = 8
/** Of a checkpoint and of a savepoint behind it. */
export const ids = { checkpoint: 7, savepoint: 8 } as const
export const source = sequence({ splits: 5, perSplit: 100 })
export const texts: Codec<string> = typeInfoOf<string>('texts', undefined).row

export function graphAt(subtasks: number): JobGraph {
  const shape = graphOf({
    maxParallelism,
    vertices: [
      { id: 'numbers', parallelism: subtasks, source: true },
      { id: 'past' },
      { id: 'everything', parallelism: subtasks },
      { id: 'windows', parallelism: subtasks },
      { id: 'archive', twoPhase: true },
      { id: 'files', parallelism: subtasks, twoPhase: true, operatorState: ['seen', 'rules'] },
    ],
    edges: [
      ['numbers', 'hash', 'everything'],
      ['everything', 'hash', 'windows'],
      ['windows', 'forward', 'files'],
      ['past', 'forward', 'archive'],
    ],
  })
  const states = new Map([
    ['everything', everythingStates],
    ['windows', [windowState]],
  ])
  return {
    ...shape,
    vertices: shape.vertices.map((vertex) => {
      const declared = states.get(vertex.id)
      if (declared === undefined) return vertex
      const chain = vertex.chain.map((operator) => ({ ...operator, states: declared }))
      return { ...vertex, chain, keySelectors: [(value: unknown) => value as Key] }
    }),
  }
}

/** `wallMs`: by which times to live are judged. */
export function backendOf(uid: string, subtask: number, subtasks: number, wallMs: number): KeyedStateBackend {
  const { first, last } = keyGroupRange(subtasks, subtaskIndex(subtask), maxParallelism)
  return createHeapBackend({
    uid,
    timerMeaning: 'timers of a test',
    first,
    last,
    maxParallelism,
    clock: new WallClock(wallMs),
  })
}

export function isOf(key: Key, backend: KeyedStateBackend): boolean {
  const group = keyGroupOf(key, maxParallelism)
  return group >= backend.first && group <= backend.last
}

/** Event time of the subtask that wrote a key's group. */
export function watermarkOf(key: Key): number {
  const { first } = keyGroupRange(parallelism, subtaskIndex(1), maxParallelism)
  return keyGroupOf(key, maxParallelism) >= keyGroup(first) ? 901 : 900
}

export const splitsOf: readonly (readonly NumberedSplit[])[] = [
  [
    { index: 0, of: 5, next: 17 },
    { index: 2, of: 5, next: 0 },
  ],
  [{ index: 1, of: 5, next: 99 }],
]
export const enumeratorState: NumberedEnumeratorState = {
  waiting: [
    { index: 3, of: 5, next: 0 },
    { index: 4, of: 5, next: 0 },
  ],
  made: true,
}

export function committablesOf(uid: string, subtask: number): Committable[] {
  return [6, 7].map((checkpoint) => ({
    checkpoint: checkpoint as CheckpointId,
    transaction: transactionName({
      job: jobId('golden'),
      uid,
      attempt: { incarnation: incarnation(3), number: 1 },
      subtask: subtaskIndex(subtask),
      checkpoint: checkpoint as CheckpointId,
    }),
    payload: { file: `${uid}-${subtask}-${checkpoint}`, bytes: 10 * checkpoint },
  }))
}

export const unionItems = (subtask: number): string[] => [`union ${subtask}`, 'of all']
export const broadcastItems = ['rule 1', 'rule 2', `a longer rule: ${'x'.repeat(1500)}`]

export interface Writing {
  readonly id: CheckpointId
  readonly writer: SnapshotWriter
}

/** What a subtask acknowledges with, by uid. */
export async function operatorsOf(
  vertex: string,
  subtask: number,
  writing: Writing,
): Promise<Readonly<Record<string, OperatorSnapshot>>> {
  switch (vertex) {
    case 'numbers': {
      const items = splitsOf[subtask]!.map((split) => bytesOf(source.splitCodec, split))
      const splits = await listOf('split', source.splitCodec, items, writing)
      return { numbers: { operatorState: { splits } } }
    }
    case 'everything':
      return { everything: { keyed: await keyedOf(vertex, subtask, writing, writeEverything) } }
    case 'windows':
      return { windows: { keyed: await keyedOf(vertex, subtask, writing, writeWindows) } }
    case 'files': {
      const union = unionItems(subtask).map((item) => bytesOf(texts, item))
      const broadcast = broadcastItems.map((item) => bytesOf(texts, item))
      const operatorState = {
        seen: await listOf('union', texts, union, writing),
        rules: await listOf('broadcast', texts, broadcast, writing),
      }
      return { files: { operatorState, committables: committablesOf('files', subtask) } }
    }
    case 'archive':
      return { archive: { committables: committablesOf('archive', subtask) } }
    default:
      return {}
  }
}

/** Of `numbers` one subtask had read all its splits. */
export function hadFinished(vertex: string, subtask: number): boolean {
  return vertex === 'past' || vertex === 'archive' || (vertex === 'numbers' && subtask === 1)
}

async function keyedOf(
  uid: string,
  subtask: number,
  { id, writer }: Writing,
  write: (backend: KeyedStateBackend, index: number) => void,
): Promise<KeyedSnapshot> {
  const { first, last } = keyGroupRange(parallelism, subtaskIndex(subtask), maxParallelism)
  const clock = new WallClock(writtenAtMs)
  const backend = createHeapBackend({ uid, first, last, maxParallelism, clock })
  for (const [index, key] of keys.entries()) {
    clock.ms = writtenAtMs + index
    if (!isOf(key, backend)) continue
    backend.setKey(key)
    write(backend, index)
  }
  backend.setWatermark(900 + subtask)
  const slices = { begin: () => undefined, shouldYield: () => false, nextTurn: () => Promise.resolve() }
  return await backend.snapshot(id, writer, slices).done
}

function listOf<T>(
  redistribution: OperatorStateSnapshot['redistribution'],
  codec: Codec<T>,
  items: readonly Uint8Array[],
  { id, writer }: Writing,
): Promise<OperatorStateSnapshot> {
  return writeOperatorState({ redistribution, codec: codec.description, items }, id, writer)
}

export function bytesOf<T>(codec: Codec<T>, value: T): Uint8Array {
  const writer = createWriter()
  codec.encode(value, writer)
  return writer.take()
}
