// Files that images are put together of.

import { chmod, copyFile, mkdir, realpath, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { run } from './run.ts'

/** A file, with the folders that lead to it. */
export async function copyInto(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true })
  await copyFile(from, to)
}

/** busybox and a link for each of its commands; users, groups and a place for temporary files. */
export async function addShell(root: string, debian: string): Promise<void> {
  const busybox = join(debian, 'bin/busybox')
  await copyInto(busybox, join(root, 'bin/busybox'))
  const { stdout } = await run(busybox, ['--list'])
  for (const name of stdout.trim().split('\n'))
    if (name !== 'busybox') await symlink('busybox', join(root, 'bin', name))
  await mkdir(join(root, 'etc'), { recursive: true })
  await writeFile(join(root, 'etc/passwd'), 'root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n')
  await writeFile(join(root, 'etc/group'), 'root:x:0:\nnogroup:x:65534:\n')
  await mkdir(join(root, 'tmp'), { recursive: true })
  await chmod(join(root, 'tmp'), 0o1777)
}

/** The shared libraries that a program of this machine is linked with, at the same paths. None for a static one. */
export async function addLibraries(root: string, program: string): Promise<void> {
  const { stdout } = await run('ldd', [program], { anyCode: true })
  for (const [, library] of stdout.matchAll(/(\/lib\S+)/g))
    await copyInto(await realpath(library!), join(root, library!))
}
