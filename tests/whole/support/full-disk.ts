// Preloaded into a process: while the marker file exists, the disk takes no more bytes below the folders named in it. Node's own
// error, at the calls that need room.

import fs, { existsSync, readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const marker = process.env['MILLRACE_TEST_FULL_DISK']

function refuseIfFull(path: unknown, call: string): void {
  if (marker === undefined || !existsSync(marker)) return
  const full = readFileSync(marker, 'utf8').split('\n')
  if (!full.some((folder) => folder !== '' && String(path).includes(folder))) return
  throw Object.assign(new Error(`ENOSPC: no space left on device, ${call} '${String(path)}'`), {
    code: 'ENOSPC',
    errno: -28,
    syscall: call,
  })
}

const { open, mkdir, link } = fs.promises

fs.promises.open = async (path, flags, mode) => {
  const file = await open(path, flags, mode)
  const writeFile = file.writeFile.bind(file)
  file.writeFile = async (...given) => {
    refuseIfFull(path, 'write')
    return writeFile(...given)
  }
  return file
}
fs.promises.mkdir = (async (path: Parameters<typeof mkdir>[0], options: Parameters<typeof mkdir>[1]) => {
  if (!existsSync(path)) refuseIfFull(path, 'mkdir')
  return mkdir(path, options)
}) as typeof mkdir
fs.promises.link = async (from, to) => {
  refuseIfFull(to, 'link')
  return link(from, to)
}
syncBuiltinESMExports()
