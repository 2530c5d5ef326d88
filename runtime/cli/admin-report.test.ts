import { describe, expect, it } from 'vitest'
import { adminText } from './admin-report.ts'
import type { AdminReport } from './admin-report.ts'

const manifest = {
  kind: 'checkpoint',
  id: 3,
  start: 1,
  path: 'file:///jobs/orders/objects/chk-3',
  bytes: 1_200,
  completedAtMs: 0,
  drained: false,
}

function pointText(contents: NonNullable<AdminReport['contents']>): string {
  const job = {
    id: 'orders',
    start: 1,
    end: { kind: 'suspended' },
    unconfirmed: null,
    restorePoint: { kind: 'manifest', manifest },
  }
  return adminText({
    command: 'restore-point',
    outcome: 'found',
    job: job as unknown as NonNullable<AdminReport['job']>,
    contents,
    verified: 'lengths',
  })
}

describe('the text of a restore point', () => {
  it('counts what it names', () => {
    expect(pointText({ objects: 1, pieces: 2, transactions: 1 })).toMatch(
      /\n2 pieces of state in 1 object: all of them are there, as long as they must be\. It holds 1 transaction\.$/,
    )
  })

  it('says where the state is of one that names no objects', () => {
    expect(pointText({ objects: 0, pieces: 0, transactions: 0 })).toMatch(
      /\nIt names no objects: what state there is stands in its manifest\. It holds no transactions\.$/,
    )
  })
})
