// One throughput case in a process of its own, as each of the peer's has a JVM of its own.

import { setTimeout as sleep } from 'node:timers/promises'
import { steadyWindow, until, withLocalJob } from './local-run.ts'
import type { Steady } from './local-run.ts'
import { serveChild } from './child-process.ts'

export interface ThroughputRequest {
  readonly job: 'nexmark' | 'keyed'
  readonly args: Readonly<Record<string, unknown>>
  readonly parallelism: number
  readonly warmSeconds: number
  readonly measureSeconds: number
}

export type ThroughputResult = Steady

serveChild((request: ThroughputRequest): Promise<ThroughputResult> =>
  withLocalJob(request, async ({ board }) => {
    const counted = (): number => board.sum(request.job === 'keyed' ? 'operator' : 'source')
    await until(() => counted() > Number(request.args['keys'] ?? 0), 'the first records')
    await sleep(request.warmSeconds * 1000)
    return steadyWindow(counted, request.measureSeconds)
  }),
)
