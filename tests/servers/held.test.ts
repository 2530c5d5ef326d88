// kill -9 of NATS and of the S3 server while a process stands in a window: it is held at a named place (a failpoint), is seen to stand there,
// and goes on only when the server has been killed and is back. Neither costs a restart, and the job is exact.

import { describe, expect, it } from 'vitest'
import type { FailpointName } from '../../runtime/base/failpoints.ts'
import type { DistributedJob } from './support/distributed-job.ts'
import { distributedWorld } from './support/distributed-world.ts'
import type { ServerProcess } from './support/server-process.ts'

const world = distributedWorld('held')

type Server = 'nats' | 's3'
const servers: readonly Server[] = ['nats', 's3']

/** Of one life each: the first is passed once, while a coordinator takes the job over; the others at a checkpoint each, so that the server is needed between them. */
const coordinatorLives: readonly (readonly FailpointName[])[] = [
  ['coordinator.begin.before', 'coordinator.trigger.before', 'coordinator.trigger.after'],
  ['coordinator.begin.after', 'coordinator.manifest.before', 'coordinator.manifest.after'],
  ['coordinator.adopt.before', 'coordinator.swap.before', 'coordinator.swap.after'],
  ['coordinator.adopt.middle', 'coordinator.complete.before', 'coordinator.complete.after'],
  ['coordinator.adopt.after', 'coordinator.confirm.before', 'coordinator.confirm.after'],
]

const workerLife: readonly FailpointName[] = [
  'task.restore',
  'task.snapshot.async',
  'task.acknowledge.before',
  'sink.preCommit.before',
  'sink.commit.middle',
]

/** The first the first time, each after it so many times later: a slot has two subtasks, which both pass some of them. */
const holds = (windows: readonly FailpointName[], apart: number): string =>
  windows.map((window, index) => `${window}:hold:${1 + index * apart}`).join(',')

interface Held {
  readonly process: ServerProcess
  /** Whose ways they are. */
  readonly name: string
  readonly windows: readonly FailpointName[]
  readonly server: Server
}

async function killServerInEach(job: DistributedJob, { process, name, windows, server }: Held): Promise<void> {
  const victim = world.servers[server].process
  const way = job.network!.way(name, server)
  for (const window of windows) {
    const stands = (): boolean => process.stopped && process.output.includes(`held at ${window}\n`)
    await job.until(`${name} to be held at ${window}`, stands)
    await victim.kill()
    expect(victim.end).toEqual({ code: null, signal: 'SIGKILL' })
    await victim.start()
    expect(process.stopped, window).toBe(true)
    const connections = way.accepted
    process.thaw()
    // All that it had to this server were the dead one's.
    await job.until(`${name} to find ${server} again after ${window}`, () => way.accepted > connections)
  }
}

describe.each(servers)('%s killed', (server) => {
  it('while a coordinator stands in each of its windows costs no subtask its attempt', async () => {
    const job = await world.started({ network: true })
    await job.checkpoints(1)
    for (const windows of coordinatorLives) {
      await job.coordinator.kill()
      const process = await job.launchCoordinator(holds(windows, 1))
      await killServerInEach(job, { process, name: 'coordinator', windows, server })
    }
    await job.checkpoints(1)
    const { body } = await job.request('GET', '/v1/exceptions')
    expect(body.exceptions).toEqual([])
    expect(await job.status()).toMatchObject({ incarnation: 1 + coordinatorLives.length, restarts: 0 })
    await world.expectExactToTheEnd(job)
  })

  it('while a worker restores, takes its part in a checkpoint, and commits costs no restart', async () => {
    // Large enough to be objects of the workers' own.
    const job = await world.started({ network: true, args: { stateBytes: 20_000, checkpointMs: 500 } })
    await job.checkpoints(1)
    await job.workers.get('worker-0')!.kill()
    await job.startWorker('worker-0', holds(workerLife, 3))
    const process = job.workers.get('worker-0')!
    await killServerInEach(job, { process, name: 'worker-0', windows: workerLife, server })
    await job.checkpoints(1)
    // Of the worker itself.
    expect(await job.status()).toMatchObject({ incarnation: 1, restarts: 1 })
    await world.expectExactToTheEnd(job)
  })
})
