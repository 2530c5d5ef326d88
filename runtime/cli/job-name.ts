// What a local job is called (rule 28): by its file, or as the command line says.

import { basename, dirname, extname, resolve } from 'node:path'
import { MillraceError } from '../base/errors.ts'
import { localJobId } from '../storage/paths.ts'
import { commandError } from './errors.ts'

/** File names that say what every job file is; their folder says which one. */
const generalNames = new Set(['job', 'main', 'index'])

/** Of a job file that nothing else names: its name without its ending, or its folder's. */
export function jobNameOf(jobFile: string): string {
  const name = basename(jobFile, extname(jobFile))
  return generalNames.has(name) ? basename(dirname(resolve(jobFile))) : name
}

/** Whether the file is a manifest, which names its job itself. */
export function isManifest(jobFile: string): boolean {
  return /\.ya?ml$/i.test(jobFile)
}

/** undefined where it is not given; throws MR-L11 unless it can name a local job. */
export function checkedJobName(name: string | undefined): string | undefined {
  const problem = name === undefined ? undefined : jobNameProblem(name)
  if (problem !== undefined) throw commandError('MR-L11', `--name is ${problem}.`)
  return name
}

/** Why this cannot name a local job, beginning with the name; undefined: it can. */
export function jobNameProblem(name: string): string | undefined {
  try {
    localJobId(name, 1)
    return undefined
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    return `${JSON.stringify(name)}, which must be letters, digits and ._=-, not begin with a dot, not be called as a part of a store, and not end in a dot and a number, which marks later jobs of one name`
  }
}
