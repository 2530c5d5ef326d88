// Where a job's code comes from: a file on this machine, or the keys of a ConfigMap, written side by side before they are loaded.

import { createHash } from 'node:crypto'
import { mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { localCodeFolder } from '../storage/paths.ts'
import { commandError } from './errors.ts'

export type JobModule =
  /** `path` is absolute. `image`: where a manifest says that it is; undefined: it names none. */
  | { readonly kind: 'file'; readonly path: string; readonly image?: string }
  /** `key` is the job file among them. */
  | { readonly kind: 'files'; readonly key: string; readonly files: ReadonlyMap<string, Uint8Array> }
  /** A path of the image that a manifest names; there is no such file here. */
  | { readonly kind: 'in image'; readonly image: string; readonly path: string }

/** What `--config-map NAME=PATH` gives: a file under its own name, or each file of a folder. Throws MR-L19. */
export async function filesAt(path: string): Promise<ReadonlyMap<string, Uint8Array>> {
  try {
    const isFolder = (await stat(path)).isDirectory()
    const folder = isFolder ? path : dirname(path)
    const names = isFolder ? await fileNamesIn(path) : [basename(path)]
    return new Map(await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))] as const)))
  } catch (error) {
    throw commandError('MR-L19', `${path}: ${(error as Error).message}.`, error)
  }
}

/** A ConfigMap has no folders. */
async function fileNamesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  return entries.filter((entry) => entry.isFile() && /^[-._a-zA-Z0-9]+$/.test(entry.name)).map(({ name }) => name)
}

/** The absolute path of the file that this machine runs. Throws MR-L19, MR-L22. */
export async function jobFileOf(
  module: JobModule,
  at: { readonly name: string; readonly folder: string },
): Promise<string> {
  switch (module.kind) {
    case 'file':
      return module.path
    case 'files':
      return writeForJob(module, at)
    case 'in image':
      throw commandError('MR-L22', `${module.path} is no file here; spec.program.image is ${module.image}.`)
    default:
      return module satisfies never
  }
}

/** The job file's absolute path below the working folder; what lies there was written whole and never changes. */
export async function writeForJob(
  { files, key }: Extract<JobModule, { kind: 'files' }>,
  { name, folder }: { readonly name: string; readonly folder: string },
): Promise<string> {
  const code = join(folder, localCodeFolder(name, hashOf(files)))
  try {
    if (await isThere(code)) return join(code, key)
    // Under another name until it is whole; another command that does the same at this moment writes the same.
    const unfinished = `${code}-${process.pid}`
    await writeFiles(files, unfinished)
    try {
      await rename(unfinished, code)
    } catch (error) {
      if (!(await isThere(code))) throw error
      await rm(unfinished, { recursive: true, force: true })
    }
  } catch (error) {
    throw commandError('MR-L19', `Writing them to ${code}: ${(error as Error).message}.`, error)
  }
  return join(code, key)
}

/** With a package.json, unless they have one: the files are modules whatever lies above the folder says. */
export async function writeFiles(files: ReadonlyMap<string, Uint8Array>, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  if (!files.has('package.json')) await writeFile(join(folder, 'package.json'), '{"type":"module"}\n')
  for (const [name, bytes] of files) await writeFile(join(folder, name), bytes)
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

function hashOf(files: ReadonlyMap<string, Uint8Array>): string {
  const hash = createHash('sha256')
  for (const [name, bytes] of [...files].toSorted(([left], [right]) => (left < right ? -1 : 1)))
    hash.update(`${name}\n${bytes.byteLength}\n`).update(bytes)
  return hash.digest('hex').slice(0, 16)
}
