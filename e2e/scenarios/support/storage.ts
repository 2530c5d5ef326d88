// The chart's S3 server as its owner sees it: what lies below an address, and what of a job may be left there.

import { CreateBucketCommand, GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import { parse } from 'yaml'
import { decodeManifest, objectsOf } from '../../../runtime/checkpoint/manifest.ts'
import { namedBy } from '../../../runtime/coordinator/cleanup.ts'
import type { Head } from '../../../runtime/storage/head-contract.ts'
import { decodeHead } from '../../../runtime/storage/head-format.ts'
import {
  HISTORY_PREFIX,
  isSavepointManifest,
  keyOutside,
  parentOf,
  parseS3Key,
  parseStorageAddress,
  s3HeadKey,
  s3ObjectsPrefix,
  savepointOfKey,
} from '../../../runtime/storage/paths.ts'
import type { ObjectKey } from '../../../runtime/storage/contract.ts'
import { withoutMark } from '../../../runtime/storage/s3/s3-head.ts'
import { installation } from '../../cluster/installation.ts'
import type { Cluster } from '../../cluster/contract.ts'

const port = 7070

/** Credentials of the server's owner, and a way to it, while `work` is done. */
export async function withStorage<Value>(cluster: Cluster, work: (storage: Storage) => Promise<Value>): Promise<Value> {
  const at = ['--namespace', installation.namespace]
  const name = `${installation.release}-s3`
  const { data } = await cluster.get<{ readonly data: Readonly<Record<string, string>> }>([
    ...at,
    'get',
    'secret',
    name,
  ])
  const text = (key: string): string => Buffer.from(data[key] ?? '', 'base64').toString()
  const way = await cluster.forward({ namespace: installation.namespace, target: `service/${name}`, port })
  const client = new S3Client({
    endpoint: way.url,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: text('access-key-id'), secretAccessKey: text('secret-access-key') },
  })
  try {
    return await work(new Storage(client))
  } finally {
    client.destroy()
    await way.close()
  }
}

/** Where the operator puts jobs whose spec says nothing of it: s3://bucket/prefix. */
export async function usualAddress(cluster: Cluster): Promise<string> {
  const words = ['--namespace', installation.namespace, 'get', 'configmap', `${installation.release}-operator`]
  const { data } = await cluster.get<{ readonly data: Readonly<Record<string, string>> }>(words)
  const { defaults } = parse(data['config.yaml']!) as {
    readonly defaults: { readonly storage: { readonly checkpoints: string } }
  }
  return defaults.storage.checkpoints
}

export class Storage {
  readonly #client: S3Client

  constructor(client: S3Client) {
    this.#client = client
  }

  async makeBucket(bucket: string): Promise<void> {
    await this.#client.send(new CreateBucketCommand({ Bucket: bucket }))
  }

  /** s3://bucket/key of each object below the address, sorted. */
  async below(address: string): Promise<readonly string[]> {
    const { bucket, prefix } = placeOf(address)
    const keys: string[] = []
    let after: string | undefined
    do {
      const page = await this.#client.send(
        new ListObjectsV2Command({ Bucket: bucket, Prefix: `${prefix}/`, ContinuationToken: after }),
      )
      keys.push(...(page.Contents ?? []).map(({ Key }) => `s3://${bucket}/${Key}`))
      after = page.NextContinuationToken
    } while (after !== undefined)
    return keys.toSorted()
  }

  /** undefined: it is not there. */
  async read(place: string): Promise<Uint8Array | undefined> {
    const { bucket, key } = parseS3Key(place)!
    try {
      const { Body } = await this.#client.send(new GetObjectCommand({ Bucket: bucket, Key: key }))
      return await Body!.transformToByteArray()
    } catch (error) {
      if ((error as Error).name === 'NoSuchKey') return undefined
      throw error
    }
  }
}

function placeOf(address: string): { readonly bucket: string; readonly prefix: string } {
  const place = parseStorageAddress(address)
  if (place.kind !== 's3') throw new Error(`${address} is not in S3`)
  return place
}

/** What is there of a job that is gone, and what ought to be. */
export interface StoredJob {
  /** undefined: it never had one. */
  readonly head: Head | undefined
  /** Neither HEAD's, nor what it retains, nor a savepoint's (one that never completed is left to `millrace admin sweep`), nor the history's. */
  readonly superfluous: readonly string[]
  /** What HEAD, or a savepoint, names, and is not there. */
  readonly missing: readonly string[]
}

/** `address`: the job's own. */
export async function storedOf(storage: Storage, address: string): Promise<StoredJob> {
  const { bucket, prefix } = placeOf(address)
  const keys = await storage.below(address)
  const headKey = `s3://${bucket}/${s3HeadKey(prefix)}`
  const bytes = keys.includes(headKey) ? await storage.read(headKey) : undefined
  const head = bytes && decodeHead(withoutMark(bytes, headKey).bytes, headKey)
  const at = parseStorageAddress(address)
  const objects = `s3://${bucket}/${s3ObjectsPrefix(prefix)}`
  const manifests = new Set([
    ...(head === undefined ? [] : namedBy(head).map(({ path }) => path as string)),
    ...keys.map((key) => (key.startsWith(objects) ? key.slice(objects.length) : '')).filter(isSavepointManifest),
  ])
  const isLeftAlone = (key: string): boolean => {
    const inside = key.slice(objects.length) as ObjectKey
    const isOfNone =
      savepointOfKey(inside) !== undefined && ![...manifests].some((path) => parentOf(path) === parentOf(inside))
    return inside.startsWith(HISTORY_PREFIX) || isOfNone
  }
  const needed = new Set<string>(head === undefined ? [] : [headKey])
  for (const path of manifests) {
    // What a savepoint holds that lies in a place of its own is looked at there.
    const outside = path.startsWith('s3://') ? path : (keyOutside(at, path as ObjectKey) as string)
    if (!outside.startsWith(objects)) continue
    needed.add(outside)
    const manifest = await storage.read(outside)
    if (manifest === undefined) continue
    for (const key of objectsOf(decodeManifest(manifest, outside))) needed.add(keyOutside(at, key))
  }
  return {
    head,
    superfluous: keys.filter((key) => !needed.has(key) && !(head && isLeftAlone(key))),
    missing: [...needed].filter((key) => !keys.includes(key)),
  }
}
