// Where the snapshots of tests/golden/v2 lie, and how they come into stores in memory and out of them. `HEAD` is HEAD, `objects` the store,
// `output` what the file sink keeps.

import type { FileSystem, ObjectStore } from '../../runtime/storage/contract.ts'
import { MemoryFiles } from '../../runtime/storage/memory-files.ts'
import { joinPath } from '../../runtime/storage/paths.ts'

/** Relative names and contents. */
export type Folder = ReadonlyMap<string, Uint8Array>

export async function folderOf(files: FileSystem, root: string): Promise<Folder> {
  const found = new Map<string, Uint8Array>()
  const walk = async (path: string, prefix: string): Promise<void> => {
    for (const name of (await files.list(path)).toSorted()) {
      const inner = joinPath(path, name)
      const bytes = await files.readFile(inner).catch(() => undefined)
      if (bytes === undefined) await walk(inner, `${prefix}${name}/`)
      else found.set(`${prefix}${name}`, bytes)
    }
  }
  await walk(root, '')
  return found
}

export async function putInto(files: FileSystem, root: string, folder: Folder): Promise<void> {
  for (const [name, bytes] of folder) {
    const path = joinPath(root, name)
    await files.makeDirectory(path.slice(0, path.lastIndexOf('/')))
    await files.writeNew(path, bytes)
  }
}

export async function filesOf(folders: Readonly<Record<string, Folder>>): Promise<MemoryFiles> {
  const files = new MemoryFiles()
  for (const [root, folder] of Object.entries(folders)) await putInto(files, root, folder)
  return files
}

export async function objectsOf(store: ObjectStore): Promise<Folder> {
  const keys = await store.list('')
  return new Map(await Promise.all(keys.map(async (key) => [key, (await store.read(key))!] as const)))
}

/** Those of `name` and below, without it. */
export function below(folder: Folder, name: string): Folder {
  return new Map(
    [...folder]
      .filter(([path]) => path.startsWith(`${name}/`))
      .map(([path, bytes]) => [path.slice(name.length + 1), bytes]),
  )
}

/** Texts of all visible lines of a file sink. */
export async function linesOfFile(files: FileSystem, root: string): Promise<string[]> {
  const visible = [...(await folderOf(files, root))].filter(([name]) => name.startsWith('part-'))
  return visible
    .flatMap(([, bytes]) => new TextDecoder().decode(bytes).split('\n'))
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { readonly text: string }).text)
}
