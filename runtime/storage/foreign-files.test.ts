import { describe, expect, it } from 'vitest'
import { ForeignFiles } from './foreign-files.ts'
import { MemoryFiles } from './memory-files.ts'
import { absoluteKey, fileKey, manifestKeyIn, snapshotPlace } from './paths.ts'
import type { ObjectKey } from './contract.ts'

const text = (value: string): Uint8Array => new TextEncoder().encode(value)

describe('files outside of the store', () => {
  const there = async () => {
    const files = new MemoryFiles()
    await files.makeDirectory('/copies/my savepoint')
    await files.writeNew('/copies/my savepoint/a', text('0123456789'))
    return new ForeignFiles(files)
  }

  it('are read by their absolute keys, whole and in parts', async () => {
    const foreign = await there()
    expect(await foreign.read(fileKey('/copies/my savepoint/a'))).toEqual(text('0123456789'))
    expect(await foreign.readRange(fileKey('/copies/my savepoint/a'), 3, 4)).toEqual(text('3456'))
  })

  it('are undefined where they are missing, also below a file, and an error where they are short', async () => {
    const foreign = await there()
    expect(await foreign.read(fileKey('/copies/none'))).toBeUndefined()
    expect(await foreign.readRange(fileKey('/copies/my savepoint/a/_metadata'), 0, 1)).toBeUndefined()
    await expect(foreign.readRange(fileKey('/copies/my savepoint/a'), 8, 4)).rejects.toThrow(/MR-S03.*10 bytes/)
  })

  it('of another scheme, and relative keys, are refused', async () => {
    const foreign = await there()
    for (const key of ['s3://bucket/a', 'chk-1/a', 'file:relative'])
      await expect(foreign.read(key as ObjectKey)).rejects.toThrow(/MR-S04/)
  })
})

describe('the place of a snapshot', () => {
  it.each([
    ['/w/.millrace/flights/objects/savepoint-7', '/w/.millrace/flights', 'savepoint-7/_metadata'],
    ['/w/.millrace/flights/objects/savepoint-7/', '/w/.millrace/flights', 'savepoint-7/_metadata'],
    ['/w/.millrace/flights/objects/chk-3/_metadata', '/w/.millrace/flights', 'chk-3/_metadata'],
    [
      '/w/.millrace/flights/objects/savepoint-7',
      '/w/.millrace/other',
      'file:///w/.millrace/flights/objects/savepoint-7/_metadata',
    ],
    ['/w/.millrace/flights/objects/mine', '/w/.millrace/flights', 'file:///w/.millrace/flights/objects/mine/_metadata'],
    ['/copies/savepoint-7', '/copies', 'file:///copies/savepoint-7/_metadata'],
  ])('%s is named in HEAD of the job in %s: %s', (path, storeFolder, key) => {
    expect(manifestKeyIn(storeFolder, snapshotPlace(path))).toBe(key)
  })

  it('moves what is in its own folder with it, and nothing else', () => {
    const at = { manifest: fileKey('/copies/renamed/_metadata'), folder: 'savepoint-7' }
    expect(absoluteKey('savepoint-7/a', at)).toBe('file:///copies/renamed/a')
    expect(absoluteKey('savepoint-70/a', at)).toBe('file:///copies/savepoint-70/a')
    expect(absoluteKey('shared/b', at)).toBe('file:///copies/shared/b')
    expect(absoluteKey('file:///elsewhere/c', at)).toBe('file:///elsewhere/c')
  })
})
