// A binary heap of timers by timestamp. Each timer knows its place, so that deleting one costs no search and leaves nothing behind:
// session windows delete and register again with every record.

import type { TimeDomain } from '../contract.ts'
import type { KeyTimers } from './timer-table.ts'

export class HeapTimer {
  readonly timestampMs: number
  readonly tag: string
  readonly owner: KeyTimers
  readonly heap: TimerHeap
  /** Index in the heap; -1: it is registered no more. */
  place = -1
  /** Index in the owner's list. */
  listPlace = -1
  /** As Cell.epoch. */
  epoch: number

  constructor(heap: TimerHeap, timestampMs: number, tag: string, owner: KeyTimers, epoch: number) {
    this.heap = heap
    this.timestampMs = timestampMs
    this.tag = tag
    this.owner = owner
    this.epoch = epoch
  }
}

export class TimerHeap {
  readonly domain: TimeDomain
  private readonly timers: HeapTimer[] = []

  constructor(domain: TimeDomain) {
    this.domain = domain
  }

  get size(): number {
    return this.timers.length
  }

  peek(): HeapTimer | undefined {
    return this.timers[0]
  }

  add(timer: HeapTimer): void {
    this.timers.push(timer)
    this.moveUp(timer, this.timers.length - 1)
  }

  remove(timer: HeapTimer): void {
    const last = this.timers.pop()!
    const place = timer.place
    timer.place = -1
    if (last === timer) return
    this.moveUp(last, place)
    if (last.place === place) this.moveDown(last, place)
  }

  private moveUp(timer: HeapTimer, from: number): void {
    const timers = this.timers
    let place = from
    while (place > 0) {
      const parentPlace = (place - 1) >> 1
      const parent = timers[parentPlace]!
      if (parent.timestampMs <= timer.timestampMs) break
      timers[place] = parent
      parent.place = place
      place = parentPlace
    }
    timers[place] = timer
    timer.place = place
  }

  private moveDown(timer: HeapTimer, from: number): void {
    const timers = this.timers
    const length = timers.length
    let place = from
    for (;;) {
      let childPlace = place * 2 + 1
      if (childPlace >= length) break
      let child = timers[childPlace]!
      const right = childPlace + 1 < length ? timers[childPlace + 1]! : undefined
      if (right !== undefined && right.timestampMs < child.timestampMs) {
        child = right
        childPlace++
      }
      if (timer.timestampMs <= child.timestampMs) break
      timers[place] = child
      child.place = place
      place = childPlace
    }
    timers[place] = timer
    timer.place = place
  }
}
