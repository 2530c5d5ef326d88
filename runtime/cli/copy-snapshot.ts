// Copies the folder of a savepoint, which holds all that it needs, and checks that the copy is whole.

import { copyFile, lstat, mkdir, open, readFile, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { commandError } from './errors.ts'

/** Throws MR-L11 if anything is there. */
export async function refuseTarget(to: string): Promise<void> {
  if (await isThere(to)) throw commandError('MR-L11', `--to is ${to}, which is there already.`)
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    const { code } = error as { readonly code?: string }
    if (code === 'ENOENT') return false
    throw error
  }
}

/** Under a name of its own first: a folder that is called `to` is whole. Throws MR-L34, and leaves nothing then. */
export async function copySnapshot(from: string, to: string): Promise<void> {
  const partial = join(dirname(to), `.${basename(to)}.partial-${process.pid}`)
  try {
    await mkdir(dirname(to), { recursive: true })
    await mkdir(partial)
    // Of one level; its manifest, which makes it a savepoint, goes last.
    for (const name of (await readdir(from)).toSorted().toReversed())
      await copyChecked(join(from, name), join(partial, name))
    await synced(partial)
    if (await isThere(to)) throw new Error('it is there by now')
    await rename(partial, to)
    await synced(dirname(to))
  } catch (error) {
    await rm(partial, { recursive: true, force: true })
    throw commandError(
      'MR-L34',
      `From ${from} to ${to}: ${error instanceof Error ? error.message : String(error)}.`,
      error,
    )
  }
}

async function copyChecked(from: string, to: string): Promise<void> {
  await copyFile(from, to)
  await synced(to)
  const [original, copy] = await Promise.all([readFile(from), readFile(to)])
  if (!original.equals(copy)) throw new Error(`${to} is not what ${from} is`)
}

async function synced(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}
