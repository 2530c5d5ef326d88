// Writes tests/golden/v1: `node tests/golden/make.ts`, by hand, once. What lies there is what a job of that version left behind, and
// later versions must read it for ever: it is never written again. v2, of whole operators, is written by make-v2.ts.

import { existsSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { checkpointId, incarnation, jobId, start, subtaskIndex, taskKey } from '../../runtime/base/ids.ts'
import type { TaskId, TaskKey } from '../../runtime/base/ids.ts'
import type { SubtaskSnapshot } from '../../runtime/checkpoint/contract.ts'
import { encodeManifest, fromCollected } from '../../runtime/checkpoint/manifest.ts'
import { OBJECT_OPEN_MS, SnapshotUploader } from '../../runtime/checkpoint/snapshot-writer.ts'
import { NodeFiles } from '../../runtime/local/platform/node-files.ts'
import type { SnapshotKind } from '../../runtime/record/element.ts'
import { DirectoryStore } from '../../runtime/storage/directory-store.ts'
import { MemoryObjectStore } from '../../runtime/storage/memory-store.ts'
import { joinPath, manifestKey, objectsFolder, TEMPORARY_FOLDER } from '../../runtime/storage/paths.ts'
import { manualEnvironment } from '../../runtime/testkit/manual-clock.ts'
import { bytesOf, enumeratorState, graphAt, hadFinished, ids, operatorsOf, parallelism, source } from './v1.ts'
import { writtenAtMs } from './v1-states.ts'

const folder = fileURLToPath(new URL('v1', import.meta.url))
if (existsSync(folder)) {
  console.error(
    'tests/golden/v1 is there, and a golden folder is never written again. A new version gets a folder of its own.',
  )
  process.exit(1)
}

const environment = manualEnvironment()
// Through memory first: on a disk the same bytes would not share an object in each run.
const store = new MemoryObjectStore()
for (const kind of ['checkpoint', 'savepoint'] as const) await written(kind)
const root = objectsFolder(folder)
const directory = new DirectoryStore({ files: new NodeFiles(), root, environment })
for (const key of await store.list('')) await directory.create(key, (await store.read(key))!)
rmSync(joinPath(root, TEMPORARY_FOLDER), { recursive: true })

async function written(kind: SnapshotKind): Promise<void> {
  const id = checkpointId(ids[kind])
  const graph = graphAt(parallelism)
  const writer = new SnapshotUploader({ store, environment, writers: 1 }).ofKind(kind)
  const subtasks = new Map<TaskKey, { readonly task: TaskId; readonly snapshot: SubtaskSnapshot }>()
  for (const { id: vertex, parallelism: count } of graph.vertices) {
    for (let index = 0; index < count; index++) {
      const task: TaskId = { vertex, subtask: subtaskIndex(index) }
      const operators = await settled(operatorsOf(vertex, index, { id, writer }))
      const finished = hadFinished(vertex, index)
      const snapshot = { operators, finished, bytes: 1000, syncMs: 1, asyncMs: 2, alignmentMs: 3 }
      subtasks.set(taskKey(task), { task, snapshot })
    }
  }
  const handle = await settled(writer.write(id, bytesOf(source.enumeratorCodec, enumeratorState)))
  const manifest = fromCollected(
    { id, kind, triggeredAtMs: writtenAtMs, subtasks, request: undefined },
    {
      job: jobId('golden'),
      start: start(2),
      incarnation: incarnation(3),
      graph,
      enumerators: new Map([['numbers', { codec: source.enumeratorCodec.description, handle }]]),
    },
  )
  await store.create(manifestKey(id, kind), encodeManifest(manifest))
}

/** Objects are closed by time, which moves only here. */
async function settled<T>(work: Promise<T>): Promise<T> {
  const state = { settled: false }
  const end = (): void => {
    state.settled = true
  }
  work.then(end, end)
  while (!state.settled) await environment.clock.advanceSettled(OBJECT_OPEN_MS)
  return work
}
