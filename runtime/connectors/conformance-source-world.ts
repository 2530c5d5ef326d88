// What the suite of sources runs one in: a coordinator with an enumerator, and readers, in one thread.

import { checkpointId, subtaskIndex, type SubtaskIndex } from '../base/ids.ts'
import type { Environment } from '../base/environment.ts'
import { Metrics } from '../base/metrics.ts'
import { createReader, createWriter } from '../record/bytes.ts'
import type { Codec } from '../record/contract.ts'
import type { FileSystem } from '../storage/contract.ts'
import { demand, taskOf } from './conformance-support.ts'
import type { Source, SourceReader, SplitEnumerator } from './contract.ts'

export interface SourceCase<T, Split, State> {
  readonly name: string
  /** A bounded one; each call gives the same. */
  createSource(): Source<T, Split, State>
  readonly environment: Environment
  readonly files: FileSystem
  /** Lets I/O, turns and time go on; called until the source has something. */
  settle(): Promise<void>
  /** All records, told apart by `keyOf`. */
  readonly expected: readonly T[]
  readonly keyOf: (value: T) => string
}

/** A source that has nothing for so many turns is stuck. */
const SETTLES_MAX = 10_000

export interface WorldSnapshot {
  readonly enumerator: Uint8Array
  readonly splits: readonly Uint8Array[]
}

interface Reading<T, Split> {
  reader: SourceReader<T, Split>
  ended: boolean
  /** Records since the last checkpoint. */
  since: string[]
  /** Splits assigned since the last checkpoint. */
  assigned: Split[]
  atCheckpoint: readonly Uint8Array[]
}

/** A coordinator with an enumerator, and readers, in one thread. */
export class World<T, Split, State> {
  readonly #given: SourceCase<T, Split, State>
  readonly #source: Source<T, Split, State>
  readonly #parallelism: number
  #enumerator: SplitEnumerator<Split, State>
  #started: Promise<void>
  readonly #readings: Reading<T, Split>[] = []
  #finishedSince: string[] = []
  #enumeratorAtCheckpoint: Uint8Array
  #failure: unknown
  #turn = 0
  #onlyWhenWoken = false
  /** Readers that their tasks would poll: each had something, or something happened to it, since it said 'nothing'. */
  readonly #awake = new Set<number>()
  /** The enumerator said that no split waits; not asked before it has started. */
  #noneWaits = false

  constructor(given: SourceCase<T, Split, State>, parallelism: number, restored?: WorldSnapshot) {
    this.#given = given
    this.#source = given.createSource()
    this.#parallelism = parallelism
    const state = restored === undefined ? undefined : decoded(this.#source.enumeratorCodec, restored.enumerator)
    this.#enumerator = this.#createEnumerator(state)
    for (let subtask = 0; subtask < parallelism; subtask++) {
      const splits = (restored?.splits ?? []).filter((_, index) => index % parallelism === subtask)
      this.#readings.push(this.#createReading(subtask, splits))
    }
    this.#enumeratorAtCheckpoint = encoded(this.#source.enumeratorCodec, this.#enumerator.snapshot(checkpointId(1)))
    this.#started = this.#enumerator.start()
    this.#readings.forEach(({ reader }, subtask) => {
      this.#enumerator.addReader(subtaskIndex(subtask))
      reader.start()
    })
  }

  /** As a task does; else readers are polled whenever they might have something. */
  pollOnlyWhenWoken(): void {
    this.#onlyWhenWoken = true
  }

  /** Emits up to `count` records, readers taking turns. */
  async run(count: number): Promise<string[]> {
    const emitted: string[] = []
    for (let settles = 0; emitted.length < count && this.#readings.some(({ ended }) => !ended);) {
      if (this.#pollOnce(emitted)) {
        settles = 0
        continue
      }
      demand(settles++ < SETTLES_MAX, `no record and no end after ${emitted.length} records`)
      await this.#settle()
    }
    return emitted
  }

  async runToEnd(): Promise<string[]> {
    const emitted = await this.run(Infinity)
    for (const { reader } of this.#readings)
      demand(reader.ownedSplits().length === 0, 'a reader said end and owns splits')
    return emitted
  }

  snapshot(): WorldSnapshot {
    return {
      enumerator: encoded(this.#source.enumeratorCodec, this.#enumerator.snapshot(checkpointId(1))),
      splits: this.#readings.flatMap((reading) => this.#splitsOf(reading)),
    }
  }

  markCheckpoint(): void {
    this.#enumeratorAtCheckpoint = encoded(this.#source.enumeratorCodec, this.#enumerator.snapshot(checkpointId(1)))
    this.#finishedSince = []
    for (const reading of this.#readings) {
      reading.since = []
      reading.assigned = []
      reading.atCheckpoint = this.#splitsOf(reading)
    }
  }

  /** Records that count since the last checkpoint: those of failed readers do not. */
  sinceCheckpoint(): string[] {
    return this.#readings.flatMap(({ since }) => since)
  }

  /** Reader `subtask` begins again at the checkpoint; the others go on. Returns the records since then that still count. */
  async failReader(subtask: number): Promise<string[]> {
    const lost = this.#readings[subtask]!
    await lost.reader.close()
    this.#readings[subtask] = this.#createReading(subtask, lost.atCheckpoint)
    this.#noneWaits = false
    if (lost.assigned.length > 0) this.#enumerator.addSplitsBack(lost.assigned, subtaskIndex(subtask))
    this.#enumerator.addReader(subtaskIndex(subtask))
    this.#readings[subtask].reader.start()
    return this.#readings.filter((_, index) => index !== subtask).flatMap(({ since }) => since)
  }

  /** Adoption: a new coordinator knows the checkpoint, and what readers report. */
  async replaceEnumerator(): Promise<void> {
    this.#noneWaits = false
    this.#enumerator.close()
    this.#enumerator = this.#createEnumerator(decoded(this.#source.enumeratorCodec, this.#enumeratorAtCheckpoint))
    await this.#settle()
    this.#started = this.#enumerator.start()
    await this.#settleStart()
    const owned = new Map(
      this.#readings.map(({ reader }, subtask) => [subtaskIndex(subtask), reader.snapshot(checkpointId(2))]),
    )
    this.#enumerator.reconcile(owned, this.#finishedSince)
    this.#readings.forEach(({ ended }, subtask) => {
      if (ended) return
      this.#enumerator.addReader(subtaskIndex(subtask))
      this.#enumerator.requestSplit(subtaskIndex(subtask))
    })
  }

  async close(): Promise<void> {
    this.#enumerator.close()
    for (const { reader } of this.#readings) await reader.close()
    await this.#started
  }

  #createEnumerator(state: State | undefined): SplitEnumerator<Split, State> {
    const { environment, files } = this.#given
    return this.#source.createEnumerator(
      {
        environment,
        files,
        parallelism: this.#parallelism,
        assign: (subtask, splits) => this.#assign(subtask, splits),
        signalNoMoreSplits: (subtask) => this.#noMoreSplits(subtask),
        fail: (error) => this.#fail(error),
      },
      state,
    )
  }

  #noMoreSplits(subtask: SubtaskIndex): void {
    this.#awake.add(subtask)
    this.#readings[subtask]?.reader.noMoreSplits()
  }

  #assign(subtask: SubtaskIndex, splits: readonly Split[]): void {
    demand(
      !this.#noneWaits,
      'the enumerator said that no split waits, readers without one were idle, and now it assigns one',
    )
    const reading = this.#readings[subtask]!
    this.#awake.add(subtask)
    reading.assigned.push(...splits)
    reading.reader.addSplits(
      splits.map((split) => decoded(this.#source.splitCodec, encoded(this.#source.splitCodec, split))),
    )
  }

  #createReading(subtask: number, splits: readonly Uint8Array[]): Reading<T, Split> {
    this.#awake.add(subtask)
    const reader = this.#source.createReader({
      environment: this.#given.environment,
      files: this.#given.files,
      task: taskOf({ subtask, parallelism: this.#parallelism, attempt: 1 }),
      metrics: new Metrics(),
      wake: () => void this.#awake.add(subtask),
      requestSplit: () => this.#enumerator.requestSplit(subtaskIndex(subtask)),
      splitFinished: (id) => this.#finishedSince.push(id),
      fail: (error) => this.#fail(error),
    })
    if (splits.length > 0) reader.addSplits(splits.map((bytes) => decoded(this.#source.splitCodec, bytes)))
    return { reader, ended: false, since: [], assigned: [], atCheckpoint: splits }
  }

  #splitsOf(reading: Reading<T, Split>): Uint8Array[] {
    return reading.reader.snapshot(checkpointId(1)).map((split) => encoded(this.#source.splitCodec, split))
  }

  /** Asks each reader once, beginning behind the last that had something; whether any had. */
  #pollOnce(emitted: string[]): boolean {
    for (let asked = 0; asked < this.#readings.length; asked++) {
      const subtask = this.#turn
      const reading = this.#readings[subtask]!
      this.#turn = (this.#turn + 1) % this.#readings.length
      if (reading.ended || (this.#onlyWhenWoken && !this.#awake.has(subtask))) continue
      this.#awake.delete(subtask)
      const status = reading.reader.poll({
        emit: (value, _, splitId) => {
          demand(
            reading.reader.ownedSplits().includes(splitId),
            `a record of split ${splitId}, which its reader does not own`,
          )
          emitted.push(this.#given.keyOf(value))
          reading.since.push(this.#given.keyOf(value))
        },
        emitTo: () => undefined,
      })
      if (status === 'end') reading.ended = true
      if (status !== 'nothing') {
        this.#awake.add(subtask)
        return true
      }
    }
    return false
  }

  async #settleStart(): Promise<void> {
    const start = { done: false }
    void this.#started.then(() => (start.done = true))
    for (let settles = 0; !start.done; settles++) {
      demand(settles < SETTLES_MAX, 'the enumerator does not start')
      await this.#settle()
    }
  }

  async #settle(): Promise<void> {
    await this.#given.settle()
    this.#noneWaits = !this.#enumerator.splitsWait
    if (this.#failure !== undefined) throw this.#failure
  }

  #fail(error: unknown): void {
    this.#failure ??= error
  }
}

function encoded<T>(codec: Codec<T>, value: T): Uint8Array {
  const writer = createWriter()
  codec.encode(value, writer)
  return writer.take()
}

function decoded<T>(codec: Codec<T>, bytes: Uint8Array): T {
  return codec.decode(createReader(bytes))
}
