// Restore points outside of the job's own store, as files: read, never written.

import type { FileSystem, ForeignObjects, ObjectKey } from './contract.ts'
import { errorCodeOf, storageError, storageFailure } from './errors.ts'
import { rangeDetail } from './memory-store.ts'
import { parseFileKey } from './paths.ts'

export class ForeignFiles implements ForeignObjects {
  readonly #files: FileSystem

  constructor(files: FileSystem) {
    this.#files = files
  }

  async read(key: ObjectKey): Promise<Uint8Array | undefined> {
    return this.#unlessMissing(key, (path) => this.#files.readFile(path))
  }

  async readRange(key: ObjectKey, offset: number, length: number): Promise<Uint8Array | undefined> {
    const bytes = await this.#unlessMissing(key, (path) => this.#files.readRange(path, offset, length))
    if (bytes === undefined || bytes.length === length) return bytes
    const size = (await this.#unlessMissing(key, (path) => this.#files.sizeOf(path))) ?? 0
    throw storageError('MR-S03', rangeDetail({ key, offset, length, size }))
  }

  async #unlessMissing<T>(key: ObjectKey, call: (path: string) => Promise<T>): Promise<T | undefined> {
    const path = parseFileKey(key)
    try {
      return await call(path)
    } catch (error) {
      const code = errorCodeOf(error)
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
      throw storageFailure(`Reading ${path}`, error)
    }
  }
}
