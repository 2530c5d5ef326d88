// From an exception in a user function to the first record after the restart, as the peer measures it.

import { setTimeout as sleep } from 'node:timers/promises'
import { quietBeforeSparesMs } from '../../runtime/local/platform/spare-threads.ts'
import { serveChild } from './child-process.ts'
import { until, withLocalJob } from './local-run.ts'
import { median } from './median.ts'

export interface RecoveryRequest {
  readonly keys: number
  readonly value: 'object' | 'bytes'
  readonly parallelism: number
  readonly rounds: number
}

/** Medians. */
export interface RecoveryResult {
  readonly firstMs: number
  readonly allSubtasksMs: number
}

/** Load before each checkpoint: until the job has spare threads again, as after any failure that is not one of a row. The peer has 2 s. */
const loadMs = quietBeforeSparesMs + 4_000
/** Between the checkpoint and the exception, as the peer. */
const afterCheckpointMs = 500

serveChild(({ keys, value, parallelism, rounds }: RecoveryRequest): Promise<RecoveryResult> =>
  withLocalJob({ job: 'keyed', args: { keys, value }, parallelism }, async ({ board, checkpoint }) => {
    await until(() => board.sum('operator') >= keys, 'filling the state')
    const first: number[] = []
    const all: number[] = []
    for (let round = 0; round < rounds; round++) {
      await sleep(loadMs)
      await checkpoint()
      await sleep(afterCheckpointMs)
      board.set('threwAtMs', 0)
      board.set('throw', 1)
      const firsts = (): number[] => board.values('first').slice(0, parallelism)
      await until(
        () => board.get('threwAtMs') !== 0 && firsts().every((atMs) => atMs > board.get('threwAtMs')),
        'the recovery',
      )
      first.push(Math.min(...firsts()) - board.get('threwAtMs'))
      all.push(Math.max(...firsts()) - board.get('threwAtMs'))
    }
    return { firstMs: median(first), allSubtasksMs: median(all) }
  }),
)
