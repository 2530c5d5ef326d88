// Reads state by its handle, and gives nothing that differs from what was written.

import { crc32 } from 'node:zlib'
import { pause, within } from '../base/deadline.ts'
import type { Environment } from '../base/environment.ts'
import { InvariantError, MillraceError } from '../base/errors.ts'
import type { ForeignObjects, ObjectKey, ObjectStore } from '../storage/contract.ts'
import { isAbsoluteKey, parseObjectKey } from '../storage/paths.ts'
import type { SnapshotReader, StateHandle } from './contract.ts'
import { snapshotError } from './snapshot-errors.ts'

/** Tries per read, the first included; a flipped bit on the wire or a hiccup of the store passes, damage does not. */
export const READ_TRIES_MAX = 5
/** Before the second try; doubles for each further one. */
const READ_BACKOFF_MS = 200
/** One answer of the store. */
export const READ_DEADLINE_MS = 60_000

export interface SnapshotDownloaderOptions {
  readonly store: ObjectStore
  /** For handles of a restore point outside of the job's own store; undefined: such are refused (MR-S04). */
  readonly foreign?: ForeignObjects
  readonly environment: Environment
}

/** Throws MR-C50 (missing), MR-C51 (differs), MR-C52 (could not be read; cause inside), or the store's own error that no retry mends. */
export class SnapshotDownloader implements SnapshotReader {
  readonly #store: ObjectStore
  readonly #foreign: ForeignObjects | undefined
  readonly #environment: Environment

  constructor(options: SnapshotDownloaderOptions) {
    this.#store = options.store
    this.#foreign = options.foreign
    this.#environment = options.environment
  }

  async read(handle: StateHandle): Promise<Uint8Array> {
    if (handle.kind === 'inline') {
      const bytes = new Uint8Array(Buffer.from(handle.base64, 'base64'))
      if (crc32(bytes) !== handle.crc) throw differs('State inlined in the manifest')
      return bytes
    }
    for (let tries = 1; ; tries++) {
      const answer = await this.#try(handle)
      if (answer instanceof Uint8Array) return answer
      if (!answer.again) throw answer.error
      if (tries === READ_TRIES_MAX) throw answer.error
      this.#environment.log('warn', 'reading state failed; trying again', {
        object: handle.object,
        tries,
        error: answer.error.message,
      })
      await pause(this.#environment.clock, READ_BACKOFF_MS * 2 ** (tries - 1))
    }
  }

  async #try(handle: ObjectHandle): Promise<Uint8Array | { readonly error: MillraceError; readonly again: boolean }> {
    const where = `${handle.object}, ${handle.length} bytes at ${handle.offset}`
    try {
      const bytes = await this.#readRange(handle)
      // Missing is the store's positive answer: asking again does not change it.
      if (bytes === undefined) return { error: snapshotError('MR-C50', `${where}.`), again: false }
      if (bytes.length !== handle.length || crc32(bytes) !== handle.crc) return { error: differs(where), again: true }
      return bytes
    } catch (cause) {
      if (cause instanceof InvariantError) throw cause
      if (cause instanceof MillraceError && !cause.retry) return { error: cause, again: false }
      return { error: snapshotError('MR-C52', `${where}.`, cause), again: true }
    }
  }

  async #readRange(handle: ObjectHandle): Promise<Uint8Array | undefined> {
    const { object, offset, length } = handle
    const call =
      this.#foreign !== undefined && isAbsoluteKey(object)
        ? this.#foreign.readRange(object as ObjectKey, offset, length)
        : this.#store.readRange(parseObjectKey(object), offset, length)
    const late = () => new Error(`no answer within ${READ_DEADLINE_MS} ms`)
    return within(this.#environment.clock, READ_DEADLINE_MS, call, late)
  }
}

type ObjectHandle = Extract<StateHandle, { kind: 'object' }>

function differs(where: string): MillraceError {
  return snapshotError('MR-C51', `${where}: the checksum differs.`)
}
