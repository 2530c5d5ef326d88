// Every savepoint of which anybody was told that it has completed: from then on it is the user's. It must be there as a whole at that very
// moment, and still at the end, whatever has befallen the job and whoever has cleaned up behind it (rules 7, 21).

import { crc32 } from 'node:zlib'
import type { RequestId } from '../../base/ids.ts'
import { decodeManifest } from '../../checkpoint/manifest.ts'
import { handlesOf } from '../../checkpoint/handles.ts'
import type { ObjectKey, ObjectStore } from '../../storage/contract.ts'
import type { Head, ManifestRef } from '../../storage/head-contract.ts'

export class ReportedSavepoints {
  /** Each sentence once: HEAD says the same many times. */
  readonly #failures = new Set<string>()
  readonly #store: ObjectStore
  readonly #reported = new Map<RequestId, ManifestRef>()

  /** `store` answers within microtasks: nothing else happens meanwhile. */
  constructor(store: ObjectStore) {
    this.#store = store
  }

  get count(): number {
    return this.#reported.size
  }

  /** What HEAD says is what any command and any coordinator says from now on, also when whoever wrote it is dead. */
  inHead({ savepointResults, end }: Head): void {
    for (const { request, manifest } of savepointResults)
      if (manifest !== undefined) this.answered(request, manifest, 'HEAD')
    const named = end.kind === 'stopped' ? end.savepoint.path : undefined
    if (named !== undefined && ![...this.#reported.values()].some(({ path }) => path === named))
      this.#failures.add(`HEAD has ended with ${named}, which answers no request.`)
  }

  answered(request: RequestId, manifest: ManifestRef, by: string): void {
    // Other requests are answered with checkpoints, which retention drops.
    if (manifest.kind !== 'savepoint') return
    const known = this.#reported.get(request)
    if (known?.path === manifest.path) return
    if (known !== undefined)
      return void this.#failures.add(`${by} answers ${request} with ${manifest.path}, and it was ${known.path}.`)
    this.#reported.set(request, manifest)
    void this.#lackOf(manifest).then((lack) => {
      if (lack !== undefined) this.#failures.add(`${by} answers ${request} with ${manifest.path}: ${lack}.`)
    })
  }

  /** At the end: nothing asks here for a savepoint's disposal. */
  async judge(): Promise<readonly string[]> {
    const failures = [...this.#failures]
    for (const [request, manifest] of this.#reported) {
      const lack = await this.#lackOf(manifest)
      if (lack !== undefined) failures.push(`The savepoint that answered ${request} was not kept: ${lack}.`)
    }
    return failures
  }

  /** Why nothing can begin there; undefined: all that it needs is in its own folder, as it was written. */
  async #lackOf({ path }: ManifestRef): Promise<string | undefined> {
    try {
      return await this.#missingOf(path)
    } catch (error) {
      return String(error)
    }
  }

  async #missingOf(path: ObjectKey): Promise<string | undefined> {
    const bytes = await this.#store.read(path)
    if (bytes === undefined) return `${path} is not there`
    const folder = path.slice(0, path.lastIndexOf('/') + 1)
    for (const { object, offset, length, crc } of handlesOf(decodeManifest(bytes, path))) {
      if (!object.startsWith(folder)) return `${path} names ${object}, outside of its folder`
      const state = await this.#store.readRange(object as ObjectKey, offset, length)
      if (state === undefined) return `${path} names ${object}, which is not there`
      if (state.length !== length || crc32(state) !== crc) return `${path} names ${object}, which differs`
    }
    return undefined
  }
}
