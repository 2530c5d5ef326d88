// The stores of one job in a bucket: objects and HEAD below its prefix, probed.

import type { Environment } from '../../base/environment.ts'
import { probeStores } from '../probe.ts'
import { s3HeadKey, s3Key, s3ObjectsPrefix, s3ProbeHeadKey, s3ProbePrefixes } from '../paths.ts'
import type { StorageAddress } from '../paths.ts'
import { Calls } from './calls.ts'
import { ForeignS3 } from './foreign-s3.ts'
import type { S3Requests } from './requests.ts'
import { S3Head } from './s3-head.ts'
import { deleteKeys, DELETES_MAX, listed, S3Store } from './s3-store.ts'
import { abortUpload } from './upload.ts'

/** Younger ones may be of a process that still lives: it knows only later that it no longer owns the job. */
export const LEFTOVER_AGE_MS = 3_600_000

/** Of a store that failed its probe, too: its refusal is told without a long wait. */
const PROBE_CLEANING_DEADLINE_MS = 5_000

export type S3Address = Extract<StorageAddress, { kind: 's3' }>

export interface S3StoresOptions {
  readonly requests: S3Requests
  readonly address: S3Address
  readonly environment: Environment
}

export class S3Stores {
  readonly objects: S3Store
  readonly head: S3Head
  readonly foreign: ForeignS3
  readonly #address: S3Address
  readonly #environment: Environment
  readonly #data: Calls
  /** Apart: HEAD must not wait behind a checkpoint's uploads. */
  readonly #headCalls: Calls

  constructor({ requests, address, environment }: S3StoresOptions) {
    const { bucket, prefix } = address
    this.#address = address
    this.#environment = environment
    this.#data = new Calls({ requests, environment })
    this.#headCalls = new Calls({ requests, environment })
    this.objects = new S3Store({ calls: this.#data, bucket, prefix, environment })
    this.head = new S3Head({ calls: this.#headCalls, at: { bucket, key: s3HeadKey(prefix) }, environment })
    this.foreign = new ForeignS3(this.#data)
  }

  /** Throws MR-S06 for a store that does not honour conditions. */
  async probe(): Promise<void> {
    const { bucket, prefix } = this.#address
    const key = s3ProbeHeadKey(prefix, this.#environment.random.id())
    const scratchHead = new S3Head({ calls: this.#headCalls, at: { bucket, key }, environment: this.#environment })
    const clean = () => deleteKeys(this.#headCalls, { bucket, keys: [key], deadlineMs: PROBE_CLEANING_DEADLINE_MS })
    try {
      await probeStores({ objects: this.objects, scratchHead, environment: this.#environment })
    } catch (error) {
      // That is what counts, and told once: a store that refuses the probe refuses to take it away for the same reason. A later start does.
      await clean().catch(() => undefined)
      throw error
    }
    await this.#quietly('what the probe wrote', clean)
  }

  /** Uploads and probes that nobody has finished. Never rejects. */
  async removeLeftovers(): Promise<void> {
    await this.#quietly('unfinished uploads', () => this.#abortUploads())
    await this.#quietly('what earlier probes wrote', () => this.#removeProbes())
  }

  async ping(): Promise<void> {
    await this.head.read()
  }

  close(): void {
    this.#data.close()
    this.#headCalls.close()
  }

  async #abortUploads(): Promise<void> {
    const { bucket, prefix } = this.#address
    const under = { bucket, prefix: s3ObjectsPrefix(prefix) }
    const old: { readonly key: string; readonly upload: string }[] = []
    let page: Awaited<ReturnType<S3Requests['listUploads']>>
    let after: (typeof page)['next']
    do {
      const asked = after
      page = await this.#data.call(`Listing uploads in ${s3Key({ bucket, key: under.prefix })}`, (requests, once) =>
        requests.listUploads({ ...under, after: asked }, once),
      )
      for (const upload of page.uploads) if (this.#isOld(upload.begunMs)) old.push(upload)
      after = page.next
    } while (after !== undefined)
    for (const { key, upload } of old)
      // Some stores take the prefix for a hint.
      if (key.startsWith(under.prefix)) await abortUpload(this.#data, { bucket, key }, upload)
  }

  async #removeProbes(): Promise<void> {
    const { bucket, prefix } = this.#address
    for (const probes of s3ProbePrefixes(prefix)) {
      const old: string[] = []
      for await (const { key, modifiedMs } of listed(this.#data, { bucket, prefix: probes }))
        if (this.#isOld(modifiedMs)) old.push(key)
      for (let from = 0; from < old.length; from += DELETES_MAX)
        await deleteKeys(this.#data, { bucket, keys: old.slice(from, from + DELETES_MAX) })
    }
  }

  /** false for a time that the store did not tell. */
  #isOld(atMs: number): boolean {
    return this.#environment.clock.wallMs() - atMs > LEFTOVER_AGE_MS
  }

  async #quietly(what: string, act: () => Promise<void>): Promise<void> {
    try {
      await act()
    } catch (error) {
      this.#environment.log('warn', `${what} could not be removed from the store; the next start tries again`, {
        error: String(error),
      })
    }
  }
}
