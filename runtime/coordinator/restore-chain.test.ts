// Jobs begun from what other jobs left behind, through the real coordinator: files, stores and the ledger outlive all of them.

import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { jobId } from '../base/ids.ts'
import type { SlotId } from '../base/ids.ts'
import type { PlantedFault } from '../base/planted.ts'
import { handlesOf } from '../checkpoint/handles.ts'
import { decodeManifest } from '../checkpoint/manifest.ts'
import { SnapshotDownloader } from '../checkpoint/snapshot-reader.ts'
import { SnapshotUploader } from '../checkpoint/snapshot-writer.ts'
import { ledgerSink } from '../connectors/ledger.ts'
import type { LedgerSystem } from '../connectors/ledger.ts'
import { MemoryLedger } from '../connectors/memory-ledger.ts'
import { sequence, sequenceRecordSchema } from '../connectors/sequence.ts'
import type { SequenceRecord } from '../connectors/sequence.ts'
import { monotonic } from '../connectors/watermarks.ts'
import type { ControlLink, FromSlot, SlotProvider, ToSlot } from '../control/contract.ts'
import { buildGraph } from '../job/build-graph.ts'
import type { JobGraph, JobSettings } from '../job/contract.ts'
import type { JobEnvironment } from '../job/job-environment.ts'
import { defineJob } from '../job/define-job.ts'
import type { Stream } from '../job/stream.ts'
import { valueState } from '../state/descriptors.ts'
import { ForeignFiles } from '../storage/foreign-files.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { attachLocalStores } from '../storage/local-stores.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { parseTransactionName, snapshotPlace } from '../storage/paths.ts'
import { manualEnvironment, timePassed } from '../testkit/manual-clock.ts'
import { Slot } from '../worker/slot.ts'
import type { JobOutcome, RestoreRequest } from './coordinator-contract.ts'
import { JobCoordinator } from './job-coordinator.ts'

const splits = 5
const perSplit = 120
const shortPerSplit = 4
/** Larger than what is inlined in a manifest: state lies in files of its own. */
const ballast = 'b'.repeat(1500)
const progress = z.object({ next: z.int(), ballast: z.string() })
const strict = { allowNonRestoredState: false, allowDrained: false }

/** What no job owns. */
class World {
  readonly files = new MemoryFiles()
  readonly ledger = new MemoryLedger()
  /** What sinks see of it. */
  system: LedgerSystem = this.ledger

  expectExact(expected = splits * perSplit): void {
    const seen = this.ledger.entries.map(({ split, n }) => `${split}/${n}`)
    expect(seen.length, 'no record twice').toBe(new Set(seen).size)
    expect(seen.length, 'no record lost').toBe(expected)
  }

  async copyFolder(from: string, to: string): Promise<void> {
    await this.files.makeDirectory(to)
    for (const name of await this.files.list(from))
      await this.files.writeNew(`${to}/${name}`, await this.files.readFile(`${from}/${name}`))
  }

  async removeFolder(folder: string): Promise<void> {
    for (const name of await this.files.list(folder)) {
      const path = `${folder}/${name}`
      const isFolder = await this.files.list(path).then(
        () => true,
        () => false,
      )
      await (isFolder ? this.removeFolder(path) : this.files.remove(path))
    }
    await this.files.remove(folder)
  }
}

interface CommandOptions {
  readonly job: string
  readonly parallelism: number
  readonly restore?: RestoreRequest
  readonly settings?: Partial<JobSettings>
  /** A second pipeline, with state and sink, that ends after a few records. */
  readonly short?: boolean
  /** What sees records beside the ledger, one word each, chained to the sources. */
  readonly seen?: string[]
  readonly planted?: readonly PlantedFault[]
}

/** One command: coordinator and slots in one process with time of its own. It is dead once nobody lets its time pass. */
class Command {
  readonly environment: ReturnType<typeof manualEnvironment>
  readonly coordinator: JobCoordinator
  readonly storeFolder: string
  readonly restarts: string[] = []
  readonly #world: World
  readonly #slots = new Map<SlotId, (reason: string) => void>()
  readonly #listeners = new Map<string, (bytes: Uint8Array) => void>()
  completed: ManifestRef[] = []
  outcome: JobOutcome | string | undefined

  constructor(world: World, options: CommandOptions) {
    const { job, restore, planted = [] } = options
    this.environment = manualEnvironment({ planted: new Set(planted) })
    this.#world = world
    this.storeFolder = `/jobs/.millrace/${job}`
    const { environment } = this
    const stores = attachLocalStores({ files: world.files, folder: this.storeFolder, environment })
    const foreign = new ForeignFiles(world.files)
    const parts = {
      snapshotWriters: new SnapshotUploader({ store: stores.objects, environment, writers: 3 }),
      snapshotReader: new SnapshotDownloader({ store: stores.objects, foreign, environment }),
    }
    const graph = this.#graph(options)
    this.coordinator = new JobCoordinator({
      graph,
      job: jobId(job),
      start: undefined,
      environment,
      files: world.files,
      store: stores.objects,
      head: stores.head,
      slots: this.#provider(job, graph, parts),
      ...parts,
      foreign,
      restore,
      observer: {
        checkpointCompleted: ({ manifest }) => void this.completed.push(manifest),
        restarting: ({ message }) => void this.restarts.push(message),
      },
    })
    this.coordinator.run().then(
      (outcome) => (this.outcome = outcome),
      (error: unknown) => (this.outcome = String(error)),
    )
  }

  async head(): Promise<Head> {
    return (await (await this.#keeper()).read())!
  }

  async amend(transition: (head: Head) => Head): Promise<void> {
    await (await this.#keeper()).amend(transition)
  }

  #keeper(): Promise<HeadKeeper> {
    const { environment, storeFolder } = this
    const { head } = attachLocalStores({ files: this.#world.files, folder: storeFolder, environment })
    return HeadKeeper.open(head, environment)
  }

  pass(ms: number, until: () => boolean = () => this.outcome !== undefined): Promise<boolean> {
    return timePassed(this.environment, ms, until)
  }

  async ended(): Promise<JobOutcome | string | undefined> {
    await this.pass(600_000)
    return this.outcome
  }

  loseSlot(): void {
    this.#slots.values().next().value!('its thread ended')
  }

  /** Every record must follow the one before it of its split: keyed state that is lost or of another moment fails the job. */
  #graph({ parallelism, settings = {}, short = false, seen }: CommandOptions): JobGraph {
    const job = defineJob((env) => {
      env.config.checkpointIntervalMs = 100
      env.config.restartStrategy = { type: 'fixed-delay', attempts: 2, delayMs: 10 }
      const numbers = this.#pipeline(env, 'numbers', 0, perSplit)
      if (short) this.#pipeline(env, 'short', splits, shortPerSplit)
      if (seen === undefined) return
      const writer = { open: async () => undefined, prepareCommit: async () => [], close: () => undefined }
      numbers
        .map((record) => (seen.push('function'), record))
        .sinkTo({ name: 'seen', createWriter: () => ({ ...writer, write: () => void seen.push('plain sink') }) })
        .uid('seen')
    })
    return buildGraph(job, { name: 'chain', parallelism, settings })
  }

  #pipeline(env: JobEnvironment, name: string, firstSplit: number, count: number): Stream<SequenceRecord> {
    const numbers = env.source(sequence({ splits, perSplit: count, ratePerSecond: 500 }), {
      uid: name,
      watermarks: monotonic(),
    })
    numbers
      .keyBy(({ split }) => split)
      .process(
        {
          state: { progress: valueState('progress', progress) },
          process: (record, { state, emit }) => {
            const expected = state.progress.get()?.next ?? 0
            if (record.n !== expected) throw new Error(`split ${record.split}: ${record.n} in place of ${expected}`)
            state.progress.update({ next: expected + 1, ballast })
            emit({ ...record, split: firstSplit + record.split })
          },
        },
        { schema: sequenceRecordSchema },
      )
      .uid(`${name}-checked`)
      .sinkTo(ledgerSink(this.#system()))
      .uid(`${name}-ledger`)
    return numbers
  }

  #system(): LedgerSystem {
    const world = this.#world
    return {
      append: (name, entries) => world.system.append(name, entries),
      preCommit: (name) => world.system.preCommit(name),
      commit: (name) => world.system.commit(name),
      abort: (name) => world.system.abort(name),
      list: () => world.system.list(),
    }
  }

  #provider(
    job: string,
    graph: JobGraph,
    parts: { readonly snapshotWriters: SnapshotUploader; readonly snapshotReader: SnapshotDownloader },
  ): SlotProvider {
    const { environment } = this
    return {
      start: (slot) => {
        const { near, far, lose } = linkPair(environment)
        let open = true
        const transport = {
          subscribe: (subject: string, onMessage: (bytes: Uint8Array) => void) => {
            this.#listeners.set(subject, (bytes) => open && onMessage(bytes))
            return { close: () => void this.#listeners.delete(subject) }
          },
          send: ({ subject }: { readonly subject: string }, bytes: Uint8Array) => {
            const copy = bytes.slice()
            if (open) environment.executor.post(() => this.#listeners.get(subject)?.(copy))
          },
        }
        environment.executor.post(() => {
          const { files } = this.#world
          const options = { slot, job: jobId(job), graph, environment, files, transport, control: far, ...parts }
          // It lives as long as its link and its subscriptions.
          void new Slot(options)
          this.#slots.set(slot, (reason) => {
            open = false
            this.#slots.delete(slot)
            lose(reason)
          })
        })
        return near
      },
      terminate: async (slot) => this.#slots.get(slot)?.('ended'),
    }
  }
}

/** Two ends of a control link; each message arrives in a later turn, in order, or not at all after the loss. */
function linkPair(environment: ReturnType<typeof manualEnvironment>) {
  let lost = false
  const listeners: { near?: (message: FromSlot) => void; far?: (message: ToSlot) => void } = {}
  const onLost: ((reason: string) => void)[] = []
  const near: ControlLink<ToSlot, FromSlot> = {
    send: (message) => {
      const copy = structuredClone(message)
      environment.executor.post(() => void (!lost && listeners.far?.(copy)))
    },
    onMessage: (callback) => void (listeners.near = callback),
    onLost: (callback) => void onLost.push(callback),
    close: () => void delete listeners.near,
  }
  const far: ControlLink<FromSlot, ToSlot> = {
    send: (message) => {
      const copy = structuredClone(message)
      environment.executor.post(() => void (!lost && listeners.near?.(copy)))
    },
    onMessage: (callback) => void (listeners.far = callback),
    onLost: (callback) => void onLost.push(callback),
    close: () => void delete listeners.far,
  }
  const lose = (reason: string): void => {
    if (lost) return
    lost = true
    for (const callback of onLost) environment.executor.post(() => callback(reason))
  }
  return { near, far, lose }
}

/** What `--from` says of a folder. */
function fromFolder(folder: string, ref: ManifestRef): RestoreRequest {
  return { ...strict, from: { ...ref, path: snapshotPlace(folder).manifest } }
}

/** Job a at this parallelism, killed after its third checkpoint, whose commits are permitted and not done. */
async function killedJob(parallelism: number, short = false) {
  const world = new World()
  const command = new Command(world, { job: 'a', parallelism, short })
  await command.pass(60_000, () => command.completed.length === 2)
  // Held by a proxy: what is called from now on never answers.
  world.system = Object.assign(Object.create(world.ledger) as MemoryLedger, {
    append: (...args: Parameters<LedgerSystem['append']>) => world.ledger.append(...args),
    preCommit: (name: string) => world.ledger.preCommit(name),
    abort: (name: string) => world.ledger.abort(name),
    list: () => world.ledger.list(),
    commit: () => new Promise<never>(() => undefined),
  })
  await command.pass(60_000, () => command.completed.length === 3)
  world.system = world.ledger
  const newest = command.completed.at(-1)!
  expect((await command.head()).unconfirmed).toEqual(newest)
  return { world, newest, folder: `${command.storeFolder}/objects/chk-${newest.id}`, storeFolder: command.storeFolder }
}

describe("a job begun from another job's checkpoint at another parallelism", () => {
  it.each([
    [1, 2],
    [2, 1],
    [3, 7],
    [7, 3],
  ])('goes on exactly where that one was killed, with its commits first: %i to %i', async (before, after) => {
    const { world, newest, folder } = await killedJob(before)
    const committedBefore = world.ledger.entries.length
    const b = new Command(world, { job: 'b', parallelism: after, restore: fromFolder(folder, newest) })
    expect(await b.ended()).toEqual({ kind: 'finished' })
    world.expectExact()
    expect(world.ledger.entries.length).toBeGreaterThan(committedBefore)
    expect(b.restarts).toEqual([])
  })

  it('needs it only until its own first checkpoint, and survives the loss of a slot before and after', async () => {
    const { world, newest, folder, storeFolder } = await killedJob(2)
    const b = new Command(world, { job: 'b', parallelism: 3, restore: fromFolder(folder, newest) })
    await b.pass(60_000, () => b.coordinator.execution?.allRunning === true)
    b.loseSlot()
    await b.pass(60_000, () => b.completed.length === 1)
    await world.removeFolder(storeFolder)
    b.loseSlot()
    expect(await b.ended()).toEqual({ kind: 'finished' })
    world.expectExact()
    expect(b.restarts).toHaveLength(2)
  })

  it('takes over what vertices left that had finished there: its snapshots name nothing outside of its store', async () => {
    const { world, newest, folder, storeFolder } = await killedJob(2, true)
    const b = new Command(world, { job: 'b', parallelism: 2, short: true, restore: fromFolder(folder, newest) })
    await b.pass(60_000, () => b.completed.length === 1)
    b.coordinator.savepoint().catch(() => undefined)
    await b.pass(60_000, () => b.completed.some(({ kind }) => kind === 'savepoint'))
    const savepoint = b.completed.find(({ kind }) => kind === 'savepoint')!
    const read = async ({ path }: ManifestRef) =>
      decodeManifest(await world.files.readFile(`${b.storeFolder}/objects/${path}`), path)
    const first = await read(b.completed[0]!)
    expect(first.vertices.some(({ id, finished }) => id === 'short-checked' && finished.every((is) => is))).toBe(true)
    expect(handlesOf(first).filter(({ object }) => !object.startsWith('chk-'))).toEqual([])
    const own = `savepoint-${savepoint.id}/`
    expect(handlesOf(await read(savepoint)).filter(({ object }) => !object.startsWith(own))).toEqual([])
    await world.removeFolder(storeFolder)
    expect(await b.ended()).toEqual({ kind: 'finished' })
    world.expectExact(splits * (perSplit + shortPerSplit))
  })

  it('killed itself goes on by the same command, and does not begin there again', async () => {
    const { world, newest, folder } = await killedJob(2)
    const restore = fromFolder(folder, newest)
    const b = new Command(world, { job: 'b', parallelism: 3, restore })
    await b.pass(60_000, () => b.completed.length === 2)
    const again = new Command(world, { job: 'b', parallelism: 1, restore })
    expect(await again.ended()).toEqual({ kind: 'finished' })
    expect(await again.head()).toMatchObject({ start: 1, incarnation: 2, restoredFrom: { manifest: restore.from } })
    world.expectExact()
  })

  it('touches no transaction and no file of that job', async () => {
    const { world, newest, folder, storeFolder } = await killedJob(2)
    const ofA = async () => (await world.ledger.list()).filter((name) => parseTransactionName(name)!.job === 'a')
    const filesOfA = async () => [await world.files.list(`${storeFolder}/objects`), await world.files.list(folder)]
    const [filesBefore, openBefore] = [await filesOfA(), await ofA()]
    const b = new Command(world, { job: 'b', parallelism: 1, restore: fromFolder(folder, newest) })
    await b.ended()
    expect(await filesOfA()).toEqual(filesBefore)
    // Only what the checkpoint holds was committed; what a had written since is a's to sweep.
    const openAfter = await ofA()
    expect(openBefore).toEqual(expect.arrayContaining(openAfter))
    expect(openAfter.every((name) => parseTransactionName(name)!.checkpoint > newest.id)).toBe(true)
  })

  it('whose state was flipped is refused before any record, with HEAD as it was begun', async () => {
    const { world, newest, folder } = await killedJob(2)
    const data = (await world.files.list(folder)).find((name) => name !== '_metadata')!
    const bytes = await world.files.readFile(`${folder}/${data}`)
    for (let index = 0; index < bytes.length; index += 16) bytes[index]! ^= 1
    await world.files.remove(`${folder}/${data}`)
    await world.files.writeNew(`${folder}/${data}`, bytes)
    const b = new Command(world, { job: 'b', parallelism: 3, restore: fromFolder(folder, newest) })
    expect(await b.ended()).toMatch(/MR-O20.*MR-C51/)
    expect((await b.head()).end).toEqual({ kind: 'none' })
    expect((await world.ledger.list()).filter((name) => parseTransactionName(name)!.job === 'b')).toEqual([])
  })
})

describe('a savepoint that a job stopped with', () => {
  it('copied and renamed begins another job at another parallelism, and so on from job to job', async () => {
    const world = new World()
    let restore: RestoreRequest | undefined
    for (const [index, parallelism] of [2, 3, 1, 2].entries()) {
      const command = new Command(world, { job: `job-${index}`, parallelism, ...(restore && { restore }) })
      await command.pass(60_000, () => command.completed.length === 2)
      const answer = command.coordinator.stop({ drain: false })
      answer.catch(() => undefined)
      const outcome = await command.ended()
      expect(outcome).toMatchObject({ kind: 'stopped' })
      const { savepoint } = outcome as Extract<JobOutcome, { kind: 'stopped' }>
      await world.copyFolder(`${command.storeFolder}/objects/savepoint-${savepoint.id}`, `/backup/after ${index}`)
      await world.removeFolder(command.storeFolder)
      restore = fromFolder(`/backup/after ${index}`, savepoint)
    }
    const last = new Command(world, { job: 'last', parallelism: 3, ...(restore && { restore }) })
    expect(await last.ended()).toEqual({ kind: 'finished' })
    world.expectExact()
  })

  it('with drain is the end of its job, and begins another one only where that is allowed', async () => {
    const world = new World()
    const a = new Command(world, { job: 'a', parallelism: 2 })
    await a.pass(60_000, () => a.completed.length === 2)
    a.coordinator.stop({ drain: true }).catch(() => undefined)
    const outcome = await a.ended()
    expect(outcome).toMatchObject({ kind: 'stopped', savepoint: { drained: true } })
    const { savepoint } = outcome as Extract<JobOutcome, { kind: 'stopped' }>
    expect(await a.head()).toMatchObject({ end: { kind: 'finished', drained: savepoint }, unconfirmed: undefined })
    // As after a crash before the last word: whoever is started for it says it, and runs nothing.
    await a.amend((head) => ({ ...head, end: { kind: 'stopped', savepoint } }))
    const again = new Command(world, { job: 'a', parallelism: 2 })
    expect(await again.ended()).toMatchObject({ kind: 'ended' })
    expect((await again.head()).end).toEqual({ kind: 'finished', drained: savepoint })
    const committed = world.ledger.entries.length
    const restore = fromFolder(`${a.storeFolder}/objects/savepoint-${savepoint.id}`, savepoint)
    const refused = new Command(world, { job: 'b', parallelism: 2, restore })
    expect(await refused.ended()).toMatch(/MR-C17.*savepoint/)
    expect(await refused.head()).toBeUndefined()
    const allowed = new Command(world, { job: 'b', parallelism: 2, restore: { ...restore, allowDrained: true } })
    await allowed.ended()
    expect(world.ledger.entries.length).toBeGreaterThanOrEqual(committed)
    const seen = world.ledger.entries.map(({ split, n }) => `${split}/${n}`)
    expect(seen.length, 'no record twice').toBe(new Set(seen).size)
  })
})

it('a cancelled job that says so leaves its savepoints and no checkpoint, with everything permitted committed', async () => {
  const world = new World()
  const settings = { onCancellation: 'delete' } as const
  const command = new Command(world, { job: 'a', parallelism: 2, settings })
  await command.pass(60_000, () => command.completed.length === 2)
  command.coordinator.savepoint().catch(() => undefined)
  await command.pass(60_000, () => command.completed.some(({ kind }) => kind === 'savepoint'))
  command.coordinator.cancel()
  expect(await command.ended()).toEqual({ kind: 'cancelled' })
  expect(await command.head()).toMatchObject({ unconfirmed: undefined, retained: [], discarding: [] })
  const objects = await world.files.list(`${command.storeFolder}/objects`)
  expect(objects.filter((name) => name.startsWith('chk-'))).toEqual([])
  const { id } = command.completed.find(({ kind }) => kind === 'savepoint')!
  expect(objects).toContain(`savepoint-${id}`)
})

describe('a restore point of which one subtask cannot restore its part', () => {
  /** The piece of one key group, which one subtask reads. */
  async function flipOne({ world, newest, storeFolder }: Awaited<ReturnType<typeof killedJob>>): Promise<void> {
    const path = `${storeFolder}/objects/${newest.path}`
    const manifest = decodeManifest(await world.files.readFile(path), path)
    const ofSubtasks = manifest.vertices.flatMap(({ operators }) => operators['numbers-checked'] ?? [])
    const pieces = ofSubtasks.flatMap((snapshot) => snapshot?.keyed?.groups.map((group) => group.handle) ?? [])
    const handle = pieces.find((piece) => piece?.kind === 'object')!
    const object = `${storeFolder}/objects/${handle.object}`
    const bytes = await world.files.readFile(object)
    bytes[handle.offset + Math.floor(handle.length / 2)]! ^= 1
    await world.files.remove(object)
    await world.files.writeNew(object, bytes)
  }

  it('lets no function of the job and no plain sink see a record, wherever they run', async () => {
    const killed = await killedJob(3)
    await flipOne(killed)
    const run = async (planted: readonly PlantedFault[]) => {
      const seen: string[] = []
      const command = new Command(killed.world, { job: 'a', parallelism: 3, seen, planted })
      return { seen, outcome: await command.ended(), restarts: command.restarts }
    }
    const { seen, outcome, restarts } = await run([])
    expect([outcome, restarts, seen]).toEqual([expect.stringMatching(/MR-O20.*MR-C51/), [], []])
    // Each of its other subtasks had restored by then, and would have begun.
    const without = await run(['begun-before-all-restored'])
    expect(without.outcome).toMatch(/MR-O20.*MR-C51/)
    expect(new Set(without.seen)).toEqual(new Set(['function', 'plain sink']))
  })
})
