// Faults of a job's own code, each met once in the life of the job: a mark on the disk outlives threads and processes.

import { closeSync, existsSync, openSync } from 'node:fs'
import type { Sink } from 'millrace/connectors'
import { withPrepareCommit } from '../../support/wrapped-sink.ts'

/** Records of split 0 from which on the job's code misbehaves. */
const throwInMap = 300
const unhandledRejection = 700
const uncaughtException = 1_100
const throwInSnapshot = 1_500

const beforeClose = ['open', 'map', 'rejection', 'timer', 'snapshot']

export interface PlannedFaults {
  atRecord(n: number): void
  atOpen(): void
  atClose(): void
  atSnapshot(): void
}

export function faultsIn(folder: string | undefined): PlannedFaults {
  if (folder === undefined) return { atRecord: () => {}, atOpen: () => {}, atClose: () => {}, atSnapshot: () => {} }
  const first = (name: string): boolean => {
    try {
      closeSync(openSync(`${folder}/${name}`, 'wx'))
      return true
    } catch {
      return false
    }
  }
  /** One fault in the life of a thread: a second one would be taken for the first. */
  let met = false
  let snapshotFails = false
  const meet = (name: string): boolean => {
    if (met || !first(name)) return false
    met = true
    return true
  }
  return {
    atRecord: (n) => {
      if (met) return
      if (n >= throwInMap && meet('map')) throw new Error('planned: map')
      if (n >= unhandledRejection && meet('rejection')) void Promise.reject(new Error('planned: rejection'))
      if (n >= uncaughtException && meet('timer')) {
        setTimeout(() => {
          throw new Error('planned: timer')
        }, 1)
      }
      if (n >= throwInSnapshot) snapshotFails = true
    },
    atOpen: () => {
      if (meet('open')) throw new Error('planned: open')
    },
    atClose: () => {
      // Last: the slot of another split may come to its end while this one meets its faults, and of two that fail together one is told.
      if (beforeClose.every((name) => existsSync(`${folder}/${name}`)) && meet('close'))
        throw new Error('planned: close')
    },
    atSnapshot: () => {
      if (snapshotFails && meet('snapshot')) throw new Error('planned: snapshot')
    },
  }
}

/** The sink, whose writer throws at a barrier when that is planned. */
export function throwingSink<T>(sink: Sink<T>, faults: PlannedFaults): Sink<T> {
  return withPrepareCommit(sink, (writer, ...barrier) => {
    faults.atSnapshot()
    return writer.prepareCommit(...barrier)
  })
}
