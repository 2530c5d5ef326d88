// Timers: per key group the timers of each key (who is registered; what a snapshot writes), per domain a heap (who is next).

import { invariant } from '../../base/errors.ts'
import type { KeyedStateDescription } from '../../checkpoint/contract.ts'
import type { ByteReader, ByteWriter, Key } from '../../record/contract.ts'
import { keyHash } from '../../record/key-group.ts'
import { decodeKey, encodeKey, keyCodec, mapKeyOf } from '../../record/key.ts'
import type { DueTimer, TimeDomain, Timers } from '../contract.ts'
import { whyOtherTimers } from '../description.ts'
import { stateError } from '../errors.ts'
import { detachString } from '../../record/detach.ts'
import { entryOperation } from '../segment.ts'
import type { BlockWriter, Pace } from '../segment.ts'
import { ownKey, ownMapKey } from './cursor.ts'
import type { Cursor, MapKey } from './cursor.ts'
import { KeyEntries } from './key-entries.ts'
import { ENTRIES_BETWEEN_CHECKS, readPut, SavedEntries } from './table.ts'
import type { EntryLoader, HeapTable } from './table.ts'
import { HeapTimer, TimerHeap } from './timer-heap.ts'

/** Above so many timers of one key an index finds them; below, looking through the list is quicker and needs no memory. */
const LIST_LENGTH_MAX = 16

export class KeyTimers {
  readonly key: Key
  readonly mapKey: MapKey
  readonly hash: number
  readonly group: number
  readonly list: HeapTimer[] = []
  index: Map<string, HeapTimer> | undefined = undefined

  constructor(key: Key, mapKey: MapKey, hash: number, group: number) {
    this.key = key
    this.mapKey = mapKey
    this.hash = hash
    this.group = group
  }
}

export class TimerTable implements HeapTable, Timers {
  description = described(undefined)
  readonly event = new TimerHeap('event')
  readonly processing = new TimerHeap('processing')
  private readonly cursor: Cursor
  private readonly meaning: string | undefined
  private readonly keys: KeyEntries<KeyTimers>
  private saved = new SavedEntries()
  private found: KeyTimers | undefined = undefined
  private foundAt = -1

  constructor(
    cursor: Cursor,
    { groupCount, meaning }: { readonly groupCount: number; readonly meaning: string | undefined },
  ) {
    this.cursor = cursor
    this.meaning = meaning
    this.keys = new KeyEntries(groupCount)
  }

  register(domain: TimeDomain, timestampMs: number, tag = ''): void {
    if (!Number.isSafeInteger(timestampMs)) {
      throw stateError('MR-T07', `A ${domain}-time timer was registered for ${timestampMs}.`)
    }
    const heap = this.heapOf(domain)
    const timers = this.find() ?? this.insert()
    if (findTimer(timers, heap, timestampMs, tag) !== undefined) return
    const timer = new HeapTimer(heap, timestampMs, detachString(tag), timers, this.cursor.epoch)
    this.add(timer)
  }

  delete(domain: TimeDomain, timestampMs: number, tag = ''): boolean {
    const timers = this.find()
    const timer = timers === undefined ? undefined : findTimer(timers, this.heapOf(domain), timestampMs, tag)
    if (timer !== undefined) this.remove(timer)
    return timer !== undefined
  }

  /** Removes the timer, moves to its key and says what it was. */
  fire(timer: HeapTimer): DueTimer {
    const { key, mapKey, hash, group } = timer.owner
    this.cursor.moveTo(key, mapKey, hash, group)
    this.remove(timer)
    return { key, domain: timer.heap.domain, timestampMs: timer.timestampMs, tag: timer.tag }
  }

  heapOf(domain: TimeDomain): TimerHeap {
    return domain === 'event' ? this.event : this.processing
  }

  /** The event-time timers of a group up to that time, earliest first. */
  dueInGroup(group: number, upToMs: number): HeapTimer[] {
    const due: HeapTimer[] = []
    for (const timers of this.keys.values(group)) {
      for (const timer of timers.list) if (timer.heap === this.event && timer.timestampMs <= upToMs) due.push(timer)
    }
    return due.sort((left, right) => left.timestampMs - right.timestampMs)
  }

  private find(): KeyTimers | undefined {
    const cursor = this.cursor
    if (this.foundAt !== cursor.version) {
      this.found = this.keys.get(cursor.requireGroup(), cursor.mapKey, cursor.hash)
      this.foundAt = cursor.version
    }
    return this.found
  }

  private insert(): KeyTimers {
    const cursor = this.cursor
    const key = ownKey(cursor.key!)
    const timers = new KeyTimers(key, ownMapKey(cursor.mapKey, key), cursor.hash, cursor.group)
    this.keys.add(timers, timers, cursor.epoch)
    this.found = timers
    return timers
  }

  private add(timer: HeapTimer): void {
    const { owner } = timer
    timer.listPlace = owner.list.push(timer) - 1
    if (owner.index !== undefined) owner.index.set(indexKey(timer.heap, timer.timestampMs, timer.tag), timer)
    else if (owner.list.length > LIST_LENGTH_MAX) owner.index = indexOf(owner)
    timer.heap.add(timer)
  }

  private remove(timer: HeapTimer): void {
    const { owner } = timer
    invariant(timer.place >= 0, 'a timer was removed twice')
    if (timer.epoch < this.cursor.cutEpoch) {
      this.write(timer, this.saved.next(owner.group))
      timer.epoch = this.cursor.cutEpoch
    }
    timer.heap.remove(timer)
    owner.index?.delete(indexKey(timer.heap, timer.timestampMs, timer.tag))
    const last = owner.list.pop()!
    if (last !== timer) {
      owner.list[timer.listPlace] = last
      last.listPlace = timer.listPlace
    }
    if (owner.list.length === 0) {
      this.keys.remove(owner.group, owner.mapKey, owner.hash)
      if (this.found === owner) this.found = undefined
    }
  }

  private write(timer: HeapTimer, writer: ByteWriter): void {
    writer.u8(entryOperation.put)
    encodeKey(timer.owner.key, writer)
    writer.u8(timer.heap === this.event ? 0 : 1)
    writer.i53(timer.timestampMs)
    writer.string(timer.tag)
  }

  freeze(): void {
    // Without any, the operator under this uid may become one of another kind.
    this.description = described(this.entryCount === 0 ? undefined : this.meaning)
    this.saved = new SavedEntries()
  }

  thaw(): void {
    this.saved = new SavedEntries()
  }

  async writeGroup(group: number, block: BlockWriter, pace: Pace): Promise<void> {
    const cutEpoch = this.cursor.cutEpoch
    let untilCheck = ENTRIES_BETWEEN_CHECKS
    for (const { list } of this.keys.values(group)) {
      // From the end: during a pause new timers come last, and a removal moves the last one down to a place still to be visited
      // (or visited already, then it carries the cut's epoch).
      for (let place = list.length - 1; place >= 0; place = Math.min(place, list.length) - 1) {
        const timer = list[place]!
        if (timer.epoch < cutEpoch) {
          this.write(timer, block.entries)
          block.endEntry()
          timer.epoch = cutEpoch
        }
        if (--untilCheck === 0) {
          untilCheck = ENTRIES_BETWEEN_CHECKS
          if (pace.shouldYield()) await pace.pause()
        }
      }
    }
    this.saved.moveTo(block, group)
  }

  loaderOf(stored: KeyedStateDescription): { readonly load: EntryLoader } | { readonly refused: string } {
    const keys = keyCodec.readerOf(stored.codecs.key)
    if ('refused' in keys) return keys
    const refused = whyOtherTimers(stored.timerMeaning, this.meaning)
    return refused === undefined ? { load: (group, reader, count) => this.load(group, reader, count) } : { refused }
  }

  private load(group: number, reader: ByteReader, count: number): void {
    for (let index = 0; index < count; index++) {
      readPut(reader)
      const key = decodeKey(reader)
      const mapKey = mapKeyOf(key)
      const hash = keyHash(key)
      const heap = this.heapOf(readDomain(reader))
      let timers = this.keys.get(group, mapKey, hash)
      if (timers === undefined) {
        timers = new KeyTimers(key, mapKey, hash, group)
        this.keys.add(timers, timers, this.cursor.epoch)
      }
      const timestampMs = reader.i53()
      this.add(new HeapTimer(heap, timestampMs, reader.string(), timers, this.cursor.epoch))
    }
    this.forgetFound()
  }

  forgetFound(): void {
    this.foundAt = -1
    this.found = undefined
  }

  get entryCount(): number {
    return this.event.size + this.processing.size
  }
}

function described(timerMeaning: string | undefined): KeyedStateDescription {
  const codecs = { key: keyCodec.description }
  return { name: 'timers', kind: 'timers', codecs, ...(timerMeaning !== undefined && { timerMeaning }) }
}

function findTimer(timers: KeyTimers, heap: TimerHeap, timestampMs: number, tag: string): HeapTimer | undefined {
  if (timers.index !== undefined) return timers.index.get(indexKey(heap, timestampMs, tag))
  const list = timers.list
  for (let place = list.length - 1; place >= 0; place--) {
    const timer = list[place]!
    if (timer.timestampMs === timestampMs && timer.heap === heap && timer.tag === tag) return timer
  }
  return undefined
}

function indexOf(timers: KeyTimers): Map<string, HeapTimer> {
  return new Map(timers.list.map((timer) => [indexKey(timer.heap, timer.timestampMs, timer.tag), timer]))
}

function indexKey(heap: TimerHeap, timestampMs: number, tag: string): string {
  return `${heap.domain}:${timestampMs}:${tag}`
}

function readDomain(reader: ByteReader): TimeDomain {
  const domain = reader.u8()
  if (domain > 1) throw stateError('MR-T03', `A timer has the time domain ${domain}.`)
  return domain === 0 ? 'event' : 'processing'
}
