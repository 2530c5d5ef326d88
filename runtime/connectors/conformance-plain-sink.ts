// The conformance suite of sinks without transactions: they may repeat, and never lose.

import type { Claim } from './conformance.ts'
import { failedWriteIsToldOf } from './conformance-sink-claims.ts'
import { openWriter, prepareAll } from './conformance-sink-support.ts'
import type { SinkCase } from './conformance-sink-support.ts'
import { demand } from './conformance-support.ts'
import type { SinkWriter } from './contract.ts'

const RECORDS_PER_CHECKPOINT = 7
const CHECKPOINTS = 4

/** Where the job dies, once, in its second checkpoint. */
const crashPoints = ['before the barrier', 'behind the barrier', 'behind the checkpoint'] as const
type CrashPoint = (typeof crashPoints)[number]

/** `fresh` gives an external system of its own for each claim. */
export function plainSinkClaims<T>(name: string, fresh: () => SinkCase<T>): readonly Claim[] {
  const crashes = crashPoints.flatMap((point) =>
    [1, 3].map((writersAfter) => ({
      name: `${name}: loses nothing in a crash ${point}, restored with ${writersAfter} writers instead of two`,
      run: async () => void (await new PlainJob(fresh(), { point, writersAfter }).run()),
    })),
  )
  return [
    { name: `${name}: has every record once without any fault`, run: () => withoutFault(fresh()) },
    ...crashes,
    { name: `${name}: has no transactions`, run: () => noTransactions(fresh()) },
    ...(fresh().refuse === undefined
      ? []
      : [
          {
            name: `${name}: a write that failed is told of before the barrier is acknowledged`,
            run: () => failedWriteIsToldOf(fresh()),
          },
        ]),
  ]
}

async function withoutFault<T>(given: SinkCase<T>): Promise<void> {
  const visible = await new PlainJob(given, undefined).run()
  demand(visible.length === new Set(visible).size, 'records are there twice though nothing failed')
}

async function noTransactions<T>(given: SinkCase<T>): Promise<void> {
  demand(given.createSink().createCommitter === undefined, 'it has a committer: use sinkClaims')
  const writer = await openWriter(given, { subtask: 0, parallelism: 1, attempt: 1 })
  writer.write(given.record(0), 0)
  demand((await prepareAll([writer], 1, false)).length === 0, 'it prepares transactions, which nobody commits')
  await writer.close()
}

class Crash extends Error {}

class PlainJob<T> {
  readonly #given: SinkCase<T>
  readonly #crash: { readonly point: CrashPoint; readonly writersAfter: number } | undefined
  /** Records before this number are in completed checkpoints. */
  #position = 0
  #attempt = 0
  #checkpoint = 0

  constructor(given: SinkCase<T>, crash: { readonly point: CrashPoint; readonly writersAfter: number } | undefined) {
    this.#given = given
    this.#crash = crash
  }

  /** Returns the keys of what is visible at the end. */
  async run(): Promise<readonly string[]> {
    const total = RECORDS_PER_CHECKPOINT * CHECKPOINTS
    while (this.#position < total) {
      try {
        await this.#runAttempt(total)
      } catch (error) {
        if (!(error instanceof Crash)) throw error
        this.#given.crash?.()
      }
    }
    const given = this.#given
    const visible = (await given.visible()).map(given.keyOf)
    const known = new Set(visible)
    const expected = Array.from({ length: total }, (_, n) => given.keyOf(given.record(n)))
    const missing = expected.filter((key) => !known.has(key))
    demand(missing.length === 0, `${missing.length} records are lost: ${missing.slice(0, 5).join(', ')}`)
    demand(known.size === total, 'there are records that nobody wrote')
    return visible
  }

  async #runAttempt(total: number): Promise<void> {
    this.#attempt++
    const count = this.#attempt === 1 ? 2 : this.#crash!.writersAfter
    const writers: SinkWriter<T>[] = []
    for (let subtask = 0; subtask < count; subtask++)
      writers.push(await openWriter(this.#given, { subtask, parallelism: count, attempt: this.#attempt }))
    for (let position = this.#position; position < total; this.#position = position) {
      for (const end = position + RECORDS_PER_CHECKPOINT; position < end; position++)
        writers[position % count]!.write(this.#given.record(position), position)
      const checkpoint = ++this.#checkpoint
      this.#crashAt('before the barrier', checkpoint)
      await prepareAll(writers, checkpoint, position >= total)
      this.#crashAt('behind the barrier', checkpoint)
      this.#position = position
      this.#crashAt('behind the checkpoint', checkpoint)
    }
    for (const writer of writers) await writer.close()
  }

  #crashAt(point: CrashPoint, checkpoint: number): void {
    if (this.#crash?.point === point && checkpoint === 2) throw new Crash()
  }
}
