// A local job whose savepoints have a folder of their own, by the real command: taken there, begun from, taken away, and nobody else's.

import { mkdir, readdir, realpath, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { AdminReport } from '../../runtime/cli/admin-report.ts'
import type { JobReport } from '../../runtime/cli/job-report.ts'
import { RunningCommand, inFolder, runCommand } from '../support/command.ts'
import { countingJob, hasCommitted, numbersBelow, numbersIn } from './support/counting-job.ts'

const count = 200_000
const job = 'default/counting'

const manifest = (savepoints: string): string => `
apiVersion: millrace.dev/v1alpha1
kind: StreamJob
metadata: { name: counting }
spec:
  program: { module: { path: counting.ts }, args: { count: ${count} } }
  storage: { savepoints: "${savepoints}" }
`

/** The folder that is worked in, with the job and its manifest, and the folder that its savepoints go to. */
async function withJob(work: (folder: string, kept: string) => Promise<void>): Promise<void> {
  await inFolder(async (made) => {
    const folder = await realpath(made)
    const kept = join(folder, 'kept')
    await writeFile(join(folder, 'counting.ts'), countingJob)
    await writeFile(join(folder, 'counting.yaml'), manifest(`file://${kept}`))
    await work(folder, kept)
  })
}

describe('savepoints in a folder of their own', () => {
  it('are taken, stopped with, begun from at any size and by any job, and taken away; results stay exact', async () => {
    await withJob(async (folder, kept) => {
      const ask = (...words: readonly string[]) => runCommand(words, { folder })
      const admin = async (...words: readonly string[]) => {
        const { exitCode, stdout, stderr } = await ask('admin', ...words, '--job', 'counting.yaml', '--output', 'json')
        expect(stdout, stderr).not.toBe('')
        return { exitCode, report: JSON.parse(stdout.trimEnd().split('\n').at(-1)!) as AdminReport }
      }
      const place = join(kept, job, 'objects')
      const store = join(folder, '.millrace', job, 'objects')
      const inStore = async () => (await readdir(store)).filter((name) => name.startsWith('savepoint-'))

      const run = new RunningCommand(['run', 'counting.yaml', '--arg', 'ratePerSecond=1500'], { folder })
      const committed = hasCommitted(join(folder, 'out', job))
      await run.until(committed)
      await run.until(async () => (await readdir(join(folder, '.millrace', job))).includes('rest.json'))
      const taken = await ask('savepoint', job)
      expect(taken.stdout, taken.stderr).toMatch(new RegExp(`^${place}/savepoint-\\d+\n$`))
      const plain = taken.stdout.trim()
      const stop = await ask('stop', job)
      expect(stop.stdout, stop.stderr).toMatch(new RegExp(`^${place}/savepoint-\\d+\n$`))
      const stopped = stop.stdout.trim()
      expect(await run.ended).toMatchObject({ exitCode: 0 })
      expect(await inStore()).toEqual([])
      const { savepoints, head } = JSON.parse((await ask('status', job, '--json')).stdout) as JobReport
      expect(savepoints.map(({ path, there }) => [path, there])).toEqual([
        [plain, true],
        [stopped, true],
      ])
      expect(head?.end).toMatchObject({ kind: 'stopped', savepoint: { path: stopped } })

      const fork = await ask('run', 'counting.ts', '--name', 'fork', '--from', plain, '--arg', `count=${count}`)
      expect(fork, fork.stderr).toMatchObject({ exitCode: 0, stdout: `fork counted to ${count}, none\n` })

      expect(await admin('dispose', stopped, '--yes')).toMatchObject({
        exitCode: 3,
        report: { error: { code: 'MR-A04' } },
      })
      // From the job's name alone too, which says nothing of the place.
      const byName = await ask('admin', 'dispose', stopped, '--job', job, '--yes')
      expect(byName).toMatchObject({ exitCode: 3, stderr: expect.stringMatching(/^MR-A04 /) })
      expect(await admin('dispose', plain, '--yes')).toMatchObject({ exitCode: 0, report: { outcome: 'done' } })
      expect(await readdir(place)).not.toContain(plain.split('/').at(-1))

      const last = await ask('run', 'counting.yaml', '--parallelism', '2')
      expect(last, last.stderr).toMatchObject({ exitCode: 0, stdout: `${job} counted to ${count}, none\n` })
      expect(last.stderr).toContain(`from savepoint ${stopped.split('-').at(-1)}`)
      expect(await numbersIn(join(folder, 'out', job))).toEqual(numbersBelow(count))

      await mkdir(join(place, 'savepoint-99'))
      await writeFile(join(place, 'savepoint-99/data'), 'of one that failed')
      const swept = await admin('sweep', '--yes')
      expect(swept).toMatchObject({ exitCode: 0, report: { objects: [`file://${place}/savepoint-99/data`] } })
      expect((await readdir(place)).filter((name) => !name.startsWith('.')).toSorted()).toEqual([
        'owner',
        stopped.split('/').at(-1),
      ])
      expect(await admin('dispose', stopped, '--yes')).toMatchObject({ exitCode: 0 })
    })
  })

  it('go on beside the checkpoints, or elsewhere, when the field is changed; earlier ones are begun from all the same', async () => {
    await withJob(async (folder, kept) => {
      const slowly = ['run', 'counting.yaml', '--arg', 'ratePerSecond=1500']
      const stopped = async (): Promise<string> => {
        const run = new RunningCommand(slowly, { folder })
        await run.until(async () => /running/.test((await runCommand(['status', job], { folder })).stdout))
        const { stdout, stderr } = await runCommand(['stop', job], { folder })
        expect(stdout, stderr).not.toBe('')
        expect(await run.ended).toMatchObject({ exitCode: 0 })
        return stdout.trim()
      }
      const paths = [await stopped()]
      await writeFile(join(folder, 'counting.yaml'), manifest(`file://${folder}/other`))
      paths.push(await stopped())
      await writeFile(join(folder, 'counting.yaml'), manifest('s3://a-bucket/is-for-a-cluster'))
      paths.push(await stopped())
      expect(paths).toEqual(
        [join(kept, job), join(folder, 'other', job), join(folder, '.millrace', job)].map((place) =>
          expect.stringMatching(new RegExp(`^${place}/objects/savepoint-\\d+$`)),
        ),
      )
      for (const path of paths.slice(0, 2)) {
        const gone = await runCommand(['admin', 'dispose', path, '--job', 'counting.yaml', '--yes'], { folder })
        expect(gone, gone.stderr).toMatchObject({ exitCode: 0 })
      }
      const last = await runCommand(['run', 'counting.yaml'], { folder })
      expect(last, last.stderr).toMatchObject({ exitCode: 0 })
      expect(last.stderr).toContain('storage.savepoints')
      expect(await numbersIn(join(folder, 'out', job))).toEqual(numbersBelow(count))
    })
  })

  it("are one job's: another of the same name elsewhere is refused before it runs, as is a folder that cannot be one", async () => {
    await withJob(async (folder, kept) => {
      const run = new RunningCommand(['run', 'counting.yaml', '--arg', 'ratePerSecond=1500'], { folder })
      await run.until(hasCommitted(join(folder, 'out', job)))
      await withJob(async (elsewhere) => {
        await writeFile(join(elsewhere, 'counting.yaml'), manifest(`file://${kept}`))
        const refused = await runCommand(['run', 'counting.yaml'], { folder: elsewhere })
        expect(refused).toMatchObject({ exitCode: 1, stdout: '' })
        expect(refused.stderr).toMatch(
          /MR-S40 .*storage\.savepoints, file:\/\/\S+kept\/default\/counting: They are of the job in file:\/\/\S+\.millrace/,
        )
        await writeFile(join(elsewhere, 'counting.yaml'), manifest(`file://${elsewhere}/counting.ts`))
        const impossible = await runCommand(['run', 'counting.yaml'], { folder: elsewhere })
        expect(impossible).toMatchObject({ exitCode: 1, stdout: '' })
        expect(impossible.stderr).toMatch(/MR-S01 .*storage\.savepoints, file:\/\/\S+counting\.ts/)
      })
      run.kill('SIGKILL')
      await run.ended
    })
  })
})
