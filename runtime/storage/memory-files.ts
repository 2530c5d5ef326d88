// A file system in memory that is honest about crashes: what was not synced may be lost, kept or torn.

import type { FileSystem } from './contract.ts'

export type FileOperation =
  | 'readFile'
  | 'readRange'
  | 'sizeOf'
  | 'list'
  | 'makeDirectory'
  | 'writeNew'
  | 'append'
  | 'truncate'
  | 'sync'
  | 'link'
  | 'rename'
  | 'remove'
  | 'exists'

/** How an operation fails: nothing happened, half of the bytes were written (else nothing), or all was done and only the answer is an error. */
export interface FileFault {
  readonly code: 'ENOSPC' | 'EIO' | 'EACCES' | 'EDQUOT'
  readonly effect: 'none' | 'half' | 'done'
}

export type FileFaults = (operation: FileOperation, path: string) => FileFault | undefined

/** Paths are split at `/`; a leading slash and `.` mean nothing. */
export class MemoryFiles implements FileSystem {
  readonly #root = newFolder()
  readonly #faults: FileFaults
  #groups = 0

  /** `faults` is asked at every operation. */
  constructor(faults: FileFaults = () => undefined) {
    this.#faults = faults
  }

  /**
   * Power loss. Each unsynced file keeps, loses or tears its unsynced content, and each unsynced change of a folder's entries
   * happens or not, each on its own (the two halves of a rename together), as `random` (uniform in [0, 1)) decides.
   */
  crash(random: () => number): void {
    const kept = new Map<number, boolean>()
    const isKept = (group: number) => {
      if (!kept.has(group)) kept.set(group, random() < 0.5)
      return kept.get(group)!
    }
    const seen = new Set<Entry>([this.#root])
    // A set may grow during the walk; each entry is visited once.
    for (const entry of seen) {
      if (entry.kind === 'file') crashFile(entry, random)
      else {
        crashFolder(entry, isKept)
        for (const child of entry.entries.values()) seen.add(child)
      }
    }
  }

  async readFile(path: string): Promise<Uint8Array> {
    return this.#do('readFile', path, () => {
      const file = this.#file(path, 'readFile')
      return file.buffer.slice(0, file.length)
    })
  }

  async readRange(path: string, offset: number, length: number): Promise<Uint8Array> {
    return this.#do('readRange', path, () => {
      const file = this.#file(path, 'readRange')
      return file.buffer.slice(Math.min(offset, file.length), Math.min(offset + length, file.length))
    })
  }

  async sizeOf(path: string): Promise<number> {
    return this.#do('sizeOf', path, () => this.#file(path, 'sizeOf').length)
  }

  async list(path: string): Promise<string[]> {
    return this.#do('list', path, () => {
      const folder = this.#entry(path, 'list')
      if (folder.kind === 'file') throw failure('ENOTDIR', 'list', path)
      return [...folder.entries.keys()].toSorted()
    })
  }

  async makeDirectory(path: string): Promise<void> {
    this.#do('makeDirectory', path, () => {
      let folder = this.#root
      for (const segment of segmentsOf(path)) {
        let child = folder.entries.get(segment)
        if (child === undefined) {
          child = newFolder()
          change(folder, segment, child, this.#groups++)
        }
        if (child.kind === 'file') throw failure('EEXIST', 'makeDirectory', path)
        folder = child
      }
    })
  }

  async writeNew(path: string, bytes: Uint8Array): Promise<void> {
    this.#write('writeNew', path, bytes)
  }

  async append(path: string, bytes: Uint8Array): Promise<void> {
    this.#write('append', path, bytes)
  }

  async truncate(path: string, length: number): Promise<void> {
    this.#do('truncate', path, () => {
      const file = this.#file(path, 'truncate')
      if (length > file.length) {
        writeBytes(file, new Uint8Array(length - file.length))
        return
      }
      // What was durable stays so until the next sync; later appends would write over it.
      if (length < file.durableLength && file.durableCopy === undefined)
        file.durableCopy = file.buffer.slice(0, file.durableLength)
      file.length = length
      file.unsynced = true
    })
  }

  async sync(path: string): Promise<void> {
    this.#do('sync', path, () => {
      const entry = this.#entry(path, 'sync')
      if (entry.kind === 'folder') {
        syncFolder(entry)
        return
      }
      entry.durableLength = entry.length
      entry.durableCopy = undefined
      entry.unsynced = false
    })
  }

  async link(from: string, to: string): Promise<void> {
    this.#do('link', to, () => {
      const file = this.#file(from, 'link')
      const { folder, name } = this.#parent(to, 'link')
      if (folder.entries.has(name)) throw failure('EEXIST', 'link', to)
      change(folder, name, file, this.#groups++)
    })
  }

  async rename(from: string, to: string): Promise<void> {
    this.#do('rename', to, () => {
      const source = this.#parent(from, 'rename')
      const entry = source.folder.entries.get(source.name)
      if (entry === undefined) throw failure('ENOENT', 'rename', from)
      const target = this.#parent(to, 'rename')
      const replaced = target.folder.entries.get(target.name)
      if (replaced === entry) return
      if (replaced?.kind === 'folder') throw failure(entry.kind === 'file' ? 'EISDIR' : 'ENOTEMPTY', 'rename', to)
      if (replaced !== undefined && entry.kind === 'folder') throw failure('ENOTDIR', 'rename', to)
      const group = this.#groups++
      change(target.folder, target.name, entry, group, source.folder)
      change(source.folder, source.name, undefined, group, target.folder)
    })
  }

  async remove(path: string): Promise<void> {
    this.#do('remove', path, () => {
      const parent = this.#find(segmentsOf(path).slice(0, -1))
      const name = segmentsOf(path).at(-1)
      if (parent?.kind !== 'folder' || name === undefined) return
      const entry = parent.entries.get(name)
      if (entry === undefined) return
      if (entry.kind === 'folder' && entry.entries.size > 0) throw failure('ENOTEMPTY', 'remove', path)
      change(parent, name, undefined, this.#groups++)
    })
  }

  async exists(path: string): Promise<boolean> {
    return this.#do('exists', path, () => this.#find(segmentsOf(path)) !== undefined)
  }

  #write(operation: 'writeNew' | 'append', path: string, bytes: Uint8Array): void {
    const place = () => {
      const { folder, name } = this.#parent(path, operation)
      let file = folder.entries.get(name)
      if (file?.kind === 'folder') throw failure(operation === 'writeNew' ? 'EEXIST' : 'EISDIR', operation, path)
      if (file !== undefined && operation === 'writeNew') throw failure('EEXIST', operation, path)
      if (file === undefined) {
        file = newFile()
        change(folder, name, file, this.#groups++)
      }
      return file
    }
    this.#do(
      operation,
      path,
      () => writeBytes(place(), bytes),
      () => writeBytes(place(), bytes.subarray(0, bytes.length >> 1)),
    )
  }

  #do<T>(operation: FileOperation, path: string, act: () => T, half?: () => void): T {
    const fault = this.#faults(operation, path)
    if (fault === undefined) return act()
    if (fault.effect === 'done') act()
    if (fault.effect === 'half') half?.()
    throw failure(fault.code, operation, path)
  }

  #find(segments: readonly string[]): Entry | undefined {
    let entry: Entry | undefined = this.#root
    for (const segment of segments) {
      if (entry?.kind !== 'folder') return undefined
      entry = entry.entries.get(segment)
    }
    return entry
  }

  #entry(path: string, operation: FileOperation): Entry {
    const entry = this.#find(segmentsOf(path))
    if (entry === undefined) throw failure('ENOENT', operation, path)
    return entry
  }

  #file(path: string, operation: FileOperation): FileEntry {
    const entry = this.#entry(path, operation)
    if (entry.kind === 'folder') throw failure('EISDIR', operation, path)
    return entry
  }

  #parent(path: string, operation: FileOperation): { readonly folder: FolderEntry; readonly name: string } {
    const segments = segmentsOf(path)
    const name = segments.pop()
    const folder = this.#find(segments)
    if (name === undefined || folder === undefined) throw failure('ENOENT', operation, path)
    if (folder.kind === 'file') throw failure('ENOTDIR', operation, path)
    return { folder, name }
  }
}

interface FileEntry {
  readonly kind: 'file'
  /** Grows by doubling; the first `length` bytes count. */
  buffer: Uint8Array
  length: number
  /** The first bytes that are surely on the disk … */
  durableLength: number
  /** … unless the file was cut since: then these are. */
  durableCopy: Uint8Array | undefined
  unsynced: boolean
}

interface FolderEntry {
  readonly kind: 'folder'
  entries: Map<string, Entry>
  durable: Map<string, Entry>
  /** Changes since the last sync, oldest first. */
  journal: EntryChange[]
}

type Entry = FileEntry | FolderEntry

interface EntryChange {
  readonly name: string
  /** undefined: removed. */
  readonly after: Entry | undefined
  /** Changes of one group are kept or lost together. */
  readonly group: number
  /** The folder of the group's other change. */
  readonly other: FolderEntry | undefined
}

function newFile(): FileEntry {
  return {
    kind: 'file',
    buffer: new Uint8Array(0),
    length: 0,
    durableLength: 0,
    durableCopy: undefined,
    unsynced: false,
  }
}

function newFolder(): FolderEntry {
  return { kind: 'folder', entries: new Map(), durable: new Map(), journal: [] }
}

function change(folder: FolderEntry, name: string, after: Entry | undefined, group: number, other?: FolderEntry): void {
  applyChange(folder.entries, name, after)
  folder.journal.push({ name, after, group, other })
}

function applyChange(entries: Map<string, Entry>, name: string, after: Entry | undefined): void {
  if (after === undefined) entries.delete(name)
  else entries.set(name, after)
}

function writeBytes(file: FileEntry, bytes: Uint8Array): void {
  const length = file.length + bytes.length
  if (length > file.buffer.length) {
    const grown = new Uint8Array(Math.max(length, file.buffer.length * 2))
    grown.set(file.buffer.subarray(0, file.length))
    file.buffer = grown
  }
  file.buffer.set(bytes, file.length)
  file.length = length
  file.unsynced = true
}

/** A rename is durable in both folders at once, as journaling file systems do it, and takes what came before it along. */
function syncFolder(folder: FolderEntry): void {
  const waiting: { readonly folder: FolderEntry; readonly upTo: number }[] = [
    { folder, upTo: Number.POSITIVE_INFINITY },
  ]
  for (const step of waiting) {
    const last = step.folder.journal.findLastIndex((entry) => entry.group <= step.upTo)
    for (const entry of step.folder.journal.splice(0, last + 1)) {
      applyChange(step.folder.durable, entry.name, entry.after)
      if (entry.other !== undefined && entry.other !== step.folder)
        waiting.push({ folder: entry.other, upTo: entry.group })
    }
  }
}

function crashFolder(folder: FolderEntry, isKept: (group: number) => boolean): void {
  for (const entry of folder.journal) {
    if (isKept(entry.group)) applyChange(folder.durable, entry.name, entry.after)
  }
  folder.journal = []
  folder.entries = new Map(folder.durable)
}

function crashFile(file: FileEntry, random: () => number): void {
  if (file.unsynced) {
    const written = file.buffer.slice(0, file.length)
    const durable = file.durableCopy ?? written.slice(0, file.durableLength)
    const fate = random()
    const after = fate < 1 / 3 ? durable : fate < 2 / 3 ? written : torn(durable, written, random)
    file.buffer = after
    file.length = after.length
  }
  file.durableLength = file.length
  file.durableCopy = undefined
  file.unsynced = false
}

/** Some of the new bytes, then nothing, or zeros up to the new length: the length can reach the disk before the content. */
function torn(durable: Uint8Array, written: Uint8Array, random: () => number): Uint8Array {
  const least = Math.min(durable.length, written.length)
  const cut = least + Math.floor(random() * (written.length - least))
  if (random() < 0.5) return written.slice(0, cut)
  const after = new Uint8Array(written.length)
  after.set(written.subarray(0, cut))
  return after
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '' && segment !== '.')
}

function failure(code: string, operation: FileOperation, path: string): Error {
  return Object.assign(new Error(`${code}: ${operation} '${path}'`), { code })
}
