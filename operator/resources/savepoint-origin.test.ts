import { describe, expect, it } from 'vitest'
import { originInStore } from './savepoint-origin.ts'

const defaults = {
  image: 'millrace:1',
  storage: { checkpoints: 's3://bucket/jobs/', s3: { region: 'eu-central-1' } },
  serviceAccountName: 'jobs',
}
const of = (path: string) => originInStore(path, 'analytics', defaults)

describe("a savepoint in the chart's store", () => {
  it('is of the job that its path says', () => {
    expect(of('s3://bucket/jobs/analytics/flights/u-1/objects/savepoint-7')).toEqual({
      jobId: 'u-1',
      image: 'millrace:1',
      storage: 's3://bucket/jobs/analytics/flights/u-1',
      s3: { region: 'eu-central-1' },
      serviceAccountName: 'jobs',
    })
  })

  it('may be named with a slash at its end', () => {
    expect(of('s3://bucket/jobs/analytics/flights/u-1/objects/savepoint-7/')?.jobId).toBe('u-1')
  })

  it("of another namespace is nobody's here: its files are not taken away by a Savepoint of this one", () => {
    expect(of('s3://bucket/jobs/billing/flights/u-1/objects/savepoint-7')).toBeUndefined()
    expect(of('s3://bucket/jobs/analytics-2/flights/u-1/objects/savepoint-7')).toBeUndefined()
    for (const way of ['analytics/../billing/flights/u-1', 'analytics/./../billing', 'analytics//billing/u-1'])
      expect(of(`s3://bucket/jobs/${way}/objects/savepoint-7`), way).toBeUndefined()
  })

  it('is none elsewhere, nor half of one', () => {
    for (const path of ['s3://bucket/jobs/analytics/flights', 's3://bucket/jobs-2/analytics/a/u', '/mnt/analytics/a/u'])
      expect(of(path)).toBeUndefined()
  })
})
