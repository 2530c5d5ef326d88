// Gives pre-committed files their visible names. Runs in the sink's subtask, or without its writer (rule 23).

import type { Committable } from '../checkpoint/contract.ts'
import type { FileSystem } from '../storage/contract.ts'
import { errorCodeOf } from '../storage/errors.ts'
import { isTransactionOf, joinPath } from '../storage/paths.ts'
import { MillraceError } from '../base/errors.ts'
import type { Committer, CommitterContext } from './contract.ts'
import { connectorError, messageOf } from './errors.ts'
import { pendingFile, pendingFileSchema, pendingFolder, type PendingFile } from './file-sink-names.ts'

/** Compared at once when two files may be the same one. */
const COMPARED_BYTES = 1024 * 1024

export class FileCommitter implements Committer {
  readonly #context: CommitterContext
  readonly #folder: string

  constructor(context: CommitterContext, folder: string) {
    this.#context = context
    this.#folder = folder
  }

  /** In this order: visible name, durable folder, and only then the hidden name goes; a crash between any two is repeated from the start. */
  async commit(committables: readonly Committable[]): Promise<void> {
    const files = committables.map(({ transaction, payload }) => ({ transaction, file: parsed(transaction, payload) }))
    await retryable(this.#folder, async () => {
      for (const { transaction, file } of files) await makeVisible(this.#context.files, transaction, file)
      for (const folder of new Set(files.map(({ file }) => file.folder))) await this.#context.files.sync(folder)
      for (const { transaction, file } of files) await this.#context.files.remove(pendingFile(file.folder, transaction))
    })
  }

  async list(): Promise<readonly string[]> {
    const names = await retryable(this.#folder, () => listOrEmpty(this.#context.files, pendingFolder(this.#folder)))
    return names.filter((name) => isTransactionOf(name, this.#context))
  }

  async abort(transactions: readonly string[]): Promise<void> {
    await retryable(this.#folder, async () => {
      for (const name of transactions) await this.#context.files.remove(pendingFile(this.#folder, name))
    })
  }
}

async function makeVisible(files: FileSystem, transaction: string, file: PendingFile): Promise<void> {
  const hidden = pendingFile(file.folder, transaction)
  const visible = joinPath(file.folder, file.final)
  if (!(await files.exists(hidden))) {
    if ((await files.exists(visible)) && (await files.sizeOf(visible)) === file.bytes) return
    throw connectorError('MR-N12', `Neither ${hidden} nor ${visible} is there as pre-committed.`)
  }
  const bytes = await files.sizeOf(hidden)
  if (bytes !== file.bytes) throw connectorError('MR-N16', `${hidden} has ${bytes} of ${file.bytes} bytes.`)
  try {
    // link, unlike rename, never replaces what is there.
    await files.link(hidden, visible)
  } catch (error) {
    if (errorCodeOf(error) !== 'EEXIST') throw error
    // Linked by an earlier try that did not get as far as removing the hidden name; a file of anybody else is not ours to touch.
    if (!(await sameContent(files, hidden, visible))) throw connectorError('MR-N13', `${visible}.`, error)
  }
}

async function sameContent(files: FileSystem, left: string, right: string): Promise<boolean> {
  const bytes = await files.sizeOf(left)
  if (bytes !== (await files.sizeOf(right))) return false
  for (let offset = 0; offset < bytes; offset += COMPARED_BYTES) {
    const length = Math.min(COMPARED_BYTES, bytes - offset)
    const pieces = [await files.readRange(left, offset, length), await files.readRange(right, offset, length)]
    if (!Buffer.from(pieces[0]!).equals(pieces[1]!)) return false
  }
  return true
}

/** Before the first writer there is no folder: positively absent is empty. */
async function listOrEmpty(files: FileSystem, folder: string): Promise<readonly string[]> {
  try {
    return await files.list(folder)
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return []
    throw error
  }
}

function parsed(transaction: string, payload: unknown): PendingFile {
  const result = pendingFileSchema.safeParse(payload)
  if (!result.success)
    throw connectorError('MR-N17', `Transaction ${transaction}: ${result.error.message}`, result.error)
  return result.data
}

async function retryable<T>(what: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof MillraceError) throw error
    throw connectorError('MR-N14', `${what}: ${messageOf(error)}.`, error)
  }
}
