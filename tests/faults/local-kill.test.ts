// A job in a real process with real slot threads, killed, frozen and broken in every way that one machine offers: the results stay exact.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { FailpointName } from '../../runtime/base/failpoints.ts'
import { committablesOf } from '../../runtime/checkpoint/assignment.ts'
import { decodeManifest } from '../../runtime/checkpoint/manifest.ts'
import { checkLedger } from '../../runtime/connectors/ledger-check.ts'
import type { LedgerEntry } from '../../runtime/connectors/ledger.ts'
import { NodeFiles } from '../../runtime/local/platform/node-files.ts'
import { realEnvironment } from '../../runtime/local/platform/real-environment.ts'
import { HeadKeeper } from '../../runtime/storage/head-keeper.ts'
import { cancel } from '../../runtime/storage/head.ts'
import { attachLocalStores } from '../../runtime/storage/local-stores.ts'
import { keyOf, splits } from '../whole/jobs/ledger-shape.ts'
import { JobProcess } from '../whole/support/job-process.ts'
import { hurry, ledgerOf, linesOf, wrongWindows } from '../whole/support/ledger-folder.ts'

const jobFileOf = (name: string): string => fileURLToPath(new URL(`../whole/jobs/${name}.ts`, import.meta.url))

let root = ''
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'millrace-kill-'))
})
afterAll(async () => {
  await JobProcess.endAll()
  rmSync(root, { recursive: true, force: true })
})

interface Command {
  readonly folder: string
  /** Where the results of the first job of the name are. */
  readonly output: string
  readonly perSplit: number
  readonly start: (failpoints?: string) => JobProcess
}

/** Records of each split, and how many come in a second until the job is to finish. */
const slow = { perSplit: 20_000, ratePerSecond: 2_000 }

/** The same command, as often as `start` is called. */
function command(
  name: string,
  size: { readonly perSplit: number; readonly ratePerSecond: number },
  job = 'ledger-job',
): Command {
  const folder = join(root, name)
  const out = join(folder, 'out')
  const faults = join(folder, 'faults')
  mkdirSync(folder)
  const args = { output: out, ...size, ...(name === 'faults' ? { faults } : {}) }
  if (name === 'faults') mkdirSync(faults)
  const start = (failpoints = ''): JobProcess =>
    new JobProcess({ jobFile: jobFileOf(job), folder, name: 'ledger', args, failpoints })
  const output = job === 'ledger-job' ? join(out, 'ledger') : out
  return { folder, output, perSplit: size.perSplit, start }
}

function expectExact({ output, perSplit }: Pick<Command, 'output' | 'perSplit'>): void {
  const { samples, exact, present } = ledgerOf(output, perSplit)
  expect({ exact, present, samples }).toEqual({ exact: true, present: 2 * perSplit, samples: [] })
  expect(readdirSync(join(output, 'entries', '.pending'))).toEqual([])
}

function expectExactLedger(ran: Command): void {
  expectExact(ran)
  expect(wrongWindows(ran.output, ran.perSplit)).toEqual([])
}

async function finish(process: JobProcess): Promise<void> {
  hurry(process.folder)
  const exit = await process.ended()
  expect({ exit, outcome: process.all('outcome')[0]?.kind, story: process.story() }).toMatchObject({
    exit: { code: 0, signal: null },
    outcome: 'finished',
  })
}

/** A place, at which passing of it the process is killed, and what must have happened before that for the kill to count. */
interface KillPoint {
  readonly at: FailpointName
  readonly time: number
  /** Checkpoints that this life completed. */
  readonly completed: number
}

/** One life of the process per kill; each goes on with what the one before left. A kill that did not happen is a failure. */
async function killAtEach({ start }: Command, points: readonly KillPoint[]): Promise<void> {
  for (const { at, time, completed } of points) {
    const process = start(`${at}:kill:${time}`)
    const exit = await process.ended()
    expect({ at, exit, story: exit.signal === 'SIGKILL' ? '' : process.story() }).toEqual({
      at,
      exit: { code: null, signal: 'SIGKILL' },
      story: '',
    })
    expect(process.all('checkpoint').length, `${at}: ${process.story()}`).toBeGreaterThanOrEqual(completed)
  }
}

const midway = (at: FailpointName, time: number, completed: number): KillPoint => ({ at, time, completed })

// Three at a time: more would only wait for the processor.
describe.concurrent('a local job whose process is killed is exact', () => {
  it('after a SIGKILL at each place of a snapshot in a slot', async () => {
    const job = command('snapshot', slow)
    await killAtEach(job, [
      // Six subtasks in two threads: the tenth passing in a thread is in its fourth checkpoint.
      midway('task.process', 200, 0),
      midway('task.snapshot.sync', 10, 1),
      midway('task.snapshot.async', 10, 1),
      midway('task.acknowledge.before', 10, 1),
      midway('task.acknowledge.after', 10, 1),
      midway('sink.preCommit.before', 7, 1),
      midway('sink.preCommit.after', 7, 1),
      midway('sink.commit.before', 7, 1),
      midway('sink.commit.middle', 7, 1),
      midway('sink.commit.after', 7, 1),
      midway('task.restore', 2, 0),
    ])
    await finish(job.start())
    expectExactLedger(job)
  })

  it('after a SIGKILL at each step of the coordinator', async () => {
    const job = command('coordinator', slow)
    await killAtEach(job, [
      midway('coordinator.manifest.before', 3, 1),
      midway('coordinator.manifest.after', 3, 1),
      midway('coordinator.swap.before', 3, 1),
      midway('coordinator.swap.after', 3, 1),
      midway('coordinator.complete.before', 3, 1),
      midway('coordinator.confirm.before', 3, 1),
      midway('coordinator.confirm.after', 3, 1),
      midway('coordinator.discard.before', 3, 1),
      midway('coordinator.discard.after', 3, 1),
    ])
    await finish(job.start())
    expectExactLedger(job)
  })

  it('after a SIGKILL at each step of its end', async () => {
    const job = command('end', { perSplit: 500, ratePerSecond: 20_000 })
    hurry(job.folder)
    await killAtEach(job, [
      { at: 'task.finish', time: 1, completed: 0 },
      { at: 'task.close', time: 1, completed: 0 },
      // The last checkpoint of a bounded job is its permit for the last commits.
      { at: 'coordinator.swap.after', time: 1, completed: 0 },
      { at: 'sink.commit.before', time: 1, completed: 0 },
      { at: 'sink.commit.middle', time: 1, completed: 0 },
      // Here, while HEAD still holds unconfirmed commits of the lives before: what is confirmed is not confirmed again.
      { at: 'coordinator.confirm.after', time: 1, completed: 0 },
      { at: 'task.finish', time: 3, completed: 0 },
      { at: 'task.close', time: 3, completed: 0 },
    ])
    await finish(job.start())
    expectExactLedger(job)
  })
})

describe.concurrent('a local job whose threads fail is exact', () => {
  it('after slot threads were terminated from outside', async () => {
    const job = command('slots', slow)
    const process = job.start()
    const terminations = 5
    for (let life = 1; life <= terminations; life++) {
      const completed = process.all('checkpoint').length
      await process.event('running', life)
      await process.event('checkpoint', completed + 1 + (life % 2))
      process.order({ type: 'terminate' })
      expect((await process.event('terminated', life)).slot).toBeDefined()
      await process.event('restarting', life)
    }
    await finish(process)
    expect(process.all('restarting').length).toBe(terminations)
    expectExactLedger(job)
  })

  it("after errors of the job's own code: in map, open, close, at a barrier, in a promise and in a timer that nobody owns", async () => {
    const job = command('faults', { perSplit: 2_500, ratePerSecond: 5_000 })
    const process = job.start()
    // All but the one that is met at the end.
    await process.event('restarting', 5)
    await finish(process)
    const met = readdirSync(join(job.folder, 'faults')).toSorted()
    expect(met).toEqual(['close', 'map', 'open', 'rejection', 'snapshot', 'timer'])
    const reasons = process.all('restarting').map(({ message }) => message)
    for (const fault of met)
      expect(reasons.filter((reason) => reason.includes(`planned: ${fault}`)).length, fault).toBe(1)
    for (const stray of ['rejection', 'timer'])
      expect(reasons.find((reason) => reason.includes(`planned: ${stray}`))).toMatch(/^MR-L02 /)
    expectExactLedger(job)
  })

  it('in both of two regions when the slot of one was terminated, and the other was not restarted', async () => {
    const job = command('regions', { perSplit: 1_500, ratePerSecond: 2_000 }, 'two-regions-job')
    const process = job.start()
    const before = (await process.event('running')).attempts
    await process.event('checkpoint', 2)
    // Groups get their slots in the graph's order: slot 0 is the left region's.
    process.order({ type: 'terminate', slot: 0 })
    const { tasks } = await process.event('restarting')
    const after = (await process.event('running', 2)).attempts
    await finish(process)
    const changed = Object.keys(after).filter((task) => after[task] !== before[task])
    expect(changed.toSorted()).toEqual(['left-counter/0', 'left-numbers/0'])
    expect(tasks).toBe(2)
    for (const region of ['left', 'right']) expectExact({ output: join(job.output, region), perSplit: job.perSplit })
  })
})

describe.concurrent('a local job whose process is interrupted is exact', () => {
  it('after its process was frozen for three seconds', async () => {
    const job = command('frozen', { perSplit: 6_000, ratePerSecond: 3_000 })
    const process = job.start()
    await process.event('checkpoint', 2)
    const before = process.all('checkpoint').length
    process.signal('SIGSTOP')
    // The pause is the fault, not a wait for something.
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    process.signal('SIGCONT')
    await process.event('checkpoint', before + 2)
    await finish(process)
    expectExactLedger(job)
  })

  it('when the same command is given twice at the same time: the second takes over and the first stops', async () => {
    const job = command('twice', slow)
    const first = job.start()
    await first.event('checkpoint', 2)
    const second = job.start()
    expect(await first.ended()).toEqual({ code: 0, signal: null })
    expect(first.all('outcome')[0]?.kind, first.story()).toBe('fenced')
    await finish(second)
    expect(second.all('checkpoint').length).toBeGreaterThan(0)
    expectExactLedger(job)
  })

  it('when the same command is given twice at the same moment: one of them runs it', async () => {
    const job = command('twins', { perSplit: 2_000, ratePerSecond: 3_000 })
    hurry(job.folder)
    const twins = [job.start(), job.start()]
    for (const twin of twins) expect(await twin.ended(), twin.story()).toEqual({ code: 0, signal: null })
    const kinds = twins.map((twin) => String(twin.all('outcome')[0]?.kind))
    expect(kinds.filter((kind) => kind === 'finished').length, String(kinds)).toBe(1)
    expect(kinds.filter((kind) => kind === 'fenced' || kind === 'ended').length, String(kinds)).toBe(1)
    expectExactLedger(job)
  })

  it('when it is suspended and the same command is given again', async () => {
    const job = command('suspended', slow)
    const first = job.start()
    await first.event('checkpoint', 2)
    first.order({ type: 'suspend' })
    expect(await first.ended()).toEqual({ code: 0, signal: null })
    expect(first.all('outcome')[0]?.kind).toBe('suspended')
    const second = job.start()
    await finish(second)
    expect(second.all('began')[0]?.start).toBe(2)
    expectExactLedger(job)
  })
  it('up to its last permit when its HEAD has ended before its last commits; they are finished before the next job of the name begins', async () => {
    const job = command('ended', slow)
    await killAtEach(job, [midway('sink.commit.before', 7, 1)])
    const { keeper, store } = await openHead(join(job.folder, '.millrace', 'ledger'))
    const ended = await keeper.amend((head) => cancel(head, { deleted: false }))
    const permitted = committablesOf(
      decodeManifest((await store.read(ended.unconfirmed!.path))!, 'the permitted manifest'),
    )
    const waiting = [...permitted].flatMap(([uid, committables]) =>
      committables.map(({ transaction }) => join(uid, '.pending', transaction)),
    )
    expect(waiting.filter((path) => existsSync(join(job.output, path))).length).toBeGreaterThan(0)

    const next = job.start()
    await finish(next)
    expect(next.all('began').map((began) => began.job)).toEqual(['ledger.2'])
    expectExactLedger({ ...job, output: join(job.folder, 'out', 'ledger.2') })

    expect((await keeper.read())!.unconfirmed).toBeUndefined()
    expect(waiting.filter((path) => existsSync(join(job.output, path)))).toEqual([])
    const entries = linesOf<LedgerEntry>(join(job.output, 'entries'))
    const perSplit = (split: number): number => entries.filter((entry) => entry.split === split).length
    expect(perSplit(0)).toBeGreaterThan(0)
    expect(checkLedger(entries, { splits, perSplit, keyOf }).samples).toEqual([])
  })
})

/** HEAD and objects of a job that nobody runs, as an operator's command opens them. */
async function openHead(folder: string) {
  const environment = realEnvironment({ log: () => {} })
  const { head, objects } = attachLocalStores({ files: new NodeFiles(), folder, environment })
  return { keeper: await HeadKeeper.open(head, environment), store: objects }
}
