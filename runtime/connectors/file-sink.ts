// Two-phase file sinks: a transaction is a hidden file in <folder>/.pending, made durable at the barrier and given its
// visible name at commit. A reader of the folder sees only whole, committed files.

import type { CheckpointId } from '../base/ids.ts'
import { makeDurableFolder } from '../storage/durable-folder.ts'
import { errorCodeOf } from '../storage/errors.ts'
import { transactionName } from '../storage/paths.ts'
import type { PreparedTransaction, Sink, SinkContext, SinkWriter } from './contract.ts'
import { connectorError, messageOf } from './errors.ts'
import { FileCommitter } from './file-committer.ts'
import { refuseAddress } from './file-format.ts'
import { finalFileName, pendingFile, pendingFolder, PENDING_FORMAT, type PendingFile } from './file-sink-names.ts'

/** How records become text. */
export interface TextFormat<T> {
  readonly name: string
  /** Without dot. */
  readonly extension: string
  /** Stands at the beginning of every file. */
  readonly header: string
  /** One record with its line end. Throws MR-N06 for a value that has no such form. */
  line(value: T): string
}

/** A writer hands its text over in pieces of about this size: fewer, larger appends. */
const FLUSH_CHARACTERS = 256 * 1024
/** From this much on that the disk has not taken yet the writer is not ready: its producers wait for the disk. */
const UNWRITTEN_BYTES_READY = 8 * 1024 * 1024
/** One record may lead to many, and they cannot wait: beyond this much the task fails (MR-N11). */
const UNWRITTEN_BYTES_MAX = 256 * 1024 * 1024

export function fileSink<T>(folder: string, format: TextFormat<T>): Sink<T> {
  if (folder === '') throw connectorError('MR-N06', `${format.name} file sink: folder is empty.`)
  refuseAddress(`${format.name} file sink, folder`, folder)
  return {
    name: `${format.name} file sink`,
    createWriter: (context) => new FileSinkWriter(context, folder, format),
    createCommitter: (context) => new FileCommitter(context, folder),
  }
}

/** The transaction that records go to. */
interface OpenTransaction {
  readonly name: string
  readonly path: string
  bytes: number
}

class FileSinkWriter<T> implements SinkWriter<T> {
  readonly #context: SinkContext
  readonly #folder: string
  readonly #format: TextFormat<T>
  /** The newest checkpoint that is known: a transaction's name carries that after which it was opened; its own is not known yet. */
  #openedAfter: CheckpointId
  #open: OpenTransaction | undefined
  #text: string[] = []
  #characters = 0
  #unwrittenBytes = 0
  /** All file operations, one after the other. */
  #written: Promise<void> = Promise.resolve()
  #failure: Error | undefined
  readonly #encoder = new TextEncoder()

  constructor(context: SinkContext, folder: string, format: TextFormat<T>) {
    this.#context = context
    this.#openedAfter = context.newestKnownCheckpoint
    this.#folder = folder
    this.#format = format
  }

  get ready(): boolean {
    return this.#unwrittenBytes < UNWRITTEN_BYTES_READY
  }

  async open(): Promise<void> {
    const { files } = this.#context
    const pending = pendingFolder(this.#folder)
    try {
      // Without this a crash could take the folders away, and with them files that were promised.
      await makeDurableFolder(files, pending, new Set())
      for (const path of [pending, this.#folder]) await files.sync(path)
    } catch (error) {
      throw writeFailure(pending, error)
    }
  }

  write(value: T): void {
    if (this.#failure !== undefined) throw this.#failure
    this.#open ??= this.#begin()
    const line = this.#format.line(value)
    this.#text.push(line)
    this.#characters += line.length
    if (this.#characters >= FLUSH_CHARACTERS) this.#flush(this.#open)
  }

  async prepareCommit(checkpoint: CheckpointId): Promise<readonly PreparedTransaction[]> {
    const transaction = this.#open
    this.#open = undefined
    this.#openedAfter = checkpoint
    if (transaction !== undefined) {
      this.#flush(transaction)
      // The content first, then the name: rule 22, durable before the acknowledgement.
      this.#enqueue(transaction.path, async () => {
        await this.#context.files.sync(transaction.path)
        await this.#context.files.sync(pendingFolder(this.#folder))
      })
    }
    await this.#written
    if (this.#failure !== undefined) throw this.#failure
    if (transaction === undefined) return []
    const { uid, task } = this.#context
    const payload: PendingFile = {
      format: PENDING_FORMAT,
      folder: this.#folder,
      final: finalFileName({ task, uid, checkpoint, extension: this.#format.extension }),
      bytes: transaction.bytes,
    }
    return [{ transaction: transaction.name, payload }]
  }

  /** An open transaction's file stays until the sweep: this attempt cannot know whether it is the last word. */
  async close(): Promise<void> {
    this.#text = []
    await this.#written
  }

  #begin(): OpenTransaction {
    const { task, uid, files } = this.#context
    const { job, attempt, subtask } = task
    const name = transactionName({ job, uid, attempt, subtask, checkpoint: this.#openedAfter })
    const path = pendingFile(this.#folder, name)
    this.#enqueue(path, async () => {
      // An attempt and its checkpoints are never repeated, so a file of this name is from a job whose store was removed.
      await files.remove(path)
      await files.writeNew(path, new Uint8Array(0))
    })
    if (this.#format.header !== '') {
      this.#text.push(this.#format.header)
      this.#characters += this.#format.header.length
    }
    return { name, path, bytes: 0 }
  }

  #flush(transaction: OpenTransaction): void {
    if (this.#text.length === 0) return
    const bytes = this.#encoder.encode(this.#text.join(''))
    this.#text = []
    this.#characters = 0
    transaction.bytes += bytes.byteLength
    this.#unwrittenBytes += bytes.byteLength
    if (this.#unwrittenBytes > UNWRITTEN_BYTES_MAX)
      throw connectorError('MR-N11', `${this.#folder} (limit ${UNWRITTEN_BYTES_MAX} bytes).`)
    this.#enqueue(transaction.path, async () => {
      await this.#context.files.append(transaction.path, bytes)
      const wasReady = this.ready
      this.#unwrittenBytes -= bytes.byteLength
      if (!wasReady && this.ready) this.#context.wake()
    })
  }

  /** Owns the promise: a failure is kept for prepareCommit (B22) and fails the task at once. After one nothing more is written. */
  #enqueue(path: string, operation: () => Promise<void>): void {
    this.#written = this.#written.then(async () => {
      if (this.#failure !== undefined) return
      try {
        await operation()
      } catch (error) {
        this.#failure = writeFailure(path, error)
        this.#context.fail(this.#failure)
      }
    })
  }
}

function writeFailure(path: string, error: unknown): Error {
  const what = errorCodeOf(error) === 'ENOSPC' ? 'the disk is full' : messageOf(error)
  return connectorError('MR-N10', `${path}: ${what}.`, error)
}
