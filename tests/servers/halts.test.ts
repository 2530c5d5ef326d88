// kill -9 while a stop barrier is on its way: of a rescale in place, and of a stop with a savepoint. The window is held open by a sink's
// pre-commit (the barrier's snapshot waits for it) or by a commit (HEAD has its result). What was asked for is either done once, or told as
// failed and can be asked for again.

import { describe, expect, it } from 'vitest'
import type { DistributedJob } from './support/distributed-job.ts'
import { distributedWorld } from './support/distributed-world.ts'

const world = distributedWorld('halts')
const windowDeadlineMs = 60_000
/** No checkpoint comes between, so that what is held is the stop barrier's. */
const args = { checkpointMs: 60_000 }

type Victim = 'worker' | 'coordinator'
type Held = 'preCommit' | 'commit'

/** Asks for it, sees it held there, and kills; the victim is there again when it resolves. Gives the request. */
async function killWhileHeld(
  job: DistributedJob,
  { what, victim, ask }: { readonly what: Held; readonly victim: Victim; readonly ask: () => Promise<string> },
): Promise<string> {
  await world.ledger.hold({ what, book: job.id })
  const request = await ask()
  const [held] = await world.ledger.waitForHeld(1, windowDeadlineMs)
  expect(held).toMatchObject({ what, book: job.id })
  if (what === 'preCommit') {
    const { body } = await job.request('GET', '/v1/checkpoints')
    expect(body.pending).toMatchObject({ phase: 'collecting' })
  }
  if (victim === 'worker') await job.replaceWorker('worker-0')
  else {
    await job.coordinator.kill()
    expect(job.coordinator.end).toEqual({ code: null, signal: 'SIGKILL' })
    await job.launchCoordinator()
  }
  return request
}

/** How the request was answered; undefined once nobody is there to be asked. */
async function answered(job: DistributedJob, path: string): Promise<Record<string, unknown> | undefined> {
  let body: Record<string, unknown> | undefined
  await job.until(`${path} to be answered`, async () => {
    const answer = await job.answer('GET', path)
    if (answer === undefined && !job.coordinator.running) return true
    body = answer?.body
    return answer?.status === 200 && body!['state'] !== 'pending'
  })
  return body
}

async function runsAt(job: DistributedJob, parallelism: number): Promise<void> {
  await job.until(`parallelism ${parallelism}`, async () => {
    const status = await job.status()
    return status?.state === 'running' && status.parallelism === parallelism
  })
}

async function delivers(job: DistributedJob): Promise<void> {
  const { present } = await world.ledger.report({ book: job.id })
  let before = -1
  await job.until('more records', async () => {
    // Another one only when there is none: none is left over for the next window.
    const newest = (await job.newestCheckpoint()) ?? before
    if (newest > before) {
      if ((await world.ledger.report({ book: job.id })).present > present) return true
      await job.ask('/v1/checkpoints')
    }
    before = newest
    return false
  })
}

describe('a rescale in place stays exact when', () => {
  it('a worker or the coordinator is killed before its swap and behind it', async () => {
    const job = await world.started({ slots: 2, args })
    await delivers(job)
    let size = 2
    for (const what of ['preCommit', 'commit'] as const) {
      for (const victim of ['worker', 'coordinator'] as const) {
        const wanted = size === 2 ? 3 : 2
        const before = await job.status()
        const ask = (): Promise<string> => job.ask('/v1/rescale', { parallelism: wanted })
        const request = await killWhileHeld(job, { what, victim, ask })
        await world.ledger.release()
        const answer = await answered(job, `/v1/rescale/${request}`)
        if (what === 'preCommit' && victim === 'worker') {
          // Nothing was swapped: it is told, the size is as it was, and the next one is another request.
          expect(answer).toMatchObject({ state: 'failed' })
          await runsAt(job, size)
          expect((await job.status()).restarts).toBe(before.restarts + 1)
          const again = await ask()
          expect(await answered(job, `/v1/rescale/${again}`)).toMatchObject({ state: 'completed' })
        } else expect(answer, `${what} ${victim}`).toMatchObject({ state: 'completed' })
        size = wanted
        await runsAt(job, size)
        await delivers(job)
        // Done once: each is one incarnation, and that of a coordinator another; behind the swap the next one may begin with both at once.
        const { incarnation } = await job.status()
        const more = { worker: [1], coordinator: what === 'commit' ? [1, 2] : [2] }[victim]
        expect(more, `${what} ${victim}`).toContain(incarnation - before.incarnation)
      }
    }
    await world.expectExactToTheEnd(job)
  })
})

describe('a stop with a savepoint stays exact when', () => {
  it('a worker or the coordinator is killed before its swap and behind it', async () => {
    const job = await world.started({ args })
    await delivers(job)
    for (const what of ['preCommit', 'commit'] as const) {
      for (const victim of ['worker', 'coordinator'] as const) {
        const ask = (): Promise<string> => job.ask('/v1/stop', { drain: false })
        const request = await killWhileHeld(job, { what, victim, ask })
        await world.ledger.release()
        if (what === 'preCommit' && victim === 'worker') {
          expect(await answered(job, `/v1/savepoints/${request}`)).toMatchObject({ state: 'failed' })
          await delivers(job)
          expect(await job.status()).toMatchObject({ state: 'running', restarts: 1 })
          await ask()
        }
        await job.left()
        expect(job.coordinator.output, `${what} ${victim}`).toMatch(/is stopped with savepoint|has ended \(stopped\)/)
        await world.goOn(job)
        await delivers(job)
      }
    }
    await world.expectExactToTheEnd(job)
  })
})
