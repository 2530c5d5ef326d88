// Objects as files of a directory. A file appears under its name complete and durable, or not at all: it is written and
// synced under a temporary name, then hard-linked to its own, which fails if that name is taken.

import type { Environment } from '../base/environment.ts'
import type { FileSystem, ObjectKey, ObjectStore } from './contract.ts'
import { makeDurableFolder } from './durable-folder.ts'
import { errorCodeOf, storageError, storageFailure } from './errors.ts'
import { rangeDetail } from './memory-store.ts'
import { joinPath, parentOf, temporaryFile, TEMPORARY_FOLDER } from './paths.ts'

export interface DirectoryStoreOptions {
  readonly files: FileSystem
  /** The folder that keys are relative to; made if missing. */
  readonly root: string
  readonly environment: Pick<Environment, 'random' | 'log'>
}

export class DirectoryStore implements ObjectStore {
  readonly #files: FileSystem
  readonly #root: string
  readonly #temporaries: string
  readonly #environment: Pick<Environment, 'random' | 'log'>
  /** Folders whose own entry is known to be durable. */
  readonly #made = new Set<string>()

  constructor(options: DirectoryStoreOptions) {
    this.#files = options.files
    this.#root = options.root
    this.#temporaries = joinPath(options.root, TEMPORARY_FOLDER)
    this.#environment = options.environment
  }

  /** Makes the folders. */
  async open(): Promise<void> {
    try {
      await makeDurableFolder(this.#files, this.#temporaries, this.#made)
    } catch (error) {
      throw storageFailure(`Opening ${this.#root}`, error)
    }
  }

  /** Temporaries that are there now: of earlier lives, or of another living process that is just writing. */
  async temporaries(): Promise<readonly string[]> {
    try {
      return await this.#files.list(this.#temporaries)
    } catch (error) {
      throw storageFailure(`Listing ${this.#temporaries}`, error)
    }
  }

  /** Only for whoever owns the job, with names listed before that: a write of a living process that loses its temporary fails. */
  async removeTemporaries(names: readonly string[]): Promise<void> {
    for (const name of names) await this.#removeQuietly(joinPath(this.#temporaries, name))
  }

  async create(key: ObjectKey, bytes: Uint8Array): Promise<'created' | 'exists'> {
    const path = joinPath(this.#root, key)
    const temporary = joinPath(this.#temporaries, temporaryFile(this.#environment.random.id()))
    try {
      await makeDurableFolder(this.#files, this.#temporaries, this.#made)
      await this.#files.writeNew(temporary, bytes)
      // Before the link: a name must never show bytes that a power loss can still take or tear.
      await this.#files.sync(temporary)
      const answer = await this.#publish(temporary, path)
      // Before the answer: a manifest may be written that names this object.
      if (answer === 'created') await this.#files.sync(parentOf(path))
      return answer
    } catch (error) {
      // A folder may have been taken away from outside: the next call makes it again.
      this.#made.clear()
      throw storageFailure(`Creating ${path}`, error)
    } finally {
      await this.#removeQuietly(temporary)
    }
  }

  async read(key: ObjectKey): Promise<Uint8Array | undefined> {
    const path = joinPath(this.#root, key)
    return this.#unlessMissing(`Reading ${path}`, () => this.#files.readFile(path))
  }

  async readRange(key: ObjectKey, offset: number, length: number): Promise<Uint8Array | undefined> {
    const path = joinPath(this.#root, key)
    const bytes = await this.#unlessMissing(`Reading ${path}`, () => this.#files.readRange(path, offset, length))
    if (bytes === undefined || bytes.length === length) return bytes
    const size = await this.#unlessMissing(`Reading ${path}`, () => this.#files.sizeOf(path))
    throw storageError('MR-S03', rangeDetail({ key, offset, length, size: size ?? 0 }))
  }

  async delete(keys: readonly ObjectKey[]): Promise<void> {
    const folders = new Set<string>()
    for (const key of keys) {
      const path = joinPath(this.#root, key)
      await this.#unlessMissing(`Deleting ${path}`, () => this.#files.remove(path))
      folders.add(parentOf(path))
    }
    for (const folder of folders) {
      await this.#unlessMissing(`Deleting in ${folder}`, () => this.#files.sync(folder))
      if (folder !== this.#root) await this.#removeEmpty(folder)
    }
  }

  async list(prefix: string): Promise<ObjectKey[]> {
    const keys: ObjectKey[] = []
    await this.#walk('', prefix, keys)
    return keys.toSorted()
  }

  async #publish(temporary: string, path: string): Promise<'created' | 'exists'> {
    await makeDurableFolder(this.#files, parentOf(path), this.#made)
    try {
      await this.#link(temporary, path)
      return 'created'
    } catch (error) {
      if (errorCodeOf(error) === 'EEXIST') return 'exists'
      throw error
    }
  }

  async #link(temporary: string, path: string): Promise<void> {
    try {
      await this.#files.link(temporary, path)
    } catch (error) {
      if (errorCodeOf(error) !== 'ENOENT') throw error
      // A delete has just taken the folder away as empty.
      this.#made.delete(parentOf(path))
      await makeDurableFolder(this.#files, parentOf(path), this.#made)
      await this.#files.link(temporary, path)
    }
  }

  async #removeEmpty(folder: string): Promise<void> {
    this.#made.delete(folder)
    try {
      await this.#files.remove(folder)
    } catch {
      // Not empty, or not now: an empty folder is no object and hurts nobody.
    }
  }

  async #removeQuietly(temporary: string): Promise<void> {
    try {
      await this.#files.remove(temporary)
    } catch (error) {
      this.#environment.log(
        'warn',
        'a temporary file could not be removed; the next opening of the store tries again',
        { temporary, error: String(error) },
      )
    }
  }

  async #walk(folder: string, prefix: string, keys: ObjectKey[]): Promise<void> {
    const path = folder === '' ? this.#root : joinPath(this.#root, folder)
    let names: string[] | undefined
    try {
      names = await this.#unlessMissing(`Listing ${path}`, () => this.#files.list(path))
    } catch (error) {
      if (folder === '' || errorCodeOf((error as Error).cause) !== 'ENOTDIR') throw error
      if (folder.startsWith(prefix)) keys.push(folder as ObjectKey)
      return
    }
    for (const name of names ?? []) {
      if (name.startsWith('.')) continue
      const child = joinPath(folder, name)
      // Only where keys with the prefix can lie: along it, or below it.
      if (child.startsWith(prefix) || prefix.startsWith(child)) await this.#walk(child, prefix, keys)
    }
  }

  async #unlessMissing<T>(doing: string, act: () => Promise<T>): Promise<T | undefined> {
    try {
      return await act()
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return undefined
      throw storageFailure(doing, error)
    }
  }
}
