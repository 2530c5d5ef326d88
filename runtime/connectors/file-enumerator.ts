// Hands out the splits of files one at a time, on request and in order: event time rises from split to split in sorted
// input, and a reader that owned a later split unread would hold the watermark for it.

import { z } from 'zod'
import type { SubtaskIndex } from '../base/ids.ts'
import type { EnumeratorContext, SplitEnumerator } from './contract.ts'
import { connectorError } from './errors.ts'
import { fileSplitSchema, sizeOfInput, type FileFormat, type FileSplit } from './file-format.ts'
import { jsonCodec } from './json-codec.ts'

export interface FileEnumeratorState {
  /** Whether the splits have been found; if not, they are looked for again. */
  readonly found: boolean
  readonly waiting: readonly FileSplit[]
  /** Those in which the splits were found; not there in states from before it was stored. */
  readonly paths?: readonly string[] | undefined
}

export const fileEnumeratorCodec = jsonCodec<FileEnumeratorState>(
  'file enumerator',
  1,
  z.object({ found: z.boolean(), waiting: z.array(fileSplitSchema), paths: z.array(z.string()).optional() }),
)

export function splitIdOf(split: FileSplit): string {
  return `${split.path}#${split.part}`
}

export class FileEnumerator<T> implements SplitEnumerator<FileSplit, FileEnumeratorState> {
  readonly #context: EnumeratorContext<FileSplit>
  readonly #paths: readonly string[]
  readonly #format: FileFormat<T>
  readonly #restoredPaths: readonly string[] | undefined
  #found: boolean
  /** By `order`. */
  #waiting: FileSplit[]
  /** Readers that asked and were not answered, in the order of asking; a reader asks once at a time. */
  readonly #asking = new Set<SubtaskIndex>()
  /** What readers reported owned or read while the splits were not found yet. */
  #taken: ReadonlySet<string> = new Set()
  #closed = false

  constructor(options: {
    readonly context: EnumeratorContext<FileSplit>
    readonly paths: readonly string[]
    readonly format: FileFormat<T>
    readonly restored: FileEnumeratorState | undefined
  }) {
    this.#context = options.context
    this.#paths = options.paths
    this.#format = options.format
    this.#restoredPaths = options.restored?.paths
    this.#found = options.restored?.found ?? false
    this.#waiting = [...(options.restored?.waiting ?? [])]
  }

  /** Finds the splits, unless they were restored. Throws MR-N01, MR-N02, MR-N05, MR-N20. */
  async start(): Promise<void> {
    if (this.#found) return this.#refuseOtherPaths()
    const splits: FileSplit[] = []
    for (const path of this.#paths) {
      const fileBytes = await sizeOfInput(this.#context.files, path)
      const parts = await this.#format.countSplits(this.#context.files, path, fileBytes)
      for (let part = 0; part < parts; part++)
        splits.push({ path, part, order: splits.length, fileBytes, record: 0, offset: 0 })
    }
    if (this.#closed) return
    this.#waiting = [...this.#waiting, ...splits.filter((split) => !this.#taken.has(splitIdOf(split)))]
    this.#found = true
    this.#answer()
  }

  addReader(subtask: SubtaskIndex): void {
    // What an earlier attempt of this reader asked for died with it.
    this.#asking.delete(subtask)
  }

  requestSplit(subtask: SubtaskIndex): void {
    this.#asking.add(subtask)
    this.#answer()
  }

  addSplitsBack(splits: readonly FileSplit[]): void {
    this.#waiting = [...this.#waiting, ...splits].sort((left, right) => left.order - right.order)
    this.#answer()
  }

  snapshot(): FileEnumeratorState {
    return { found: this.#found, waiting: [...this.#waiting], paths: this.#paths }
  }

  get splitsWait(): boolean {
    return !this.#found || this.#waiting.length > 0
  }

  reconcile(owned: ReadonlyMap<SubtaskIndex, readonly FileSplit[]>, finished: readonly string[]): void {
    const taken = new Set(finished)
    for (const splits of owned.values()) for (const split of splits) taken.add(splitIdOf(split))
    this.#taken = taken
    this.#waiting = this.#waiting.filter((split) => !taken.has(splitIdOf(split)))
  }

  close(): void {
    this.#closed = true
    this.#asking.clear()
  }

  /** Nobody would read a path that came, nor leave out one that went, and nothing would say so. Another order loses nothing. */
  #refuseOtherPaths(): void {
    const before = new Set(this.#restoredPaths ?? this.#paths)
    const today = new Set(this.#paths)
    const differences = [
      ...[...today.difference(before)].map((path) => `${path} is new`),
      ...[...before.difference(today)].map((path) => `${path} is gone`),
    ]
    if (differences.length > 0) throw connectorError('MR-N20', `${this.#format.name} files: ${differences.join(', ')}.`)
  }

  #answer(): void {
    if (!this.#found) return
    for (const subtask of this.#asking) {
      this.#asking.delete(subtask)
      const split = this.#waiting.shift()
      if (split === undefined) this.#context.signalNoMoreSplits(subtask)
      else this.#context.assign(subtask, [split])
    }
  }
}
