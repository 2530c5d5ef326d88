// Which local job a command is about: named by its id, by its name, or by the job file or manifest that `run` was given.

import { readFile, stat } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import type { LocalWorld, StoredJob } from '../local/local-jobs.ts'
import { storedJobs } from '../local/local-jobs.ts'
import { NodeFiles } from '../local/platform/node-files.ts'
import { realEnvironment } from '../local/platform/real-environment.ts'
import { parseLocalJobFolder } from '../storage/paths.ts'
import { commandError } from './errors.ts'
import { isManifest, jobNameOf } from './job-name.ts'
import type { Terminal } from './terminal.ts'

export interface ControlEdge {
  readonly terminal: Terminal
  /** Absolute. */
  readonly folder: string
  readonly debug: boolean
}

/** The folder that --folder means; throws MR-L13. */
export async function localWorld(
  { terminal, folder, debug }: ControlEdge,
  given: string | undefined,
): Promise<LocalWorld> {
  const working = given === undefined ? folder : resolve(folder, given)
  const isFolder = await stat(working).then(
    (found) => found.isDirectory(),
    () => false,
  )
  if (!isFolder) throw commandError('MR-L13', `${given}.`)
  const environment = realEnvironment({
    log: (level, message, fields) => {
      if (debug || level === 'warn' || level === 'error')
        terminal.say(`${level}: ${message}${fields === undefined ? '' : ` ${JSON.stringify(fields)}`}`)
    },
  })
  return { files: new NodeFiles(), environment, folder: working }
}

/**
 * A name means its current job, the one with the highest number; `<name>.<number>` that one, and the first is `<name>.1`. Throws
 * MR-L30 with those that there are, MR-L12 and MR-L16 for a manifest.
 */
export async function namedJob(given: string, edge: ControlEdge, world: LocalWorld): Promise<StoredJob> {
  const jobs = await storedJobs(world)
  const numbered = /^(.+)\.(\d+)$/.exec(given)
  const name = await nameOf(given, edge)
  const wanted = numbered === null || name !== given ? undefined : { name: numbered[1]!, number: Number(numbered[2]) }
  const found =
    wanted === undefined
      ? jobs
          .toSorted((left, right) => numberOf(left, name) - numberOf(right, name))
          .findLast((job) => numberOf(job, name) > 0)
      : jobs.find((job) => numberOf(job, wanted.name) === wanted.number)
  if (found !== undefined) return found
  const there =
    jobs.length === 0 ? `There is none in ${world.folder}` : `There are: ${jobs.map(({ id }) => id).join(', ')}`
  throw commandError('MR-L30', `${given}. ${there}.`)
}

/** Whether a job is named by the file that it was run from, and not by its id or name. */
export function isJobFile(given: string): boolean {
  return isManifest(given) || isCode(given)
}

function isCode(given: string): boolean {
  return /^\.[cm]?[jt]sx?$/.test(extname(given))
}

async function nameOf(given: string, { folder }: ControlEdge): Promise<string> {
  if (isManifest(given)) {
    // Reading one takes as long to load as all else here.
    const { readManifest } = await import('./manifest.ts')
    return readManifest(await textOf(resolve(folder, given), given), given).name
  }
  return isCode(given) ? jobNameOf(resolve(folder, given)) : given
}

/** Of the jobs of this name; 0: it is none of them. */
function numberOf({ id }: StoredJob, name: string): number {
  const slash = name.lastIndexOf('/') + 1
  if (id.slice(0, slash) !== name.slice(0, slash) || id.includes('/', slash)) return 0
  return parseLocalJobFolder(name, id.slice(slash)) ?? 0
}

async function textOf(path: string, given: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw commandError('MR-L12', `${given} (${path}).`, error)
  }
}
