// Collects results in memory, exactly once, for tests whose job runs in the same process.

import type { CheckpointId } from '../base/ids.ts'
import { isTransactionOf, transactionName } from '../storage/paths.ts'
import type { Committer, CommitterContext, Sink, SinkContext, SinkWriter } from './contract.ts'
import { connectorError } from './errors.ts'

/** An external system of its own: pre-committed values survive the job's crash, committed ones are visible. */
interface Collection {
  readonly preCommitted: Map<string, readonly unknown[]>
  readonly committed: Map<string, readonly unknown[]>
}

/** By name, for the life of the process: a test takes a name of its own. */
const collections = new Map<string, Collection>()

/** Two-phase: `collected(name)` shows values once their checkpoint completed, or the job finished. */
export function collectionSink<T>(name: string): Sink<T> {
  return {
    name: `collection ${name}`,
    createWriter: (context) => new CollectionWriter(context, collectionOf(name)),
    createCommitter: (context) => new CollectionCommitter(context, collectionOf(name)),
  }
}

/** What was committed so far to `collectionSink(name)`, in the order of commits. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows what its sink took.
export function collected<T>(name: string): readonly T[] {
  return [...collectionOf(name).committed.values()].flat() as T[]
}

function collectionOf(name: string): Collection {
  let collection = collections.get(name)
  if (collection === undefined) {
    collection = { preCommitted: new Map(), committed: new Map() }
    collections.set(name, collection)
  }
  return collection
}

class CollectionWriter<T> implements SinkWriter<T> {
  readonly #context: SinkContext
  readonly #collection: Collection
  #openedAfter: CheckpointId
  #values: T[] = []

  constructor(context: SinkContext, collection: Collection) {
    this.#context = context
    this.#openedAfter = context.newestKnownCheckpoint
    this.#collection = collection
  }

  async open(): Promise<void> {
    // Nothing to prepare.
  }

  write(value: T): void {
    this.#values.push(value)
  }

  async prepareCommit(checkpoint: CheckpointId) {
    const { task, uid } = this.#context
    const { job, attempt, subtask } = task
    const name = transactionName({ job, uid, attempt, subtask, checkpoint: this.#openedAfter })
    const values = this.#values
    this.#values = []
    this.#openedAfter = checkpoint
    if (values.length === 0) return []
    this.#collection.preCommitted.set(name, values)
    return [{ transaction: name, payload: null }]
  }

  close(): void {
    this.#values = []
  }
}

class CollectionCommitter implements Committer {
  readonly #context: CommitterContext
  readonly #collection: Collection

  constructor(context: CommitterContext, collection: Collection) {
    this.#context = context
    this.#collection = collection
  }

  async commit(committables: readonly { readonly transaction: string }[]): Promise<void> {
    const { preCommitted, committed } = this.#collection
    for (const { transaction } of committables) {
      if (committed.has(transaction)) continue
      const values = preCommitted.get(transaction)
      if (values === undefined) throw connectorError('MR-N12', `Collection: ${transaction}.`)
      committed.set(transaction, values)
      preCommitted.delete(transaction)
    }
  }

  async list(): Promise<readonly string[]> {
    return [...this.#collection.preCommitted.keys()].filter((name) => isTransactionOf(name, this.#context))
  }

  async abort(transactions: readonly string[]): Promise<void> {
    for (const transaction of transactions) this.#collection.preCommitted.delete(transaction)
  }
}
