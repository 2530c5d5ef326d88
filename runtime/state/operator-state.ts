// Operator state: named lists of items that belong to a subtask, not to a key. checkpoint/assignment.ts deals them out on restore.

import { MillraceError } from '../base/errors.ts'
import type { CheckpointId } from '../base/ids.ts'
import type {
  OperatorStateSnapshot,
  Redistribution,
  SnapshotReader,
  SnapshotWriter,
  StateHandle,
} from '../checkpoint/contract.ts'
import { createReader, createWriter } from '../record/bytes.ts'
import type { CodecDescription } from '../record/contract.ts'
import { stateError } from './errors.ts'

/** 'MRIT', read as a little-endian number. */
const MAGIC = 0x5449524d
const VERSION = 1

/** Writes one named list as a subtask acknowledges it. */
export async function writeOperatorState(
  part: {
    readonly redistribution: Redistribution
    readonly codec: CodecDescription
    readonly items: readonly Uint8Array[]
  },
  checkpoint: CheckpointId,
  writer: SnapshotWriter,
): Promise<OperatorStateSnapshot> {
  const items = await writer.write(checkpoint, encodeItems(part.items))
  return { redistribution: part.redistribution, codec: part.codec, items, count: part.items.length }
}

/** Reads it back. Throws MR-T03 or MR-T05 naming the state and the object. */
export async function readOperatorState(
  name: string,
  snapshot: OperatorStateSnapshot,
  reader: SnapshotReader,
): Promise<Uint8Array[]> {
  const where = `operator state '${name}' in ${nameOfHandle(snapshot.items)}`
  return decodeItems(await reader.read(snapshot.items), snapshot.count, where)
}

/** Magic, version, count, then each item with its length. The handle's CRC covers it. */
export function encodeItems(items: readonly Uint8Array[]): Uint8Array {
  const writer = createWriter()
  writer.u32(MAGIC)
  writer.u8(VERSION)
  writer.u32(items.length)
  for (const item of items) writer.blob(item)
  return writer.take()
}

/** `count` is what the manifest says; `where` names the state and the object for errors. */
export function decodeItems(bytes: Uint8Array, count: number, where: string): Uint8Array[] {
  const items: Uint8Array[] = []
  try {
    const reader = createReader(bytes)
    if (reader.u32() !== MAGIC) throw stateError('MR-T03', `${where} does not begin as a list of items.`)
    const version = reader.u8()
    if (version !== VERSION) throw stateError('MR-T05', `${where} has version ${version}; this one reads ${VERSION}.`)
    const written = reader.u32()
    if (written !== count) throw stateError('MR-T03', `${where} holds ${written} items, the manifest says ${count}.`)
    for (let index = 0; index < written; index++) items.push(reader.blob().slice())
    if (reader.position !== reader.end) throw stateError('MR-T03', `${where} goes on after its last item.`)
  } catch (cause) {
    if (cause instanceof MillraceError && cause.code.startsWith('MR-T')) throw cause
    throw stateError('MR-T03', `${where} is cut short.`, cause)
  }
  return items
}

/** How a message names the place of bytes. */
export function nameOfHandle(handle: StateHandle): string {
  return handle.kind === 'object' ? `object ${handle.object} at ${handle.offset}` : 'the manifest itself'
}
