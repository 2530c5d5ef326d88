// Faults of a job's own code, each met once in the life of the job: a mark on the disk outlives threads and processes.

import { closeSync, existsSync, openSync } from 'node:fs'
import type { Sink } from 'millrace/connectors'
import { withPrepareCommit } from '../../support/wrapped-sink.ts'

/** Records of split 0 from which on the job's code misbehaves. */
const throwInMap = 300
const unhandledRejection = 700
const uncaughtException = 1_100
const throwInSnapshot = 1_500

/** In the order in which they are met: one in each life of the job. */
const names = ['open', 'map', 'rejection', 'timer', 'snapshot', 'close'] as const
type FaultName = (typeof names)[number]

export interface PlannedFaults {
  atRecord(n: number): void
  atOpen(): void
  atClose(): void
  atSnapshot(): void
}

export function faultsIn(folder: string | undefined): PlannedFaults {
  if (folder === undefined) return { atRecord: () => {}, atOpen: () => {}, atClose: () => {}, atSnapshot: () => {} }
  // The threads of a life are all of the same turn. Of two faults in one life only the first would be told.
  const turn = names.find((name) => !existsSync(`${folder}/${name}`))
  let snapshotFails = false
  const meet = (name: FaultName): boolean => {
    if (name !== turn) return false
    try {
      closeSync(openSync(`${folder}/${name}`, 'wx'))
      return true
    } catch {
      return false
    }
  }
  return {
    atRecord: (n) => {
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
      if (meet('close')) throw new Error('planned: close')
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
