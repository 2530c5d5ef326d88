import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packImage, packLayer } from './archive.ts'
import { run } from './run.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-archive-'))
})
afterAll(() => rm(folder, { recursive: true }))

async function rootOf(name: string, order: readonly string[]): Promise<string> {
  const root = join(folder, name)
  await mkdir(join(root, 'bin'), { recursive: true })
  for (const file of order) await writeFile(join(root, 'bin', file), file, { mode: 0o755 })
  await symlink('one', join(root, 'bin/link'))
  await utimes(join(root, 'bin', order[0]!), new Date(), new Date(order[0] === 'one' ? 1e9 : 2e9))
  return root
}

describe('an image archive', () => {
  it('names its configuration and its layers by their content', async () => {
    const root = await rootOf('a', ['one', 'two'])
    const lower = join(folder, 'lower.tar')
    await packLayer(lower, { root: await rootOf('lower', ['three']) })
    const out = join(folder, 'image.tar')
    const bytes = await packImage(out, {
      names: ['docker.io/millrace/a:1', 'docker.io/millrace/a:2'],
      layers: [{ tar: lower }, { root }],
      entrypoint: ['/bin/one'],
      env: { HOME: '/tmp' },
      user: '10001:10001',
    })
    expect(bytes).toBe((await readFile(out)).length)
    const open = join(folder, 'open')
    await mkdir(open)
    await run('tar', ['-xf', out, '-C', open])
    const read = (file: string): Promise<Buffer> => readFile(join(open, file))
    const [manifest] = JSON.parse(String(await read('manifest.json'))) as [
      { Config: string; RepoTags: string[]; Layers: string[] },
    ]
    expect(manifest.RepoTags).toEqual(['docker.io/millrace/a:1', 'docker.io/millrace/a:2'])
    expect(manifest.Config).toBe(`${sha256(await read(manifest.Config))}.json`)
    const digests = await Promise.all(manifest.Layers.map(async (layer) => sha256(await read(layer))))
    const config = JSON.parse(String(await read(manifest.Config))) as Record<string, unknown>
    expect(config['rootfs']).toEqual({ type: 'layers', diff_ids: digests.map((digest) => `sha256:${digest}`) })
    expect(config['config']).toEqual({
      Entrypoint: ['/bin/one'],
      Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/tmp'],
      User: '10001:10001',
    })
    const { stdout } = await run('tar', ['-tvf', join(open, manifest.Layers[1]!), '--numeric-owner'])
    expect(stdout).toMatch(/^-rwxr-xr-x 0\/0 .* \.\/bin\/one$/m)
    expect(stdout).toMatch(/^lrwxrwxrwx 0\/0 .* \.\/bin\/link -> one$/m)
  })

  it('is the same for the same content, whenever and in whatever order that was written', async () => {
    const [one, other] = [join(folder, 'one.tar'), join(folder, 'other.tar')]
    await packImage(one, { names: ['b:1'], layers: [{ root: await rootOf('b1', ['one', 'two']) }] })
    await packImage(other, { names: ['b:1'], layers: [{ root: await rootOf('b2', ['two', 'one']) }] })
    expect(sha256(await readFile(one))).toBe(sha256(await readFile(other)))
  })
})

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
