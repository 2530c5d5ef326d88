// Images of the servers that the chart can bring along, packed from the binaries that tests of servers use, under whatever name the chart asks for.

import { createHash } from 'node:crypto'
import { mkdir, symlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { cacheFolder, goTool } from '../../tests/servers/support/go-tool.ts'
import { natsServerBinary } from '../../tests/servers/support/nats-server.ts'
import { versitygw } from '../../tests/servers/support/s3-server.ts'
import { packImage } from './archive.ts'
import { needPackages } from './packages.ts'
import { addLibraries, addShell, copyInto } from './root-files.ts'
import { step } from './step.ts'
import { withWorkFolder } from './work-folder.ts'

/** /nats-server, as the published image of NATS has it. Resolves with the archive's path. */
export const natsImage = async (name: string): Promise<string> =>
  serverImage(name, await natsServerBinary(), '/nats-server')

/** versitygw on PATH. Resolves with the archive's path. */
export const s3Image = async (name: string): Promise<string> =>
  serverImage(name, await goTool(versitygw), '/usr/local/bin/versitygw')

/** A program with a shell beside it; the program is the entry, and on PATH. */
async function serverImage(name: string, binary: string, path: string): Promise<string> {
  return step(`image ${name}`, async () => {
    await needPackages()
    const folder = join(cacheFolder(), 'images')
    return withWorkFolder(folder, async (work) => {
      const root = join(work, 'root')
      await addShell(root, '/')
      await copyInto(binary, join(root, path))
      await addLibraries(root, binary)
      if (dirname(path) !== '/usr/local/bin') {
        await mkdir(join(root, 'usr/local/bin'), { recursive: true })
        await symlink(path, join(root, 'usr/local/bin', basename(path)))
      }
      const archive = join(
        folder,
        `${createHash('sha256').update(name).digest('hex').slice(0, 8)}-${basename(path)}.tar`,
      )
      await packImage(archive, { names: [name], layers: [{ root }], entrypoint: [path], user: '10001:10001' })
      return archive
    })
  })
}
