// A bounded run of a query, for its checksum.

import { serveChild } from './child-process.ts'
import { withLocalJob } from './local-run.ts'

export interface CheckRequest {
  readonly query: string
  readonly end: number
  readonly parallelism: number
}

export interface CheckResult {
  readonly records: number
  readonly checksum: number
}

serveChild(({ query, end, parallelism }: CheckRequest): Promise<CheckResult> =>
  withLocalJob({ job: 'nexmark', args: { query, end }, parallelism }, async ({ board, ended }) => {
    await ended
    return { records: board.sum('output'), checksum: board.sum('checksum') % 4294967296 }
  }),
)
