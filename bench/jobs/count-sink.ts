// Counts what comes out and drops it, as the peer's sink does; in a check run it adds up checksums as well.

import { renameSync, writeFileSync } from 'node:fs'
import type { Sink } from '../../runtime/connectors/contract.ts'
import { Board, board } from './board.ts'

/** A sink's first record, for whoever is outside of the process. */
export interface Beacon {
  /** Wall clock, ms. */
  readonly firstAtMs: number
  readonly value: number
}

export interface CountSinkOptions<T> {
  /** Sums FNV-1a of each record's text, modulo 2^32. */
  readonly textOf?: ((value: T) => string) | undefined
  /** A file that appears, whole, with the first record of subtask 0. */
  readonly beacon?: string | undefined
}

export function countSink<T>({ textOf, beacon }: CountSinkOptions<T> = {}): Sink<T> {
  return {
    name: 'count',
    createWriter: ({ task }) => {
      const { numbers } = board()
      const outputs = Board.lane('output', task.subtask)
      const checksum = Board.lane('checksum', task.subtask)
      let count = numbers[outputs]!
      let unlit = beacon !== undefined && task.subtask === 0
      return {
        open: () => Promise.resolve(),
        write: (value) => {
          if (unlit) {
            unlit = false
            light(beacon!, { firstAtMs: Date.now(), value: Number(value) })
          }
          numbers[outputs] = ++count
          if (textOf !== undefined) numbers[checksum] = (numbers[checksum]! + fnv1a(textOf(value))) % 4294967296
        },
        prepareCommit: () => Promise.resolve([]),
        close: () => undefined,
      }
    },
  }
}

function light(file: string, beacon: Beacon): void {
  writeFileSync(`${file}.new`, JSON.stringify(beacon))
  renameSync(`${file}.new`, file)
}

function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 16777619)
  return hash >>> 0
}
