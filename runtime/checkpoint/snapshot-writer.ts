// Writes the bytes of snapshots, few objects for many callers (rule 18): what comes within 50 ms shares an object of up to 8 MiB,
// and an object never waits for a subtask. Small state comes back inline and lies in the manifest.

import { crc32 } from 'node:zlib'
import { within } from '../base/deadline.ts'
import type { Environment, Timer } from '../base/environment.ts'
import type { CheckpointId } from '../base/ids.ts'
import type { SnapshotKind } from '../record/element.ts'
import { releaseBytes } from '../record/bytes.ts'
import type { ObjectKey, ObjectStore, SavepointStore } from '../storage/contract.ts'
import { storageError } from '../storage/errors.ts'
import { snapshotDataKey } from '../storage/paths.ts'
import { COPIED_BYTES_MAX } from './contract.ts'
import type { SnapshotWriter, StateHandle } from './contract.ts'
import { snapshotError } from './snapshot-errors.ts'

/** An object is closed this long after its first bytes, if one can be uploaded then … */
export const OBJECT_OPEN_MS = 50
/** … or as soon as it has this many. Larger state gets an object of its own. */
export const OBJECT_BYTES_MAX = COPIED_BYTES_MAX
/** A shared object grows by doubling up to here, and then gets a buffer for the largest. */
const GROWN_BYTES_MAX = 1024 * 1024
const GROWN_BYTES_FIRST = 16 * 1024
/** Buffers for the largest object that are kept for the next ones: one is filled while others are uploaded. */
const BUFFERS_KEPT = 3
/** State up to here may be inlined: below, a request to the store costs more than the bytes. */
const INLINE_BYTES_MAX = 1024
/** Base64 characters inlined in one snapshot by all its writers together: leaves a quarter of the manifest's 1 MiB for the rest. */
export const INLINE_CHARACTERS_TOTAL_MAX = 768 * 1024
/** Uploads at the same time per writer; more would only share the same bandwidth and hold more memory. */
export const UPLOADS_MAX = 4
/** One upload; then its writes fail and with them the checkpoint, not the job. */
export const UPLOAD_DEADLINE_MS = 120_000
/** Snapshots whose inlined characters are counted; older ones inline nothing more. Few are ever pending at once. */
const SNAPSHOTS_COUNTED = 16

export interface SnapshotUploaderOptions {
  readonly store: ObjectStore
  /** A place of their own for savepoints; absent: beside the checkpoints. */
  readonly savepoints?: Pick<SavepointStore, 'objects'> | undefined
  readonly environment: Environment
  /** How many writers (slots) share the manifest's room for inlined state. */
  readonly writers: number
}

/**
 * One per slot, shared by its subtasks. `write` is for checkpoints; `ofKind('savepoint')` writes into a savepoint's own folder, so that
 * it can be copied. Large objects are put together in memory that is used again: what is asked for and given back with each one counts
 * as pressure, for which V8 marks the whole heap. A store error (MR-S…), or MR-C53 after the deadline, rejects exactly the writes that
 * share the object.
 */
export class SnapshotUploader implements SnapshotWriter {
  readonly #stores: Readonly<Record<SnapshotKind, ObjectStore>>
  readonly #environment: Environment
  readonly #inlineShare: number
  readonly #inlined = new Map<string, number>()
  readonly #open = new Map<string, OpenObject>()
  readonly #closed: OpenObject[] = []
  /** Of OBJECT_BYTES_MAX each. */
  readonly #buffers: Uint8Array[] = []
  #uploading = 0

  constructor(options: SnapshotUploaderOptions) {
    const { store, savepoints } = options
    this.#stores = { checkpoint: store, savepoint: savepoints?.objects ?? store }
    this.#environment = options.environment
    this.#inlineShare = Math.floor(INLINE_CHARACTERS_TOTAL_MAX / Math.max(1, options.writers))
  }

  write(checkpoint: CheckpointId, bytes: Uint8Array): Promise<StateHandle> {
    return this.#write('checkpoint', checkpoint, bytes)
  }

  ofKind(kind: SnapshotKind): SnapshotWriter {
    return { write: (checkpoint, bytes) => this.#write(kind, checkpoint, bytes) }
  }

  async #write(kind: SnapshotKind, checkpoint: CheckpointId, bytes: Uint8Array): Promise<StateHandle> {
    const crc = crc32(bytes)
    if (this.#mayInline(checkpoint, bytes.length))
      return { kind: 'inline', base64: Buffer.from(bytes).toString('base64'), crc }
    return new Promise((resolve, reject) => {
      this.#append({ kind, checkpoint }, bytes, { length: bytes.length, crc, resolve, reject })
    })
  }

  #mayInline(checkpoint: CheckpointId, byteCount: number): boolean {
    if (byteCount > INLINE_BYTES_MAX) return false
    const name = String(checkpoint)
    if (!this.#inlined.has(name) && this.#inlined.size === SNAPSHOTS_COUNTED) {
      const oldest = [...this.#inlined.keys()].reduce((least, other) => (Number(other) < Number(least) ? other : least))
      if (checkpoint < Number(oldest)) return false
      this.#inlined.delete(oldest)
    }
    const total = (this.#inlined.get(name) ?? 0) + Math.ceil(byteCount / 3) * 4
    if (total > this.#inlineShare) return false
    this.#inlined.set(name, total)
    return true
  }

  #append(
    snapshot: { readonly kind: SnapshotKind; readonly checkpoint: CheckpointId },
    bytes: Uint8Array,
    write: WaitingWrite,
  ): void {
    const name = `${snapshot.kind} ${snapshot.checkpoint}`
    let object = this.#open.get(name)
    if (object !== undefined && object.byteCount + bytes.length > OBJECT_BYTES_MAX) {
      this.#close(name, object)
      object = undefined
    }
    if (object === undefined) {
      const opened: OpenObject = {
        ...snapshot,
        writes: [],
        memory: undefined,
        byteCount: 0,
        isDue: false,
        timer: this.#environment.clock.timer(OBJECT_OPEN_MS, () => {
          opened.isDue = true
          this.#uploadNext()
        }),
      }
      object = opened
      this.#open.set(name, object)
    }
    // It may throw where there is no memory: then nothing of this write is part of the object.
    if (bytes.length > COPIED_BYTES_MAX) object.memory = { bytes, isOurs: false }
    else this.#roomFor(object, bytes.length).set(bytes, object.byteCount)
    object.writes.push(write)
    object.byteCount += bytes.length
    if (object.byteCount >= OBJECT_BYTES_MAX) this.#close(name, object)
  }

  /** The memory of the object, with room for so many bytes more. */
  #roomFor(object: OpenObject, byteCount: number): Uint8Array {
    const before = object.memory?.bytes
    const needed = object.byteCount + byteCount
    if (before !== undefined && needed <= before.length) return before
    let length = GROWN_BYTES_FIRST
    while (length < needed && length < GROWN_BYTES_MAX) length *= 2
    const bytes = needed > length ? (this.#buffers.pop() ?? new Uint8Array(OBJECT_BYTES_MAX)) : new Uint8Array(length)
    if (before !== undefined) {
      bytes.set(before.subarray(0, object.byteCount))
      releaseBytes(before)
    }
    object.memory = { bytes, isOurs: true }
    return bytes
  }

  /** The object is durable, and nobody looks at its memory any more. */
  #giveBack({ memory }: OpenObject): void {
    if (memory?.isOurs !== true) return
    const { bytes } = memory
    if (bytes.length === OBJECT_BYTES_MAX && this.#buffers.length < BUFFERS_KEPT) this.#buffers.push(bytes)
    else releaseBytes(bytes)
  }

  #close(name: string, object: OpenObject): void {
    object.timer.cancel()
    this.#open.delete(name)
    this.#closed.push(object)
    this.#uploadNext()
  }

  #uploadNext(): void {
    if (this.#uploading === UPLOADS_MAX) return
    const object = this.#closed.shift()
    if (object === undefined) return this.#closeDue()
    this.#uploading++
    // #upload never rejects: it hands every failure to the writes.
    void this.#upload(object).finally(() => {
      this.#uploading--
      this.#uploadNext()
    })
  }

  /** An object whose time is over goes on being filled until it can be uploaded: behind a slow store there are few, and full ones. */
  #closeDue(): void {
    for (const [name, object] of this.#open) if (object.isDue) return this.#close(name, object)
  }

  async #upload(object: OpenObject): Promise<void> {
    try {
      const key = snapshotDataKey(object.checkpoint, object.kind, this.#environment.random.id())
      await this.#create(object.kind, key, object.memory?.bytes.subarray(0, object.byteCount) ?? new Uint8Array(0))
      this.#giveBack(object)
      let offset = 0
      for (const { length, crc, resolve } of object.writes) {
        resolve({ kind: 'object', object: key, offset, length, crc })
        offset += length
      }
    } catch (error) {
      for (const write of object.writes) write.reject(error)
    }
  }

  async #create(kind: SnapshotKind, key: ObjectKey, bytes: Uint8Array): Promise<void> {
    const late = () =>
      snapshotError('MR-C53', `${key} (${bytes.length} bytes) took longer than ${UPLOAD_DEADLINE_MS} ms.`)
    // An object that appears after the deadline is named by nobody and goes with its checkpoint's folder.
    const creating = this.#stores[kind].create(key, bytes)
    const answer = await within(this.#environment.clock, UPLOAD_DEADLINE_MS, creating, late)
    if (answer === 'exists') throw storageError('MR-S07', `${key}.`)
  }
}

interface WaitingWrite {
  readonly length: number
  readonly crc: number
  readonly resolve: (handle: StateHandle) => void
  readonly reject: (error: unknown) => void
}

interface OpenObject {
  readonly kind: SnapshotKind
  readonly checkpoint: CheckpointId
  readonly writes: WaitingWrite[]
  /** What its bytes lie in, with room for more; not ours: the caller's own bytes, which are the whole object. */
  memory: { readonly bytes: Uint8Array; readonly isOurs: boolean } | undefined
  byteCount: number
  /** It was open for OBJECT_OPEN_MS. */
  isDue: boolean
  readonly timer: Timer
}
