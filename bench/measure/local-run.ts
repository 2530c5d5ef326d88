// A job of bench/jobs in this process, as `millrace run` runs it: the coordinator here, its slots in threads, a folder as the store.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { CompletedSnapshot } from '../../runtime/coordinator/coordinator-contract.ts'
import { keepCompiledCode } from '../../runtime/local/platform/compile-cache.ts'
import { createBoard } from '../jobs/board.ts'
import type { Board } from '../jobs/board.ts'

export interface RunningJob {
  readonly board: Board
  /** Takes a checkpoint now. */
  readonly checkpoint: () => Promise<CompletedSnapshot>
  /** Rejects when the job fails. */
  readonly ended: Promise<void>
}

export interface RunRequest {
  readonly job: 'nexmark' | 'keyed'
  readonly args: Readonly<Record<string, unknown>>
  readonly parallelism: number
}

/** Runs the job while `measure` runs, and to its end when that returns `ended`. */
export async function withLocalJob<Result>(
  request: RunRequest,
  measure: (running: RunningJob) => Promise<Result>,
): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const board = createBoard()
  const completed: ((snapshot: CompletedSnapshot) => void)[] = []
  try {
    keepCompiledCode()
    const { prepareLocalJob } = await import('../../runtime/local/run-job.ts')
    const { coordinator } = await prepareLocalJob({
      jobFile: fileURLToPath(new URL(`../jobs/${request.job}.ts`, import.meta.url)),
      name: request.job,
      args: request.args,
      parallelism: request.parallelism,
      parallelismDefault: 1,
      settings: {},
      folder,
      log: (level, message, fields) => {
        if (level === 'error') console.error(message, fields)
      },
      failpoints: [],
      observer: {
        checkpointCompleted: (snapshot) => {
          for (const resolve of completed.splice(0)) resolve(snapshot)
        },
        checkpointFailed: ({ detail }) => {
          throw new Error(`A checkpoint failed: ${detail}`)
        },
      },
    })
    const ended = coordinator.run().then((outcome) => {
      if (outcome.kind === 'failed') throw new Error(outcome.reason)
    })
    const checkpoint = () =>
      new Promise<CompletedSnapshot>((resolve) => {
        completed.push(resolve)
        coordinator.checkpoint()
      })
    const failed = ended.then(() => new Promise<never>(() => undefined))
    const result = await Promise.race([measure({ board, checkpoint, ended }), failed])
    coordinator.cancel()
    await ended
    return result
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Polls: the job's threads have no other way to tell. */
export async function until(condition: () => boolean, what: string, deadlineMs = 120_000): Promise<void> {
  const end = performance.now() + deadlineMs
  while (!condition()) {
    if (performance.now() > end) throw new Error(`${what} did not happen in ${deadlineMs} ms`)
    await sleep(2)
  }
}

export interface Steady {
  readonly recordsPerSecond: number
  /** Of the whole process. */
  readonly cpuMicrosecondsPerRecord: number
}

/** A steady window: what `counted` grows by, and the processor time it takes. */
export async function steadyWindow(counted: () => number, seconds: number): Promise<Steady> {
  const cpu = process.cpuUsage()
  const from = { ms: performance.now(), count: counted() }
  await sleep(seconds * 1000)
  const { user, system } = process.cpuUsage(cpu)
  const count = counted() - from.count
  return {
    recordsPerSecond: Math.round((count / (performance.now() - from.ms)) * 1000),
    cpuMicrosecondsPerRecord: (user + system) / count,
  }
}
