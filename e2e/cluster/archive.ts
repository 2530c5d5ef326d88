// Container images without a builder: folders packed as layers of a docker archive, which `docker load`, `kind load image-archive` and
// `ctr images import` read. The same folders give the same bytes: names sorted, times 0.

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, rename, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { run } from './run.ts'
import { withWorkFolder } from './work-folder.ts'

/** Half a gigabyte on a busy disk. */
const packDeadlineMs = 300_000

/** A layer: a folder's content, or what `packLayer` made of one. */
export type Layer = { readonly root: string; readonly keepOwners?: boolean } | { readonly tar: string }

export interface ImageOptions {
  /** With tag: docker.io/millrace/millrace:e2e. */
  readonly names: readonly string[]
  /** Lowest first. */
  readonly layers: readonly Layer[]
  readonly entrypoint?: readonly string[]
  readonly command?: readonly string[]
  /** Beside PATH. */
  readonly env?: Readonly<Record<string, string>>
  /** `uid:gid`. */
  readonly user?: string
  readonly folder?: string
  readonly stopSignal?: string
}

/** Writes the archive; resolves with its size in bytes. */
export async function packImage(out: string, options: ImageOptions): Promise<number> {
  return withWorkFolder(dirname(out), async (work) => {
    const content = join(work, 'content')
    await mkdir(content)
    const digests: string[] = []
    for (const [index, layer] of options.layers.entries()) {
      const tar = 'tar' in layer ? layer.tar : join(work, `layer-${index}.tar`)
      if ('root' in layer) await packLayer(tar, layer)
      const digest = await sha256(tar)
      digests.push(digest)
      await mkdir(join(content, digest))
      await symlink(tar, join(content, digest, 'layer.tar'))
    }
    const config = JSON.stringify(configOf(options, digests))
    const configName = `${createHash('sha256').update(config).digest('hex')}.json`
    await writeFile(join(content, configName), config)
    const layers = digests.map((digest) => `${digest}/layer.tar`)
    await writeFile(
      join(content, 'manifest.json'),
      JSON.stringify([{ Config: configName, RepoTags: options.names, Layers: layers }]),
    )
    const image = join(work, 'image.tar')
    await tarOf(content, image, ['--dereference', ...ownedByRoot])
    await rename(image, out)
    return (await stat(out)).size
  })
}

/** A folder's content as the tar file of a layer, owned by root unless owners are kept. */
export async function packLayer(
  out: string,
  layer: { readonly root: string; readonly keepOwners?: boolean },
): Promise<void> {
  await tarOf(layer.root, out, layer.keepOwners === true ? [] : ownedByRoot)
}

const ownedByRoot = ['--owner=0', '--group=0']

async function tarOf(root: string, out: string, flags: readonly string[]): Promise<void> {
  const usual = ['--create', '--format=gnu', '--sort=name', '--mtime=@0', '--numeric-owner']
  await run('tar', [...usual, ...flags, '-f', out, '-C', root, '.'], {
    deadlineMs: packDeadlineMs,
    needs: 'GNU tar',
  })
}

function configOf(options: ImageOptions, digests: readonly string[]): unknown {
  const { entrypoint, command, env = {}, user, folder, stopSignal } = options
  const variables = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...env }
  return {
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    os: 'linux',
    created: '1970-01-01T00:00:00Z',
    config: {
      Env: Object.entries(variables).map(([name, value]) => `${name}=${value}`),
      ...(entrypoint !== undefined && { Entrypoint: entrypoint }),
      ...(command !== undefined && { Cmd: command }),
      ...(user !== undefined && { User: user }),
      ...(folder !== undefined && { WorkingDir: folder }),
      ...(stopSignal !== undefined && { StopSignal: stopSignal }),
    },
    rootfs: { type: 'layers', diff_ids: digests.map((digest) => `sha256:${digest}`) },
    history: digests.map(() => ({ created: '1970-01-01T00:00:00Z', created_by: 'e2e/cluster/archive.ts' })),
  }
}

async function sha256(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer)
  return hash.digest('hex')
}
