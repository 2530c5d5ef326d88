// What the operator costs with many jobs: memory, requests, and nothing written where nothing changes.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { operatorFigures } from '../servers/support/operator-figures.ts'
import type { OperatorFigures } from '../servers/support/operator-figures.ts'
import { startOperatorProcess } from '../servers/support/operator-process.ts'
import type { OperatorProcess } from '../servers/support/operator-process.ts'

const jobs = 60
const quietMs = 45_000
/** V8 otherwise takes what the machine has before it collects. */
const heapFlags = ['--max-semi-space-size=4', '--max-old-space-size=128']
const memoryBytesMax = 256 * 1024 * 1024

let operator: OperatorProcess
beforeAll(async () => {
  operator = await startOperatorProcess(heapFlags)
}, 1_500_000)
afterAll(() => operator?.stop())

async function figures(): Promise<OperatorFigures> {
  return operatorFigures(await (await fetch(`${operator.url}/metrics`)).text())
}

describe('the footprint of the operator', () => {
  it(
    `with ${jobs} jobs stays in its memory, and writes nothing while nothing changes`,
    { timeout: 600_000 },
    async () => {
      const { world } = operator
      for (let job = 0; job < jobs; job++) await world.createJob(`job-${job}`)
      for (let job = 0; job < jobs; job++) await world.until(`job-${job} runs`, () => world.isSettled(`job-${job}`))
      await world.during(5_000)
      const before = await figures()
      expect(before.running).toBe(jobs)
      await world.during(quietMs)
      const after = await figures()
      const perMinute = 60_000 / quietMs
      console.log(
        `${jobs} jobs: ${Math.round(after.memoryBytes / 2 ** 20)} MiB, ${Math.round((after.requests - before.requests) * perMinute)} requests and ${((after.cpuSeconds - before.cpuSeconds) * perMinute).toFixed(1)} s of processor time a minute`,
      )
      expect(after.writes - before.writes).toBe(0)
      expect(after.memoryBytes).toBeLessThan(memoryBytesMax)
      // 5 % of the jobs change.
      for (let job = 0; job < jobs; job += 20) await world.edit(`job-${job}`, { parallelism: 2 })
      for (let job = 0; job < jobs; job += 20)
        await world.until(`job-${job} is rescaled`, async () => (await world.status(`job-${job}`))?.parallelism === 2)
      expect((await figures()).memoryBytes).toBeLessThan(memoryBytesMax)
    },
  )
})
