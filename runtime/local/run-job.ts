// A whole job in one process tree: the coordinator here, its slots in threads, a directory as the store. No server.

import { resolve } from 'node:path'
import type { Environment } from '../base/environment.ts'
import type { JobId } from '../base/ids.ts'
import { coordinatorOver } from '../coordinator/coordinator-over-stores.ts'
import type { JobCoordinator } from '../coordinator/job-coordinator.ts'
import type { CoordinatorObserver, RestoreRequest } from '../coordinator/coordinator-contract.ts'
import { placeTasks } from '../coordinator/placement.ts'
import { buildGraph } from '../job/build-graph.ts'
import type { BuildOptions } from '../job/build-graph.ts'
import type { JobGraph, JobSettings } from '../job/contract.ts'
import type { Job } from '../job/define-job.ts'
import type { StorageConfig } from '../storage/contract.ts'
import { ForeignFiles } from '../storage/foreign-files.ts'
import { decideLocalIdentity } from '../storage/local-identity.ts'
import type { LocalIdentity } from '../storage/local-identity.ts'
import { openLocalStores } from '../storage/local-stores.ts'
import { addressBelow, fileKey, joinPath, localStoreFolder, manifestKeyIn, snapshotPlace } from '../storage/paths.ts'
import type { SnapshotPlace } from '../storage/paths.ts'
import { savepointsAddress } from '../storage/savepoint-place.ts'
import { plannedFailpoints } from './failpoint-plan.ts'
import type { FailpointPlan } from './failpoint-plan.ts'
import { jobFolders } from './job-folders.ts'
import { loadJob } from './job-module.ts'
import { NodeFiles } from './platform/node-files.ts'
import { ownProcess } from './platform/own-process.ts'
import { realEnvironment } from './platform/real-environment.ts'
import type { LogSink } from './platform/real-environment.ts'
import type { SlotThread } from './platform/slot-thread.ts'
import { ThreadSlots } from './platform/thread-slots.ts'

export interface LocalJobOptions {
  /** Absolute. */
  readonly jobFile: string
  /** Names the job's folder below `.millrace` (rule 28). */
  readonly name: string
  readonly args: unknown
  /** Wins over the job's config. */
  readonly parallelism: number | undefined
  /** When the job's config says nothing. */
  readonly parallelismDefault: number
  /** Wins over the job's config. */
  readonly maxParallelism?: number | undefined
  readonly settings: Partial<JobSettings>
  /** file:///folder: below it the job has a place for its savepoints alone. undefined: they are in its store. */
  readonly savepoints?: string | undefined
  /** undefined: the job goes on where it is, and nothing of it is dropped. */
  readonly restore?: LocalRestore | undefined
  /** The working folder. */
  readonly folder: string
  readonly log: LogSink
  readonly failpoints: FailpointPlan
  readonly observer?: CoordinatorObserver
  /** Of startEarlyThreads; they become the job's slots, and end with it. */
  readonly early?: readonly SlotThread[] | undefined
}

/** Where the job is to begin, and what it may leave behind there. */
export interface LocalRestore {
  /**
   * A savepoint (anywhere) or a checkpoint (where its job has it): the folder, or the `_metadata` in it; relative to the working folder.
   * It is only read, and needed until the first checkpoint of this job has completed. undefined: where HEAD says.
   */
  readonly from: string | undefined
  /** A job that has begun goes on where it is: `from` is what a manifest says, for the first start of its job. */
  readonly firstStartOnly?: boolean
  /** As in RestoreRequest. */
  readonly allowNonRestoredState: boolean
  readonly allowDrained: boolean
}

export interface LocalJob {
  readonly coordinator: JobCoordinator
  readonly slots: ThreadSlots
  readonly job: Job
  readonly graph: JobGraph
  readonly identity: LocalIdentity
  readonly storeFolder: string
}

/**
 * Loads and checks everything that can be checked before anything runs. `coordinator.run()` then runs it. What the job before it left
 * undone when it ended, such as permitted commits that nobody confirmed, is carried out here, by today's job file.
 */
export async function prepareLocalJob(options: LocalJobOptions): Promise<LocalJob> {
  const { jobFile, name, folder, log, failpoints } = options
  const environment = realEnvironment({
    log,
    failpoints: plannedFailpoints(failpoints, ownProcess),
  })
  const files = new NodeFiles()
  const job = await loadJob(jobFile)
  // Before the folders are read: what is wrong in the job file is said first, and leaves nothing behind.
  buildGraph(job, graphOptions(options, name))
  const folders = await jobFolders({ files, folder, name, environment })
  const from = options.restore?.from
  const place = from === undefined ? undefined : snapshotPlace(resolve(folder, from))
  const keyIn = place && ((id: JobId) => manifestKeyIn(storeFolderOf(folder, id), place))
  const firstStartOnly = options.restore?.firstStartOnly === true
  const identity = decideLocalIdentity({ name, folders, from: firstStartOnly ? undefined : keyIn })
  const world: LocalWorld = { options, environment, files, job }
  const restore = await restoreRequest(
    world,
    identity,
    firstStartOnly && identity.begin !== 'fresh' ? undefined : place,
  )
  if (identity.finishFirst !== undefined) await (await assemble(world, identity.finishFirst)).coordinator.run()
  return { ...(await assemble(world, identity.job, restore, options.early)), job, identity }
}

/** A start that goes on needs its restore point no more once it has a checkpoint: it may be gone, and is not looked at. */
async function restoreRequest(
  { options, environment, files }: LocalWorld,
  { job, begin }: LocalIdentity,
  place: SnapshotPlace | undefined,
): Promise<RestoreRequest> {
  const { allowNonRestoredState = false, allowDrained = false } = options.restore ?? {}
  if (place === undefined || begin === 'resume') return { allowNonRestoredState, allowDrained }
  // Loaded by those alone who begin there.
  const { openStores } = await storesModule()
  const { findRestorePoint } = await import('./restore-path.ts')
  const storage = storageOf(options, job)
  const stores = await openStores({ storage, files, environment, probe: false })
  const { ref, committed } = await findRestorePoint({ place, storage, stores, files, environment })
  return { from: ref, committed, allowNonRestoredState, allowDrained }
}

/** Loaded by those alone who need more than their own folder. */
const storesModule = () => import('../storage/open-stores.ts')

/** As the config of a job on several machines says it. */
export function storageOf(
  { folder, savepoints }: Pick<LocalJobOptions, 'folder' | 'savepoints'>,
  job: JobId,
): StorageConfig {
  return {
    checkpoints: fileKey(storeFolderOf(folder, job)),
    ...(savepoints !== undefined && { savepoints: addressBelow(savepoints, job) }),
  }
}

function storeFolderOf(folder: string, job: JobId): string {
  return joinPath(folder, localStoreFolder(job))
}

interface LocalWorld {
  readonly options: LocalJobOptions
  readonly environment: Environment
  readonly files: NodeFiles
  readonly job: Job
}

async function assemble(
  { options, environment, files, job }: LocalWorld,
  id: JobId,
  restore?: RestoreRequest,
  early?: readonly SlotThread[],
): Promise<Omit<LocalJob, 'job' | 'identity'>> {
  const {
    jobFile,
    name,
    args,
    parallelism,
    parallelismDefault,
    maxParallelism,
    settings,
    folder,
    log,
    failpoints,
    observer,
  } = options
  const graph = buildGraph(job, graphOptions(options, id))
  const storeFolder = storeFolderOf(folder, id)
  const stores = await openLocalStores({ files, folder: storeFolder, environment })
  const storage = storageOf(options, id)
  const place = savepointsAddress(storage)
  const opened = place && (await (await storesModule()).openSavepoints({ storage, files, environment, probe: true }))
  const { slotCount } = placeTasks(graph)
  const slots = new ThreadSlots({
    setup: {
      job: id,
      jobFile,
      jobName: name,
      args,
      parallelism,
      parallelismDefault,
      maxParallelism,
      settings,
      storeFolder,
      savepointsFolder: place?.kind === 'file' ? place.folder : undefined,
      slotCount,
      failpoints,
    },
    environment,
    log,
    early,
  })
  const coordinator = coordinatorOver({
    graph,
    graphAt: (parallelismAsked) => buildGraph(job, graphOptions({ ...options, parallelism: parallelismAsked }, id)),
    job: id,
    start: undefined,
    environment,
    files,
    stores: { ...stores, savepoints: opened?.savepoints, foreign: new ForeignFiles(files) },
    slots,
    restore,
    observer: {
      ...observer,
      began: (head, restorePoint) => {
        // The job is this process's now. What cannot be removed is logged and does no harm.
        void stores.removeLeftovers()
        void opened?.removeLeftovers()
        observer?.began?.(head, restorePoint)
      },
    },
  })
  return { coordinator, slots, graph, storeFolder }
}

function graphOptions(
  { args, parallelism, parallelismDefault, maxParallelism, settings, name }: LocalJobOptions,
  job: string,
): BuildOptions {
  return { args, parallelism, parallelismDefault, maxParallelism, settings, name, job }
}
