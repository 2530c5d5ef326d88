// The ledger in files, for jobs of several processes: a transaction is a file that moves from open to pre-committed to committed.

import type { FileSystem } from '../storage/contract.ts'
import { errorCodeOf } from '../storage/errors.ts'
import { joinPath, parseTransactionName } from '../storage/paths.ts'
import { connectorError } from './errors.ts'
import type { LedgerEntry, LedgerSystem } from './ledger.ts'

const OPEN = 'open'
const PRE_COMMITTED = 'pre-committed'
const COMMITTED = 'committed'

export class FileLedger implements LedgerSystem {
  readonly #files: FileSystem
  readonly #folder: string
  #prepared: Promise<void> | undefined

  constructor(files: FileSystem, folder: string) {
    this.#files = files
    this.#folder = folder
  }

  async append(name: string, entries: readonly LedgerEntry[]): Promise<void> {
    await this.#prepare()
    if ((await this.#has(PRE_COMMITTED, name)) || (await this.#has(COMMITTED, name)))
      throw connectorError('MR-N10', `Ledger: ${name} takes no more entries.`)
    const text = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
    await this.#files.append(this.#path(OPEN, name), new TextEncoder().encode(text))
  }

  async preCommit(name: string): Promise<void> {
    await this.#prepare()
    const open = this.#path(OPEN, name)
    if (!(await this.#files.exists(open))) {
      if ((await this.#has(PRE_COMMITTED, name)) || (await this.#has(COMMITTED, name))) return
      throw connectorError('MR-N12', `Ledger: ${name}.`)
    }
    await this.#files.sync(open)
    await this.#move(name, OPEN, PRE_COMMITTED)
  }

  async commit(name: string): Promise<void> {
    await this.#prepare()
    if (await this.#has(COMMITTED, name)) return
    if (await this.#has(PRE_COMMITTED, name)) return this.#move(name, PRE_COMMITTED, COMMITTED)
    if (await this.#has(OPEN, name)) throw connectorError('MR-N14', `Ledger: ${name} was not pre-committed.`)
    throw connectorError('MR-N12', `Ledger: ${name}.`)
  }

  async abort(name: string): Promise<void> {
    await this.#prepare()
    if (await this.#has(COMMITTED, name))
      throw connectorError('MR-N14', `Ledger: ${name} is committed and cannot be aborted.`)
    await this.#files.remove(this.#path(OPEN, name))
    await this.#files.remove(this.#path(PRE_COMMITTED, name))
  }

  async list(): Promise<readonly string[]> {
    await this.#prepare()
    const names = [
      ...(await this.#files.list(joinPath(this.#folder, OPEN))),
      ...(await this.#files.list(joinPath(this.#folder, PRE_COMMITTED))),
    ]
    return [...new Set(names)].sort()
  }

  /** All committed entries, in the order in which attempts wrote them. */
  async entries(): Promise<readonly LedgerEntry[]> {
    await this.#prepare()
    const names = (await this.#files.list(joinPath(this.#folder, COMMITTED))).sort(byAttemptThenCheckpoint)
    const entries: LedgerEntry[] = []
    for (const name of names) {
      const text = new TextDecoder().decode(await this.#files.readFile(this.#path(COMMITTED, name)))
      for (const line of text.split('\n')) if (line !== '') entries.push(JSON.parse(line) as LedgerEntry)
    }
    return entries
  }

  #prepare(): Promise<void> {
    this.#prepared ??= (async () => {
      for (const state of [OPEN, PRE_COMMITTED, COMMITTED])
        await this.#files.makeDirectory(joinPath(this.#folder, state))
      await this.#files.sync(this.#folder)
    })()
    return this.#prepared
  }

  #path(state: string, name: string): string {
    return joinPath(joinPath(this.#folder, state), name)
  }

  #has(state: string, name: string): Promise<boolean> {
    return this.#files.exists(this.#path(state, name))
  }

  async #move(name: string, from: string, to: string): Promise<void> {
    try {
      await this.#files.rename(this.#path(from, name), this.#path(to, name))
    } catch (error) {
      // Somebody else did the same in the meantime; then it is done.
      if (errorCodeOf(error) !== 'ENOENT' || !(await this.#has(to, name))) throw error
    }
    await this.#files.sync(joinPath(this.#folder, to))
  }
}

function byAttemptThenCheckpoint(left: string, right: string): number {
  const [one, other] = [parseTransactionName(left), parseTransactionName(right)]
  if (one === undefined || other === undefined) return left < right ? -1 : 1
  return (
    one.attempt.incarnation - other.attempt.incarnation ||
    one.attempt.number - other.attempt.number ||
    one.checkpoint - other.checkpoint ||
    one.subtask - other.subtask
  )
}
