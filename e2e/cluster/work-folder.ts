// Folders for what is half made: on the disk where the result will lie, gone afterwards, and gone too when the process that made one was killed.

import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { handleOf } from './process-handle.ts'

/** Runs `action` with a new folder below `parent`, and removes it. First those of processes that are no more. */
export async function withWorkFolder<Value>(
  parent: string,
  action: (folder: string) => Promise<Value>,
): Promise<Value> {
  await mkdir(parent, { recursive: true })
  for (const name of await readdir(parent)) {
    const pid = /^work-(\d+)-/.exec(name)?.[1]
    // One whose id is another process's by now goes a later time.
    if (pid !== undefined && handleOf(Number(pid)) === undefined)
      await rm(join(parent, name), { recursive: true, force: true })
  }
  const folder = await mkdtemp(join(parent, `work-${process.pid}-`))
  try {
    return await action(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
