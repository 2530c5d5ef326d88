// What the tables of a heap backend have in common: they can be frozen, written group by group, and filled from a section.

import type { KeyedStateDescription } from '../../checkpoint/contract.ts'
import { createWriter } from '../../record/bytes.ts'
import type { BinaryWriter } from '../../record/bytes.ts'
import type { ByteReader, ByteWriter, Key } from '../../record/contract.ts'
import { whyOtherKeys } from '../description.ts'
import { stateError } from '../errors.ts'
import { entryOperation } from '../segment.ts'
import type { BlockWriter, Pace } from '../segment.ts'

/**
 * How often a walk asks whether its slice is over: each so many entries, also inside one large key group. The budget looks at the clock
 * only when it was asked some times, so that a slice overruns by a hundred entries or so.
 */
export const ENTRIES_BETWEEN_CHECKS = 4

/** Puts entries read from a section into one group. */
export type EntryLoader = (group: number, reader: ByteReader, count: number) => void

export interface HeapTable {
  readonly description: KeyedStateDescription
  readonly entryCount: number
  /** The cut begins: from now on old entries are saved before they change. */
  freeze(): void
  /** The cut is over: what was saved is dropped. */
  thaw(): void
  /** Writes the group as it was at the cut; called once per group and cut. */
  writeGroup(group: number, block: BlockWriter, pace: Pace): Promise<void>
  /** How to read entries written under that description; refused: why they cannot be. */
  loaderOf(stored: KeyedStateDescription): { readonly load: EntryLoader } | { readonly refused: string }
  /** The cursor's versions begin anew. */
  forgetFound(): void
}

export interface StateTable extends HeapTable {
  /** In a list of its own: entries may come and go while somebody walks over it. */
  keysOf(group: number): readonly Key[]
}

/** What a format can read of the values stored then. */
interface ValuesOf<Decode> {
  readerOf(stored: KeyedStateDescription): { readonly decode: Decode } | { readonly refused: string }
}

/** loaderOf of a table of keys and values: `load` puts entries into it, with the reader of the values as they were stored. */
export function loaderBy<Decode>(
  {
    stored,
    today,
    format,
  }: {
    readonly stored: KeyedStateDescription
    readonly today: KeyedStateDescription
    readonly format: ValuesOf<Decode>
  },
  load: (group: number, reader: ByteReader, count: number, decode: Decode) => void,
): ReturnType<HeapTable['loaderOf']> {
  const refused = whyOtherKeys(stored, today)
  if (refused !== undefined) return { refused }
  const values = format.readerOf(stored)
  if ('refused' in values) return values
  return { load: (group, reader, count) => load(group, reader, count, values.decode) }
}

/** Of writers of saved entries. They are not made to grow: what one grows out of is garbage outside of V8's heap. */
const SAVED_BYTES_FIRST = 1024
const SAVED_BYTES_MAX = 128 * 1024

interface SavedGroup {
  readonly full: BinaryWriter[]
  writer: BinaryWriter
  count: number
}

/** Old bytes of entries that changed while a snapshot ran, by group. */
export class SavedEntries {
  private readonly groups = new Map<number, SavedGroup>()

  /** Where the next old entry of that group is to be written. */
  next(group: number): ByteWriter {
    let saved = this.groups.get(group)
    if (saved === undefined) {
      saved = { full: [], writer: createWriter(SAVED_BYTES_FIRST), count: 0 }
      this.groups.set(group, saved)
    } else {
      const { position, bytes } = saved.writer
      if (position * 4 >= bytes.length * 3) {
        saved.full.push(saved.writer)
        saved.writer = createWriter(Math.min(bytes.length * 2, SAVED_BYTES_MAX))
      }
    }
    saved.count++
    return saved.writer
  }

  moveTo(block: BlockWriter, group: number): void {
    const saved = this.groups.get(group)
    if (saved === undefined) return
    this.groups.delete(group)
    for (const writer of saved.full) block.addWriter(0, writer)
    block.addWriter(saved.count, saved.writer)
  }
}

/** The operation of an entry of a complete block; anything else is damage or a later format. */
export function readPut(reader: ByteReader): void {
  const operation = reader.u8()
  if (operation !== entryOperation.put) throw stateError('MR-T03', `An entry has the operation ${operation}.`)
}
