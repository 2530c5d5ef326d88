// The file system of this machine.

import { link, mkdir, open, readFile, readdir, rename, rmdir, stat, truncate, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { FileSystem } from '../../storage/contract.ts'
import { errorCodeOf } from '../../storage/errors.ts'

export class NodeFiles implements FileSystem {
  async readFile(path: string): Promise<Uint8Array> {
    return plain(await readFile(path))
  }

  async readRange(path: string, offset: number, length: number): Promise<Uint8Array> {
    const file = await open(path, 'r')
    try {
      const bytes = new Uint8Array(length)
      let filled = 0
      while (filled < length) {
        const { bytesRead } = await file.read(bytes, filled, length - filled, offset + filled)
        if (bytesRead === 0) break
        filled += bytesRead
      }
      return filled === length ? bytes : bytes.slice(0, filled)
    } finally {
      await file.close()
    }
  }

  async sizeOf(path: string): Promise<number> {
    return (await stat(path)).size
  }

  async list(path: string): Promise<string[]> {
    return (await readdir(path)).toSorted()
  }

  /** Not by Node's recursive option: below a folder that takes no children, such as /proc, that never comes back. */
  async makeDirectory(path: string): Promise<void> {
    const code = await tryMakeDirectory(path)
    if (code !== 'ENOENT') return
    const parent = dirname(path)
    if (parent === path) throw missing(path)
    await this.makeDirectory(parent)
    if ((await tryMakeDirectory(path)) === 'ENOENT') throw missing(path)
  }

  async writeNew(path: string, bytes: Uint8Array): Promise<void> {
    await write(path, 'wx', bytes)
  }

  async append(path: string, bytes: Uint8Array): Promise<void> {
    await write(path, 'a', bytes)
  }

  async truncate(path: string, length: number): Promise<void> {
    await truncate(path, length)
  }

  async sync(path: string): Promise<void> {
    const file = await open(path, 'r')
    try {
      await file.sync()
    } finally {
      await file.close()
    }
  }

  async link(from: string, to: string): Promise<void> {
    await link(from, to)
  }

  async rename(from: string, to: string): Promise<void> {
    await rename(from, to)
  }

  async remove(path: string): Promise<void> {
    try {
      await unlink(path)
    } catch (error) {
      const code = errorCodeOf(error)
      if (code === 'ENOENT') return
      // Linux says EISDIR for a folder, others EPERM; rmdir then says what is really wrong.
      if (code !== 'EISDIR' && code !== 'EPERM') throw error
      await removeFolder(path)
    }
  }

  async exists(path: string): Promise<boolean> {
    try {
      await stat(path)
      return true
    } catch (error) {
      const code = errorCodeOf(error)
      if (code === 'ENOENT' || code === 'ENOTDIR') return false
      throw error
    }
  }
}

/** 'ENOENT': its parent is not there. */
async function tryMakeDirectory(path: string): Promise<'done' | 'ENOENT'> {
  try {
    await mkdir(path)
  } catch (error) {
    const code = errorCodeOf(error)
    if (code === 'ENOENT') return 'ENOENT'
    if (code !== 'EEXIST' || !(await stat(path)).isDirectory()) throw error
  }
  return 'done'
}

function missing(path: string): Error {
  return Object.assign(new Error(`ENOENT: no such file or directory, mkdir '${path}'`), { code: 'ENOENT' })
}

async function write(path: string, flags: 'wx' | 'a', bytes: Uint8Array): Promise<void> {
  const file = await open(path, flags)
  try {
    await file.writeFile(bytes)
  } finally {
    await file.close()
  }
}

async function removeFolder(path: string): Promise<void> {
  try {
    await rmdir(path)
  } catch (error) {
    if (errorCodeOf(error) !== 'ENOENT') throw error
  }
}

/** Node's Buffers come from a shared pool or carry other methods; callers get plain bytes of their own. */
function plain(buffer: Uint8Array): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
}
