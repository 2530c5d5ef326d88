// Credentials in files, such as those of a mounted Secret, which is replaced while the job runs.

import type { FileSystem, S3Config } from '../contract.ts'
import { errorCodeOf } from '../errors.ts'
import { S3Failure } from './failures.ts'

export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

/** Rejects with an S3Failure that names the file and never what is in it. */
export async function readCredentialFiles(
  files: FileSystem,
  { accessKeyIdFile, secretAccessKeyFile, sessionTokenFile }: S3Config,
): Promise<S3Credentials> {
  const accessKeyId = await readWord(files, accessKeyIdFile!)
  const secretAccessKey = await readWord(files, secretAccessKeyFile!)
  if (sessionTokenFile === undefined) return { accessKeyId, secretAccessKey }
  return { accessKeyId, secretAccessKey, sessionToken: await readWord(files, sessionTokenFile) }
}

async function readWord(files: FileSystem, path: string): Promise<string> {
  let bytes: Uint8Array
  try {
    bytes = await files.readFile(path)
  } catch (error) {
    throw new S3Failure('credentials', `the file ${path} cannot be read: ${errorCodeOf(error) ?? 'unknown error'}`)
  }
  const word = new TextDecoder().decode(bytes).trim()
  if (word === '') throw new S3Failure('credentials', `the file ${path} is empty`)
  if (/\s/.test(word)) throw new S3Failure('credentials', `the file ${path} has more than one word in it`)
  return word
}
