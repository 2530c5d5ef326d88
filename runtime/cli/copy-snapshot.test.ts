import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { copySnapshot, refuseTarget } from './copy-snapshot.ts'

let folder = ''

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-copy-'))
  await mkdir(join(folder, 'savepoint-3'))
  await writeFile(join(folder, 'savepoint-3/_metadata'), '{}')
  await writeFile(join(folder, 'savepoint-3/data'), new Uint8Array([0, 255, 10]))
})

afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

describe('a copied savepoint', () => {
  it('is whole, in a folder that is made for it', async () => {
    const to = join(folder, 'kept/of/monday')
    await copySnapshot(join(folder, 'savepoint-3'), to)
    expect(await readdir(join(folder, 'kept/of'))).toEqual(['monday'])
    expect(await readdir(to)).toEqual(['_metadata', 'data'])
    expect([...(await readFile(join(to, 'data')))]).toEqual([0, 255, 10])
  })

  it('never replaces anything, not even a link that leads nowhere', async () => {
    await symlink(join(folder, 'nowhere'), join(folder, 'link'))
    for (const name of ['savepoint-3', 'link']) {
      const there = join(folder, name)
      await expect(refuseTarget(there)).rejects.toThrow(/^MR-L11 .*is there already/)
      await expect(copySnapshot(join(folder, 'savepoint-3'), there)).rejects.toThrow(/^MR-L34/)
    }
    expect(await readdir(folder)).toEqual(['link', 'savepoint-3'])
    await expect(refuseTarget(join(folder, 'new'))).resolves.toBeUndefined()
  })

  it('is not there at all when a part of it cannot be copied', async () => {
    await mkdir(join(folder, 'savepoint-3/inner'))
    await expect(copySnapshot(join(folder, 'savepoint-3'), join(folder, 'kept'))).rejects.toThrow(/^MR-L34/)
    expect(await readdir(folder)).toEqual(['savepoint-3'])
  })
})
