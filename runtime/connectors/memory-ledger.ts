// The ledger in memory: given to a job from outside, it survives the job's crashes, as a database would.

import type { LedgerEntry, LedgerSystem } from './ledger.ts'
import { connectorError } from './errors.ts'

interface Transaction {
  state: 'open' | 'pre-committed' | 'committed'
  readonly entries: LedgerEntry[]
}

export class MemoryLedger implements LedgerSystem {
  /** Aborted ones are forgotten: a frozen writer that comes back may open its transaction anew, and the next sweep finds it. */
  readonly #transactions = new Map<string, Transaction>()
  readonly #committed: LedgerEntry[] = []

  /** What the outside world sees, in the order of commits. */
  get entries(): readonly LedgerEntry[] {
    return this.#committed
  }

  async append(name: string, entries: readonly LedgerEntry[]): Promise<void> {
    let transaction = this.#transactions.get(name)
    if (transaction === undefined) {
      transaction = { state: 'open', entries: [] }
      this.#transactions.set(name, transaction)
    }
    if (transaction.state !== 'open')
      throw connectorError('MR-N10', `Ledger: ${name} is ${transaction.state} and takes no more entries.`)
    transaction.entries.push(...entries)
  }

  async preCommit(name: string): Promise<void> {
    const transaction = this.#find(name)
    if (transaction.state === 'open') transaction.state = 'pre-committed'
  }

  async commit(name: string): Promise<void> {
    const transaction = this.#find(name)
    if (transaction.state === 'committed') return
    if (transaction.state === 'open') throw connectorError('MR-N14', `Ledger: ${name} was not pre-committed.`)
    transaction.state = 'committed'
    this.#committed.push(...transaction.entries)
  }

  async abort(name: string): Promise<void> {
    if (this.#transactions.get(name)?.state === 'committed')
      throw connectorError('MR-N14', `Ledger: ${name} is committed and cannot be aborted.`)
    this.#transactions.delete(name)
  }

  async list(): Promise<readonly string[]> {
    return [...this.#transactions].filter(([, { state }]) => state !== 'committed').map(([name]) => name)
  }

  #find(name: string): Transaction {
    const transaction = this.#transactions.get(name)
    if (transaction === undefined) throw connectorError('MR-N12', `Ledger: ${name}.`)
    return transaction
  }
}
