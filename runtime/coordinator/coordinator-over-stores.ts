// A job's coordinator, given the stores of the job: what it reads and writes snapshots with follows from them.

import { SnapshotDownloader } from '../checkpoint/snapshot-reader.ts'
import { SnapshotUploader } from '../checkpoint/snapshot-writer.ts'
import type { OpenedStores } from '../storage/contract.ts'
import type { JobCoordinatorOptions } from './coordinator-contract.ts'
import { JobCoordinator } from './job-coordinator.ts'
import { placeTasks } from './placement.ts'

type OfStores = 'store' | 'savepoints' | 'head' | 'foreign' | 'snapshotWriters' | 'snapshotReader'

export interface CoordinatorOverStores extends Omit<JobCoordinatorOptions, OfStores> {
  readonly stores: Pick<OpenedStores, 'objects' | 'savepoints' | 'head' | 'foreign'>
}

export function coordinatorOver({ stores, ...options }: CoordinatorOverStores): JobCoordinator {
  const { objects: store, savepoints, head, foreign } = stores
  const { graph, environment } = options
  return new JobCoordinator({
    ...options,
    store,
    savepoints,
    head,
    foreign,
    // The coordinator writes enumerators only; they have a small share of the room for inlined state.
    snapshotWriters: new SnapshotUploader({ store, savepoints, environment, writers: placeTasks(graph).slotCount + 1 }),
    snapshotReader: new SnapshotDownloader({ store, foreign, environment }),
  })
}
