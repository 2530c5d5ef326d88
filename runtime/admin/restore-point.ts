// Where the next start begins by default (rule 2), and whether it can: read from HEAD and the store, which nobody else need answer for.

import { forEachBounded } from '../base/bounded.ts'
import { committablesOf } from '../checkpoint/assignment.ts'
import { handlesOf } from '../checkpoint/handles.ts'
import type { ObjectHandle } from '../checkpoint/handles.ts'
import { SnapshotDownloader } from '../checkpoint/snapshot-reader.ts'
import { refuseMissingFiles } from '../coordinator/restore-check.ts'
import { readManifest } from '../coordinator/restore.ts'
import { restorePointOf } from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import { findHead, sourcesOf } from './admin-world.ts'
import type { AdminWorld } from './admin-world.ts'

export interface RestorePointRequest {
  /** Read all of its state and compare the checksums; else only that each object is there, as long as it must be. */
  readonly deep: boolean
}

export type FoundPoint =
  /** There positively is no HEAD: no start has begun. */
  | { readonly outcome: 'none' }
  /** The restore point is to begin from nothing. */
  | { readonly outcome: 'empty'; readonly head: Head }
  | { readonly outcome: 'found'; readonly head: Head; readonly manifest: ManifestRef; readonly contents: Contents }

export interface Contents {
  readonly objects: number
  /** Pieces of state in them. */
  readonly pieces: number
  /** That it holds; whether they are committed is HEAD's to say. */
  readonly transactions: number
}

/**
 * Throws MR-O20 for a manifest that is missing or damaged, MR-C50, MR-C51 or MR-C54 for state that is, MR-O21, MR-C52 and MR-S01 when the
 * store does not answer. A job that runs has another restore point a moment later.
 */
export async function restorePoint(world: AdminWorld, { deep }: RestorePointRequest): Promise<FoundPoint> {
  const { head } = await findHead(world)
  if (head === undefined) return { outcome: 'none' }
  const point = restorePointOf(head)
  if (point.kind === 'empty') return { outcome: 'empty', head }
  const sources = sourcesOf(world)
  const manifest = await readManifest(sources, point.manifest)
  await refuseMissingFiles(sources, manifest)
  const handles = handlesOf(manifest)
  if (deep) await readAll(world, handles)
  const transactions = [...committablesOf(manifest).values()].reduce((sum, { length }) => sum + length, 0)
  const contents = { objects: new Set(handles.map(({ object }) => object)).size, pieces: handles.length, transactions }
  return { outcome: 'found', head, manifest: point.manifest, contents }
}

/** At the same time; each holds its piece in memory. */
const readsMax = 8

async function readAll({ stores, environment }: AdminWorld, handles: readonly ObjectHandle[]): Promise<void> {
  const { objects: store, foreign } = stores
  const reader = new SnapshotDownloader({ store, foreign, environment })
  await forEachBounded(handles, readsMax, async (handle) => void (await reader.read(handle)))
}
