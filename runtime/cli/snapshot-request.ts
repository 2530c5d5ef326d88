// What is asked of a job that ends with a snapshot: a savepoint, a stop, a drain, a rescale.

import type { z } from 'zod'
import { rescaleRequest, savepointRequest } from '../rest/request-resources.ts'
import type { RescaleResource, SavepointMode, SavepointResource } from '../rest/request-resources.ts'
import type { ManifestResource } from '../rest/resources.ts'

export type SnapshotWish = { readonly mode: SavepointMode } | { readonly mode: 'rescale'; readonly parallelism: number }

export type SnapshotState =
  | { readonly state: 'pending' }
  | { readonly state: 'completed'; readonly snapshot: ManifestResource }
  /** ended: the job is over, and not by this request. */
  | { readonly state: 'failed' | 'ended'; readonly detail: string }

export interface SnapshotCall {
  readonly path: string
  /** Where it is asked whether a request is answered. */
  readonly answerPath: string
  readonly schema: z.ZodType<SavepointResource | RescaleResource>
  readonly body: object
}

export function snapshotCall(wish: SnapshotWish, request: string): SnapshotCall {
  if (wish.mode === 'rescale') {
    const body = { parallelism: wish.parallelism, request }
    return { path: '/v1/rescale', answerPath: `/v1/rescale/${request}`, schema: rescaleRequest, body }
  }
  const answerPath = `/v1/savepoints/${request}`
  return wish.mode === 'savepoint'
    ? { path: '/v1/savepoints', answerPath, schema: savepointRequest, body: { request } }
    : { path: '/v1/stop', answerPath, schema: savepointRequest, body: { drain: wish.mode === 'drain', request } }
}

export function snapshotState(resource: SavepointResource | RescaleResource): SnapshotState {
  if (resource.state !== 'completed') return resource
  return { state: 'completed', snapshot: 'savepoint' in resource ? resource.savepoint : resource.checkpoint }
}

export const subjects: Readonly<Record<SnapshotWish['mode'], string>> = {
  savepoint: 'The savepoint',
  stop: 'The stop with a savepoint',
  drain: 'The stop with drain',
  rescale: 'The rescale',
}
