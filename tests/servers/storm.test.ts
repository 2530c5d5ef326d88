// A storm: kill -9 of workers, coordinator, NATS and S3 at random moments for a bounded time. The processes of the job run under their
// supervisors, as in containers; the servers come back after a moment. Then the ledger judges, and so do figures: enough kills, enough
// completed checkpoints, and memory that does not grow.
//
// MILLRACE_STORM_MINUTES=10 is the long one. MILLRACE_STORM_SEED repeats the kills of another one, as far as processes can.

import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { SeededRandom } from '../../runtime/testkit/manual-clock.ts'
import type { DistributedJob } from './support/distributed-job.ts'
import { distributedWorld } from './support/distributed-world.ts'
import type { ServerProcess } from './support/server-process.ts'

const world = distributedWorld('storm')
const minutes = Number(process.env['MILLRACE_STORM_MINUTES'] ?? 1)
const seed = Number(process.env['MILLRACE_STORM_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const killsMin = Math.max(10, Math.round(6 * minutes))
const checkpointsMin = Math.max(15, Math.round(10 * minutes))
/** Of the last third of the samples above the first. */
const growthMax = 1.3

const victims = ['worker-0', 'worker-1', 'coordinator', 'NATS', 'S3'] as const
type Victim = (typeof victims)[number]

/** The newest child of a supervisor, by what it has logged. */
function childOf(supervisor: ServerProcess, kind: 'worker' | 'coordinator'): number | undefined {
  const pids = [...supervisor.output.matchAll(new RegExp(`"process":"${kind}"[^\\n]*?"pid":(\\d+)`, 'g'))]
  const pid = pids.at(-1)?.[1]
  return pid === undefined ? undefined : Number(pid)
}

function lives(pid: number | undefined): pid is number {
  try {
    return pid !== undefined && process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Resident memory, MiB; undefined: it is gone. */
async function residentMiB(pid: number): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const kiB = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]
  return kiB === undefined ? undefined : Number(kiB) / 1024
}

/** Of a job under supervision: its processes by role. */
function childrenOf(
  job: DistributedJob,
): Readonly<Record<'coordinator' | 'worker-0' | 'worker-1', number | undefined>> {
  return {
    coordinator: childOf(job.coordinator, 'coordinator'),
    'worker-0': childOf(job.workers.get('worker-0')!, 'worker'),
    'worker-1': childOf(job.workers.get('worker-1')!, 'worker'),
  }
}

/** kill -9, and that it is gone; servers are there again when it resolves. false: there was nobody to be killed. */
async function kill(job: DistributedJob, victim: Victim): Promise<boolean> {
  if (victim === 'NATS' || victim === 'S3') {
    const server = victim === 'NATS' ? world.servers.nats.process : world.servers.s3.process
    await server.kill()
    expect(server.end).toEqual({ code: null, signal: 'SIGKILL' })
    await server.start()
    return true
  }
  const pid = childrenOf(job)[victim]
  if (!lives(pid)) return false
  process.kill(pid, 'SIGKILL')
  await job.until(`${victim} to be gone`, () => !lives(pid))
  return true
}

const medianOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

describe('a storm of kills', () => {
  it(
    `of ${minutes} min (seed ${seed}) loses nothing, doubles nothing, and memory stays as it is`,
    async () => {
      const random = new SeededRandom(seed)
      const job = await world.started({
        supervised: true,
        args: { ratePerSecond: 1_000, checkpointMs: 500 },
        settings: { restartStrategy: { type: 'fixed-delay', attempts: 1_000_000, delayMs: 200 } },
      })
      await job.checkpoints(1)
      const endMs = performance.now() + minutes * 60_000
      const kills = Object.fromEntries(victims.map((victim) => [victim, 0])) as Record<Victim, number>
      const memory = { coordinator: [] as number[], worker: [] as number[] }
      let completed = 0
      let newest = await job.newestCheckpoint()
      const look = async (): Promise<void> => {
        const id = await job.newestCheckpoint()
        // At most one between two looks counts: fewer than there were, never more.
        if (id !== undefined && id > (newest ?? 0)) {
          completed++
          newest = id
        }
        for (const [role, pid] of Object.entries(childrenOf(job))) {
          const resident = lives(pid) ? await residentMiB(pid) : undefined
          if (resident !== undefined) memory[role === 'coordinator' ? role : 'worker'].push(resident)
        }
      }
      while (performance.now() < endMs) {
        const nextMs = performance.now() + 500 + random.next() * 6_000
        const victim = victims[Math.floor(random.next() * victims.length)]!
        await job.until('the next moment', async () => {
          await look()
          return performance.now() >= nextMs
        })
        if (await kill(job, victim)) kills[victim]++
      }
      await job.until(
        'a checkpoint after the storm',
        async () => {
          await look()
          return (await job.status())?.state === 'running'
        },
        120_000,
      )
      await job.checkpoints(1, 120_000)
      const { restarts, incarnation } = await job.status()
      const total = victims.reduce((sum, victim) => sum + kills[victim], 0)
      const growth = Object.fromEntries(
        Object.entries(memory).map(([role, samples]) => {
          const third = Math.floor(samples.length / 3)
          const [first, last] = [medianOf(samples.slice(0, third)), medianOf(samples.slice(-third))]
          return [
            role,
            { firstMiB: Math.round(first), lastMiB: Math.round(last), most: Math.round(Math.max(...samples)) },
          ]
        }),
      )
      process.stdout.write(
        `storm ${JSON.stringify({ seed, minutes, total, kills, completed, restarts, incarnation, growth })}\n`,
      )
      expect(total).toBeGreaterThanOrEqual(killsMin)
      expect(completed).toBeGreaterThanOrEqual(checkpointsMin)
      // The effect of kills: coordinators were followed by others, and lost workers restarted their subtasks.
      expect(incarnation).toBeGreaterThan(1)
      expect(restarts).toBeGreaterThan(0)
      for (const [role, { firstMiB, lastMiB }] of Object.entries(growth))
        expect(lastMiB, `${role}, MiB`).toBeLessThanOrEqual(firstMiB * growthMax)
      await world.expectExactToTheEnd(job)
    },
    minutes * 60_000 + 600_000,
  )
})
