// Kills from outside in windows that are held open: a commit that the ledger does not answer, a checkpoint that waits for a sink, or for
// the object store. And an object store that is slow, fails, answers late, or is away, as NATS is, when a job begins.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { Hold } from '../../e2e/harness/ledger-client.ts'
import type { DistributedJob } from './support/distributed-job.ts'
import { distributedWorld } from './support/distributed-world.ts'
import type { ProxyTarget, TcpProxy } from './support/proxy.ts'

const world = distributedWorld('windows')
const windowDeadlineMs = 60_000

/** By subtask; each begins with the incarnation that deployed it. */
async function attemptsOf(job: DistributedJob): Promise<readonly string[]> {
  const { subtasks } = (await job.request('GET', '/v1/subtasks')).body as {
    readonly subtasks: readonly { readonly vertex: string; readonly subtask: number; readonly attempt: string }[]
  }
  return subtasks.map(({ vertex, subtask, attempt }) => `${vertex}/${subtask} ${attempt}`).toSorted()
}

type Victim = 'worker' | 'coordinator' | 'NATS' | 'S3'

/** kill -9 of all at one moment; they are there again when it resolves. `meanwhile` is done between. */
async function killAndReplace(
  job: DistributedJob,
  victims: readonly Victim[],
  meanwhile: () => void = () => undefined,
): Promise<void> {
  const { nats, s3 } = world.servers
  const processes = {
    worker: job.workers.get('worker-0')!,
    coordinator: job.coordinator,
    NATS: nats.process,
    S3: s3.process,
  }
  await Promise.all(victims.map((victim) => processes[victim].kill()))
  for (const victim of victims) expect(processes[victim].end, victim).toEqual({ code: null, signal: 'SIGKILL' })
  meanwhile()
  // A coordinator needs both servers to begin.
  await Promise.all([nats.process, s3.process].filter(({ running }) => !running).map((server) => server.start()))
  if (victims.includes('worker')) await job.startWorker('worker-0')
  if (victims.includes('coordinator')) await job.startCoordinator()
}

/** Kills each in turn while such a call is held, and sees the job go on as it has to. */
async function killEachWhileHeld(job: DistributedJob, hold: Hold, turns: readonly (readonly Victim[])[]) {
  for (const victims of turns) {
    const [before, attemptsBefore] = [await job.status(), await attemptsOf(job)]
    await world.ledger.hold({ ...hold, book: job.id })
    const held = await world.ledger.waitForHeld(1, windowDeadlineMs)
    expect(held[0]).toMatchObject({ what: hold.what, book: job.id })
    if (hold.what === 'preCommit') {
      const { body } = await job.request('GET', '/v1/checkpoints')
      expect(body.pending).toMatchObject({ kind: 'checkpoint', phase: 'collecting' })
    }
    await killAndReplace(job, victims)
    await world.ledger.release()
    await job.checkpoints(1)
    const [after, attempts] = [await job.status(), await attemptsOf(job)]
    expect(after.incarnation, String(victims)).toBe(before.incarnation + (victims.includes('coordinator') ? 1 : 0))
    // Nobody but a worker takes subtasks with it, and it all of them: they are one region.
    if (victims.includes('worker')) for (const attempt of attempts) expect(attemptsBefore).not.toContain(attempt)
    else expect(attempts, String(victims)).toEqual(attemptsBefore)
  }
}

describe('a kill while a window is held open leaves the job exact', () => {
  it('of a commit that has not happened, or has and its answer is missing, and of a checkpoint that waits for a sink', async () => {
    const job = await world.started()
    await job.checkpoints(1)
    const each: readonly Victim[][] = [['worker'], ['coordinator'], ['NATS'], ['S3'], ['worker', 'coordinator']]
    await killEachWhileHeld(job, { what: 'commit' }, each)
    await killEachWhileHeld(job, { what: 'commit', where: 'after' }, [
      ['worker'],
      ['coordinator'],
      ['worker', 'coordinator', 'NATS', 'S3'],
    ])
    await killEachWhileHeld(job, { what: 'preCommit' }, each)
    await world.expectExactToTheEnd(job)
  })

  it('of a checkpoint that waits for the object store', async () => {
    // Large enough to be objects of the workers' own.
    const job = await world.started({ network: true, args: { stateBytes: 20_000, checkpointMs: 500 } })
    await job.checkpoints(1)
    const of = { worker: 'worker-0', coordinator: 'coordinator' } as const
    const turns = [
      { slow: 'worker', victims: ['worker'] },
      { slow: 'worker', victims: ['coordinator'] },
      { slow: 'coordinator', victims: ['coordinator'] },
      { slow: 'coordinator', victims: ['worker'] },
      { slow: 'coordinator', victims: ['NATS'] },
      { slow: 'worker', victims: ['S3'] },
    ] as const
    for (const { slow, victims } of turns) {
      const [before, attemptsBefore] = [await job.status(), await attemptsOf(job)]
      const way = job.network!.way(of[slow], 's3')
      way.weather({ kind: 'hold' }, 'toServer')
      // REST reads HEAD, which does not answer on a way that is held: /metrics tells without.
      await job.until(
        `a checkpoint to wait for the ${slow}'s store`,
        async () => way.waiting('toServer') > 0 && (await job.metric('millrace_checkpoints_pending')) === 1,
      )
      const failed = await job.metric('millrace_checkpoints_failed_total')
      const ways = victims[0] === 'NATS' ? job.network!.ways('nats') : []
      const connections = ways.map((one) => one.accepted)
      const held = way.open
      // What is on its way is passed on late; a coordinator cannot begin before.
      await killAndReplace(job, victims, () => {
        if (victims[0] === 'coordinator') way.clear()
      })
      // What they had to a server that was killed is gone, and they come back.
      if (victims[0] === 'NATS')
        await job.until('all to find NATS again', () => ways.every((one, index) => one.accepted > connections[index]!))
      if (victims[0] === 'S3') {
        expect(held).toBeGreaterThan(0)
        await job.until('its connections to be gone', () => way.open < held)
      }
      way.clear()
      await job.checkpoints(1)
      const [after, attempts] = [await job.status(), await attemptsOf(job)]
      expect(after.incarnation).toBe(before.incarnation + (victims[0] === 'coordinator' ? 1 : 0))
      expect(after.restarts, String(victims)).toBe(before.restarts + (victims[0] === 'worker' ? 1 : 0))
      if (victims[0] === 'worker') {
        for (const attempt of attempts) expect(attemptsBefore).not.toContain(attempt)
        // Its part is missing: the checkpoint that waited went with it.
        if (slow === 'worker') expect(await job.metric('millrace_checkpoints_failed_total')).toBeGreaterThan(failed)
      } else expect(attempts, String(victims)).toEqual(attemptsBefore)
    }
    await world.expectExactToTheEnd(job)
  })
})

describe('an object store', () => {
  it('that is slow, fails every request, and answers after the deadline costs checkpoints and nothing else', async () => {
    // Large enough to be objects of the workers' own.
    const args = { stateBytes: 20_000, checkpointMs: 500 }
    const job = await world.started({ network: true, args, settings: { checkpointTimeoutMs: 5_000 } })
    await job.checkpoints(1)
    const workers = ['worker-0', 'worker-1'].map((process) => job.network!.way(process, 's3'))
    const ways = [...workers, job.network!.way('coordinator', 's3')]
    const failed = (): Promise<number> => job.metric('millrace_checkpoints_failed_total')
    const oneFails = async (): Promise<void> => {
      const before = await failed()
      await job.until('a checkpoint to fail', async () => (await failed()) > before)
    }

    for (const way of ways) way.weather({ kind: 'delay', ms: 50 })
    await job.checkpoints(2)
    for (const way of ways) way.clear()

    const refusing = createServer((_request, response) => {
      response.writeHead(503, { 'content-type': 'text/plain', connection: 'close' }).end('no')
    })
    await new Promise<void>((resolve) => refusing.listen(0, '127.0.0.1', resolve))
    const { port } = refusing.address() as AddressInfo
    const target = ways[0]!.target
    const turn = (to: readonly TcpProxy[], where: ProxyTarget): void => {
      for (const way of to) {
        way.target = where
        way.cut()
      }
    }
    turn(workers, { port })
    await oneFails()
    turn(workers, target)
    await job.checkpoints(2)

    // HEAD cannot be written: whether a write of it lands is not known, and so its checkpoint is neither complete nor failed.
    turn(ways, { port })
    const completed = await job.metric('millrace_checkpoints_completed_total')
    await job.until('HEAD to be unclear', () => job.coordinator.output.includes('HTTP 503'))
    expect(await job.metric('millrace_checkpoints_completed_total')).toBeLessThanOrEqual(completed + 1)
    turn(ways, target)
    refusing.closeAllConnections()
    refusing.close()
    await job.checkpoints(2)

    // What is held is passed on later: writes land long after they were given up.
    for (const way of workers) way.weather({ kind: 'hold' }, 'toServer')
    await oneFails()
    for (const way of ways) way.clear()
    await job.checkpoints(2)
    expect(await job.status()).toMatchObject({ incarnation: 1, restarts: 0 })
    await world.expectExactToTheEnd(job)
  })

  it('that is away when a coordinator begins costs the wait and nothing else: it answers, and workers wait with it', async () => {
    const { s3 } = world.servers
    const job = await world.started({ network: true })
    await job.checkpoints(1)
    await job.coordinator.kill()
    await s3.process.kill()
    // No supervisor would start it again: it is one process that waits, and it serves REST meanwhile.
    await job.startCoordinator()
    const probe = async (path: string): Promise<{ readonly status: number; readonly waitsFor?: string }> => {
      const response = await fetch(`${job.restUrl}${path}`)
      return { status: response.status, ...((await response.json()) as object) }
    }
    const waits = { status: 503, ready: false, waitsFor: 'the object store' }
    await job.until('NATS to have answered', async () => (await probe('/readyz')).waitsFor === waits.waitsFor)
    const ways = job.network!.ways('coordinator')
    await job.until('the workers to be there', () => ways.every((way) => way.open === 1))
    const [sinceMs, accepted] = [performance.now(), ways.map((way) => way.accepted)]
    const looks = (): readonly number[] => ways.map((way, index) => way.accepted - accepted[index]!)
    // A worker that was sent on after half a minute waits up to 2 s before it looks; the next time is half a minute later.
    const passedMs = (): number => performance.now() - sinceMs
    while (passedMs() < 32_000 || (looks().includes(0) && passedMs() < 45_000)) {
      expect(await probe('/livez')).toEqual({ status: 200, live: true })
      expect(await probe('/readyz')).toEqual(waits)
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
    // They stayed; after half a minute each has looked once whether there is another coordinator.
    expect(looks()).toEqual([1, 1])
    expect(await job.request('GET', '/v1/job')).toMatchObject({ status: 503, body: { code: 'MR-H11' } })
    expect(job.coordinator.output).toContain('the object store does not do what it is asked; trying again')
    expect(job.coordinator.output).not.toContain('the coordinator begins')

    await s3.process.start()
    const backAtMs = performance.now()
    await job.checkpoints(1)
    // A pause of the store's client, and of the adoption.
    expect(performance.now() - backAtMs).toBeLessThan(25_000)
    expect(await job.status()).toMatchObject({ incarnation: 2, restarts: 0 })
    await world.expectExactToTheEnd(job)
  })

  it('that is away when a job begins, and NATS too, is waited for, and the job goes on where it was', async () => {
    const { nats, s3 } = world.servers
    const job = await world.started({ supervised: true })
    await job.checkpoints(2)
    const before = await job.status()
    await Promise.all([job.coordinator, ...job.workers.values()].map((process) => process.kill()))
    await Promise.all([nats.process.kill(), s3.process.kill()])
    await Promise.all([job.launchCoordinator(), ...job.workers.keys().map((name) => job.startWorker(name))])
    for (const says of [
      /the object store does not do what it is asked[^\n]*MR-S34 [^\n]*s3:\/\/tests/,
      /MR-W30 [^\n]*nats:\/\//,
    ])
      await job.until(`the coordinator to say ${says.source}`, () => says.test(job.coordinator.output), 120_000)
    expect(job.coordinator.running).toBe(true)
    expect(job.coordinator.output).not.toMatch(/MR-S1[69]|the coordinator begins/)
    await Promise.all([nats.process.start(), s3.process.start()])
    await job.until('the job to go on', async () => (await job.status())?.state === 'running', 120_000)
    const after = await job.status()
    expect(after.incarnation).toBeGreaterThan(before.incarnation)
    expect(after).toMatchObject({ start: 1, restorePoint: { kind: 'manifest' } })
    await job.checkpoints(1)
    await world.expectExactToTheEnd(job)
  })
})
