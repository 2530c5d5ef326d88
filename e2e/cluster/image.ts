// Packs the image of runtime and operator without a builder, in the Dockerfile's layout: /usr/local/bin/node, /opt/millrace with dist and the
// production packages, `millrace` on PATH, an unprivileged user, nothing that is written to. Run by itself it prints the archive's path.

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, copyFile, cp, mkdir, readFile, realpath, rename, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cacheFolder } from '../../tests/servers/support/go-tool.ts'
import { packImage, packLayer } from './archive.ts'
import { needPackages } from './packages.ts'
import { addLibraries, addShell, copyInto } from './root-files.ts'
import { run } from './run.ts'
import { step } from './step.ts'
import { withWorkFolder } from './work-folder.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))

/** Holds all that the Dockerfile's targets hold. */
export const imageName = 'docker.io/millrace/millrace:e2e'
/** uid:gid, as in the Dockerfile; by number, so that Kubernetes can tell that it is not root. */
const user = '10001:10001'
const home = 'opt/millrace'

export interface ImageOptions {
  /** Default: `imageName`, and the two that the chart of this version names by itself. Further ones serve upgrades to "another" image. */
  readonly names?: readonly string[]
  /** With /opt/examples and the data of flights, as the Dockerfile's target of that name. */
  readonly examples?: boolean
  /** Another build: the text in a file below dist/ becomes another. Rejects where it is not there. */
  readonly edit?: { readonly file: string; readonly from: string; readonly to: string }
}

/** Builds and packs; resolves with the archive's path. */
export async function millraceImage({ names: given, examples = false, edit }: ImageOptions = {}): Promise<string> {
  const names = given ?? (await usualNames())
  return step('image of runtime and operator', async () => {
    const folder = join(cacheFolder(), 'images')
    return withWorkFolder(folder, async (work) => {
      const base = await cachedLayer('base', [await nodeBinary(), '/bin/busybox'], addBase)
      const packages = await cachedLayer('packages', [join(repository, 'package-lock.json')], addPackages)
      const own = join(work, 'own')
      await addOwn(own)
      if (examples) await addExamples(own)
      if (edit !== undefined) await edited(join(own, home, 'dist', edit.file), edit)
      const archive = join(
        folder,
        `${createHash('sha256')
          .update(names.join() + String(examples) + JSON.stringify(edit))
          .digest('hex')
          .slice(0, 8)}-millrace.tar`,
      )
      const bytes = await packImage(archive, {
        names,
        layers: [{ tar: base }, { tar: packages }, { root: own }],
        entrypoint: ['/usr/local/bin/millrace'],
        env: { NODE_ENV: 'production', HOME: '/tmp', SSL_CERT_FILE: certificates },
        user,
        folder: `/${home}`,
      })
      console.log(`[cluster] ${archive}: ${(bytes / 1e6).toFixed(0)} MB`)
      return archive
    })
  })
}

const certificates = '/etc/ssl/certs/ca-certificates.crt'

/** A layer made anew only when what it is made of has changed. */
async function cachedLayer(
  name: string,
  sources: readonly string[],
  fill: (root: string) => Promise<void>,
): Promise<string> {
  const hash = createHash('sha256')
  for (const source of [...sources, fileURLToPath(import.meta.url)]) {
    // A binary by its size and time: hashing it takes longer than it is worth.
    const { size, mtimeMs } = await stat(source)
    hash.update(size > 10_000_000 ? `${source} ${size} ${mtimeMs}` : await readFile(source))
  }
  const out = join(cacheFolder(), 'images', `${name}-${hash.digest('hex').slice(0, 12)}.tar`)
  if (existsSync(out)) return out
  return step(`layer ${name}`, () =>
    withWorkFolder(dirname(out), async (work) => {
      const root = join(work, 'root')
      await fill(root)
      const tar = join(work, 'layer.tar')
      await packLayer(tar, { root })
      await rename(tar, out)
      return out
    }),
  )
}

/** Node, the libraries that it is linked with, authorities' certificates, a shell for people who look. */
async function addBase(root: string): Promise<void> {
  await needPackages()
  await addShell(root, '/')
  const node = await nodeBinary()
  await copyInto(node, join(root, 'usr/local/bin/node'))
  await run('strip', ['--strip-unneeded', join(root, 'usr/local/bin/node')], { anyCode: true }).catch(() => undefined)
  await addLibraries(root, node)
  if (existsSync(certificates)) await copyInto(certificates, join(root, certificates))
  // What the command's first line asks for.
  await mkdir(join(root, 'usr/bin'), { recursive: true })
  await symlink('/bin/busybox', join(root, 'usr/bin/env'))
  await writeFile(join(root, 'etc/nsswitch.conf'), 'hosts: files dns\n')
  await writeFile(join(root, 'etc/passwd'), 'root:x:0:0:root:/:/bin/sh\nmillrace:x:10001:10001:millrace:/tmp:/bin/sh\n')
  await writeFile(join(root, 'etc/group'), 'root:x:0:\nmillrace:x:10001:\n')
  await mkdir(join(root, home), { recursive: true })
  await symlink(`/${home}/dist/runtime/cli/bin/main.js`, join(root, 'usr/local/bin/millrace'))
}

interface LockFile {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly devOptional?: boolean }>>
}

/** What `npm ci --omit=dev` would install, as far as it is installed here: an optional one of another platform is not. */
async function addPackages(root: string): Promise<void> {
  const lock = JSON.parse(await readFile(join(repository, 'package-lock.json'), 'utf8')) as LockFile
  for (const [path, { dev, devOptional }] of Object.entries(lock.packages)) {
    // Node itself is in the layer below.
    const left = path === '' || dev === true || devOptional === true || path.startsWith('node_modules/node-linux-')
    if (left || !existsSync(join(repository, path))) continue
    await cp(join(repository, path), join(root, home, path), {
      recursive: true,
      verbatimSymlinks: true,
      // Packages within packages have their own entry in the lock file.
      filter: (source) => !source.slice(join(repository, path).length).includes('/node_modules'),
    })
  }
}

/** The build, with the sources' package.json. */
async function addOwn(root: string): Promise<void> {
  const to = join(root, home)
  await mkdir(to, { recursive: true })
  const compiler = join(repository, 'node_modules/.bin/tsc')
  await run(compiler, ['-p', 'tsconfig.build.json', '--outDir', join(to, 'dist')], {
    cwd: repository,
    deadlineMs: 300_000,
  })
  for (const file of ['package.json', 'LICENSE']) await copyFile(join(repository, file), join(to, file))
  await chmod(join(to, 'dist/runtime/cli/bin/main.js'), 0o755)
}

async function edited(file: string, { from, to }: { readonly from: string; readonly to: string }): Promise<void> {
  const text = await readFile(file, 'utf8')
  if (!text.includes(from)) throw new Error(`${file} has no ${from}`)
  await writeFile(file, text.replace(from, to))
}

async function addExamples(root: string): Promise<void> {
  await cp(join(repository, 'examples'), join(root, 'opt/examples'), { recursive: true })
  const flights = 'flights-3m.parquet'
  await copyFile(
    join(repository, 'node_modules/vega-datasets/data', flights),
    join(root, 'opt/examples/flights', flights),
  )
}

async function usualNames(): Promise<string[]> {
  const { version } = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8')) as {
    readonly version: string
  }
  return [imageName, ...['runtime', 'operator'].map((name) => `docker.io/millrace/${name}:${version}`)]
}

/** Of the Node that the repository pins. */
const nodeBinary = (): Promise<string> => realpath(process.execPath)

if (import.meta.main) console.log(await millraceImage())
