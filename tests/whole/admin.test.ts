// A local job that is killed, and then looked after by the real `millrace admin` on its folder: its results stay exact.

import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { AdminReport } from '../../runtime/cli/admin-report.ts'
import type { PreflightReport } from '../../runtime/cli/preflight-command.ts'
import { RunningCommand, inFolder, runCommand } from '../support/command.ts'
import { countingJob, hasCommitted, numbersBelow, numbersIn } from './support/counting-job.ts'

const count = 20_000
const words = ['run', 'counting.ts', '--arg', `count=${count}`]
const slowly = ['--arg', 'ratePerSecond=1500']
const store = '.millrace/counting'

interface World {
  readonly folder: string
  /** Runs the job, slowly, until it is killed at the failpoint. */
  readonly killedAt: (failpoint: string) => Promise<void>
  readonly admin: (
    ...asked: readonly string[]
  ) => Promise<{ readonly exitCode: number | null; readonly report: AdminReport }>
  readonly finish: () => Promise<void>
}

async function withJob(work: (world: World) => Promise<void>): Promise<void> {
  await inFolder(async (folder) => {
    await writeFile(join(folder, 'counting.ts'), countingJob)
    await work({
      folder,
      killedAt: async (failpoints) => {
        const ended = await new RunningCommand([...words, ...slowly], { folder, failpoints }).ended
        expect(ended, ended.stderr).toMatchObject({ signal: 'SIGKILL' })
      },
      admin: async (...asked) => {
        const { exitCode, stdout, stderr } = await runCommand(['admin', ...asked, '--output', 'json'], { folder })
        expect(stdout, stderr).not.toBe('')
        return { exitCode, report: JSON.parse(stdout.trimEnd().split('\n').at(-1)!) as AdminReport }
      },
      finish: async () => {
        const last = await runCommand(words, { folder })
        expect(last, last.stderr).toMatchObject({ exitCode: 0, stdout: `counting counted to ${count}, none\n` })
        expect(await numbersIn(join(folder, 'out/counting'))).toEqual(numbersBelow(count))
        expect(await readdir(join(folder, 'out/counting/.pending'))).toEqual([])
      },
    })
  })
}

const code = ['--job', 'counting.ts', '--arg', 'count=1']
const local = ['--job', 'counting']

describe('millrace admin on the folder of a local job that was killed', () => {
  it('finds its restore point, commits what is permitted, closes and sweeps it; its command goes on exactly', async () => {
    await withJob(async ({ folder, killedAt, admin, finish }) => {
      // A permit that nobody has used.
      await killedAt('coordinator.swap.after:kill:3')
      const found = await admin('restore-point', '--deep', ...local)
      const point = found.report.job!.restorePoint
      expect(found).toMatchObject({
        exitCode: 0,
        report: {
          outcome: 'found',
          verified: 'checksums',
          job: { end: { kind: 'none' }, unconfirmed: { kind: 'checkpoint' } },
        },
      })
      const manifest = point.kind === 'manifest' ? point.manifest : undefined
      expect(manifest!.path).toMatch(/\/\.millrace\/counting\/objects\/chk-\d+$/)

      const before = await numbersIn(join(folder, 'out/counting'))
      expect(await admin('commit', ...local)).toMatchObject({ exitCode: 2, report: { error: { code: 'MR-L10' } } })
      const planned = await admin('commit', ...code)
      expect(planned).toMatchObject({ exitCode: 0, report: { outcome: 'would do', transactions: [{ uid: 'files' }] } })
      expect(await numbersIn(join(folder, 'out/counting'))).toEqual(before)
      const committed = await admin('commit', ...code, '--yes')
      expect(committed).toMatchObject({ exitCode: 0, report: { outcome: 'done', job: { unconfirmed: null } } })
      const after = await numbersIn(join(folder, 'out/counting'))
      expect(after.length).toBeGreaterThan(before.length)
      expect(new Set(after).size).toBe(after.length)
      expect(await admin('commit', ...code, '--yes')).toMatchObject({
        exitCode: 0,
        report: { outcome: 'nothing to do' },
      })

      // A manifest that no swap has named, with transactions that were pre-committed for it.
      await killedAt('coordinator.swap.before:kill:1')
      expect(await admin('sweep', ...code, '--yes')).toMatchObject({
        exitCode: 3,
        report: { error: { code: 'MR-A02' } },
      })
      expect(await admin('close', ...local, '--start', '2', '--yes')).toMatchObject({
        exitCode: 3,
        report: { outcome: 'refused', error: { code: 'MR-A01' } },
      })
      expect(await admin('close', ...local, '--start', '1')).toMatchObject({
        report: { outcome: 'would do', job: { end: { kind: 'none' } }, would: { end: { kind: 'suspended' } } },
      })
      expect(await admin('close', ...local, '--start', '1', '--yes')).toMatchObject({
        exitCode: 0,
        report: {
          outcome: 'done',
          job: { end: { kind: 'suspended' }, restorePoint: { manifest: { path: manifest!.path } } },
        },
      })
      expect(await admin('close', ...local, '--yes')).toMatchObject({
        exitCode: 0,
        report: { outcome: 'nothing to do' },
      })

      const swept = await admin('sweep', ...code, '--yes')
      expect(swept).toMatchObject({ exitCode: 0, report: { outcome: 'done' } })
      expect(swept.report.objects!.some((key) => key.endsWith('/_metadata'))).toBe(true)
      expect(swept.report.transactions!.flatMap(({ transactions }) => transactions)).not.toEqual([])
      expect(await readdir(join(folder, 'out/counting/.pending'))).toEqual([])
      expect(await admin('sweep', ...code, '--yes')).toMatchObject({ report: { outcome: 'nothing to do' } })
      await finish()
    })
  })

  it('keeps a savepoint while it is needed, and takes it away after', async () => {
    await withJob(async ({ folder, killedAt, admin, finish }) => {
      const run = new RunningCommand([...words, ...slowly], { folder })
      const committed = hasCommitted(join(folder, 'out/counting'))
      await run.until(async () => (await committed()) && (await readdir(join(folder, store))).includes('rest.json'))
      const running = await admin('sweep', ...local, '--job-is-down', '--yes')
      expect(running).toMatchObject({ exitCode: 3, report: { error: { code: 'MR-A02' } } })
      expect(running.report.error!.message).toContain('A process runs counting.')
      const stopped = await runCommand(['stop', 'counting'], { folder })
      expect(await run.ended).toMatchObject({ exitCode: 0 })
      const savepoint = stopped.stdout.trim()
      expect(await admin('dispose', savepoint, ...local, '--yes')).toMatchObject({
        exitCode: 3,
        report: { error: { code: 'MR-A04' } },
      })
      await killedAt('coordinator.confirm.after:kill:2')
      expect(await admin('dispose', savepoint, ...local)).toMatchObject({ report: { outcome: 'would do', savepoint } })
      expect(await readdir(savepoint)).toContain('_metadata')
      expect(await admin('dispose', `${savepoint}/_metadata`, ...local, '--yes')).toMatchObject({
        exitCode: 0,
        report: { outcome: 'done', savepoint },
      })
      expect(await readdir(join(folder, store, 'objects'))).not.toContain(
        savepoint.slice(savepoint.lastIndexOf('/') + 1),
      )
      expect(await admin('dispose', savepoint, ...local, '--yes')).toMatchObject({
        report: { outcome: 'nothing to do' },
      })
      await finish()
    })
  })

  it('takes away a copy of its savepoint anywhere, and one of another job only when that is said', async () => {
    await withJob(async ({ folder, killedAt, admin }) => {
      const run = new RunningCommand([...words, ...slowly, '--name', 'other'], { folder })
      await run.until(hasCommitted(join(folder, 'out/other')))
      expect(await runCommand(['savepoint', 'other', '--to', 'copy'], { folder })).toMatchObject({ exitCode: 0 })
      const stopped = await runCommand(['stop', 'other'], { folder })
      expect(await run.ended).toMatchObject({ exitCode: 0 })
      await killedAt('coordinator.confirm.after:kill:1')
      expect(await admin('dispose', 'copy', ...local, '--yes')).toMatchObject({
        exitCode: 3,
        report: { error: { code: 'MR-A05' } },
      })
      expect(await admin('dispose', 'copy', '--job', 'other', '--yes')).toMatchObject({ report: { outcome: 'done' } })
      expect(await admin('dispose', stopped.stdout.trim(), ...local, '--foreign', '--yes')).toMatchObject({
        exitCode: 3,
        report: { error: { code: 'MR-A04' } },
      })
      expect(await readdir(folder)).not.toContain('copy')
    })
  })

  it('stops and asks for a transaction that is gone, unless it is known to be committed', async () => {
    await withJob(async ({ folder, killedAt, admin }) => {
      await killedAt('coordinator.swap.after:kill:2')
      const planned = await admin('commit', ...code)
      // The checkpoint may name one before it as well, committed while it was taken.
      const pending = await readdir(join(folder, 'out/counting/.pending'))
      const gone = planned.report.transactions![0]!.transactions.find((transaction) => pending.includes(transaction))
      await rm(join(folder, 'out/counting/.pending', gone!))
      expect(await admin('commit', ...code, '--yes')).toMatchObject({
        exitCode: 3,
        report: { error: { code: 'MR-J65' } },
      })
      const asked = await admin('restore-point', ...local)
      expect(asked.report.job!.unconfirmed).not.toBe(null)
      expect(await admin('commit', ...code, '--assume-committed', '--yes')).toMatchObject({
        exitCode: 0,
        report: { outcome: 'done', job: { unconfirmed: null } },
      })
    })
  })

  it('ends it for good, and its checkpoints go; its command begins a new job', async () => {
    await withJob(async ({ folder, killedAt, admin }) => {
      await killedAt('coordinator.confirm.after:kill:2')
      expect(await admin('dispose', '--checkpoints', ...local, '--yes')).toMatchObject({
        exitCode: 3,
        report: { error: { code: 'MR-A07' } },
      })
      expect(await admin('close', '--deleted', ...local, '--yes')).toMatchObject({
        report: { job: { end: { kind: 'cancelled' } } },
      })
      await admin('commit', ...code, '--yes')
      const disposed = await admin('dispose', '--checkpoints', ...local, '--yes')
      expect(disposed.report.checkpoints).not.toEqual([])
      await admin('sweep', ...code, '--yes')
      // An empty folder may be left of a checkpoint that the kill met before its first file.
      const left = await readdir(join(folder, store, 'objects'), { recursive: true, withFileTypes: true })
      expect(left.filter((entry) => entry.isFile() && !entry.name.startsWith('.')).map(({ name }) => name)).toEqual([])
      const next = await runCommand(['run', 'counting.ts', '--arg', 'count=10'], { folder })
      expect(next.stderr).toContain('New job counting.2: the one before it was cancelled.')
    })
  })

  it('tells none, wrong, refused and unclear apart', async () => {
    await withJob(async ({ folder, killedAt, admin }) => {
      const nowhere = ['--storage', `file://${folder}/nowhere`, '--job', 'counting']
      expect(await admin('close', ...nowhere, '--yes')).toEqual({
        exitCode: 0,
        report: { command: 'close', outcome: 'none', job: null },
      })
      expect(await readdir(folder)).toEqual(['counting.ts'])
      expect(await admin('close', '--config', 'nope.yaml', '--yes')).toMatchObject({
        exitCode: 2,
        report: { outcome: 'wrong' },
      })
      await killedAt('coordinator.confirm.after:kill:1')
      const stored = ['--storage', `file://${folder}/${store}`]
      expect(await admin('close', ...stored, '--job', 'another', '--yes')).toMatchObject({
        exitCode: 3,
        report: { outcome: 'refused', error: { code: 'MR-O17' } },
      })
      const { report } = await admin('restore-point', ...stored, '--job', 'counting')
      const point = report.job!.restorePoint
      const path = point.kind === 'manifest' ? point.manifest.path : ''
      // Not missing, and not readable either.
      await rename(join(path, '_metadata'), join(path, 'aside'))
      await mkdir(join(path, '_metadata'))
      expect(await admin('restore-point', ...local)).toMatchObject({
        exitCode: 4,
        report: { outcome: 'unclear', error: { code: 'MR-S01' } },
      })
      await rm(join(path, '_metadata'), { recursive: true })
      expect(await admin('restore-point', ...local)).toMatchObject({
        exitCode: 3,
        report: { outcome: 'refused', error: { code: 'MR-O20' } },
      })
    })
  })
})

describe('millrace preflight', () => {
  it('holds a revision against where the job is, without running it', async () => {
    await withJob(async ({ folder, killedAt }) => {
      await killedAt('coordinator.confirm.after:kill:2')
      const config = (file: string): string =>
        JSON.stringify({
          version: 1,
          job: { id: 'counting', name: 'counting', start: 2, file: join(folder, file), args: { count } },
          storage: { checkpoints: `file://${folder}/${store}` },
          nats: { servers: ['nats://127.0.0.1:4222'] },
          coordinator: { workersAddress: '127.0.0.1:4001', restAddress: '127.0.0.1:4002' },
          tokens: { workerFile: '/secrets/worker', ownerFile: '/secrets/owner', readerFile: '/secrets/reader' },
        })
      const ask = async (file: string, ...more: readonly string[]) => {
        await writeFile(join(folder, `${file}.json`), config(file))
        const asked = ['preflight', '--config', `${file}.json`, '--output', 'json', ...more]
        const { exitCode, stdout } = await runCommand(asked, { folder })
        return { exitCode, report: JSON.parse(stdout) as PreflightReport }
      }
      expect(await ask('counting.ts')).toMatchObject({
        exitCode: 0,
        report: {
          answer: 'yes',
          reasons: [],
          slotsNeeded: 1,
          uids: [
            { uid: 'numbers', given: true },
            { uid: 'files', given: true },
          ],
          against: { kind: 'checkpoint' },
        },
      })
      const text = await readFile(join(folder, 'counting.ts'), 'utf8')
      await writeFile(join(folder, 'renamed.ts'), text.replace("uid: 'numbers'", "uid: 'digits'"))
      expect(await ask('renamed.ts')).toMatchObject({
        exitCode: 3,
        report: { answer: 'no', reasons: [{ code: 'MR-C11' }] },
      })
      await writeFile(join(folder, 'torn.ts'), text.slice(0, 200))
      expect(await ask('torn.ts')).toMatchObject({
        exitCode: 3,
        report: { answer: 'no', reasons: [{ code: 'MR-L01' }], graphHash: null },
      })
      expect(await ask('counting.ts', '--against', 'nowhere')).toMatchObject({
        exitCode: 3,
        report: { answer: 'no', reasons: [{ code: 'MR-S17' }] },
      })
      expect((await readdir(join(folder, 'out'))).toSorted()).toEqual(['counting'])
    })
  })
})
