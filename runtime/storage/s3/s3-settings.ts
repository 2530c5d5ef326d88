// Checks storage.s3 of the process config, before anything is asked.

import type { S3Config } from '../contract.ts'
import { storageError } from '../errors.ts'

/** Throws MR-S39. Unknown is refused by whoever reads the config. */
export function checkS3Settings(config: S3Config): void {
  const { endpoint, accessKeyIdFile, secretAccessKeyFile, sessionTokenFile } = config
  if (endpoint !== undefined) checkEndpoint(endpoint)
  if ((accessKeyIdFile === undefined) !== (secretAccessKeyFile === undefined))
    throw storageError('MR-S39', 'storage.s3 names one of accessKeyIdFile and secretAccessKeyFile; both are needed.')
  if (sessionTokenFile !== undefined && accessKeyIdFile === undefined)
    throw storageError('MR-S39', 'storage.s3 names sessionTokenFile without accessKeyIdFile and secretAccessKeyFile.')
}

/** The endpoint itself is not told: it may hold a password. */
function checkEndpoint(endpoint: string): void {
  const url = URL.parse(endpoint)
  if (url === null) throw storageError('MR-S39', 'storage.s3.endpoint is no address such as https://host:port.')
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw storageError('MR-S39', 'storage.s3.endpoint begins with neither http:// nor https://.')
  if (url.username !== '' || url.password !== '')
    throw storageError('MR-S39', 'storage.s3.endpoint holds a user or a password; credentials belong into files.')
}
