import { describe, expect, it } from 'vitest'
import type { SavepointOrigin } from '../savepoint-contract.ts'
import { originByPath } from './savepoint-origin.ts'

const defaults = {
  image: 'millrace:1',
  storage: { checkpoints: 's3://bucket/jobs/', s3: { region: 'eu-central-1' } },
  serviceAccountName: 'jobs',
}
const of = (path: string, ofJob?: SavepointOrigin) => originByPath(path, { namespace: 'analytics', defaults, ofJob })

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

  it('is of that job in the place for savepoints too, also where one lies within the other', () => {
    for (const savepoints of ['s3://kept/sp/', 's3://bucket/jobs/kept', 's3://bucket']) {
      const storage = { ...defaults.storage, savepoints }
      const at = (path: string) =>
        originByPath(path, { namespace: 'analytics', defaults: { ...defaults, storage }, ofJob: undefined })
      const place = savepoints.replace(/\/$/, '')
      expect(at(`${place}/analytics/flights/u-1/objects/savepoint-7`)).toMatchObject({
        jobId: 'u-1',
        storage: 's3://bucket/jobs/analytics/flights/u-1',
      })
      expect(at(`${place}/billing/flights/u-1/objects/savepoint-7`)).toBeUndefined()
      expect(at('s3://bucket/jobs/analytics/flights/u-1/objects/savepoint-7')?.jobId).toBe('u-1')
    }
  })

  it('is none elsewhere, nor half of one', () => {
    for (const path of ['s3://bucket/jobs/analytics/flights', 's3://bucket/jobs-2/analytics/a/u', '/mnt/analytics/a/u'])
      expect(of(path)).toBeUndefined()
  })
})

describe('a savepoint that a job of today names', () => {
  const ofJob: SavepointOrigin = { jobId: 'u-2', image: 'own:1', storage: 's3://own/analytics/flights/u-2' }
  const inChart = { ...ofJob, storage: 's3://bucket/jobs/analytics/flights/u-2' }

  it('is its own in its store, with its own image', () => {
    expect(of(`${ofJob.storage}/objects/savepoint-7`, ofJob)).toBe(ofJob)
    expect(of(`${inChart.storage}/objects/savepoint-7`, inChart)).toBe(inChart)
  })

  it("is an earlier job's where its path in the chart's store says so", () => {
    expect(of('s3://bucket/jobs/analytics/flights/u-1/objects/savepoint-7', inChart)?.jobId).toBe('u-1')
  })

  it('is taken for its own elsewhere', () => {
    expect(of('s3://copies/savepoint-7', ofJob)).toBe(ofJob)
  })
})
