// The ledger: an external system with transactions that judges whether a job was exact.

import type { CheckpointId } from '../base/ids.ts'
import type { Committable } from '../checkpoint/contract.ts'
import { isTransactionOf, transactionName } from '../storage/paths.ts'
import type { Committer, CommitterContext, PreparedTransaction, Sink, SinkContext, SinkWriter } from './contract.ts'
import { OrderedWrites } from './ordered-writes.ts'

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
  /** Gives up whatever has no answer yet: nobody waits for it any more. */
  close?(): void
}

/** Appends go out in pieces of this many entries. */
const ENTRIES_PER_APPEND = 256
const limits = { what: 'The ledger', ready: 32_768, max: 1_000_000 }

/** How a sink reaches its ledger, anew for each writer and each committer. */
export interface LedgerAccess {
  readonly name: string
  readonly entriesPerAppend: number
  readonly connect: (context: SinkContext | CommitterContext, role: 'writer' | 'committer') => LedgerSystem
}

/** Exact: two-phase. */
export function ledgerSink(system: LedgerSystem): Sink<LedgerEntry> {
  return ledgerSinkOf({ name: 'ledger', entriesPerAppend: ENTRIES_PER_APPEND, connect: () => system })
}

/** Exact: two-phase. */
export function ledgerSinkOf({ name, entriesPerAppend, connect }: LedgerAccess): Sink<LedgerEntry> {
  return {
    name,
    createWriter: (context) => {
      const system = connect(context, 'writer')
      return new LedgerWriter(context, { system, entriesPerAppend, seal: (name) => system.preCommit(name) })
    },
    createCommitter: (context) => new LedgerCommitter(context, connect(context, 'committer')),
  }
}

/** At least once: every barrier commits at once, so a failure afterwards doubles records. */
export function plainLedgerSink(system: LedgerSystem): Sink<LedgerEntry> {
  const seal = async (name: string): Promise<void> => {
    await system.preCommit(name)
    await system.commit(name)
  }
  return {
    name: 'plain ledger',
    createWriter: (context) => {
      const writer = new LedgerWriter(context, { system, entriesPerAppend: ENTRIES_PER_APPEND, seal })
      return {
        get ready() {
          return writer.ready
        },
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

interface LedgerWriterOptions {
  readonly system: LedgerSystem
  readonly entriesPerAppend: number
  /** What the barrier does with the transaction. */
  readonly seal: (transaction: string) => Promise<void>
}

class LedgerWriter implements SinkWriter<LedgerEntry> {
  readonly #context: SinkContext
  readonly #options: LedgerWriterOptions
  readonly #writes: OrderedWrites
  #openedAfter: CheckpointId
  #open: string | undefined
  #entries: LedgerEntry[] = []

  constructor(context: SinkContext, options: LedgerWriterOptions) {
    this.#context = context
    this.#openedAfter = context.newestKnownCheckpoint
    this.#options = options
    this.#writes = new OrderedWrites(context, limits)
  }

  async open(): Promise<void> {
    // The ledger needs no preparation.
  }

  get ready(): boolean {
    return this.#writes.ready
  }

  write(value: LedgerEntry): void {
    this.#writes.check()
    const { task, uid } = this.#context
    const { job, attempt, subtask } = task
    this.#open ??= transactionName({ job, uid, attempt, subtask, checkpoint: this.#openedAfter })
    this.#entries.push(value)
    if (this.#entries.length >= this.#options.entriesPerAppend) this.#flush(this.#open)
  }

  async prepareCommit(checkpoint: CheckpointId): Promise<readonly PreparedTransaction[]> {
    const transaction = this.#open
    this.#open = undefined
    this.#openedAfter = checkpoint
    if (transaction !== undefined) {
      this.#flush(transaction)
      this.#writes.add(0, () => this.#options.seal(transaction))
    }
    await this.#writes.settled()
    return transaction === undefined ? [] : [{ transaction, payload: null }]
  }

  /** What is open stays so, for the sweep: no barrier came behind it. */
  async close(): Promise<void> {
    const closed = this.#writes.close()
    this.#options.system.close?.()
    await closed
  }

  #flush(transaction: string): void {
    const entries = this.#entries
    if (entries.length === 0) return
    this.#entries = []
    this.#writes.add(entries.length, () => this.#options.system.append(transaction, entries))
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
