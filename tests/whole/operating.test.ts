// A running local job, asked from outside by the real command, as a user does from another terminal.

import { readFile, readdir, realpath, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { JobReport } from '../../runtime/cli/job-report.ts'
import type { CheckpointsResource } from '../../runtime/rest/resources.ts'
import { RunningCommand, inFolder, runCommand } from '../support/command.ts'
import { countingJob, hasCommitted, numbersBelow, numbersIn } from './support/counting-job.ts'

/** Too many to come to its end before it is asked; then the rest goes fast. */
const count = 200_000
const words = ['run', 'counting.ts', '--arg', `count=${count}`]
const slowly = ['--arg', 'ratePerSecond=1500']

interface Running {
  readonly folder: string
  readonly run: RunningCommand
  /** Another command in the same folder. */
  readonly ask: (...words: readonly string[]) => ReturnType<typeof runCommand>
}

/** A job that counts, of which some checkpoint was committed and which can be asked. */
async function whileCounting(work: (running: Running) => Promise<void>): Promise<void> {
  await inFolder(async (folder) => {
    await writeFile(join(folder, 'counting.ts'), countingJob)
    const run = new RunningCommand([...words, ...slowly], { folder })
    const committed = hasCommitted(join(folder, 'out/counting'))
    await run.until(async () => (await committed()) && (await isServed(folder)))
    await work({ folder, run, ask: (...asked) => runCommand(asked, { folder }) })
  })
}

const restFile = (folder: string): string => join(folder, '.millrace/counting/rest.json')

async function isServed(folder: string): Promise<boolean> {
  return stat(restFile(folder)).then(
    () => true,
    () => false,
  )
}

async function expectExactRest(folder: string): Promise<void> {
  const last = await runCommand(words, { folder })
  expect(last).toMatchObject({ exitCode: 0, stdout: `counting counted to ${count}, none\n` })
  expect(await numbersIn(join(folder, 'out/counting'))).toEqual(numbersBelow(count))
}

describe('a running job', () => {
  it('tells how it is, takes a checkpoint and a savepoint, and stops; its command goes on exactly', async () => {
    await whileCounting(async ({ folder, run, ask }) => {
      expect((await stat(restFile(folder))).mode & 0o777).toBe(0o600)
      const { token } = JSON.parse(await readFile(restFile(folder), 'utf8')) as { readonly token: string }

      const status = await ask('status', 'counting.ts', '--json')
      const report = JSON.parse(status.stdout) as JobReport
      expect(report).toMatchObject({ id: 'counting', process: { kind: 'running', job: { start: 1, restarts: 0 } } })
      const overview = await ask('status')
      expect(overview.stdout).toMatch(/^counting +(starting|running) +1 +0 +checkpoint \d+$/m)

      const checkpoints = await ask('checkpoints', 'counting', '--trigger', '--json')
      const shown = JSON.parse(checkpoints.stdout) as CheckpointsResource
      expect(shown.completed.at(-1)?.subtasks?.map(({ vertex }) => vertex)).toContain('numbers')
      expect(shown.retained.length).toBeGreaterThan(0)

      const newest = String(shown.completed.at(-1)!.id)
      const detail = await ask('checkpoints', 'counting', '--id', newest)
      expect(detail.stdout).toMatch(
        new RegExp(`^checkpoint ${newest} completed at .*\\n/.*\\n\\nsubtask +start delay .*\\nnumbers/0 `),
      )
      const failures = await ask('exceptions', 'counting')
      expect(failures.stdout).toBe('counting has restarted 0 times in this start; no failure is remembered.\n')

      const savepoint = await ask('savepoint', 'counting', '--request', 'first', '--to', 'kept/one')
      expect(savepoint).toMatchObject({ exitCode: 0, stdout: `${await realpath(folder)}/kept/one\n` })
      expect(await readdir(join(folder, 'kept'))).toEqual(['one'])
      expect(await readdir(join(folder, 'kept/one'))).toContain('_metadata')
      const again = await ask('savepoint', 'counting', '--request', 'first')
      const once = JSON.parse((await ask('status', 'counting', '--json')).stdout) as JobReport
      expect(once.savepoints.map(({ path }) => `${path}\n`)).toEqual([again.stdout])
      const taken = await ask('savepoint', 'counting', '--to', 'kept/one')
      expect(taken).toMatchObject({ exitCode: 2, stdout: '' })
      expect(taken.stderr).toMatch(/^MR-L11 .*is there already/)

      const stopped = await ask('stop', 'counting')
      expect(stopped).toMatchObject({ exitCode: 0, stderr: 'counting is stopped.\n' })
      expect(stopped.stdout).toMatch(/\/\.millrace\/counting\/objects\/savepoint-\d+\n$/)
      const ended = await run.ended
      expect(ended).toMatchObject({ exitCode: 0, stdout: '' })
      expect(ended.stderr).toMatch(/counting was stopped with savepoint \d+\. The same command goes on from it\./)
      expect(`${status.stdout}${ended.stderr}`).not.toContain(token)
      expect(await isServed(folder)).toBe(false)

      const late = await ask('savepoint', 'counting')
      expect(late).toMatchObject({ exitCode: 1, stdout: '' })
      expect(late.stderr).toMatch(
        /^MR-L31 The job does not run\. counting is stopped\. If it is just starting, ask again/,
      )
      await expectExactRest(folder)

      const fork = await ask(...words, '--name', 'fork', '--from', 'kept/one')
      expect(fork, fork.stderr).toMatchObject({ exitCode: 0, stdout: `fork counted to ${count}, none\n` })
      const forked = await numbersIn(join(folder, 'out/fork'))
      expect(new Set(forked).size).toBe(forked.length)
      expect(forked.at(-1)).toBe(count - 1)
      expect(forked.length).toBeLessThan(count)
    })
  })

  it('goes on at another size in the same start, and is listed; nothing is lost or doubled', async () => {
    await whileCounting(async ({ folder, run, ask }) => {
      const rescaled = await ask('rescale', 'counting', '--parallelism', '3', '--request', 'three')
      expect(rescaled, rescaled.stderr).toMatchObject({ exitCode: 0, stdout: '' })
      expect(rescaled.stderr).toMatch(/^counting goes on at parallelism 3 from checkpoint \d+\.\n$/)
      expect(await ask('rescale', 'counting', '--parallelism', '3', '--request', 'three')).toEqual(rescaled)
      const other = await ask('rescale', 'counting', '--parallelism', '2', '--request', 'three')
      expect(other.stderr).toMatch(/^MR-L33 .*MR-H05 /)
      const many = await ask('rescale', 'counting', '--parallelism', '1000')
      expect(many.stderr).toMatch(/^MR-L33 .*MR-H03 .*more than the max parallelism/)
      await run.until(async () => {
        const { process } = JSON.parse((await ask('status', 'counting', '--json')).stdout) as JobReport
        return process.kind === 'running' && process.job.state === 'running' && process.subtasks.length === 3
      })
      expect(run.stderr).toMatch(/^New job counting\. \d+ subtasks, /m)
      expect(run.stderr).toMatch(/^counting goes on: Parallelism 3, as it was rescaled to /m)
      expect(run.stderr).not.toMatch(/Resuming|was suspended/)
      expect((await ask('list')).stdout).toMatch(/^counting +running +1 +0 +checkpoint \d+$/m)
      expect(await ask('stop', 'counting')).toMatchObject({ exitCode: 0 })
      await run.ended
      await expectExactRest(folder)
    })
  })

  it('is drained: it has finished then, and its command begins a new job', async () => {
    await whileCounting(async ({ folder, run, ask }) => {
      const drained = await ask('stop', 'counting', '--drain')
      expect(drained).toMatchObject({ exitCode: 0, stderr: 'counting is drained and has finished.\n' })
      expect(await run.ended).toMatchObject({ exitCode: 0, stdout: `counting counted to ${count}, none\n` })
      const numbers = await numbersIn(join(folder, 'out/counting'))
      expect(new Set(numbers).size).toBe(numbers.length)
      const next = await ask('run', 'counting.ts', '--arg', 'count=10')
      expect(next.stderr).toContain('New job counting.2: the one before it has finished.')
    })
  })

  it('is cancelled: it is over, and its command begins a new job', async () => {
    await whileCounting(async ({ run, ask }) => {
      expect(await ask('cancel', 'counting')).toMatchObject({ exitCode: 0, stderr: 'counting is cancelled.\n' })
      expect(await run.ended).toMatchObject({ exitCode: 1 })
      const next = await ask('run', 'counting.ts', '--arg', 'count=10')
      expect(next.stderr).toContain('New job counting.2: the one before it was cancelled.')
    })
  })
})

describe('a job that was killed', () => {
  it('is interrupted, whatever its process left behind; it can be cancelled, and is not gone on with then', async () => {
    await whileCounting(async ({ folder, run, ask }) => {
      run.kill('SIGKILL')
      await run.ended
      expect(await isServed(folder)).toBe(true)
      const status = await ask('status', 'counting')
      expect(status).toMatchObject({ exitCode: 0 })
      expect(status.stdout).toMatch(
        /^counting is interrupted, in .*\n.*\nA restart would begin from checkpoint \d+\.\n/,
      )
      expect(await ask('stop', 'counting')).toMatchObject({ exitCode: 1, stdout: '' })
      expect(await ask('cancel', 'counting')).toMatchObject({ exitCode: 0 })
      const next = await ask('run', 'counting.ts', '--arg', 'count=10')
      expect(next.stderr).toContain('New job counting.2: the one before it was cancelled.')
      const all = await ask('status')
      expect(all.stdout).toMatch(/^counting +cancelled .*\ncounting\.2 +finished /m)
    })
  })

  it('goes on where it was, and can be asked again', async () => {
    await whileCounting(async ({ folder, run }) => {
      run.kill('SIGKILL')
      await run.ended
      await expectExactRest(folder)
      expect(await isServed(folder)).toBe(false)
    })
  })
})

describe('signals that come together', () => {
  it('are one, as when a terminal and npm both pass Ctrl-C on', async () => {
    await whileCounting(async ({ folder, run }) => {
      run.kill('SIGINT')
      run.kill('SIGTERM')
      const { exitCode, stderr } = await run.ended
      expect(exitCode, stderr).toBe(0)
      expect(stderr).toMatch(/^counting was stopped with savepoint \d+\./m)
      await expectExactRest(folder)
    })
  })
})

describe('a job that is not there', () => {
  it('is named with those that are', async () => {
    await inFolder(async (folder) => {
      await writeFile(join(folder, 'counting.ts'), countingJob)
      const none = await runCommand(['status', 'counting'], { folder })
      expect(none).toMatchObject({ exitCode: 2, stdout: '' })
      expect(none.stderr).toMatch(/^MR-L30 There is no such job here\. counting\. There is none in /)
      await runCommand(['run', 'counting.ts', '--arg', 'count=1'], { folder })
      const other = await runCommand(['cancel', 'orders'], { folder })
      expect(other.stderr).toMatch(/^MR-L30 There is no such job here\. orders\. There are: counting\./)
    })
  })
})
