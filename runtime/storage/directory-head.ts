// HEAD as numbered files of a directory (rule 1). The highest number is HEAD.

import type { Environment } from '../base/environment.ts'
import type { FileSystem, HeadStore, HeadVersion, SwapAnswer, VersionedHead } from './contract.ts'
import { makeDurableFolder } from './durable-folder.ts'
import { errorCodeOf, storageFailure } from './errors.ts'
import { headFile, joinPath, parseHeadFile, temporaryFile, TEMPORARY_FOLDER } from './paths.ts'

/** Earlier HEADs are kept for people who have to look at or put back one. */
export const HEADS_KEPT = 100

/** A read that lists and then finds the file pruned lists again; each time a hundred swaps have passed. */
const READ_TRIES_MAX = 5

export interface DirectoryHeadOptions {
  readonly files: FileSystem
  readonly folder: string
  readonly environment: Pick<Environment, 'random' | 'log'>
}

export class DirectoryHead implements HeadStore {
  readonly #files: FileSystem
  readonly #folder: string
  readonly #temporaries: string
  readonly #environment: Pick<Environment, 'random' | 'log'>
  readonly #made = new Set<string>()

  constructor(options: DirectoryHeadOptions) {
    this.#files = options.files
    this.#folder = options.folder
    this.#temporaries = joinPath(options.folder, TEMPORARY_FOLDER)
    this.#environment = options.environment
  }

  async read(): Promise<VersionedHead | undefined> {
    try {
      for (let tries = 1; ; tries++) {
        const highest = (await this.#numbers()).at(-1)
        if (highest === undefined) return undefined
        // Whoever linked it may have died, or failed, before it was durable; and what is read here is acted on: commits, a won swap.
        await this.#files.sync(this.#folder)
        try {
          return { version: { token: String(highest) }, bytes: await this.#files.readFile(this.#path(highest)) }
        } catch (error) {
          if (errorCodeOf(error) !== 'ENOENT' || tries === READ_TRIES_MAX) throw error
        }
      }
    } catch (error) {
      throw storageFailure(`Reading HEAD in ${this.#folder}`, error)
    }
  }

  async swap(expected: HeadVersion | undefined, bytes: Uint8Array): Promise<SwapAnswer> {
    const temporary = joinPath(this.#temporaries, temporaryFile(this.#environment.random.id()))
    try {
      // The folder's own entry must be durable before the first HEAD in it counts as won.
      await makeDurableFolder(this.#files, this.#temporaries, this.#made)
      const numbers = await this.#numbers()
      const number = expected === undefined ? 0 : Number(expected.token)
      // Nothing was written yet, so this one surely never lands.
      if ((numbers.at(-1) ?? 0) !== number) return { outcome: 'lost' }
      await this.#files.writeNew(temporary, bytes)
      await this.#files.sync(temporary)
      return await this.#land(number + 1, temporary, bytes)
    } catch (error) {
      // A folder may have been taken away from outside: the next call makes it again.
      this.#made.clear()
      return { outcome: 'unclear', cause: storageFailure(`Swapping HEAD in ${this.#folder}`, error) }
    } finally {
      await this.#removeQuietly(temporary)
    }
  }

  async #land(number: number, temporary: string, bytes: Uint8Array): Promise<SwapAnswer> {
    try {
      await this.#files.link(temporary, this.#path(number))
    } catch (error) {
      if (errorCodeOf(error) !== 'EEXIST') throw error
      // A network file system may repeat a link that had worked, and then find its own; no two writes are equal, so the bytes tell.
      if (!sameBytes(await this.#files.readFile(this.#path(number)), bytes)) return { outcome: 'lost' }
    }
    await this.#files.sync(this.#folder)
    const numbers = await this.#numbers()
    // A process that slept while a hundred swaps passed links a number that was pruned: there, but not HEAD.
    if (numbers.at(-1) !== number)
      return {
        outcome: 'unclear',
        cause: new Error(`head ${number} is not the highest after it was written; ${numbers.at(-1)} is`),
      }
    await this.#tidy(numbers)
    return { outcome: 'won', version: { token: String(number) } }
  }

  /** What the dead left behind goes too; a living process whose temporary goes had lost this swap anyway. */
  async #tidy(numbers: readonly number[]): Promise<void> {
    for (const number of numbers.slice(0, -HEADS_KEPT)) await this.#removeQuietly(this.#path(number))
    try {
      for (const name of await this.#files.list(this.#temporaries))
        await this.#removeQuietly(joinPath(this.#temporaries, name))
    } catch (error) {
      this.#environment.log('warn', 'temporary files beside HEAD could not be listed; they do no harm', {
        folder: this.#temporaries,
        error: String(error),
      })
    }
  }

  /** Ascending; [] only if the folder is positively absent or without HEAD. */
  async #numbers(): Promise<number[]> {
    let names: string[]
    try {
      names = await this.#files.list(this.#folder)
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return []
      throw error
    }
    return names.flatMap((name) => parseHeadFile(name) ?? []).toSorted((left, right) => left - right)
  }

  async #removeQuietly(path: string): Promise<void> {
    try {
      await this.#files.remove(path)
    } catch (error) {
      this.#environment.log('warn', 'a file beside HEAD could not be removed; it does no harm', {
        path,
        error: String(error),
      })
    }
  }

  #path(number: number): string {
    return joinPath(this.#folder, headFile(number))
  }
}

function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index])
}
