// A whole job in one thread over manual time: a coordinator, its slots, and what outlives them.

import { expect } from 'vitest'
import { jobId, start } from '../../runtime/base/ids.ts'
import type { SlotId } from '../../runtime/base/ids.ts'
import { SnapshotDownloader } from '../../runtime/checkpoint/snapshot-reader.ts'
import { SnapshotUploader } from '../../runtime/checkpoint/snapshot-writer.ts'
import { ledgerSink } from '../../runtime/connectors/ledger.ts'
import type { LedgerSystem } from '../../runtime/connectors/ledger.ts'
import { MemoryLedger } from '../../runtime/connectors/memory-ledger.ts'
import { sequence, sequenceRecordSchema } from '../../runtime/connectors/sequence.ts'
import type { NumberedSource } from '../../runtime/connectors/numbered-source.ts'
import type { SequenceRecord } from '../../runtime/connectors/sequence.ts'
import { monotonic } from '../../runtime/connectors/watermarks.ts'
import type { ControlLink, FromSlot, SlotProvider, SurvivingSlot, ToSlot } from '../../runtime/control/contract.ts'
import { buildGraph } from '../../runtime/job/build-graph.ts'
import type { JobGraph, JobSettings } from '../../runtime/job/contract.ts'
import { defineJob } from '../../runtime/job/define-job.ts'
import type { FrameTransport } from '../../runtime/network/contract.ts'
import type { ManifestRef } from '../../runtime/storage/head-contract.ts'
import { HeadKeeper } from '../../runtime/storage/head-keeper.ts'
import { MemoryFiles } from '../../runtime/storage/memory-files.ts'
import { MemoryHeadStore, MemoryObjectStore } from '../../runtime/storage/memory-store.ts'
import { manualEnvironment, timePassed } from '../../runtime/testkit/manual-clock.ts'
import { Slot } from '../../runtime/worker/slot.ts'
import { JobCoordinator } from '../../runtime/coordinator/job-coordinator.ts'
import type { JobOutcome, ReportedRestart, SavepointAnswer } from '../../runtime/coordinator/coordinator-contract.ts'

export const splits = 2
export const perSplit = 300

export interface JobOptions {
  /** Called for every record in every attempt. */
  readonly onRecord?: (n: number) => void
  readonly settings?: Partial<JobSettings>
  /** Default: the local rule. */
  readonly start?: number
  /** Each subtask is a region of its own: no record goes from one slot to another. */
  readonly regions?: boolean
  /** Above the number of splits: the subtasks beyond it finish at once. */
  readonly parallelism?: number
}

/** What outlives coordinators and slots, all in one thread over manual time. */
export class Cluster {
  readonly environment = manualEnvironment()
  readonly heads = new MemoryHeadStore()
  readonly objects = new MemoryObjectStore()
  readonly ledger = new MemoryLedger()
  /** Replaces what slots see of the ledger. */
  system: LedgerSystem = this.ledger
  readonly slots = new Map<SlotId, { readonly slot: Slot | undefined; readonly end: (reason: string) => void }>()
  readonly reported: ReportedRestart[] = []
  /** Records that sinks wrote, in all attempts. */
  appended = 0
  /** Records that sources gave out, in all attempts. */
  read = 0
  checkpoints = 0
  readonly savepoints: ManifestRef[] = []
  onRecord: (n: number) => void = () => undefined
  /** The graph that a slot builds, if it is not the coordinator's. */
  graphOfSlots: JobGraph | undefined
  readonly #listeners = new Map<string, (bytes: Uint8Array) => void>()

  /** Slots outlive a coordinator that leaves them, and are adopted by the next one. */
  adopts = false
  /** Before each split enumerator starts; may reject. */
  onEnumeratorStart: () => Promise<void> = async () => undefined
  /** Behind the end of each; may throw. */
  onEnumeratorClose: () => void = () => undefined
  onStart: (slot: SlotId) => void = () => undefined
  /** While a coordinator asks for them. */
  onSurvivors: () => Promise<void> = async () => undefined
  /** A coordinator has left its slots to the next one. */
  abandoned = false

  /** State, however small, lies in objects. */
  inlinesNothing = false

  /** By workers; undefined: as many as are asked for. */
  slotsOffered: number | undefined

  /** Of each split. */
  ratePerSecond = 400

  /** How long the end of a slot takes, ms. */
  endingMs = 0

  /** What a coordinator says to a slot that it has started, and what does not reach it. */
  losesWord: (message: ToSlot, slot: SlotId) => boolean = () => false

  graph({ settings = {}, regions = false }: JobOptions = {}, parallelism = 2): JobGraph {
    const job = defineJob((env) => {
      env.config.checkpointIntervalMs = 100
      env.config.restartStrategy = { type: 'fixed-delay', attempts: 3, delayMs: 10 }
      const numbers = env.source(this.#source(), {
        uid: 'numbers',
        watermarks: monotonic(),
      })
      const checked = regions
        ? numbers
        : numbers
            .keyBy(({ split }) => split)
            .process(
              { process: (record, { emit }) => (this.onRecord(record.n), emit(record)) },
              { schema: sequenceRecordSchema },
            )
            .uid('checked')
      checked
        .sinkTo(
          ledgerSink({
            append: (name, entries) => {
              this.appended += entries.length
              return this.system.append(name, entries)
            },
            preCommit: (name) => this.system.preCommit(name),
            commit: (name) => this.system.commit(name),
            abort: (name) => this.system.abort(name),
            list: () => this.system.list(),
          }),
        )
        .uid('ledger')
    })
    return buildGraph(job, { name: 'whole', parallelism, settings })
  }

  coordinator(options: JobOptions = {}): JobCoordinator {
    const { environment, objects: store } = this
    const graph = this.graph(options, options.parallelism)
    return new JobCoordinator({
      graph,
      graphAt: (parallelism) => this.graph(options, parallelism),
      job: jobId('whole'),
      start: options.start === undefined ? undefined : start(options.start),
      environment,
      files: new MemoryFiles(),
      store,
      head: this.heads,
      slots: this.#provider((parallelism) => this.graph(options, parallelism ?? options.parallelism)),
      snapshotWriters: this.#writers(),
      snapshotReader: new SnapshotDownloader({ store, environment }),
      observer: {
        checkpointCompleted: ({ manifest }) =>
          void (manifest.kind === 'checkpoint' ? this.checkpoints++ : this.savepoints.push(manifest)),
        restarting: (restart) => void this.reported.push(restart),
      },
    })
  }

  /** Why there were any. */
  get restarts(): string[] {
    return this.reported.map(({ message }) => message)
  }

  async head() {
    return (await (await HeadKeeper.open(this.heads, this.environment)).read())!
  }

  /** Lets turns and time pass until `until`, or for so long. */
  pass(ms: number, until: () => boolean = () => false): Promise<boolean> {
    return timePassed(this.environment, ms, until)
  }

  /** Runs to the end of `run`; a rejection comes back as its text. */
  async ended(run: Promise<JobOutcome>, ms = 600_000): Promise<JobOutcome | string> {
    let outcome: JobOutcome | string | undefined
    run.then(
      (value) => (outcome = value),
      (error: unknown) => (outcome = String(error)),
    )
    await this.pass(ms, () => outcome !== undefined)
    return outcome ?? 'never ended'
  }

  /** The coordinator behind `run` ends, since HEAD does not answer, and leaves its slots to the next one. */
  async loseCoordinator(run: Promise<JobOutcome>): Promise<void> {
    const swap = this.heads.swap.bind(this.heads)
    this.heads.swap = async () => ({ outcome: 'unclear', cause: new Error('no answer') })
    expect(await this.ended(run)).toContain('MR-S12')
    this.heads.swap = swap
    this.abandoned = false
  }

  /** Lets time pass until it is there. */
  async answerOf(answer: Promise<SavepointAnswer>): Promise<SavepointAnswer> {
    let given: SavepointAnswer | undefined
    void answer.then((value) => (given = value))
    await this.pass(600_000, () => given !== undefined)
    return given ?? { outcome: 'failed', detail: 'never answered' }
  }

  expectExact(): void {
    const seen = this.ledger.entries.map(({ split, n }) => `${split}/${n}`)
    expect(seen.length, 'no record twice').toBe(new Set(seen).size)
    expect(seen.length, 'no record lost').toBe(splits * perSplit)
    for (let split = 0; split < splits; split++) {
      const numbers = this.ledger.entries.filter((entry) => entry.split === split).map(({ n }) => n)
      expect(numbers, 'in order').toEqual(numbers.toSorted((left, right) => left - right))
    }
  }

  #writers(): SnapshotUploader {
    const { environment, objects: store } = this
    return new SnapshotUploader({ store, environment, writers: this.inlinesNothing ? Infinity : 3 })
  }

  #source(): NumberedSource<SequenceRecord> {
    const source = sequence({ splits, perSplit, ratePerSecond: this.ratePerSecond })
    return {
      ...source,
      createEnumerator: (context, restored) => {
        const enumerator = source.createEnumerator(context, restored)
        const start = enumerator.start.bind(enumerator)
        enumerator.start = async () => {
          await this.onEnumeratorStart()
          return start()
        }
        const close = enumerator.close.bind(enumerator)
        enumerator.close = () => (close(), this.onEnumeratorClose())
        return enumerator
      },
      createReader: (context) => {
        const reader = source.createReader(context)
        const poll = reader.poll.bind(reader)
        reader.poll = (output) =>
          poll({
            emit: (value, timestamp, split) => (this.read++, output.emit(value, timestamp, split)),
            emitTo: (tag, value, timestamp) => output.emitTo(tag, value, timestamp),
          })
        return reader
      },
    }
  }

  /** What runs gets a link to the coordinator that asks; what it says behind its registration waits until it is listened to. */
  #survivors(): Promise<SurvivingSlot[]> {
    return Promise.all(
      [...this.slots].map(async ([id, { slot, end }]): Promise<SurvivingSlot> => {
        const { near, far, lose } = linkPair(this.environment)
        const { promise, resolve } = Promise.withResolvers<SurvivingSlot['registered']>()
        const said: FromSlot[] = []
        near.onMessage((message) => void (message.type === 'registered' ? resolve(message) : said.push(message)))
        slot!.attach(far)
        this.slots.set(id, { slot, end: (reason) => (end(reason), lose(reason)) })
        const onMessage = (callback: (message: FromSlot) => void): void => {
          for (const message of said.splice(0)) callback(message)
          near.onMessage(callback)
        }
        return { slot: id, registered: await promise, link: { ...near, onMessage } }
      }),
    )
  }

  #provider(graphAt: (parallelism: number | undefined) => JobGraph): SlotProvider {
    const { environment, objects: store } = this
    let abandoned = false
    const offered = (): number => this.slotsOffered ?? Infinity
    return {
      get slotsOffered() {
        return offered()
      },
      ...(this.adopts && {
        survivors: async () => {
          const survivors = await this.#survivors()
          await this.onSurvivors()
          return survivors
        },
        endSurvivors: async () => {
          for (const { end } of this.slots.values()) end('the job has ended')
        },
      }),
      start: (id, { parallelism }) => {
        this.onStart(id)
        const { near, far, lose } = linkPair(environment)
        const transport = this.#transport()
        environment.executor.post(() => {
          const slot = new Slot({
            slot: id,
            job: jobId('whole'),
            graph: this.graphOfSlots ?? graphAt(parallelism),
            environment,
            files: new MemoryFiles(),
            transport: transport.transport,
            control: far,
            outlivesCoordinator: this.adopts,
            snapshotWriters: this.#writers(),
            snapshotReader: new SnapshotDownloader({ store, environment }),
          })
          this.slots.set(id, { slot, end: (reason) => (transport.close(), this.slots.delete(id), lose(reason)) })
        })
        return { ...near, send: (message) => void (this.losesWord(message, id) || near.send(message)) }
      },
      workerOf: (id) => (this.slots.has(id) ? `worker of ${id}` : undefined),
      abandon: () => void (abandoned = this.abandoned = true),
      terminate: async (id) => {
        if (abandoned) return
        this.slots.get(id)?.end('ended')
        if (this.endingMs > 0) await new Promise<void>((resolve) => environment.clock.timer(this.endingMs, resolve))
      },
    }
  }

  #transport(): { readonly transport: FrameTransport; readonly close: () => void } {
    let open = true
    const transport: FrameTransport = {
      subscribe: (subject, onMessage) => {
        this.#listeners.set(subject, (bytes) => open && onMessage(bytes))
        return { close: () => void this.#listeners.delete(subject) }
      },
      send: ({ subject }, bytes) => {
        const copy = bytes.slice()
        if (open) this.environment.executor.post(() => this.#listeners.get(subject)?.(copy))
      },
    }
    return { transport, close: () => (open = false) }
  }
}

interface LinkEnd<Out, In> {
  onMessage: ((message: In) => void) | undefined
  onLost: ((reason: string) => void) | undefined
  closed: boolean
  deliver: ((message: Out) => void) | undefined
}

/** Two ends of a control link; each message arrives in a later turn, in order, or not at all after the loss. */
function linkPair(environment: ReturnType<typeof manualEnvironment>) {
  let lost = false
  const end = <Out, In>() => {
    const state: LinkEnd<Out, In> = { onMessage: undefined, onLost: undefined, closed: false, deliver: undefined }
    const link: ControlLink<Out, In> = {
      send: (message) => {
        const copy = structuredClone(message)
        if (!lost && !state.closed) environment.executor.post(() => state.deliver?.(copy))
      },
      onMessage: (callback) => void (state.onMessage = callback),
      onLost: (callback) => void (state.onLost = callback),
      close: () => void (state.closed = true),
    }
    return { state, link }
  }
  const near = end<ToSlot, FromSlot>()
  const far = end<FromSlot, ToSlot>()
  near.state.deliver = (message) => void (!lost && !far.state.closed && far.state.onMessage?.(message))
  far.state.deliver = (message) => void (!lost && !near.state.closed && near.state.onMessage?.(message))
  const lose = (reason: string): void => {
    if (lost) return
    lost = true
    far.state.onLost?.(reason)
    environment.executor.post(() => void (!near.state.closed && near.state.onLost?.(reason)))
  }
  return { near: near.link, far: far.link, lose }
}
