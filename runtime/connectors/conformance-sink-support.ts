// What the suites of sinks do with one: writers, barriers, commits and sweeps, as a job does.

import { checkpointId } from '../base/ids.ts'
import type { Environment } from '../base/environment.ts'
import { Metrics } from '../base/metrics.ts'
import type { Committable } from '../checkpoint/contract.ts'
import type { FileSystem } from '../storage/contract.ts'
import { conformanceJob, taskOf } from './conformance-support.ts'
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
  /** From now on the external system refuses what it is asked. Given: the claim about failing writes is made too. */
  refuse?(): void
}

/** Whose transactions they are. */
export interface SinkOwner {
  readonly job: typeof conformanceJob
  readonly uid: string
}

export const conformanceOwner: SinkOwner = { job: conformanceJob, uid: 'sink' }

export interface WriterOptions {
  readonly subtask: number
  readonly parallelism: number
  readonly attempt: number
  /** 0 by default: the job has taken none. */
  readonly newestKnownCheckpoint?: number
  /** conformanceOwner by default. */
  readonly owner?: SinkOwner
  readonly fail?: (error: unknown) => void
}

/** A fresh one, as in another process. */
export function committerOf<T>(given: SinkCase<T>, { job, uid }: SinkOwner = conformanceOwner): Committer {
  const { environment, files } = given
  const committer = given.createSink().createCommitter?.({ environment, files, uid, job })
  if (committer === undefined) throw new Error('the sink has no committer: it is not two-phase')
  return committer
}

export async function sweep(committer: Committer): Promise<void> {
  await committer.abort(await committer.list())
}

export async function openWriter<T>(
  given: SinkCase<T>,
  { owner = conformanceOwner, fail = () => undefined, newestKnownCheckpoint = 0, ...task }: WriterOptions,
): Promise<SinkWriter<T>> {
  const { environment, files } = given
  const writer = given.createSink().createWriter({
    environment,
    files,
    task: { ...taskOf(task), job: owner.job },
    uid: owner.uid,
    newestKnownCheckpoint: checkpointId(newestKnownCheckpoint),
    metrics: new Metrics(),
    restored: { items: [] },
    fail,
    wake: () => undefined,
  })
  await writer.open()
  return writer
}

export async function prepareAll<T>(
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
