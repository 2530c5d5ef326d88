import { describe, expect, it } from 'vitest'
import { checkpointId, incarnation, jobId, requestId, start } from '../base/ids.ts'
import { encodeManifest, fromCollected } from '../checkpoint/manifest.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import { collectedOf, subtaskSnapshot } from '../checkpoint/test-snapshots.ts'
import { FIRST_LOOK_DEADLINE_MS } from '../storage/first-look.ts'
import { beginStart, cancel, completeCheckpoint, confirmCommits, newJob, reserveIds, stop } from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { attachLocalStores } from '../storage/local-stores.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { openStores } from '../storage/open-stores.ts'
import { fileKey, manifestKey, snapshotPlace } from '../storage/paths.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { findRestorePoint } from './restore-path.ts'

const flights = '/w/.millrace/flights'
const graph = graphOf({ vertices: [{ id: 'all' }] })

function refOf(id: number, kind: ManifestRef['kind']): ManifestRef {
  const path = manifestKey(checkpointId(id), kind)
  return { id: checkpointId(id), kind, path, start: start(1), completedAtMs: 1000, bytes: 100 }
}

/** The store of job `flights`: checkpoints 5 and 6, of which HEAD retains 6, and savepoint 7; `change` is what happened to HEAD then. */
async function subject(change: (head: Head) => Head = (head) => head) {
  const environment = manualEnvironment()
  const files = new MemoryFiles()
  const stores = attachLocalStores({ files, folder: flights, environment })
  const job = jobId('flights')
  for (const { id, kind, path } of [refOf(5, 'checkpoint'), refOf(6, 'checkpoint'), refOf(7, 'savepoint')]) {
    const collected = { ...collectedOf(graph, () => subtaskSnapshot({})), id, kind }
    const meta = { job, start: start(1), incarnation: incarnation(1), graph, enumerators: new Map() }
    await stores.objects.create(path, encodeManifest(fromCollected(collected, meta)))
  }
  const keeper = await HeadKeeper.open(stores.head, environment)
  await keeper.begin(() => {
    let head = reserveIds(newJob({ job, start: start(1), parallelism: 1, maxParallelism: 8 }), 10).head
    for (const id of [5, 6])
      head = completeCheckpoint(head, { manifest: refOf(id, 'checkpoint'), retainedMax: 1, commitsPending: true })
    return change(head)
  })
  /** Copies a folder of the store, file by file. */
  const copy = async (name: string, to: string) => {
    await files.makeDirectory(to)
    for (const file of await files.list(`${flights}/objects/${name}`))
      await files.writeNew(`${to}/${file}`, await files.readFile(`${flights}/objects/${name}/${file}`))
  }
  const find = async (path: string, storeFolder = '/w/.millrace/other') => {
    const storage = { checkpoints: fileKey(storeFolder) }
    const own = await openStores({ storage, files, environment, probe: false })
    return findRestorePoint({ place: snapshotPlace(path), storage, stores: own, files, environment })
  }
  return { files, copy, find, clock: environment.clock }
}

describe('--from and job.restore.from find', () => {
  it('a retained checkpoint where it lies: by its key for its own job, absolute for any other', async () => {
    const { find } = await subject()
    const path = `${flights}/objects/chk-6`
    expect((await find(path)).ref).toEqual({ ...refOf(6, 'checkpoint'), path: `file://${path}/_metadata` })
    expect((await find(`${path}/_metadata`, flights)).ref).toEqual(refOf(6, 'checkpoint'))
  })

  it.each(['', '/', '/_metadata'])('a savepoint by its address%s as by its path', async (rest) => {
    const { find } = await subject()
    const folder = `${flights}/objects/savepoint-7`
    const found = await find(`file://${folder}${rest}`)
    expect(found).toEqual(await find(folder))
    expect(found.ref).toMatchObject({ ...refOf(7, 'savepoint'), path: `file://${folder}/_metadata`, completedAtMs: 0 })
    expect((await find(`file://${folder}${rest}`, flights)).ref.path).toBe('savepoint-7/_metadata')
  })

  it('a savepoint anywhere, under any name, also when nothing else of its job is left', async () => {
    const { find, copy } = await subject()
    await copy('savepoint-7', '/usb stick/before the upgrade')
    expect((await find('/usb stick/before the upgrade/')).ref).toMatchObject({
      id: 7,
      kind: 'savepoint',
      path: 'file:///usb stick/before the upgrade/_metadata',
    })
    const lost = await subject()
    for (const name of await lost.files.list(`${flights}/head`)) {
      if (!name.startsWith('head-')) continue
      await lost.files.truncate(`${flights}/head/${name}`, 3)
    }
    expect((await lost.find(`${flights}/objects/savepoint-7`)).ref.id).toBe(7)
    await expect(lost.find(`${flights}/objects/chk-6`)).rejects.toThrow(/MR-S10/)
  })

  it.each(['readFile', 'list'] as const)('nothing where %s never answers, and says so', async (call) => {
    const { files, find, clock } = await subject()
    Object.assign(files, { [call]: () => new Promise(() => {}) })
    const finding = expect(find(`${flights}/objects/chk-6`)).rejects.toThrow(/^MR-S01 .*objects\/chk-6/)
    await clock.advanceSettled(FIRST_LOOK_DEADLINE_MS)
    await finding
  })

  it.each<[string, string, (head: Head) => Head, boolean]>([
    ['a checkpoint, while commits wait', 'chk-6', (head) => head, false],
    ['a checkpoint, once all are confirmed', 'chk-6', (head) => confirmCommits(head, checkpointId(6)), true],
    ['a plain savepoint, which permits none', 'savepoint-7', (head) => confirmCommits(head, checkpointId(6)), false],
    [
      'a savepoint that the job stopped with',
      'savepoint-7',
      (head) => confirmCommits(stopped(head), checkpointId(7)),
      true,
    ],
    ['the same, while commits wait', 'savepoint-7', stopped, false],
    [
      'the same, of a job that was deleted then',
      'savepoint-7',
      (head) => cancel(confirmCommits(stopped(head), checkpointId(7)), { deleted: true }),
      true,
    ],
    ['a savepoint that the job began from again', 'savepoint-7', begunAgain, true],
  ])('whether transactions are known to be committed: of %s', async (_, name, change, committed) => {
    const { find } = await subject(change)
    expect((await find(`${flights}/objects/${name}`)).committed).toBe(committed)
  })
})

describe('--from and job.restore.from find in a place for savepoints', () => {
  it.each([
    ['known to be committed, by the HEAD that the place names', true],
    ['unknown where that HEAD is gone', false],
  ])('whether the transactions of one are %s', async (_, isThere) => {
    const inPlace = fileKey('/kept/flights/objects/savepoint-7/_metadata')
    const { files, copy, find } = await subject((head) => {
      const manifest = { ...refOf(7, 'savepoint'), path: inPlace }
      const ended = stop(head, { request: requestId('r'), manifest, commitsPending: true })
      return confirmCommits(ended, checkpointId(7))
    })
    await copy('savepoint-7', '/kept/flights/objects/savepoint-7')
    const store = isThere ? flights : '/w/.millrace/gone'
    await files.writeNew(
      '/kept/flights/objects/owner',
      new TextEncoder().encode(`{"format":1,"store":"file://${store}"}`),
    )
    expect(await find('/kept/flights/objects/savepoint-7')).toMatchObject({
      ref: { path: inPlace },
      committed: isThere,
    })
    // The other one, beside the checkpoints, is a copy that no HEAD speaks of.
    expect((await find(`${flights}/objects/savepoint-7`)).committed).toBe(false)
  })
})

describe('--from and job.restore.from refuse', () => {
  it.each<[string, string, RegExp]>([
    ['a path where nothing is', '/nowhere', /MR-S17.*\/nowhere\/_metadata is not there/],
    ['a folder that is no savepoint', '/w', /MR-S17/],
    ['the HEAD of a job', `${flights}/head/head-0000000000000001`, /MR-S17/],
    [
      'a checkpoint that its HEAD dropped',
      `${flights}/objects/chk-5`,
      /MR-S18.*checkpoint 5 of flights, whose HEAD retains 6/,
    ],
  ])('%s', async (_, path, message) => {
    await expect((await subject()).find(path)).rejects.toThrow(message)
  })

  it('a file that is no manifest, and one that is damaged', async () => {
    const { find, files, copy } = await subject()
    await files.makeDirectory('/text')
    await files.writeNew('/text/_metadata', new TextEncoder().encode('just text'))
    await expect(find('/text')).rejects.toThrow(/MR-C01.*\/text\/_metadata/)
    await copy('savepoint-7', '/short')
    await files.truncate('/short/_metadata', 200)
    await expect(find('/short')).rejects.toThrow(/MR-C02.*\/short\/_metadata/)
  })

  it('a checkpoint that was copied away from its HEAD, or into the store of another job', async () => {
    const { find, copy } = await subject()
    await copy('chk-6', '/copies/chk-6')
    await expect(find('/copies/chk-6')).rejects.toThrow(/MR-S18.*outside of the store/)
    await copy('chk-6', '/w/.millrace/other/objects/chk-6')
    await expect(find('/w/.millrace/other/objects/chk-6')).rejects.toThrow(/MR-S18.*outside of the store/)
  })

  it('a copy in a store under the name of another snapshot of it', async () => {
    const { find, copy } = await subject()
    await copy('savepoint-7', `${flights}/objects/savepoint-9`)
    await expect(find(`${flights}/objects/savepoint-9`)).rejects.toThrow(/MR-S17.*savepoint-9.*savepoint-7/)
  })
})

function stopped(head: Head): Head {
  return stop(head, { request: requestId('r'), manifest: refOf(7, 'savepoint'), commitsPending: true })
}

function begunAgain(head: Head): Head {
  const restoredFrom = { kind: 'manifest', manifest: refOf(7, 'savepoint') } as const
  const begun = beginStart(stopped(head), {
    start: start(2),
    restoredFrom,
    commitsPending: false,
    parallelism: 1,
    maxParallelism: 8,
  })
  return { ...confirmCommits(begun, checkpointId(7)), incarnation: incarnation(1) }
}
