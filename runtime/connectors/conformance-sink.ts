// The conformance suite of two-phase sinks: a crash at each point of scenarios.md R17, and what else may come between.

import { checkpointId } from '../base/ids.ts'
import type { Environment } from '../base/environment.ts'
import { MillraceError } from '../base/errors.ts'
import { Metrics } from '../base/metrics.ts'
import type { Committable } from '../checkpoint/contract.ts'
import { transactionName } from '../storage/paths.ts'
import type { FileSystem } from '../storage/contract.ts'
import type { Claim } from './conformance.ts'
import { conformanceJob, demand, demandSame, taskOf } from './conformance-support.ts'
import type { Committer, Sink, SinkWriter } from './contract.ts'

export interface SinkCase<T> {
  readonly name: string
  /** Each attempt makes it anew; the external system behind it stays. */
  createSink(): Sink<T>
  readonly environment: Environment
  readonly files: FileSystem
  /** Record number n; all differ by `keyOf`. */
  record(n: number): T
  readonly keyOf: (value: T) => string
  /** What the outside world sees now. */
  visible(): Promise<readonly T[]>
  /** What happens to the external system when the job's processes die, e.g. loss of power. */
  crash?(): void
}

const crashPoints = [
  'before pre-commit',
  'after pre-commit, before the acknowledgement',
  'after the swap, before any commit',
  'in the middle of the commits',
  'after the commits, before they are confirmed',
] as const
type CrashPoint = (typeof crashPoints)[number]

const uid = 'sink'
const RECORDS_PER_CHECKPOINT = 7
const CHECKPOINTS = 4

/** `fresh` gives an external system of its own for each claim. */
export function sinkClaims<T>(name: string, fresh: () => SinkCase<T>): readonly Claim[] {
  const crashes = crashPoints.flatMap((point) => [
    { name: `${name}: exact after a crash ${point}`, plan: { crash: { point, checkpoint: 2 } } },
    {
      name: `${name}: exact after a crash ${point}, restored with one writer instead of two`,
      plan: { crash: { point, checkpoint: 2 }, writersAfter: 1 },
    },
    {
      name: `${name}: exact after a crash ${point} of the checkpoint behind an aborted one`,
      plan: { crash: { point, checkpoint: 3 }, aborted: 2 },
    },
    {
      name: `${name}: exact when the writers of before a crash ${point} come back and pre-commit late`,
      plan: { crash: { point, checkpoint: 2 }, zombies: true },
    },
  ])
  return [
    { name: `${name}: exact without any fault`, run: () => new SinkJob(fresh(), {}).run() },
    {
      name: `${name}: what was pre-committed for an aborted checkpoint is committed with the next`,
      run: () => new SinkJob(fresh(), { aborted: 2 }).run(),
    },
    ...crashes.map(({ name, plan }) => ({ name, run: () => new SinkJob(fresh(), plan).run() })),
    { name: `${name}: nothing is visible before its commit`, run: () => invisibleBeforeCommit(fresh()) },
    { name: `${name}: a checkpoint without records has no transaction`, run: () => emptyCheckpoint(fresh()) },
    { name: `${name}: committing and aborting twice changes nothing`, run: () => everythingTwice(fresh()) },
    { name: `${name}: an unknown transaction is an error that is not retried`, run: () => unknownTransaction(fresh()) },
  ]
}

interface Plan {
  readonly crash?: { readonly point: CrashPoint; readonly checkpoint: number }
  /** This checkpoint is acknowledged by all and never completes. */
  readonly aborted?: number
  readonly writersAfter?: number
  readonly zombies?: boolean
}

class Crash extends Error {}

/** The part of a job that a sink sees: attempts, barriers, swaps of HEAD and permits. */
class SinkJob<T> {
  readonly #given: SinkCase<T>
  readonly #plan: Plan
  /** What HEAD says: records before this number are in completed checkpoints. */
  #position = 0
  #unconfirmed: readonly Committable[] = []
  #attempt = 0
  #checkpoint = 0
  #crashed = false
  #zombies: readonly SinkWriter<T>[] = []

  constructor(given: SinkCase<T>, plan: Plan) {
    this.#given = given
    this.#plan = plan
  }

  async run(): Promise<void> {
    const total = RECORDS_PER_CHECKPOINT * CHECKPOINTS
    while (this.#position < total) {
      try {
        await this.#runAttempt(total)
      } catch (error) {
        if (!(error instanceof Crash)) throw error
        this.#given.crash?.()
      }
    }
    if (this.#plan.crash !== undefined) demand(this.#crashed, 'the planned crash did not happen')
    await this.#zombiesReturn()
    const visible = (await this.#given.visible()).map(this.#given.keyOf)
    const expected = Array.from({ length: total }, (_, n) => this.#given.keyOf(this.#given.record(n)))
    demandSame(visible, expected, 'at the end')
    demand((await committerOf(this.#given).list()).length === 0, 'transactions are left over')
  }

  async #runAttempt(total: number): Promise<void> {
    this.#attempt++
    const count = this.#attempt === 1 ? 2 : (this.#plan.writersAfter ?? 2)
    const committer = committerOf(this.#given)
    await committer.commit(this.#unconfirmed)
    this.#unconfirmed = []
    await sweep(committer)
    const writers: SinkWriter<T>[] = []
    for (let subtask = 0; subtask < count; subtask++)
      writers.push(await openWriter(this.#given, { subtask, parallelism: count, attempt: this.#attempt }))
    try {
      await this.#runCheckpoints(writers, committer, total)
    } catch (error) {
      this.#zombies = writers
      throw error
    }
    for (const writer of writers) await writer.close()
  }

  async #runCheckpoints(writers: readonly SinkWriter<T>[], committer: Committer, total: number): Promise<void> {
    let position = this.#position
    let pending: Committable[] = []
    while (this.#position < total) {
      for (const end = Math.min(total, position + RECORDS_PER_CHECKPOINT); position < end; position++)
        writers[position % writers.length]!.write(this.#given.record(position), position)
      const checkpoint = ++this.#checkpoint
      this.#crashAt('before pre-commit', checkpoint)
      pending = [...pending, ...(await prepareAll(writers, checkpoint, position >= total))]
      this.#crashAt('after pre-commit, before the acknowledgement', checkpoint)
      if (checkpoint === this.#plan.aborted) continue
      this.#position = position
      this.#unconfirmed = pending
      this.#crashAt('after the swap, before any commit', checkpoint)
      await committer.commit(pending.slice(0, 1))
      this.#crashAt('in the middle of the commits', checkpoint)
      await committer.commit(pending.slice(1))
      this.#crashAt('after the commits, before they are confirmed', checkpoint)
      this.#unconfirmed = []
      pending = []
    }
  }

  #crashAt(point: CrashPoint, checkpoint: number): void {
    const { crash } = this.#plan
    if (this.#crashed || crash?.point !== point || crash.checkpoint !== checkpoint) return
    this.#crashed = true
    throw new Crash()
  }

  /** Rule 24: a frozen process can pre-commit late; the sweep after a later checkpoint finds it. */
  async #zombiesReturn(): Promise<void> {
    if (this.#plan.zombies !== true) return
    for (const [index, writer] of this.#zombies.entries()) {
      writer.write(this.#given.record(index), index)
      await writer.prepareCommit(checkpointId(this.#checkpoint + 1), false)
    }
    await sweep(committerOf(this.#given))
  }
}

function committerOf<T>(given: SinkCase<T>): Committer {
  const { environment, files } = given
  const committer = given.createSink().createCommitter?.({ environment, files, uid, job: conformanceJob })
  if (committer === undefined) throw new Error('the sink has no committer: it is not two-phase')
  return committer
}

async function sweep(committer: Committer): Promise<void> {
  await committer.abort(await committer.list())
}

async function openWriter<T>(
  given: SinkCase<T>,
  task: { readonly subtask: number; readonly parallelism: number; readonly attempt: number },
): Promise<SinkWriter<T>> {
  const { environment, files } = given
  const writer = given.createSink().createWriter({
    environment,
    files,
    task: taskOf(task),
    uid,
    metrics: new Metrics(),
    restored: { items: [] },
    fail: () => undefined,
  })
  await writer.open()
  return writer
}

async function prepareAll<T>(
  writers: readonly SinkWriter<T>[],
  checkpoint: number,
  end: boolean,
): Promise<Committable[]> {
  const id = checkpointId(checkpoint)
  // All are cut in the same turn, as at a barrier.
  const prepared = await Promise.all(writers.map((writer) => writer.prepareCommit(id, end)))
  return prepared.flat().map(({ transaction, payload }) => {
    // A manifest holds payloads as JSON.
    return { checkpoint: id, transaction, payload: JSON.parse(JSON.stringify(payload)) as unknown }
  })
}

async function invisibleBeforeCommit<T>(given: SinkCase<T>): Promise<void> {
  const writer = await openWriter(given, { subtask: 0, parallelism: 1, attempt: 1 })
  writer.write(given.record(0), 0)
  const prepared = await prepareAll([writer], 1, false)
  writer.write(given.record(1), 1)
  demand((await given.visible()).length === 0, 'records are visible before their commit')
  await committerOf(given).commit(prepared)
  demandSame((await given.visible()).map(given.keyOf), [given.keyOf(given.record(0))], 'after the first commit')
  await writer.close()
}

async function emptyCheckpoint<T>(given: SinkCase<T>): Promise<void> {
  const writer = await openWriter(given, { subtask: 0, parallelism: 1, attempt: 1 })
  demand((await prepareAll([writer], 1, false)).length === 0, 'an empty checkpoint has a transaction')
  writer.write(given.record(0), 0)
  demand((await prepareAll([writer], 2, false)).length > 0, 'a checkpoint with a record has no transaction')
  demand((await prepareAll([writer], 3, true)).length === 0, 'an empty checkpoint has a transaction')
  await writer.close()
}

async function everythingTwice<T>(given: SinkCase<T>): Promise<void> {
  const writer = await openWriter(given, { subtask: 0, parallelism: 1, attempt: 1 })
  writer.write(given.record(0), 0)
  const kept = await prepareAll([writer], 1, false)
  writer.write(given.record(1), 1)
  const dropped = (await prepareAll([writer], 2, false)).map(({ transaction }) => transaction)
  const committer = committerOf(given)
  await committer.commit(kept)
  await committer.commit(kept)
  await committer.abort(dropped)
  await committer.abort(dropped)
  await committer.commit(kept)
  demandSame((await given.visible()).map(given.keyOf), [given.keyOf(given.record(0))], 'after all of it twice')
  await writer.close()
}

/** "Forgotten" must never pass for "committed": its records would be lost without a word. */
async function unknownTransaction<T>(given: SinkCase<T>): Promise<void> {
  const writer = await openWriter(given, { subtask: 0, parallelism: 1, attempt: 1 })
  writer.write(given.record(0), 0)
  const [prepared] = await prepareAll([writer], 1, false)
  const committer = committerOf(given)
  await committer.abort([prepared!.transaction])
  const identity = { job: conformanceJob, uid, attempt: taskOf({ subtask: 0, parallelism: 1, attempt: 9 }).attempt }
  const never = transactionName({
    ...identity,
    subtask: taskOf({ subtask: 0, parallelism: 1, attempt: 9 }).subtask,
    checkpoint: checkpointId(9),
  })
  for (const transaction of [prepared!.transaction, never]) {
    const error = await committer.commit([{ ...prepared!, transaction }]).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    demand(error instanceof MillraceError && !error.retry, `committing an unknown transaction gave ${String(error)}`)
  }
  await writer.close()
}
