// Checkpoints of a filled keyed state, at rest and under load, with the stalls of the slots' event loops meanwhile.

import { setTimeout as sleep } from 'node:timers/promises'
import { serveChild } from './child-process.ts'
import { until, withLocalJob } from './local-run.ts'
import type { RunningJob } from './local-run.ts'
import { median } from './median.ts'

export interface SnapshotRequest {
  readonly keys: number
  readonly value: 'object' | 'bytes'
  readonly parallelism: number
  readonly warmSeconds: number
  /** Checkpoints under load. */
  readonly rounds: number
}

export interface SnapshotResult {
  readonly bytes: number
  readonly atRestMs: number
  readonly underLoadMs: number
  /** Under load, from before the trigger until after completion: the worst of all slots and rounds. */
  readonly stallP99Ms: number
  readonly stallMaxMs: number
  /** The longest turn of an event loop in processor time of its thread: without what other processes took. */
  readonly turnCpuMaxMs: number
  /** The same under load without a checkpoint, over about as long. */
  readonly quietStallMaxMs: number
}

/** For the watch in each slot's thread to see a change, and to publish. */
const watchMs = 60

serveChild(({ keys, value, parallelism, warmSeconds, rounds }: SnapshotRequest): Promise<SnapshotResult> =>
  withLocalJob({ job: 'keyed', args: { keys, value }, parallelism }, async (job) => {
    const { board } = job
    await until(() => board.sum('operator') >= keys, 'filling the state')
    await sleep(warmSeconds * 1000)
    board.set('limit', 0)
    await sleep(500)
    const atRest = await job.checkpoint()
    board.set('limit', Number.POSITIVE_INFINITY)
    await sleep(1000)
    const quiet = await watched(job, () => sleep(atRest.durationMs * rounds))
    const durations: number[] = []
    const stalls: Stalls[] = []
    for (let round = 0; round < rounds; round++) {
      stalls.push(await watched(job, async () => durations.push((await job.checkpoint()).durationMs)))
      await sleep(500)
    }
    return {
      bytes: [...atRest.collected.subtasks.values()].reduce((sum, { snapshot }) => sum + snapshot.bytes, 0),
      atRestMs: atRest.durationMs,
      underLoadMs: median(durations),
      stallP99Ms: Math.max(...stalls.map(({ p99Ms }) => p99Ms)),
      stallMaxMs: Math.max(...stalls.map(({ maxMs }) => maxMs)),
      turnCpuMaxMs: Math.max(...stalls.map(({ turnCpuMaxMs }) => turnCpuMaxMs)),
      quietStallMaxMs: quiet.maxMs,
    }
  }),
)

interface Stalls {
  readonly p99Ms: number
  readonly maxMs: number
  readonly turnCpuMaxMs: number
}

async function watched({ board }: RunningJob, during: () => Promise<unknown>): Promise<Stalls> {
  board.set('watch', board.get('watch') + 1)
  await sleep(watchMs)
  await during()
  await sleep(watchMs)
  return {
    p99Ms: Math.max(...board.values('stallP99Ms')),
    maxMs: Math.max(...board.values('stallMaxMs')),
    turnCpuMaxMs: Math.max(...board.values('turnCpuMaxMs')),
  }
}
