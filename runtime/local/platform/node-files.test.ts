import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { NodeFiles } from './node-files.ts'

const files = new NodeFiles()
const folders: string[] = []

async function freshFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-node-files-'))
  folders.push(folder)
  return folder
}

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

describe('folders of the real file system', () => {
  it('are made with their parents, and again without harm', async () => {
    const path = join(await freshFolder(), 'a/b/c')
    await files.makeDirectory(path)
    await files.makeDirectory(path)
    expect(await files.exists(path)).toBe(true)
  })

  it('are refused where a file is in the way', async () => {
    const folder = await freshFolder()
    await writeFile(join(folder, 'file'), '')
    await expect(files.makeDirectory(join(folder, 'file'))).rejects.toMatchObject({ code: 'EEXIST' })
    await expect(files.makeDirectory(join(folder, 'file/below'))).rejects.toMatchObject({ code: 'ENOTDIR' })
  })

  it('come back with an error where none can be made, which Node alone never does below /proc', async () => {
    await expect(files.makeDirectory('/proc/millrace/out')).rejects.toThrow(/E[A-Z]+/)
  })
})
