// One file out of a zip archive, for tools that are published in one.

import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { promisify } from 'node:util'
import { inflateRaw } from 'node:zlib'

/** The end record and the longest comment after it. */
const endMax = 22 + 65_535
const endSignature = 0x06054b50
const entrySignature = 0x02014b50
const stored = 0
const deflated = 8

/** Content of the file `name` in the archive. Format: PKWARE's APPNOTE 4.3, without its 64-bit and encrypted forms. */
export async function readZipEntry(archive: string, name: string): Promise<Buffer> {
  const file = await open(archive)
  try {
    const { size } = await file.stat()
    const tail = await readAt(file, Math.max(0, size - endMax), Math.min(size, endMax))
    let end = tail.length - 22
    while (end >= 0 && tail.readUInt32LE(end) !== endSignature) end--
    if (end < 0) throw new Error(`${archive} is no zip archive`)
    const directory = await readAt(file, tail.readUInt32LE(end + 16), tail.readUInt32LE(end + 12))
    for (let at = 0; at < directory.length && directory.readUInt32LE(at) === entrySignature;) {
      const nameLength = directory.readUInt16LE(at + 28)
      if (directory.toString('utf8', at + 46, at + 46 + nameLength) === name)
        return await readEntry(file, {
          method: directory.readUInt16LE(at + 10),
          packedBytes: directory.readUInt32LE(at + 20),
          bytes: directory.readUInt32LE(at + 24),
          offset: directory.readUInt32LE(at + 42),
        })
      at += 46 + nameLength + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32)
    }
    throw new Error(`${archive} has no file ${name}`)
  } finally {
    await file.close()
  }
}

interface Entry {
  readonly method: number
  readonly packedBytes: number
  readonly bytes: number
  /** Of its local header. */
  readonly offset: number
}

async function readEntry(file: FileHandle, entry: Entry): Promise<Buffer> {
  const header = await readAt(file, entry.offset, 30)
  const begin = entry.offset + 30 + header.readUInt16LE(26) + header.readUInt16LE(28)
  const packed = await readAt(file, begin, entry.packedBytes)
  if (entry.method !== stored && entry.method !== deflated)
    throw new Error(`a zip entry is packed by method ${entry.method}, which is not read here`)
  const content = entry.method === stored ? packed : await promisify(inflateRaw)(packed)
  if (content.length !== entry.bytes)
    throw new Error(`a zip entry has ${content.length} bytes instead of ${entry.bytes}`)
  return content
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position)
  if (bytesRead !== length) throw new Error('a zip archive ends too early')
  return buffer
}
