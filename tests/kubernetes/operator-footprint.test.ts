// What the operator costs with many jobs: memory, requests, and nothing written where nothing changes, by its own word and by the API server's, which
// counts requests by kind and, in its audit log, by account.
// The long one: MILLRACE_FOOTPRINT_JOBS=200 MILLRACE_FOOTPRINT_MINUTES=30.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { operatorFigures } from '../servers/support/operator-figures.ts'
import type { OperatorFigures } from '../servers/support/operator-figures.ts'
import { startOperatorProcess } from '../servers/support/operator-process.ts'
import type { OperatorProcess } from '../servers/support/operator-process.ts'

const jobs = Number(process.env['MILLRACE_FOOTPRINT_JOBS'] ?? 60)
/** Of changes. */
const minutes = Number(process.env['MILLRACE_FOOTPRINT_MINUTES'] ?? 0.5)
const quietMs = 45_000
/** V8 otherwise takes what the machine has before it collects. */
const heapFlags = ['--max-semi-space-size=4', '--max-old-space-size=128']
const memoryBytesMax = 256 * 1024 * 1024

let operator: OperatorProcess
beforeAll(async () => {
  operator = await startOperatorProcess({ nodeFlags: heapFlags })
}, 1_500_000)
afterAll(() => operator?.stop())

async function figures(): Promise<OperatorFigures> {
  return operatorFigures(await (await fetch(`${operator.url}/metrics`)).text())
}

/** What the API server was asked to change, by anybody, leases, events and reviews of access apart: the operator's are among them. */
async function writesAtServer(): Promise<number> {
  const { text } = await operator.server.request('/metrics')
  const written = /^apiserver_request_total\{.*verb="(APPLY|DELETE|DELETECOLLECTION|PATCH|POST|PUT)"/
  const apart = /resource="(leases|events|subjectaccessreviews|tokenreviews)"/
  return text
    .split('\n')
    .filter((line) => written.test(line) && !apart.test(line))
    .reduce((total, line) => total + Number(line.split(' ').at(-1)), 0)
}

describe('the footprint of the operator', () => {
  it(
    `with ${jobs} jobs stays in its memory, and writes nothing while nothing changes`,
    { timeout: 900_000 + minutes * 60_000 },
    async () => {
      const { world } = operator
      for (let job = 0; job < jobs; job++) await world.createJob(`job-${job}`)
      for (let job = 0; job < jobs; job++) await world.until(`job-${job} runs`, () => world.isSettled(`job-${job}`))
      await world.during(5_000)
      const before = await figures()
      const writtenBefore = await writesAtServer()
      expect(before.running).toBe(jobs)
      expect(writtenBefore).toBeGreaterThan(jobs)
      await world.during(quietMs)
      const after = await figures()
      expect((await writesAtServer()) - writtenBefore).toBe(0)
      const perMinute = 60_000 / quietMs
      console.log(
        `${jobs} jobs: ${Math.round(after.memoryBytes / 2 ** 20)} MiB, ${Math.round((after.requests - before.requests) * perMinute)} requests and ${((after.cpuSeconds - before.cpuSeconds) * perMinute).toFixed(1)} s of processor time a minute`,
      )
      expect(after.writes - before.writes).toBe(0)
      expect(after.memoryBytes).toBeLessThan(memoryBytesMax)
      // 5 % of the jobs change, again and again.
      const changing = Array.from({ length: jobs }, (_, job) => `job-${job}`).filter((_, job) => job % 20 === 0)
      const endMs = performance.now() + minutes * 60_000
      let memoryBytes = 0
      let rounds = 0
      do {
        const parallelism = 2 - (rounds % 2)
        for (const job of changing) await world.edit(job, { parallelism })
        for (const job of changing)
          await world.until(
            `${job} is rescaled`,
            async () => (await world.status(job))?.parallelism === parallelism && world.isSettled(job),
          )
        memoryBytes = Math.max(memoryBytes, (await figures()).memoryBytes)
        rounds++
      } while (performance.now() < endMs)
      const changed = await figures()
      // By whom, the audit log alone tells: the operator counts all that it writes.
      const written = (await operator.written()).length
      expect(written).toBe(changed.writes)
      expect(changed.writes - after.writes).toBeGreaterThan(changing.length)
      console.log(
        `${rounds} rounds of ${changing.length} rescales: at most ${Math.round(memoryBytes / 2 ** 20)} MiB, ${changed.requests - after.requests} requests, ${changed.writes - after.writes} of them writes, ${(changed.cpuSeconds - after.cpuSeconds).toFixed(1)} s of processor time`,
      )
      expect(memoryBytes).toBeLessThan(memoryBytesMax)
    },
  )
})
