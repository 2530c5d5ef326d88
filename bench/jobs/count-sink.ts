// Counts what comes out and drops it, as the peer's sink does; in a check run it adds up checksums as well.

import type { Sink } from '../../runtime/connectors/contract.ts'
import { Board, board } from './board.ts'
import { mark, threadTimeline, writeWhole } from './timeline.ts'
import type { Timeline } from './timeline.ts'

/** A sink's first record, for whoever is outside of the process. */
export interface Beacon {
  /** Wall clock, ms. */
  readonly firstAtMs: number
  readonly value: number
  /** How the thread of the sink's subtask came to it. */
  readonly timeline: Timeline
  /** Processor time of the whole process until then, ms: what the time is on a machine that does nothing else, over its processors. */
  readonly cpuMs: number
}

export interface CountSinkOptions<T> {
  /** Sums FNV-1a of each record's text, modulo 2^32. */
  readonly textOf?: ((value: T) => string) | undefined
  /**
   * A file that appears, whole, with the first record of subtask 0. Another beside it, named `.kept`, when a checkpoint has been taken
   * after many records in a row that were 2 or more: all keys have been seen then, also by a source that lags behind.
   */
  readonly beacon?: string | undefined
}

/** Records in a row. */
const fullAfter = 10_000

export function countSink<T>({ textOf, beacon }: CountSinkOptions<T> = {}): Sink<T> {
  return {
    name: 'count',
    createWriter: ({ task }) => {
      // A chain opens from its end: the state of its head has been read, and nothing of it has been decoded.
      mark('read')
      const { numbers } = board()
      const outputs = Board.lane('output', task.subtask)
      const checksum = Board.lane('checksum', task.subtask)
      let count = numbers[outputs]!
      let unlit = beacon !== undefined && task.subtask === 0
      let inRow = 0
      let checkpointsToSee = unlit ? 2 : 0
      return {
        open: () => Promise.resolve(),
        write: (value) => {
          if (unlit) {
            unlit = false
            mark('sink')
            const { user, system } = process.cpuUsage()
            const cpuMs = (user + system) / 1000
            const lit: Beacon = { firstAtMs: Date.now(), value: Number(value), timeline: threadTimeline(), cpuMs }
            writeWhole(beacon!, lit)
          }
          if (checkpointsToSee > 0 && inRow < fullAfter) inRow = Number(value) >= 2 ? inRow + 1 : 0
          numbers[outputs] = ++count
          if (textOf !== undefined) numbers[checksum] = (numbers[checksum]! + fnv1a(textOf(value))) % 4294967296
        },
        prepareCommit: () => {
          // One checkpoint at a time: the second that begins says that the first has ended.
          if (inRow === fullAfter && checkpointsToSee > 0 && --checkpointsToSee === 0) writeWhole(`${beacon}.kept`, {})
          return Promise.resolve([])
        },
        close: () => undefined,
      }
    },
  }
}

function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 16777619)
  return hash >>> 0
}
