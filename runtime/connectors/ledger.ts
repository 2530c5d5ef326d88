// The ledger: an external system with transactions that judges whether a job was exact.

import { checkpointId } from '../base/ids.ts'
import type { CheckpointId } from '../base/ids.ts'
import type { Committable } from '../checkpoint/contract.ts'
import { isTransactionOf, transactionName } from '../storage/paths.ts'
import type { Committer, CommitterContext, PreparedTransaction, Sink, SinkContext, SinkWriter } from './contract.ts'
import { connectorError } from './errors.ts'

export interface LedgerEntry {
  readonly split: number
  readonly n: number
  readonly magic: number
  /** Set behind a keyed counter: the key and how many records of it came so far, this one included. */
  readonly key?: string
  readonly count?: number
}

/** Outlives the processes of the job. Every call may also land late, or land without its answer. */
export interface LedgerSystem {
  /** Opens the transaction at its first entries. Refuses a committed or pre-committed one. */
  append(transaction: string, entries: readonly LedgerEntry[]): Promise<void>
  /** Idempotent. Afterwards the transaction survives anything until commit or abort. MR-N12 for an unknown one. */
  preCommit(transaction: string): Promise<void>
  /** Idempotent: a second commit changes nothing. MR-N12 for an unknown one. */
  commit(transaction: string): Promise<void>
  /** Idempotent. Refuses a committed one. */
  abort(transaction: string): Promise<void>
  /** Open and pre-committed ones. */
  list(): Promise<readonly string[]>
}

/** Appends go out in pieces of this many entries. */
const ENTRIES_PER_APPEND = 256
/** Entries that the ledger has not answered for; write() cannot wait. */
const UNANSWERED_ENTRIES_MAX = 1_000_000

/** Exact: two-phase. */
export function ledgerSink(system: LedgerSystem): Sink<LedgerEntry> {
  return {
    name: 'ledger',
    createWriter: (context) => new LedgerWriter(context, system, async (name) => system.preCommit(name)),
    createCommitter: (context) => new LedgerCommitter(context, system),
  }
}

/** At least once: every barrier commits at once, so a failure afterwards doubles records. */
export function plainLedgerSink(system: LedgerSystem): Sink<LedgerEntry> {
  const atOnce = async (name: string): Promise<void> => {
    await system.preCommit(name)
    await system.commit(name)
  }
  return {
    name: 'plain ledger',
    createWriter: (context) => {
      const writer = new LedgerWriter(context, system, atOnce)
      return {
        open: () => writer.open(),
        write: (value) => writer.write(value),
        prepareCommit: async (checkpoint) => {
          await writer.prepareCommit(checkpoint)
          return []
        },
        close: () => writer.close(),
      }
    },
  }
}

class LedgerWriter implements SinkWriter<LedgerEntry> {
  readonly #context: SinkContext
  readonly #system: LedgerSystem
  readonly #seal: (transaction: string) => Promise<void>
  #openedAfter: CheckpointId = checkpointId(0)
  #open: string | undefined
  #entries: LedgerEntry[] = []
  #unanswered = 0
  /** All calls, one after the other. */
  #sent: Promise<void> = Promise.resolve()
  #failure: { readonly cause: unknown } | undefined

  constructor(context: SinkContext, system: LedgerSystem, seal: (transaction: string) => Promise<void>) {
    this.#context = context
    this.#system = system
    this.#seal = seal
  }

  async open(): Promise<void> {
    // The ledger needs no preparation.
  }

  write(value: LedgerEntry): void {
    if (this.#failure !== undefined) throw this.#failure.cause
    const { task, uid } = this.#context
    const { job, attempt, subtask } = task
    this.#open ??= transactionName({ job, uid, attempt, subtask, checkpoint: this.#openedAfter })
    this.#entries.push(value)
    if (this.#entries.length >= ENTRIES_PER_APPEND) this.#flush(this.#open)
  }

  async prepareCommit(checkpoint: CheckpointId): Promise<readonly PreparedTransaction[]> {
    const transaction = this.#open
    this.#open = undefined
    this.#openedAfter = checkpoint
    if (transaction !== undefined) {
      this.#flush(transaction)
      this.#enqueue(() => this.#seal(transaction))
    }
    await this.#sent
    if (this.#failure !== undefined) throw this.#failure.cause
    return transaction === undefined ? [] : [{ transaction, payload: null }]
  }

  async close(): Promise<void> {
    await this.#sent
  }

  #flush(transaction: string): void {
    const entries = this.#entries
    if (entries.length === 0) return
    this.#entries = []
    this.#unanswered += entries.length
    if (this.#unanswered > UNANSWERED_ENTRIES_MAX)
      throw connectorError('MR-N11', `The ledger (limit ${UNANSWERED_ENTRIES_MAX} entries).`)
    this.#enqueue(async () => {
      await this.#system.append(transaction, entries)
      this.#unanswered -= entries.length
    })
  }

  /** Owns the promise: a failure is kept for prepareCommit (B22) and fails the task at once. */
  #enqueue(call: () => Promise<void>): void {
    this.#sent = this.#sent.then(async () => {
      if (this.#failure !== undefined) return
      try {
        await call()
      } catch (cause) {
        this.#failure = { cause }
        this.#context.fail(cause)
      }
    })
  }
}

class LedgerCommitter implements Committer {
  readonly #context: CommitterContext
  readonly #system: LedgerSystem

  constructor(context: CommitterContext, system: LedgerSystem) {
    this.#context = context
    this.#system = system
  }

  async commit(committables: readonly Committable[]): Promise<void> {
    for (const { transaction } of committables) await this.#system.commit(transaction)
  }

  async list(): Promise<readonly string[]> {
    const names = await this.#system.list()
    return names.filter((name) => isTransactionOf(name, this.#context))
  }

  async abort(transactions: readonly string[]): Promise<void> {
    for (const transaction of transactions) await this.#system.abort(transaction)
  }
}
