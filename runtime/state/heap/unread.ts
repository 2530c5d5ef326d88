// Restored state that nobody has declared yet: kept as the bytes it was read as, and written again by each snapshot.

import type { KeyedStateDescription } from '../../checkpoint/contract.ts'
import { createReader } from '../../record/bytes.ts'
import { whyOtherKind } from '../description.ts'
import { stateError, unreadableState } from '../errors.ts'
import type { BlockSection, BlockWriter } from '../segment.ts'
import type { FrozenState } from './snapshot.ts'
import type { HeapTable } from './table.ts'

export class UnreadState implements FrozenState {
  readonly description: KeyedStateDescription
  private readonly sections = new Map<number, BlockSection & { readonly place: string }>()

  constructor(description: KeyedStateDescription) {
    this.description = description
  }

  add(group: number, section: BlockSection & { readonly place: string }): void {
    this.sections.set(group, section)
  }

  get entryCount(): number {
    let count = 0
    for (const section of this.sections.values()) count += section.count
    return count
  }

  async writeGroup(group: number, block: BlockWriter): Promise<void> {
    const section = this.sections.get(group)
    if (section !== undefined) block.addWritten(section.count, section.bytes)
  }

  /** Throws MR-T02 when today's declaration cannot read it, MR-T03 when its description is damaged; nothing is decoded yet. */
  loadInto(table: HeapTable, uid: string): () => void {
    const { name } = this.description
    const answer = this.loaderOf(table, uid)
    if ('refused' in answer) throw unreadableState({ uid, name, why: answer.refused })
    return () => {
      for (const [group, section] of this.sections) {
        const where = `State '${name}' (${section.place})`
        const reader = createReader(section.bytes)
        try {
          answer.load(group, reader, section.count)
        } catch (cause) {
          throw stateError('MR-T03', `${where} cannot be decoded.`, cause)
        }
        if (reader.position !== reader.end) throw stateError('MR-T03', `${where} goes on after its last entry.`)
      }
    }
  }

  private loaderOf(table: HeapTable, uid: string): ReturnType<HeapTable['loaderOf']> {
    const refused = whyOtherKind(this.description, table.description.kind)
    if (refused !== undefined) return { refused }
    try {
      return table.loaderOf(this.description)
    } catch (cause) {
      throw stateError('MR-T03', `Operator '${uid}', state '${this.description.name}': its description.`, cause)
    }
  }
}
