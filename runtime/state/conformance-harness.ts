// What the conformance suite stands on: a store in memory, slices under the test's hand, and a reading of a backend's whole content.

import { crc32 } from 'node:zlib'
import type { Clock, Timer } from '../base/environment.ts'
import { InvariantError } from '../base/errors.ts'
import { checkpointId, keyGroup } from '../base/ids.ts'
import type { KeyedSnapshot, SnapshotReader, SnapshotWriter } from '../checkpoint/contract.ts'
import { createReader, createWriter } from '../record/bytes.ts'
import type { Key } from '../record/contract.ts'
import { decodeKey, encodeKey } from '../record/key.ts'
import { keyGroupOf } from '../record/key-group.ts'
import type { DueTimer, KeyedStateBackend, KeyedStateBackendOptions, Slices, TimeDomain } from './contract.ts'

export type CreateBackend = (options: KeyedStateBackendOptions) => KeyedStateBackend

export interface ConformanceCase {
  /** A sentence. */
  readonly claim: string
  readonly run: () => Promise<void>
}

export const MAX_PARALLELISM = 8

/** The options of the backend that owns [first, last]; its clock is `clock`, or stands still. */
export function range(first = 0, last = MAX_PARALLELISM - 1, clock: Clock = new WallClock()): KeyedStateBackendOptions {
  const timerMeaning = 'timers of the suite'
  return {
    uid: 'suite',
    timerMeaning,
    first: keyGroup(first),
    last: keyGroup(last),
    maxParallelism: MAX_PARALLELISM,
    clock,
  }
}

/** Wall time under the test's hand, which may be set back. Keyed state asks for nothing else. */
export class WallClock implements Clock {
  ms: number

  constructor(ms = 1_700_000_000_000) {
    this.ms = ms
  }

  wallMs(): number {
    return this.ms
  }

  nowMs(): number {
    throw new InvariantError('keyed state asked for monotonic time')
  }

  timer(): Timer {
    throw new InvariantError('keyed state set a timer')
  }
}

/** Keys of all types, many enough that a snapshot pauses inside a group. */
export function manyKeys(count = 600): Key[] {
  return Array.from({ length: count }, (_, index) => {
    switch (index % 5) {
      case 0:
        return index
      case 1:
        return `key ${index}`
      case 2:
        return BigInt(index)
      case 3:
        return [index, `part ${index}`]
      default:
        return -index / 2
    }
  })
}

export function inRange(key: Key, backend: { readonly first: number; readonly last: number }): boolean {
  const group = keyGroupOf(key, MAX_PARALLELISM)
  return group >= backend.first && group <= backend.last
}

export class MemorySnapshots implements SnapshotWriter, SnapshotReader {
  readonly objects = new Map<string, Uint8Array>()
  readonly reads: string[] = []

  write(checkpoint: number, bytes: Uint8Array): ReturnType<SnapshotWriter['write']> {
    const object = `chk-${checkpoint}/${this.objects.size}`
    this.objects.set(object, bytes.slice())
    return Promise.resolve({ kind: 'object', object, offset: 0, length: bytes.length, crc: crc32(bytes) })
  }

  read(handle: Parameters<SnapshotReader['read']>[0]): Promise<Uint8Array> {
    if (handle.kind === 'inline') return Promise.resolve(Buffer.from(handle.base64, 'base64'))
    this.reads.push(handle.object)
    return Promise.resolve(this.objects.get(handle.object)!.slice(handle.offset, handle.offset + handle.length))
  }
}

/** Slices that end at every look; `between` runs in each turn in between, as record processing does. */
export function slicesWith(between: () => void): Slices {
  return {
    begin: () => {},
    shouldYield: () => true,
    nextTurn: async () => {
      await Promise.resolve()
      between()
    },
  }
}

export async function snapshotOf(
  backend: KeyedStateBackend,
  store: SnapshotWriter,
  between: () => void = () => {},
): Promise<KeyedSnapshot> {
  return await backend.snapshot(checkpointId(1), store, slicesWith(between)).done
}

/** All timers, in order of time; they are gone afterwards. */
export function drainTimers(backend: KeyedStateBackend, domain: TimeDomain): DueTimer[] {
  const timers: DueTimer[] = []
  for (;;) {
    const timer = backend.takeDue(domain, Number.MAX_SAFE_INTEGER)
    if (timer === undefined) return timers
    timers.push(timer)
  }
}

/** A text by which two timers or entries compare, whatever the order they come in. */
export function textOf(...parts: readonly (Key | undefined)[]): string {
  return parts.map((part) => (part === undefined ? '-' : keyText(part))).join(' ')
}

export const timerText = (timer: DueTimer): string => textOf(timer.key, timer.domain, timer.timestampMs, timer.tag)

function keyText(key: Key): string {
  const writer = createWriter()
  encodeKey(key, writer)
  // Through the bytes, so that what has the same bytes has the same text.
  const same = decodeKey(createReader(writer.take()))
  return typeof same === 'object' ? `[${same.map(keyText).join(',')}]` : `${typeof same}:${String(same)}`
}
