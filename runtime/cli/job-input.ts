// What a command is about: the job file, its name, arguments and settings, from the command line and from a manifest if it names one.

import { access, readFile } from 'node:fs/promises'
import { dirname, isAbsolute, resolve } from 'node:path'
import type { StreamJob } from '../../crds/stream-job.ts'
import type { JobSettings } from '../job/contract.ts'
import { commandError } from './errors.ts'
import { isManifest, jobNameOf, jobNameProblem } from './job-name.ts'
import { filesAt } from './job-module-files.ts'
import type { JobModule } from './job-module-files.ts'
import type { Manifest } from './manifest.ts'
import { savepointsOfManifest, settingsOfManifest, unusedFields } from './manifest-settings.ts'

export interface JobWords {
  /** As given: relative to `folder`. */
  readonly jobFile: string
  readonly name?: string | undefined
  readonly args: Readonly<Record<string, unknown>>
  readonly parallelism: number | undefined
  readonly configMaps: readonly (readonly [name: string, path: string])[]
}

export interface JobInput {
  readonly name: string
  readonly module: JobModule
  readonly args: Readonly<Record<string, unknown>>
  readonly parallelism: number | undefined
  readonly maxParallelism: number | undefined
  /** What a manifest says; wins over the job's config. */
  readonly settings: Partial<JobSettings>
  readonly manifest: ManifestInput | undefined
}

/** What only a manifest can say. */
export interface ManifestInput {
  readonly state: StreamJob['spec']['state']
  /** Of the job's first start. Absolute. */
  readonly restoreFrom: string | undefined
  readonly allowNonRestoredState: boolean
  /** file:///folder, below which the job's savepoints are; undefined: they are in its store. */
  readonly savepoints: string | undefined
  /** Fields that are set and mean something to a cluster alone. */
  readonly unused: readonly string[]
}

/** Throws MR-L12 when the file is not there, MR-L16, MR-L17 and MR-L19 for a manifest. Reads, and writes nothing. */
export async function jobInput(words: JobWords, folder: string): Promise<JobInput> {
  const file = resolve(folder, words.jobFile)
  await requireFile(file, words.jobFile)
  return isManifest(file) ? fromManifest(words, { file, folder }) : fromJobFile(words, file)
}

const parallelismMostUsual = 2

/** Where neither the command nor the job says one: what a laptop can do without being filled. */
export function parallelismUsually(processors: number): number {
  return Math.min(processors, parallelismMostUsual)
}

async function requireFile(path: string, given: string): Promise<void> {
  try {
    await access(path)
  } catch (error) {
    throw commandError('MR-L12', `${given} (${path}).`, error)
  }
}

function fromJobFile({ jobFile, name = jobNameOf(jobFile), args, parallelism }: JobWords, file: string): JobInput {
  const problem = jobNameProblem(name)
  if (problem !== undefined)
    throw commandError('MR-L11', `The job's name would be ${problem}; give another one by --name.`)
  const module: JobModule = { kind: 'file', path: file }
  return { name, module, args, parallelism, maxParallelism: undefined, settings: {}, manifest: undefined }
}

async function fromManifest(
  words: JobWords,
  { file, folder }: { readonly file: string; readonly folder: string },
): Promise<JobInput> {
  // With the parser of YAML and the schemas of manifests, which a job file needs none of.
  const { readManifest } = await import('./manifest.ts')
  const manifest = readManifest(await textOf(file, words.jobFile), words.jobFile)
  const { spec } = manifest.job
  const problem = jobNameProblem(manifest.name)
  if (problem !== undefined)
    throw commandError('MR-L16', `${words.jobFile}: metadata.name: here the job's name would be ${problem}.`)
  return {
    name: manifest.name,
    module: await moduleOf(manifest, { words, file, folder }),
    args: { ...spec.program.args, ...words.args },
    parallelism: words.parallelism ?? spec.parallelism,
    maxParallelism: spec.maxParallelism,
    settings: settingsOfManifest(spec),
    manifest: {
      state: spec.state,
      restoreFrom: restoreFolder(spec.restoreFrom, { given: words.jobFile, file }),
      allowNonRestoredState: spec.allowNonRestoredState,
      savepoints: savepointsOfManifest(spec),
      unused: unusedFields(manifest.written),
    },
  }
}

async function textOf(file: string, given: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw commandError('MR-L16', `${given} cannot be read: ${(error as Error).message}.`, error)
  }
}

async function moduleOf(
  manifest: Manifest,
  { words, file, folder }: { readonly words: JobWords; readonly file: string; readonly folder: string },
): Promise<JobModule> {
  const { configMap, path } = manifest.job.spec.program.module
  const strange = words.configMaps.find(([name]) => name !== configMap?.name)
  if (strange !== undefined) {
    const named = configMap === undefined ? 'no ConfigMap' : `the ConfigMap ${configMap.name}`
    throw commandError('MR-L11', `--config-map ${strange[0]}: the manifest's module is of ${named}.`)
  }
  if (configMap === undefined) {
    const job = resolve(dirname(file), path!)
    const { image } = manifest.job.spec.program
    if (image !== undefined && (await isAbsent(job))) return { kind: 'in image', image, path: path! }
    await requireFile(job, `${path} (spec.program.module.path of ${words.jobFile})`)
    return { kind: 'file', path: job, ...(image === undefined ? {} : { image }) }
  }
  const { name, key } = configMap
  const given = words.configMaps.findLast(([of]) => of === name)
  const files = given === undefined ? manifest.configMaps.get(name) : await filesAt(resolve(folder, given[1]))
  if (files === undefined) throw commandError('MR-L19', `${words.jobFile} has no ConfigMap ${name}.`)
  if (!files.has(key)) {
    const there = files.size === 0 ? 'nothing' : [...files.keys()].join(', ')
    throw commandError('MR-L19', `The ConfigMap ${name} has no key ${key}; it has ${there}.`)
  }
  return { kind: 'files', key, files }
}

/** Positively: a file that cannot be looked at is not absent. */
async function isAbsent(path: string): Promise<boolean> {
  try {
    await access(path)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

/** `latest` is what a job on this machine goes on from anyway. */
function restoreFolder(
  restoreFrom: string | undefined,
  { given, file }: { readonly given: string; readonly file: string },
): string | undefined {
  if (restoreFrom === undefined || restoreFrom === 'latest') return undefined
  if (/^[a-z0-9]+:\/\//i.test(restoreFrom))
    throw commandError(
      'MR-L16',
      `${given}: spec.restoreFrom is ${restoreFrom}; on this machine it must be a folder. Copy the snapshot, and give it by --from.`,
    )
  return isAbsolute(restoreFrom) ? restoreFrom : resolve(dirname(file), restoreFrom)
}
