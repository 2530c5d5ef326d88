// The conformance suite of two-phase sinks: a crash at each point of scenarios.md R17, and what else may come between.

import { checkpointId } from '../base/ids.ts'
import type { Committable } from '../checkpoint/contract.ts'
import type { Claim } from './conformance.ts'
import {
  anotherJobCommits,
  closingCommitsNothing,
  emptyCheckpoint,
  everythingTwice,
  failedWriteIsToldOf,
  invisibleBeforeCommit,
  namedByNewestCheckpoint,
  othersAreLeftAlone,
  pendingIsListed,
  unknownTransaction,
} from './conformance-sink-claims.ts'
import { committerOf, openWriter, prepareAll, sweep } from './conformance-sink-support.ts'
import type { SinkCase } from './conformance-sink-support.ts'
import { demand, demandSame } from './conformance-support.ts'
import type { Committer, SinkWriter } from './contract.ts'

const crashPoints = [
  'before pre-commit',
  'after pre-commit, before the acknowledgement',
  'after the swap, before any commit',
  'in the middle of the commits',
  'after the commits, before they are confirmed',
] as const
type CrashPoint = (typeof crashPoints)[number]

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
      name: `${name}: exact after a crash ${point}, restored with three writers instead of two`,
      plan: { crash: { point, checkpoint: 2 }, writersAfter: 3 },
    },
    {
      name: `${name}: exact after a crash ${point} of the checkpoint behind a savepoint, restored from the savepoint`,
      plan: { crash: { point, checkpoint: 3 }, savepoint: 2 },
    },
    {
      name: `${name}: exact after a crash ${point} of the checkpoint behind an aborted one`,
      plan: { crash: { point, checkpoint: 3 }, aborted: 2 },
    },
    {
      name: `${name}: exact when the writers of before a crash ${point} come back, write and pre-commit while others write, and late`,
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
    ...[1, 3].map((writersAfter) => ({
      name: `${name}: exact when stopped behind a checkpoint and begun again with ${writersAfter} writers instead of two`,
      run: () => new SinkJob(fresh(), { stop: 2, writersAfter }).run(),
    })),
    { name: `${name}: nothing is visible before its commit`, run: () => invisibleBeforeCommit(fresh()) },
    { name: `${name}: closing a writer makes nothing visible`, run: () => closingCommitsNothing(fresh()) },
    { name: `${name}: a checkpoint without records has no transaction`, run: () => emptyCheckpoint(fresh()) },
    { name: `${name}: committing and aborting twice changes nothing`, run: () => everythingTwice(fresh()) },
    { name: `${name}: an unknown transaction is an error that is not retried`, run: () => unknownTransaction(fresh()) },
    { name: `${name}: what is pre-committed is listed until it is committed`, run: () => pendingIsListed(fresh()) },
    {
      name: `${name}: no transaction is named by a checkpoint before the newest that its writer knows`,
      run: () => namedByNewestCheckpoint(fresh()),
    },
    { name: `${name}: transactions of other jobs and sinks are not listed`, run: () => othersAreLeftAlone(fresh()) },
    {
      name: `${name}: a job that begins from another one's savepoint commits its transactions`,
      run: () => anotherJobCommits(fresh()),
    },
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

interface Plan {
  readonly crash?: { readonly point: CrashPoint; readonly checkpoint: number }
  /** This checkpoint is acknowledged by all and never completes. */
  readonly aborted?: number
  /** This one is a savepoint: it permits no commit, and a crash before the next completed checkpoint goes back to it. */
  readonly savepoint?: number
  /** Behind this checkpoint and its commits the writers are closed in order; others begin. */
  readonly stop?: number
  readonly writersAfter?: number
  readonly zombies?: boolean
}

class Crash extends Error {}
class Stop extends Error {}

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
        if (error instanceof Stop) continue
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
      writers.push(
        await openWriter(this.#given, {
          subtask,
          parallelism: count,
          attempt: this.#attempt,
          newestKnownCheckpoint: this.#checkpoint,
        }),
      )
    try {
      await this.#runCheckpoints(writers, committer, total)
    } catch (error) {
      if (error instanceof Stop) for (const writer of writers) await writer.close()
      else this.#zombies = writers
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
      if (this.#plan.zombies === true) await this.#zombiesWrite()
      this.#crashAt('before pre-commit', checkpoint)
      pending = [...pending, ...(await prepareAll(writers, checkpoint, position >= total))]
      this.#crashAt('after pre-commit, before the acknowledgement', checkpoint)
      if (checkpoint === this.#plan.aborted) continue
      this.#position = position
      this.#unconfirmed = pending
      if (checkpoint === this.#plan.savepoint) continue
      this.#crashAt('after the swap, before any commit', checkpoint)
      await committer.commit(pending.slice(0, 1))
      this.#crashAt('in the middle of the commits', checkpoint)
      await committer.commit(pending.slice(1))
      this.#crashAt('after the commits, before they are confirmed', checkpoint)
      this.#unconfirmed = []
      pending = []
      if (checkpoint === this.#plan.stop) throw new Stop()
    }
  }

  #crashAt(point: CrashPoint, checkpoint: number): void {
    const { crash } = this.#plan
    if (this.#crashed || crash?.point !== point || crash.checkpoint !== checkpoint) return
    this.#crashed = true
    throw new Crash()
  }

  /** Rule 24: a frozen process can go on and pre-commit late; the sweep after a later checkpoint finds it. */
  async #zombiesReturn(): Promise<void> {
    if (this.#plan.zombies !== true) return
    await this.#zombiesWrite()
    await sweep(committerOf(this.#given))
  }

  /** Nothing that they write may ever be seen; an external system may also refuse them. */
  async #zombiesWrite(): Promise<void> {
    for (const [index, writer] of this.#zombies.entries()) {
      try {
        writer.write(this.#given.record(index), index)
        await writer.prepareCommit(checkpointId(this.#checkpoint + 1), false)
      } catch (error) {
        this.#given.environment.log('debug', 'a writer of before was refused', { error: String(error) })
      }
    }
  }
}
