import { mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readRestAddress, removeRestAddress, writeRestAddress } from './rest-file.ts'
import type { RestAddress } from './rest-file.ts'

let folder = ''

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-rest-'))
})

afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

function addressOf(instance: string): RestAddress {
  return {
    version: 1,
    pid: 17,
    job: 'orders',
    instance,
    address: 'http://127.0.0.1:40123',
    token: `token of ${instance}`,
  }
}

describe("a running job's address", () => {
  it('is for its user alone, and gone after its process has taken it away', async () => {
    await writeRestAddress(folder, addressOf('one'))
    expect((await stat(join(folder, 'rest.json'))).mode & 0o777).toBe(0o600)
    expect(await readRestAddress(folder)).toEqual(addressOf('one'))
    await removeRestAddress(folder, 'one')
    await removeRestAddress(folder, 'one')
    expect(await readRestAddress(folder)).toBeUndefined()
    expect(await readdir(folder)).toEqual([])
  })

  it('of a later process replaces that of the one before, which does not take it away then', async () => {
    await writeRestAddress(folder, addressOf('one'))
    await writeRestAddress(folder, addressOf('two'))
    await removeRestAddress(folder, 'one')
    expect(await readRestAddress(folder)).toEqual(addressOf('two'))
    expect(await readdir(folder)).toEqual(['rest.json'])
    expect((await stat(join(folder, 'rest.json'))).mode & 0o777).toBe(0o600)
  })

  it('that cannot be understood is an error that says so, never none', async () => {
    for (const text of ['', '{"version":1}', JSON.stringify({ ...addressOf('one'), version: 2 })]) {
      await writeFile(join(folder, 'rest.json'), text)
      await expect(readRestAddress(folder)).rejects.toThrow(/^MR-L03 .*rest\.json/)
    }
    expect(await readFile(join(folder, 'rest.json'), 'utf8')).toContain('orders')
  })
})
