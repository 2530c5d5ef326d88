import { crc32 } from 'node:zlib'
import { expect, it } from 'vitest'
import { checkpointId, incarnation, jobId, requestId, start } from '../../base/ids.ts'
import { encodeManifest, fromCollected } from '../../checkpoint/manifest.ts'
import { graphOf } from '../../checkpoint/test-graph.ts'
import { codec, collectedOf, subtaskSnapshot } from '../../checkpoint/test-snapshots.ts'
import type { ManifestRef } from '../../storage/head-contract.ts'
import { MemoryObjectStore } from '../../storage/memory-store.ts'
import { manifestKey, snapshotDataKey } from '../../storage/paths.ts'
import { settlePromises } from '../../testkit/manual-clock.ts'
import { ReportedSavepoints } from './reported-savepoints.ts'

const id = checkpointId(7)
const asked = requestId('mine')
const path = manifestKey(id, 'savepoint')
const state = Uint8Array.of(1, 2, 3)
const ref: ManifestRef = { id, kind: 'savepoint', path, start: start(1), completedAtMs: 1, bytes: 1 }

/** Its one object lies where `object` says. */
function manifestWith(object: string): Uint8Array {
  const graph = graphOf({ vertices: [{ id: 'all' }] })
  const items = { kind: 'object', object, offset: 0, length: state.length, crc: crc32(state) } as const
  const operatorState = { list: { redistribution: 'split', codec, items, count: 1 } } as const
  const { uid } = graph.vertices[0]!.chain[0]!
  const collected = collectedOf(graph, () => subtaskSnapshot({ [uid]: { operatorState } }))
  const meta = { job: jobId('job'), start: start(1), incarnation: incarnation(1), graph, enumerators: new Map() }
  return encodeManifest(fromCollected({ ...collected, kind: 'savepoint' }, meta))
}

const ownKey = snapshotDataKey(id, 'savepoint', 'data')

async function reported({
  data = state,
  object = ownKey,
  written = true,
}: { readonly data?: Uint8Array; readonly object?: string; readonly written?: boolean } = {}) {
  const store = new MemoryObjectStore()
  const savepoints = new ReportedSavepoints(store)
  await store.create(ownKey, data)
  if (written) await store.create(path, manifestWith(object))
  savepoints.answered(asked, ref, 'coordinator 1')
  await settlePromises()
  return { store, savepoints }
}

it('a savepoint that is whole when it is reported, and afterwards, is as it should be', async () => {
  const { savepoints } = await reported()
  savepoints.answered(asked, ref, 'coordinator 2')
  expect(savepoints.count).toBe(1)
  expect(await savepoints.judge()).toEqual([])
})

it('a savepoint that is reported before its manifest is there is wrong, though it comes later', async () => {
  const { store, savepoints } = await reported({ written: false })
  await store.create(path, manifestWith(ownKey))
  expect(await savepoints.judge()).toEqual([`coordinator 1 answers mine with ${path}: ${path} is not there.`])
})

it('a savepoint whose manifest or state is taken away later is wrong', async () => {
  for (const taken of [path, ownKey]) {
    const { store, savepoints } = await reported()
    await store.delete([taken])
    expect(await savepoints.judge()).toEqual([expect.stringMatching(`answered mine was not kept.*${taken}.*not there`)])
  }
})

it('a savepoint whose state differs, or lies outside of its folder, is wrong', async () => {
  const { savepoints } = await reported({ data: Uint8Array.of(1, 2, 4) })
  expect(await savepoints.judge()).toContain(
    `The savepoint that answered mine was not kept: ${path} names ${ownKey}, which differs.`,
  )
  const elsewhere = await reported({ object: 'chk-6/data' })
  expect(await elsewhere.savepoints.judge()).toContain(
    `The savepoint that answered mine was not kept: ${path} names chk-6/data, outside of its folder.`,
  )
})

it('a request is answered with one savepoint alone; what completes a rescale is none', async () => {
  const { savepoints } = await reported()
  const other = manifestKey(checkpointId(8), 'savepoint')
  savepoints.answered(asked, { ...ref, path: other }, 'coordinator 2')
  savepoints.answered(requestId('rescale'), { ...ref, kind: 'checkpoint' }, 'coordinator 2')
  expect(await savepoints.judge()).toEqual([`coordinator 2 answers mine with ${other}, and it was ${path}.`])
})
