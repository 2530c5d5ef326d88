import { describe, expect, it } from 'vitest'
import { isManifest, jobNameOf, jobNameProblem } from './job-name.ts'

describe("a job's name", () => {
  it("is the file's, or the folder's when the file is called as every job file is", () => {
    expect(jobNameOf('jobs/orders.ts')).toBe('orders')
    expect(jobNameOf('examples/flights/job.ts')).toBe('flights')
    expect(jobNameOf('/somewhere/sums/main.js')).toBe('sums')
  })

  it('can be that of a namespace, and cannot lead elsewhere or be taken for a later job', () => {
    for (const name of ['orders', 'default/orders', 'a.b', 'v1.x']) expect(jobNameProblem(name)).toBeUndefined()
    for (const name of ['orders.2', '../x', '', 'default/', 'default/objects'])
      expect(jobNameProblem(name)).toContain(name)
  })

  it('is in the manifest where the file is YAML', () => {
    expect(['a.yaml', 'a.yml', 'A.YAML', 'a.ts', 'yaml'].map(isManifest)).toEqual([true, true, true, false, false])
  })
})
