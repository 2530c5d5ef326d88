// What a two-phase sink must do in single steps; the suite that crashes it is conformance-sink.ts.

import { checkpointId, jobId } from '../base/ids.ts'
import { MillraceError } from '../base/errors.ts'
import { parseTransactionName, transactionName } from '../storage/paths.ts'
import { committerOf, conformanceOwner, openWriter, prepareAll } from './conformance-sink-support.ts'
import type { SinkCase, SinkOwner } from './conformance-sink-support.ts'
import { conformanceJob, demand, demandSame, taskOf } from './conformance-support.ts'

export async function invisibleBeforeCommit<T>(given: SinkCase<T>): Promise<void> {
  const writer = await openWriter(given, { subtask: 0, parallelism: 1, attempt: 1 })
  writer.write(given.record(0), 0)
  // The call itself cuts: what is written before it has an answer belongs to the next transaction.
  const preparing = prepareAll([writer], 1, false)
  writer.write(given.record(1), 1)
  const prepared = await preparing
  demand((await given.visible()).length === 0, 'records are visible before their commit')
  await committerOf(given).commit(prepared)
  demandSame((await given.visible()).map(given.keyOf), [given.keyOf(given.record(0))], 'after the first commit')
  await writer.close()
}

export async function emptyCheckpoint<T>(given: SinkCase<T>): Promise<void> {
  const writer = await openWriter(given, { subtask: 0, parallelism: 1, attempt: 1 })
  demand((await prepareAll([writer], 1, false)).length === 0, 'an empty checkpoint has a transaction')
  writer.write(given.record(0), 0)
  demand((await prepareAll([writer], 2, false)).length > 0, 'a checkpoint with a record has no transaction')
  demand((await prepareAll([writer], 3, true)).length === 0, 'an empty checkpoint has a transaction')
  await writer.close()
}

export async function everythingTwice<T>(given: SinkCase<T>): Promise<void> {
  const writer = await openWriter(given, { subtask: 0, parallelism: 1, attempt: 1 })
  writer.write(given.record(0), 0)
  const kept = await prepareAll([writer], 1, false)
  writer.write(given.record(1), 1)
  const dropped = (await prepareAll([writer], 2, false)).map(({ transaction }) => transaction)
  const committer = committerOf(given)
  await committer.commit(kept)
  await committer.commit(kept)
  await committer.abort(dropped)
  // Another process knows nothing of what this one did.
  await committerOf(given).abort(dropped)
  await committerOf(given).commit(kept)
  demandSame((await given.visible()).map(given.keyOf), [given.keyOf(given.record(0))], 'after all of it twice')
  await writer.close()
}

/** "Forgotten" must never pass for "committed": its records would be lost without a word. */
export async function unknownTransaction<T>(given: SinkCase<T>): Promise<void> {
  const writer = await openWriter(given, { subtask: 0, parallelism: 1, attempt: 1 })
  writer.write(given.record(0), 0)
  const [prepared] = await prepareAll([writer], 1, false)
  const committer = committerOf(given)
  await committer.abort([prepared!.transaction])
  const identity = { ...conformanceOwner, attempt: taskOf({ subtask: 0, parallelism: 1, attempt: 9 }).attempt }
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

/** Rule 24's sweep knows nothing else of what a dead writer left. */
export async function pendingIsListed<T>(given: SinkCase<T>): Promise<void> {
  const writer = await openWriter(given, { subtask: 0, parallelism: 1, attempt: 1 })
  writer.write(given.record(0), 0)
  const prepared = await prepareAll([writer], 1, false)
  const names = prepared.map(({ transaction }) => transaction)
  demandSame(await committerOf(given).list(), names, 'listed before the commit')
  await committerOf(given).commit(prepared)
  demandSame(await committerOf(given).list(), [], 'listed behind the commit')
  await writer.close()
}

/**
 * Rule 24's sweep of a job whose coordinator is gone takes transactions that are named by a checkpoint before the newest completed one: a
 * worker that runs on has none of these. Names of another form are nobody's to sweep.
 */
export async function namedByNewestCheckpoint<T>(given: SinkCase<T>): Promise<void> {
  const writer = await openWriter(given, { subtask: 0, parallelism: 1, attempt: 2, newestKnownCheckpoint: 6 })
  for (const newest of [6, 7]) {
    writer.write(given.record(newest), newest)
    for (const { transaction } of await prepareAll([writer], newest + 1, false)) {
      const named = parseTransactionName(transaction)?.checkpoint ?? newest
      demand(named >= newest, `a transaction that was begun behind checkpoint ${newest} is named by ${named}`)
    }
  }
  await writer.close()
}

/** Two jobs, or two sinks of one, may share the external system; the sweep of one must not take what the other may still commit. */
export async function othersAreLeftAlone<T>(given: SinkCase<T>): Promise<void> {
  const others: readonly SinkOwner[] = [
    { job: jobId(`${conformanceJob}.2`), uid: conformanceOwner.uid },
    { job: conformanceJob, uid: `${conformanceOwner.uid}2` },
  ]
  const expected: string[] = []
  for (const [n, owner] of others.entries()) {
    const writer = await openWriter(given, { subtask: 0, parallelism: 1, attempt: 1, owner })
    writer.write(given.record(n), n)
    const prepared = await prepareAll([writer], 1, false)
    demandSame(await committerOf(given).list(), [], `the sweep of ${conformanceJob}, sink ${conformanceOwner.uid}`)
    await committerOf(given, owner).commit(prepared)
    expected.push(given.keyOf(given.record(n)))
    await writer.close()
  }
  demandSame((await given.visible()).map(given.keyOf), expected, 'committed by their own')
}

/** A savepoint holds transactions that nobody has committed yet; a job of another name may begin from it. */
export async function anotherJobCommits<T>(given: SinkCase<T>): Promise<void> {
  const writer = await openWriter(given, { subtask: 0, parallelism: 1, attempt: 1 })
  writer.write(given.record(0), 0)
  const prepared = await prepareAll([writer], 1, false)
  const heir: SinkOwner = { job: jobId('heir'), uid: conformanceOwner.uid }
  await committerOf(given, heir).commit(prepared)
  await committerOf(given).commit(prepared)
  demandSame((await given.visible()).map(given.keyOf), [given.keyOf(given.record(0))], 'committed by another job')
  await writer.close()
}

/** A task is closed whenever its job is ended or restarted: that is no barrier. */
export async function closingCommitsNothing<T>(given: SinkCase<T>): Promise<void> {
  const writer = await openWriter(given, { subtask: 0, parallelism: 1, attempt: 1 })
  writer.write(given.record(0), 0)
  const prepared = await prepareAll([writer], 1, false)
  writer.write(given.record(1), 1)
  await writer.close()
  demand((await given.visible()).length === 0, 'records are visible because their writer was closed')
  await committerOf(given).commit(prepared)
  demandSame((await given.visible()).map(given.keyOf), [given.keyOf(given.record(0))], 'committed behind the close')
}

/** An acknowledgement says that all before it is safe: a write that failed must be heard of before (B22). */
export async function failedWriteIsToldOf<T>(given: SinkCase<T>): Promise<void> {
  const failures: unknown[] = []
  const writer = await openWriter(given, {
    subtask: 0,
    parallelism: 1,
    attempt: 1,
    fail: (error) => void failures.push(error),
  })
  given.refuse!()
  try {
    writer.write(given.record(0), 0)
    await prepareAll([writer], 1, false)
  } catch {
    return
  }
  demand(failures.length > 0, 'a barrier was acknowledged though its records could not be written')
}
