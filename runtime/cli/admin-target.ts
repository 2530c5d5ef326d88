// Opens what an admin command is about: the stores of the job, and its code where that is named.

import { resolve } from 'node:path'
import type { AdminWorld } from '../admin/admin-world.ts'
import type { SavepointPlace } from '../admin/dispose.ts'
import { jobId } from '../base/ids.ts'
import type { JobId, Start } from '../base/ids.ts'
import type { ProcessConfig } from '../distributed/contract.ts'
import { graphOf } from '../distributed/job-graph.ts'
import { loadProcessConfig } from '../distributed/process-config.ts'
import { buildGraph } from '../job/build-graph.ts'
import type { JobGraph, JobSettings } from '../job/contract.ts'
import { loadJob } from '../local/job-module.ts'
import type { LocalWorld, StoredJob } from '../local/local-jobs.ts'
import type { OpenedStores, StorageConfig } from '../storage/contract.ts'
import { DirectoryStore } from '../storage/directory-store.ts'
import { openStores } from '../storage/open-stores.ts'
import { addressBelow, fileKey, isAbsoluteKey, manifestKeyOfFolder, parentOf, snapshotPlace } from '../storage/paths.ts'
import { ownerOf } from '../storage/savepoint-place.ts'
import type { AdminTarget } from './admin-options.ts'
import { commandError } from './errors.ts'
import { jobArguments } from './job-arguments.ts'
import { contactJob } from './job-client.ts'
import { jobInput, parallelismUsually } from './job-input.ts'
import { jobFileOf } from './job-module-files.ts'
import { isJobFile, localWorld, namedJob } from './named-job.ts'
import type { ControlEdge } from './named-job.ts'

export interface AdminEdge extends ControlEdge {
  readonly changeFolder: (folder: string) => void
  readonly processors: number
}

export interface OpenedTarget {
  readonly world: AdminWorld
  readonly files: LocalWorld['files']
  readonly storage: StorageConfig
  /** That the config is of; undefined: nothing says it. */
  readonly start: Start | undefined
  /** undefined: nothing says where the job's code is. `settings` win over all others. */
  readonly loadGraph: ((settings: Partial<JobSettings>) => Promise<JobGraph>) | undefined
  /** Of a job of this machine: whether a process runs it. Throws MR-L32 when that cannot be told. */
  readonly runs: () => Promise<boolean>
  readonly close: () => Promise<void>
}

/** Throws MR-L… for what is named and not there, and what loadProcessConfig and openStores say. */
export async function openTarget(target: AdminTarget, edge: AdminEdge): Promise<OpenedTarget> {
  switch (target.kind) {
    case 'config':
      return openConfig(resolve(edge.folder, target.file), edge)
    case 'storage': {
      const { files, environment } = await localWorld(edge, undefined)
      const storage: StorageConfig = { checkpoints: target.url, s3: target.s3 }
      return opened({ job: jobId(target.job), storage, world: { files, environment } })
    }
    case 'local':
      return openLocal(target, edge)
    default:
      return target satisfies never
  }
}

interface Opening {
  readonly job: JobId
  readonly storage: StorageConfig
  readonly world: Omit<LocalWorld, 'folder'>
  readonly start?: Start
  readonly loadGraph?: OpenedTarget['loadGraph']
  readonly runs?: OpenedTarget['runs']
}

async function opened({ job, storage, world, start, loadGraph, runs }: Opening): Promise<OpenedTarget> {
  const { files, environment } = world
  const stores = await openStores({ storage, files, environment, probe: false })
  return {
    world: { job, stores, environment },
    files,
    storage,
    start,
    loadGraph,
    runs: runs ?? (async () => false),
    close: () => stores.close(),
  }
}

export async function openConfig(
  path: string,
  edge: ControlEdge,
): Promise<OpenedTarget & { readonly config: ProcessConfig }> {
  const world = await localWorld(edge, undefined)
  const config = await loadProcessConfig(path, world.files)
  const { id, start, file, settings: given } = config.job
  const loadGraph = async (settings: Partial<JobSettings>): Promise<JobGraph> => {
    const over = { ...config, job: { ...config.job, settings: { ...given, ...settings } } }
    return graphOf(await loadJob(file), over, undefined)
  }
  return { ...(await opened({ job: id, storage: config.storage, world, start, loadGraph })), config }
}

async function openLocal(target: Extract<AdminTarget, { kind: 'local' }>, edge: AdminEdge): Promise<OpenedTarget> {
  const world = await localWorld(edge, target.folder)
  const stored = await namedJob(target.job, edge, world)
  const isCode = isJobFile(target.job)
  const savepoints = isCode ? await savepointsOf(target, edge) : undefined
  const storage: StorageConfig = {
    checkpoints: fileKey(stored.storeFolder),
    ...(savepoints !== undefined && { savepoints: addressBelow(savepoints, stored.id) }),
  }
  const loadGraph = isCode
    ? (settings: Partial<JobSettings>) => localGraph(target, { settings, stored, world, edge })
    : undefined
  const runs = async (): Promise<boolean> => (await contactJob(stored)).kind === 'running'
  return opened({ job: stored.id, storage, world, loadGraph, runs })
}

/** Only its manifest says so. */
async function savepointsOf(
  { job, args, configMaps }: Extract<AdminTarget, { kind: 'local' }>,
  edge: AdminEdge,
): Promise<string | undefined> {
  const input = await jobInput({ jobFile: job, args, parallelism: undefined, configMaps }, edge.folder)
  return input.manifest?.savepoints
}

async function localGraph(
  { job: given, args, namedArgs, configMaps }: Extract<AdminTarget, { kind: 'local' }>,
  {
    settings,
    stored,
    world,
    edge,
  }: {
    readonly settings: Partial<JobSettings>
    readonly stored: StoredJob
    readonly world: LocalWorld
    readonly edge: AdminEdge
  },
): Promise<JobGraph> {
  const input = await jobInput({ jobFile: given, args, parallelism: undefined, configMaps }, edge.folder)
  const { name, module, parallelism, maxParallelism } = input
  // What the job names by relative paths, such as the files of its sinks, is meant there.
  edge.changeFolder(world.folder)
  const file = await jobFileOf(module, { name, folder: world.folder })
  const job = await loadJob(file)
  return buildGraph(job, {
    args: jobArguments(job.args, input.args, namedArgs),
    parallelism,
    parallelismDefault: parallelismUsually(edge.processors),
    maxParallelism,
    settings: { ...input.settings, ...settings },
    name,
    job: stored.id,
  })
}

/** A path as it was given: s3://…, file:///…, or of this machine. */
export function absolutePlace(path: string, folder: string): ReturnType<typeof snapshotPlace> {
  return snapshotPlace(isAbsoluteKey(path) ? path : resolve(folder, path))
}

/** Opens the store that a savepoint lies in, or the place for savepoints. Throws MR-L11 for a place in S3 that is no job's store. */
export async function openPlace(
  path: string,
  { world: { stores, environment }, files, storage }: OpenedTarget,
  folder: string,
): Promise<{ readonly place: SavepointPlace; readonly close: OpenedStores['close'] }> {
  const { manifest, folder: name, storeFolder } = absolutePlace(path, folder)
  const named = stores.locate(manifest)
  const around = parentOf(named)
  const close = async (): Promise<void> => undefined
  if (stores.locate(manifestKeyOfFolder(name)) === named)
    return { place: { folder: named, name, objects: stores.objects, owner: 'this job' }, close }
  if (storeFolder !== undefined) {
    const at = (checkpoints: string): Promise<OpenedStores> =>
      openStores({ storage: { checkpoints, s3: storage.s3 }, files, environment, probe: false })
    const other = await at(isAbsoluteKey(storeFolder) ? storeFolder : fileKey(storeFolder))
    const { objects } = other
    const owner = await ownerOf(objects)
    if (owner === undefined)
      return {
        place: { folder: named, name, objects, owner: { head: other.head, isPlace: false } },
        close: () => other.close(),
      }
    const home = await at(owner)
    return {
      place: { folder: named, name, objects, owner: { head: home.head, isPlace: true } },
      close: async () => void (await Promise.all([other.close(), home.close()])),
    }
  }
  if (isAbsoluteKey(named))
    throw commandError(
      'MR-L11',
      `${path} lies in no job's store; a copy in a bucket is deleted with the bucket's own tools.`,
    )
  const objects = new DirectoryStore({ files, root: around, environment })
  return { place: { folder: named, name, objects, owner: 'none' }, close }
}
