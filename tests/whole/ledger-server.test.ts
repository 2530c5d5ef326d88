// Jobs that write to the ledger server, a process of its own: exact though the job and the server are killed in the windows that matter.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Hold, LedgerReport } from '../../e2e/harness/ledger-client.ts'
import { LedgerProcess } from '../../e2e/harness/ledger-process.ts'
import { RunningCommand } from '../support/command.ts'

const jobFile = fileURLToPath(new URL('../../examples/ledger/job.ts', import.meta.url))
const scenarioFile = (name: string): string => fileURLToPath(new URL(`../../e2e/jobs/${name}.ts`, import.meta.url))

/** One wait; the machine may be busy with other tests. */
const deadlineMs = 60_000
const splits = 4
const keys = 50

let root = ''
let folders = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'millrace-ledger-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))

interface World {
  readonly ledger: LedgerProcess
  /** The same command each time. */
  readonly run: () => RunningCommand
  readonly report: () => Promise<LedgerReport>
}

/** A ledger of its own; what still runs at the end of `work` is ended. Without `perSplit` the job is endless. */
async function withLedger(
  job: { readonly file?: string; readonly args?: Readonly<Record<string, unknown>>; readonly perSplit?: number },
  work: (world: World) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(root, `${++folders}-`))
  const ledger = await LedgerProcess.start(join(folder, 'ledger'))
  const running: RunningCommand[] = []
  const { file = jobFile, perSplit } = job
  const args = JSON.stringify({ url: ledger.url, splits, perSplit, keys, checkpointMs: 100, ...job.args })
  try {
    await work({
      ledger,
      run: () => {
        const command = new RunningCommand(['run', file, '--name', 'ledger', '--args', args], { folder })
        running.push(command)
        return command
      },
      report: () => ledger.client.report({ splits, ...(perSplit === undefined ? {} : { perSplit, keys }) }),
    })
  } finally {
    for (const command of running) command.kill('SIGKILL')
    await Promise.allSettled(running.map(({ ended }) => ended))
    await ledger.kill()
  }
}

async function finished(command: RunningCommand): Promise<void> {
  const { exitCode, stderr } = await command.ended
  expect({ exitCode, stderr: exitCode === 0 ? '' : stderr }).toEqual({ exitCode: 0, stderr: '' })
}

/** Exact, and nothing is left of what was never committed. */
async function expectExact({ report }: World): Promise<void> {
  expect(await report()).toMatchObject({ exact: true, samples: [], open: 0, preCommitted: 0 })
}

/** It is stopped when the faults of a test are over, however long they take. */
const endless = { args: { ratePerSecond: 4_000 } }

/** With a savepoint, whose commits are part of the stop. */
async function stopped(command: RunningCommand): Promise<void> {
  command.kill('SIGINT')
  await finished(command)
}

describe('the ledger job', () => {
  it('is exact by the word of a ledger outside of it', () =>
    withLedger({ perSplit: 5_000, args: { stateBytes: 100 } }, async (world) => {
      await finished(world.run())
      await expectExact(world)
      expect(await world.report()).toMatchObject({ expected: 20_000, present: 20_000, keys })
    }))

  const windows: readonly { readonly name: string; readonly hold: Hold; readonly state: string }[] = [
    { name: 'a commit waits', hold: { what: 'commit' }, state: 'pre-committed' },
    {
      name: 'a commit has happened and its answer waits',
      hold: { what: 'commit', where: 'after' },
      state: 'committed',
    },
    { name: 'a pre-commit waits', hold: { what: 'preCommit' }, state: 'open' },
    {
      name: 'a pre-commit has happened and its answer waits',
      hold: { what: 'preCommit', where: 'after' },
      state: 'pre-committed',
    },
  ]

  it('is exact when its process is killed in each window of a commit', () =>
    withLedger(endless, async (world) => {
      const { client } = world.ledger
      let command = world.run()
      for (const { name, hold, state } of windows) {
        const { committed } = await client.waitFor('two commits in this life', isTwoAbove(await world.report()), {
          deadlineMs,
        })
        await client.hold(hold)
        const [held] = await client.waitForHeld(1, deadlineMs)
        command.kill('SIGKILL')
        expect(await command.ended).toMatchObject({ exitCode: null, signal: 'SIGKILL' })

        // The window was open, and the kill left the transaction in it.
        const stateOf = async (): Promise<string> =>
          (await client.transactions()).find((transaction) => transaction.name === held!.name)?.state ?? 'committed'
        expect({ name, state: await stateOf() }).toEqual({ name, state })
        expect((await world.report()).committed).toBeGreaterThanOrEqual(committed)
        await client.release()
        expect(await client.held()).toEqual([])

        command = world.run()
        const isListed = async () => (await client.transactions()).some(({ name }) => name === held!.name)
        // Committed by the next life where the checkpoint was completed, else swept.
        await command.until(async () => !(await isListed()))
      }
      await stopped(command)
      await expectExact(world)
    }))

  it('goes on without a restart when the ledger server is killed in each call, and started again', () =>
    withLedger(endless, async (world) => {
      const { client } = world.ledger
      const command = world.run()
      for (const what of ['append', 'preCommit', 'commit'] as const) {
        for (const where of ['before', 'after'] as const) {
          await client.waitFor('two commits more', isTwoAbove(await world.report()), { deadlineMs })
          await client.hold({ what, where })
          await client.waitForHeld(1, deadlineMs)
          const before = await world.report()
          const { pid } = world.ledger
          await world.ledger.kill()
          await expect(client.health()).rejects.toThrow('fetch failed')
          await world.ledger.restart()
          expect(world.ledger.pid).not.toBe(pid)
          // What had been visible or pre-committed is still so.
          const after = await world.report()
          expect(after.present).toBeGreaterThanOrEqual(before.present)
          expect(after.committed + after.preCommitted).toBeGreaterThanOrEqual(before.committed + before.preCommitted)
        }
      }
      await stopped(command)
      await expectExact(world)
      expect(command.stderr).not.toContain('Restarting')
    }))

  it('loses nothing at the plain sink when it is killed, and the ledger tells the gap and the first new record', () =>
    withLedger({ perSplit: 8_000, args: { ratePerSecond: 8_000, sink: 'plain' } }, async (world) => {
      const { client } = world.ledger
      const command = world.run()
      const { present } = await client.waitFor('records', ({ present }) => present > 2_000, { deadlineMs })
      command.kill('SIGKILL')
      await command.ended
      const killedMs = await client.nowMs()
      await expect(client.first(killedMs)).resolves.toBeUndefined()
      const next = world.run()
      const first = await client.waitForFirst(killedMs, deadlineMs)
      expect(first.atMs).toBeGreaterThan(killedMs)
      await finished(next)
      const report = await client.report({ splits, perSplit: 8_000, sinceMs: killedMs, atLeastOnce: true })
      expect(report).toMatchObject({ exact: true, lost: 0, samples: expect.any(Array) })
      expect(report.present).toBeGreaterThanOrEqual(32_000)
      expect(present).toBeGreaterThan(2_000)
      // The process was gone: no other silence comes near.
      expect(report.gap).toMatchObject({ toMs: first.atMs, ms: first.atMs - report.gap!.fromMs })
      expect(report.gap!.fromMs).toBeLessThanOrEqual(killedMs)
    }))
})

const isTwoAbove =
  ({ committed }: LedgerReport) =>
  (report: LedgerReport): boolean =>
    report.committed >= committed + 2

describe('the jobs of the scenarios', () => {
  it('are exact in two regions, each by its own book', () =>
    withLedger({ file: scenarioFile('regions'), perSplit: 1_000 }, async (world) => {
      await finished(world.run())
      for (const book of ['left', 'right'])
        expect(await world.ledger.client.report({ book, splits, perSplit: 1_000, keys })).toMatchObject({
          exact: true,
          present: 4_000,
        })
    }))

  it('are exact in windows', () =>
    withLedger({ file: scenarioFile('windows'), perSplit: 1_050, args: { windowRecords: 100 } }, async (world) => {
      await finished(world.run())
      const report = await world.ledger.client.report({ splits, perSplit: 11 })
      expect(report).toMatchObject({ exact: true, present: 44, wrongMagic: 0 })
    }))

  it('crash when a test asks for it, and are exact behind that', () =>
    withLedger({ ...endless, file: scenarioFile('crashing') }, async (world) => {
      const { client } = world.ledger
      const command = world.run()
      await client.waitFor('commits', ({ committed }) => committed >= 2, { deadlineMs })
      await client.mark('crash-record')
      await command.until(() => /crash on request[^]*Restarting/.test(command.stderr))
      await client.waitFor('commits behind the crash', isTwoAbove(await world.report()), { deadlineMs })
      await client.mark('crash-process')
      expect(await command.ended).toMatchObject({ exitCode: null, signal: 'SIGKILL' })
      const next = world.run()
      await client.waitFor('commits of the next life', isTwoAbove(await world.report()), { deadlineMs })
      await stopped(next)
      await expectExact(world)
    }))
})
