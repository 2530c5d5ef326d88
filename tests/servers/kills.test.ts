// kill -9 in every window of a checkpoint, a commit, an adoption and an end: the process ends itself at a named place (a failpoint), so that
// a kill that missed its window is a process that lives on, and the test is red.

import { describe, expect, it } from 'vitest'
import type { FailpointName } from '../../runtime/base/failpoints.ts'
import type { DistributedJob } from './support/distributed-job.ts'
import { distributedWorld } from './support/distributed-world.ts'
import type { ServerProcess } from './support/server-process.ts'

const world = distributedWorld('kills')
const killed = { code: null, signal: 'SIGKILL' }

async function killsItself(job: DistributedJob, at: FailpointName, process: ServerProcess): Promise<void> {
  await job.until(`${process.name} to be killed at ${at}`, () => !process.running)
  expect(process.end, `${at}: ${process.output}`).toEqual(killed)
}

describe('a distributed job is exact when', () => {
  it('its coordinator is killed in each of its windows, and none of these kills restarts a subtask', async () => {
    const windows: readonly FailpointName[] = [
      'coordinator.begin.before',
      'coordinator.trigger.before',
      'coordinator.manifest.before',
      'coordinator.manifest.after',
      'coordinator.begin.after',
      'coordinator.trigger.after',
      'coordinator.adopt.before',
      'coordinator.swap.before',
      'coordinator.swap.after',
      'coordinator.adopt.middle',
      'coordinator.complete.before',
      'coordinator.complete.after',
      'coordinator.confirm.before',
      'coordinator.adopt.after',
      'coordinator.confirm.after',
      'coordinator.discard.before',
      'coordinator.discard.after',
    ]
    const job = await world.started()
    await job.checkpoints(1)
    await job.coordinator.kill()
    let incarnation = 1
    for (const window of windows) {
      // Of a checkpoint it is the second, which follows on one that this coordinator completed.
      const time = /^coordinator\.(begin|adopt)\./.test(window) ? 1 : 2
      await killsItself(job, window, await job.launchCoordinator(`${window}:kill:${time}`))
      if (window !== 'coordinator.begin.before') incarnation++
    }
    await job.startCoordinator()
    await job.checkpoints(1)
    expect(await job.status()).toMatchObject({ incarnation: incarnation + 1, restarts: 0 })
    await world.expectExactToTheEnd(job)
  })

  it('its workers are killed in each of their windows', async () => {
    const job = await world.started({ workers: 0 })
    await killedOneAfterTheOther(job, [
      [
        'task.snapshot.sync',
        'task.acknowledge.before',
        'sink.preCommit.before',
        'sink.commit.before',
        'sink.commit.after',
      ],
      ['task.snapshot.async', 'task.acknowledge.after', 'sink.preCommit.after', 'sink.commit.middle', 'task.restore'],
    ])
    await job.checkpoints(1)
    const { incarnation, restarts } = await job.status()
    expect(incarnation).toBe(1)
    // Two at one moment are one restart.
    expect(restarts).toBeGreaterThanOrEqual(5)
    await world.expectExactToTheEnd(job)
  })

  it('its workers are killed while their subtasks finish and close', async () => {
    const perSplit = 500
    const job = await world.started({ workers: 0, args: { perSplit, ratePerSecond: undefined } })
    await killedOneAfterTheOther(job, [
      ['task.finish', 'task.close'],
      ['task.close', 'task.finish'],
    ])
    await job.left()
    await world.expectExact(job, perSplit)
  })
})

/** Each worker dies in each of its windows, and lives on then. Two die independently of each other, now and then within one restart. */
async function killedOneAfterTheOther(
  job: DistributedJob,
  windows: readonly (readonly FailpointName[])[],
): Promise<void> {
  await Promise.all(
    windows.map(async (ofOne, index) => {
      const name = `worker-${index}`
      for (const window of ofOne) {
        await job.startWorker(name, `${window}:kill:1`)
        await killsItself(job, window, job.workers.get(name)!)
      }
      await job.startWorker(name)
    }),
  )
}
