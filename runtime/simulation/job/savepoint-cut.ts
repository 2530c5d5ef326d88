// What a savepoint says of the sources: how many records of each split lie before its barrier. A job that stopped with it must have
// committed the results of exactly these.

import { SnapshotDownloader } from '../../checkpoint/snapshot-reader.ts'
import { decodeManifest } from '../../checkpoint/manifest.ts'
import type { Manifest } from '../../checkpoint/manifest.ts'
import type { Environment } from '../../base/environment.ts'
import type { NumberedSplit } from '../../connectors/numbered-source.ts'
import { createReader } from '../../record/bytes.ts'
import { readOperatorState } from '../../state/operator-state.ts'
import type { ManifestRef } from '../../storage/head-contract.ts'
import type { ObjectKey, ObjectStore } from '../../storage/contract.ts'
import { SPLITS_STATE } from '../../connectors/contract.ts'

export interface SavepointCut {
  /** Of the source's uid and the split's index in it. */
  readOf(uid: string, split: number): number
}

/** Of a savepoint or a checkpoint. */
export async function readCut(
  store: ObjectStore,
  environment: Environment,
  { path }: ManifestRef,
): Promise<SavepointCut> {
  return cutOf(await readManifest(store, path), store, environment)
}

async function readManifest(store: ObjectStore, path: ObjectKey): Promise<Manifest> {
  const bytes = await store.read(path)
  if (bytes === undefined) throw new Error(`${path} is not there`)
  return decodeManifest(bytes, path)
}

async function cutOf(manifest: Manifest, store: ObjectStore, environment: Environment): Promise<SavepointCut> {
  const reader = new SnapshotDownloader({ store, environment })
  const next = new Map<string, number>()
  for (const vertex of manifest.vertices) {
    for (const [uid, subtasks] of Object.entries(vertex.operators)) {
      for (const snapshot of subtasks) {
        const state = snapshot?.operatorState?.[SPLITS_STATE]
        if (state === undefined) continue
        for (const item of await readOperatorState(SPLITS_STATE, state, reader)) note(next, uid, item)
      }
    }
  }
  return { readOf: (uid, split) => next.get(`${uid} ${split}`) ?? 0 }
}

function note(next: Map<string, number>, uid: string, item: Uint8Array): void {
  const split = JSON.parse(createReader(item).string()) as NumberedSplit
  next.set(`${uid} ${split.index}`, split.next)
}
