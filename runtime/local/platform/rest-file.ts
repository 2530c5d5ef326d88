// rest.json in a local job's folder: where the process that runs the job can be reached, and the token for it. For the job's own user.

import { link, readFile, rename, unlink, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { errorCodeOf } from '../../storage/errors.ts'
import { restFile, restTemporaryFile } from '../../storage/paths.ts'
import { localError } from '../errors.ts'

const restAddress = z.strictObject({
  version: z.literal(1),
  pid: z.int().min(1),
  job: z.string(),
  /** Random, of the process: another one may have got its number and its port since. */
  instance: z.string(),
  /** `http://127.0.0.1:<port>` */
  address: z.url(),
  token: z.string(),
})

export type RestAddress = z.output<typeof restAddress>

/** Takes the place of another process's: this one owns the job. */
export async function writeRestAddress(storeFolder: string, address: RestAddress): Promise<void> {
  const temporary = restTemporaryFile(storeFolder, address.instance)
  await writeFile(temporary, `${JSON.stringify(address)}\n`, { flag: 'wx', mode: 0o600 })
  await rename(temporary, restFile(storeFolder))
}

/** undefined only if there is none. Throws MR-L03. */
export async function readRestAddress(storeFolder: string): Promise<RestAddress | undefined> {
  const path = restFile(storeFolder)
  try {
    return restAddress.parse(JSON.parse(await readFile(path, 'utf8')))
  } catch (error) {
    const code = errorCodeOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw localError(
      'MR-L03',
      `${path}: ${error instanceof z.ZodError ? 'it is of another form' : String(error)}.`,
      error,
    )
  }
}

/** Idempotent. One that is another process's by now stays. */
export async function removeRestAddress(storeFolder: string, instance: string): Promise<void> {
  const path = restFile(storeFolder)
  const taken = restTemporaryFile(storeFolder, `${instance}-out`)
  // Taken away first and looked at then: between a look and a removal another process could put its own there.
  try {
    await rename(path, taken)
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return
    throw error
  }
  const { instance: owner } = restAddress.parse(JSON.parse(await readFile(taken, 'utf8')))
  if (owner !== instance) await putBack(taken, path)
  await unlink(taken)
}

/** Unless a still newer one is there. */
async function putBack(taken: string, path: string): Promise<void> {
  try {
    await link(taken, path)
  } catch (error) {
    if (errorCodeOf(error) !== 'EEXIST') throw error
  }
}
