// What coordinator and workers must have in common beside the graph, whose hash says nothing of code (rule 25): a forgotten worker of the
// start before has the same graph and works on the records in another way.

import { createHash } from 'node:crypto'
import { buildText } from '../control/build-difference.ts'
import { localError } from '../local/errors.ts'
import type { FileSystem } from '../storage/contract.ts'
import type { ProcessConfig } from './contract.ts'

/** Files that the job file imports are not in it. Rejects with MR-L01 when the job file cannot be read. */
export async function buildOf(
  { job }: Pick<ProcessConfig, 'job'>,
  files: Pick<FileSystem, 'readFile'>,
): Promise<string> {
  const { start, file, args, parallelism, maxParallelism, settings } = job
  let code: Uint8Array
  try {
    code = await files.readFile(file)
  } catch (error) {
    throw localError('MR-L01', `${file}: ${(error as Error).message}.`, error)
  }
  return buildText({
    start: String(start),
    code: digest(code),
    args: digest(JSON.stringify(args ?? {})),
    size: digest(JSON.stringify([parallelism ?? null, maxParallelism ?? null])),
    settings: digest(JSON.stringify(settings ?? {})),
  })
}

/** Shortened: it tells mistakes apart, and keeps nobody out. */
function digest(bytes: string | Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 12)
}
