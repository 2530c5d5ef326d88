import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32, deflateRawSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readZipEntry } from './zip.ts'

let folder: string
let archive: string
const text = 'a binary, as it were. '.repeat(1000)

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-zip-'))
  archive = join(folder, 'layer.zip')
  const entries = [zipEntry('tool/plain', 'plain', false), zipEntry('tool/packed', text, true)]
  const offsets = entries.map((_, index) => entries.slice(0, index).reduce((sum, { local }) => sum + local.length, 0))
  const directory = Buffer.concat(entries.map(({ central }, index) => central(offsets[index]!)))
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50)
  end.writeUInt16LE(entries.length, 10)
  end.writeUInt32LE(directory.length, 12)
  end.writeUInt32LE(
    entries.reduce((sum, { local }) => sum + local.length, 0),
    16,
  )
  await writeFile(archive, Buffer.concat([...entries.map(({ local }) => local), directory, end]))
})
afterAll(() => rm(folder, { recursive: true }))

describe('a zip archive', () => {
  it('gives the content of a file, packed or not', async () => {
    expect(String(await readZipEntry(archive, 'tool/packed'))).toBe(text)
    expect(String(await readZipEntry(archive, 'tool/plain'))).toBe('plain')
  })

  it('that lacks the file, or is none, is named', async () => {
    await expect(readZipEntry(archive, 'tool/other')).rejects.toThrow('has no file tool/other')
    const other = join(folder, 'other')
    await writeFile(other, 'no archive, and longer than the record at the end of one')
    await expect(readZipEntry(other, 'x')).rejects.toThrow(`${other} is no zip archive`)
  })
})

/** A file of an archive: its local part, and its entry in the directory once its place is known. */
function zipEntry(
  name: string,
  content: string,
  packed: boolean,
): { local: Buffer; central: (offset: number) => Buffer } {
  const bytes = Buffer.from(content)
  const body = packed ? deflateRawSync(bytes) : bytes
  const facts = Buffer.alloc(22)
  facts.writeUInt16LE(20, 0)
  facts.writeUInt16LE(packed ? 8 : 0, 4)
  facts.writeUInt32LE(crc32(bytes), 10)
  facts.writeUInt32LE(body.length, 14)
  facts.writeUInt32LE(bytes.length, 18)
  const nameLength = Buffer.alloc(4)
  nameLength.writeUInt16LE(name.length)
  const local = Buffer.concat([Buffer.from('PK\u0003\u0004'), facts, nameLength, Buffer.from(name), body])
  const central = (offset: number): Buffer => {
    const rest = Buffer.alloc(18)
    rest.writeUInt16LE(name.length)
    rest.writeUInt32LE(offset, 14)
    return Buffer.concat([Buffer.from('PK\u0001\u0002'), Buffer.alloc(2), facts, rest, Buffer.from(name)])
  }
  return { local, central }
}
