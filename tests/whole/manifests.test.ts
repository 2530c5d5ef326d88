import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DuckDBInstance } from '@duckdb/node-api'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { RunningCommand, inFolder, runCommand } from '../support/command.ts'

const example = (path: string): string => fileURLToPath(new URL(`../../examples/${path}`, import.meta.url))
const linesOf = (text: string): string[] => text.trimEnd().split('\n').toSorted()

/** Numbers at a rate, in two files, with its code in the manifest. */
const counting = (spec = ''): string => `
apiVersion: millrace.dev/v1alpha1
kind: StreamJob
metadata: { name: counting }
spec:
  program:
    module: { configMap: { name: counting, key: main.ts } }
    args: { count: 40 }
${spec}
---
apiVersion: v1
kind: ConfigMap
metadata: { name: counting }
data:
  main.ts: |
    import { defineJob, z } from 'millrace'
    import { dataGenerator, printSink } from 'millrace/connectors'
    import { lineOf } from './line.ts'
    const args = z.object({ count: z.int(), ratePerSecond: z.number().default(1000) })
    export default defineJob({ args }, (env, { count, ratePerSecond }) => {
      env
        .source(dataGenerator({ create: (n) => n, schema: z.int(), count, ratePerSecond }), { uid: 'numbers' })
        .keyBy((n) => n % 2)
        .reduce((left, right) => left + right)
        .uid('sums')
        .sinkTo(printSink({ format: lineOf }))
    })
  line.ts: |
    export const lineOf = (n: number): string => String(n)
`

describe('a StreamJob manifest runs on this machine', () => {
  it('with the code that it brings: the same as its job file', () =>
    inFolder(async (folder) => {
      const words = ['--arg', 'readings=3000', '--arg', 'readingsPerSecond=10000', '--arg', 'silentMs=600000']
      const byManifest = await runCommand(['run', example('sensors/job.yaml'), ...words], { folder })
      const byFile = await runCommand(['run', example('sensors/job.ts'), ...words], { folder })
      expect(byManifest, byManifest.stderr).toMatchObject({ exitCode: 0 })
      expect(linesOf(byManifest.stdout)).toEqual(linesOf(byFile.stdout))
      expect(linesOf(byManifest.stdout).length).toBeGreaterThan(3)
      expect(byManifest.stderr).toMatch(/New job default\/sensors\. 4 subtasks.*\.millrace\/default\/sensors/)
      expect(byManifest.stderr).not.toContain('not used')
    }))

  it('with the job file beside it, and says what it has for a cluster', () =>
    inFolder(async (folder) => {
      const flights = fileURLToPath(new URL('../data/flights-3m.parquet', import.meta.resolve('vega-datasets')))
      const few = join(folder, 'few.parquet')
      const duckdb = await (await DuckDBInstance.create()).connect()
      await duckdb.run(`copy (select * from '${flights}' limit 20000) to '${few}' (format parquet)`)
      duckdb.disconnectSync()
      const result = await runCommand(['run', example('flights/job.yaml'), '--arg', `input=${few}`], { folder })
      expect(result, result.stderr).toMatchObject({ exitCode: 0 })
      expect(result.stderr).toContain(
        "Of default/flights's manifest these fields are for a cluster and are not used on this machine: upgradeMode, savepoints, worker.slots, worker.resources.",
      )
      const output = join(folder, 'out/default/flights/airport-hours')
      const texts = await Promise.all(
        (await readdir(output))
          .filter((name) => name.startsWith('part-'))
          .map((name) => readFile(join(output, name), 'utf8')),
      )
      const hours = texts.flatMap((text) => linesOf(text).map((line) => JSON.parse(line) as { departures: number }))
      expect(hours.reduce((sum, { departures }) => sum + departures, 0)).toBe(20_000)
    }))

  it('as another job each time that it has finished, with what the command line changes', () =>
    inFolder(async (folder) => {
      await writeFile(join(folder, 'counting.yaml'), counting('  parallelism: 2'))
      const run = (...words: string[]) => runCommand(['run', 'counting.yaml', ...words], { folder })
      const first = await run()
      expect(first, first.stderr).toMatchObject({ exitCode: 0 })
      expect(first.stderr).toContain('New job default/counting. 4 subtasks')
      const second = await run('--parallelism', '1', '--arg', 'count=2', '--slots', '3')
      expect(second, second.stderr).toMatchObject({ exitCode: 0, stdout: '0\n1\n' })
      expect(second.stderr).toContain('The job needs 1 of 3 slots; the others stay unused.')
      expect(second.stderr).toContain('New job default/counting.2: the one before it has finished. 2 subtasks')
    }))
})

describe('a StreamJob manifest goes on', () => {
  it('where it was interrupted, its restoreFrom being for the first start only', () =>
    inFolder(async (folder) => {
      const forever = ['--arg', 'count=1000000', '--arg', 'ratePerSecond=500', '--checkpoint-interval', '100']
      await writeFile(join(folder, 'first.yaml'), counting())
      const first = new RunningCommand(['run', 'first.yaml', ...forever], { folder })
      await first.until(async () => (await checkpointsOf(folder, 'counting')).length > 1)
      first.kill('SIGINT')
      expect(await first.ended).toMatchObject({ exitCode: 0 })
      const savepoint = (await readdir(join(folder, '.millrace/default/counting/objects'))).find((name) =>
        name.startsWith('savepoint-'),
      )!
      expect(savepoint).toBeDefined()

      const restored = counting(`  restoreFrom: .millrace/default/counting/objects/${savepoint}`).replace(
        'metadata: { name: counting }',
        'metadata: { name: restored }',
      )
      await writeFile(join(folder, 'restored.yaml'), restored)
      const second = new RunningCommand(['run', 'restored.yaml', ...forever], { folder })
      await second.until(async () => (await checkpointsOf(folder, 'restored')).length > 1)
      expect(second.stderr).toMatch(new RegExp(`New job default/restored.*savepoint ${savepoint.split('-')[1]}`))
      second.kill('SIGKILL')
      await second.ended

      const third = new RunningCommand(['run', 'restored.yaml', ...forever], { folder })
      await third.until(() => /Resuming default\/restored from checkpoint \d+/.test(third.stderr))
      third.kill('SIGKILL')
      await third.ended
    }))
})

describe('before any record is processed, one clear error is the answer to', () => {
  const manifests = {
    'suspended.yaml': counting('  state: suspended'),
    'unknown.yaml': counting('  paralellism: 2'),
    'later.yaml': counting('  stateBackend: { type: rocksdb }'),
    'argument.yaml': counting().replace('count: 40', 'cuont: 40'),
    'loose.yaml': counting().replace('name: counting, key', 'name: other, key'),
    'counting.yaml': counting('  parallelism: 2'),
    'counting.ts':
      "import { defineJob, z } from 'millrace'\nexport default defineJob({ args: z.object({}) }, () => {})\n",
  }

  it.concurrent.each([
    [['counting.yaml', '--parallelism', '0'], /MR-L11 .*--parallelism is 0/],
    [['counting.yaml', '--parallelism', '129'], /MR-J06 .*129.*the most is 128/],
    [['counting.yaml', '--slots', '1'], /MR-L20 .*--slots is 1; it needs 2/],
    [['counting.yaml', '--arg', 'count=many'], /MR-J01 .*count/s],
    [['counting.yaml', '--arg', 'number=1'], /MR-L11 .*no argument number; it has count, ratePerSecond/],
    [['counting.yaml', '--folder', 'nowhere'], /MR-L13 .*nowhere/],
    [['counting.yaml', '--config-map', 'counting=nowhere'], /MR-L19 .*nowhere/],
    [['counting.yaml', '--from', 'nowhere'], /MR-S17 .*nowhere/],
    [['gone.yaml'], /MR-L12 .*gone\.yaml/],
    [['suspended.yaml'], /MR-L18 .*default\/counting has spec\.state: suspended\. Set spec\.state to running/],
    [['unknown.yaml'], /MR-L16 .*unknown\.yaml, line 9, column 3: spec\.paralellism: there is no such field/],
    [
      ['later.yaml'],
      /MR-L17 .*later\.yaml, line 9, column 19: spec\.stateBackend\.type, "rocksdb", is not there yet; use heap/,
    ],
    [['argument.yaml'], /MR-L11 .*no argument cuont; it has count/],
    [['loose.yaml'], /MR-L19 .*loose\.yaml has no ConfigMap other/],
  ])('%j', async (words, answer) => {
    await inFolder(async (folder) => {
      for (const [name, text] of Object.entries(manifests)) await writeFile(join(folder, name), text)
      const { exitCode, stdout, stderr } = await runCommand(['run', ...words], { folder })
      expect({ exitCode, stdout, stderr }).toMatchObject({
        exitCode: 2,
        stdout: '',
        stderr: expect.stringMatching(answer),
      })
      expect(stderr.match(/MR-[A-Z]\d\d /g)).toHaveLength(1)
      expect(await headsOf(folder)).toEqual([])
    })
  })
})

describe('the manifest of the sensors example', () => {
  it('holds its job file as it is', async () => {
    const [, configMap] = parseAllDocuments(await readFile(example('sensors/job.yaml'), 'utf8')).map(
      (document) => document.toJS() as { readonly data: Readonly<Record<string, string>> },
    )
    expect(configMap!.data['job.ts']).toBe(await readFile(example('sensors/job.ts'), 'utf8'))
  })
})

async function checkpointsOf(folder: string, job: string): Promise<string[]> {
  return (await namesIn(join(folder, '.millrace/default', job, 'objects'))).filter((name) => name.startsWith('chk-'))
}

/** A job that has begun has one. */
async function headsOf(folder: string): Promise<string[]> {
  return namesIn(join(folder, '.millrace/default/counting/head'))
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
