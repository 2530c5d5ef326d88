import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { RunningCommand, inFolder, runCommand } from '../support/command.ts'
import { countingJob, hasCommitted, numbersBelow, numbersIn } from './support/counting-job.ts'

describe('the command', () => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    it(`stops the job with a savepoint on ${signal}, and given again goes on from it exactly`, async () => {
      await inFolder(async (folder) => {
        await writeFile(join(folder, 'counting.ts'), countingJob)
        const words = ['run', 'counting.ts', '--arg', 'count=6000', '--arg', 'ratePerSecond=2000']
        const first = new RunningCommand(words, { folder })
        await first.until(hasCommitted(join(folder, 'out/counting')))
        first.kill(signal)
        const stopped = await first.ended
        expect(stopped).toMatchObject({ exitCode: 0, signal: null, stdout: '' })
        const [, savepoint] =
          /^counting was stopped with savepoint (\d+)\. The same command goes on from it\.$/m.exec(stopped.stderr) ?? []
        expect(savepoint, stopped.stderr).toBeDefined()
        expect((await numbersIn(join(folder, 'out/counting'))).length).toBeLessThan(6_000)

        const second = await runCommand(words, { folder })
        expect(second).toMatchObject({ exitCode: 0, stdout: 'counting counted to 6000, none\n' })
        expect(second.stderr).toContain(`Starting counting again from savepoint ${savepoint}.`)
        expect(await numbersIn(join(folder, 'out/counting'))).toEqual(numbersBelow(6_000))
      })
    })

  it('begins a new job after one that has finished, says so, and keeps their results apart', async () => {
    await inFolder(async (folder) => {
      await writeFile(join(folder, 'counting.ts'), countingJob)
      const run = (name: string) =>
        runCommand(['run', 'counting.ts', '--args', '{"count":100}', '--arg', `label=${name}`], { folder })
      const first = await run('one')
      expect(first.stderr).toContain('New job counting.')
      expect(first.stderr).toMatch(/counting has finished: 100 records in /)
      const second = await run('2')
      expect(second.stderr).toContain('New job counting.2: the one before it has finished.')
      // A number on the command line is a text where the schema says so.
      expect(second.stdout).toBe('counting.2 counted to 100, 2\n')
      expect(await numbersIn(join(folder, 'out/counting'))).toEqual(numbersBelow(100))
      expect(await numbersIn(join(folder, 'out/counting.2'))).toEqual(numbersBelow(100))
    })
  })

  it('works in another folder as if it had been started there', async () => {
    await inFolder(async (folder) => {
      await writeFile(join(folder, 'counting.ts'), countingJob)
      await inFolder(async (other) => {
        const words = ['run', 'counting.ts', '--arg', 'count=10', '--folder', other, '--name', 'ten']
        expect(await runCommand(words, { folder })).toMatchObject({ exitCode: 0 })
        expect((await readdir(other)).toSorted()).toEqual(['.millrace', 'out'])
        expect(await readdir(folder)).toEqual(['counting.ts'])
        expect(await numbersIn(join(other, 'out/ten'))).toEqual(numbersBelow(10))
      })
    })
  })

  it('prints what a job prints to the standard output, all else to the standard error', async () => {
    await inFolder(async (folder) => {
      const job = `
import { defineJob } from 'millrace'
import { fromCollection, printSink } from 'millrace/connectors'
export default defineJob((env) => {
  env.source(fromCollection(['one', 'two']), { uid: 'words' }).sinkTo(printSink())
})`
      await writeFile(join(folder, 'words.ts'), job)
      const result = await runCommand(['run', 'words.ts', '--parallelism', '1'], { folder })
      expect(result).toMatchObject({ exitCode: 0, stdout: '"one"\n"two"\n' })
      expect(result.stderr).toMatch(/^New job words\..*\nwords has finished: 2 records in .*\n$/)
    })
  })

  const wrongLines: readonly (readonly [string, readonly string[], string])[] = [
    ['a missing job file', ['run', 'nowhere.ts'], 'MR-L12 The job file does not exist. nowhere.ts'],
    [
      'an unknown option',
      ['run', 'job.ts', '--paralelism', '2'],
      "MR-L10 The command line is not understood. run: Unknown option '--paralelism'.",
    ],
    [
      'a folder that is not there',
      ['run', 'job.ts', '--folder', 'none'],
      'MR-L13 The folder to work in does not exist. none.',
    ],
    [
      'an argument that the job does not take',
      ['run', 'job.ts', '--arg', 'count=many'],
      "MR-J01 The job's arguments do not fit.",
    ],
  ]
  it.each(wrongLines)('refuses %s with one line and exit code 2', async (_, words, said) => {
    await inFolder(async (folder) => {
      await writeFile(join(folder, 'job.ts'), countingJob)
      const result = await runCommand(words, { folder })
      expect(result).toMatchObject({ exitCode: 2, stdout: '' })
      expect(result.stderr.startsWith(said), result.stderr).toBe(true)
      expect(result.stderr).not.toMatch(/^\s+at /m)
    })
  })
})

/** What stands between the lines of a job of numbers that are mapped and collected. */
interface BrokenJob {
  readonly body: string
  readonly exitCode: 1 | 2
  /** Code, place and remedy. */
  readonly says: readonly (string | RegExp)[]
}

const brokenJobs: Readonly<Record<string, BrokenJob>> = {
  'that exports no job': {
    body: 'export const job = 1',
    exitCode: 2,
    says: ['MR-J02', 'broken.ts has no default export', 'export default defineJob('],
  },
  'that cannot be loaded': {
    body: "import { nothing } from 'millrace/connectors'\nexport default nothing",
    exitCode: 2,
    says: ['MR-L01', 'broken.ts:', 'nothing'],
  },
  'with a source without uid': {
    body: 'export default defineJob((env) => {\n  env.source(numbers).sinkTo(printSink())\n})',
    exitCode: 2,
    says: ['MR-J03', /broken\.ts:7/, "Add .uid('…')"],
  },
  'with the same uid twice': {
    body: "export default defineJob((env) => {\n  env.source(numbers, { uid: 'a' }).map((n) => n).uid('a').sinkTo(printSink())\n})",
    exitCode: 2,
    says: ['MR-J04', "'a'", /broken\.ts:7/, 'Give each its own'],
  },
  'with an async function in map': {
    body: "export default defineJob((env) => {\n  env.source(numbers, { uid: 'a' }).map(async (n) => n).sinkTo(printSink())\n})",
    exitCode: 2,
    says: ['MR-J51', /broken\.ts:7/, 'Make it synchronous'],
  },
  'with a map that gives a promise': {
    body: "export default defineJob((env) => {\n  env.source(numbers, { uid: 'a' }).map((n) => Promise.resolve(n)).uid('waits').sinkTo(printSink())\n})",
    exitCode: 1,
    says: ['MR-J51', "operator 'waits'", 'Make it synchronous'],
  },
  'that changes a record in place': {
    body: "export default defineJob((env) => {\n  env.source(numbers, { uid: 'a' }).map((n) => {\n    n.value = 2\n    return n\n  }).uid('changes').sinkTo(printSink())\n})",
    exitCode: 1,
    says: ['MR-J52', "operator 'changes'", /broken\.ts:8/, '{ ...record, field: value }'],
  },
  'whose key is a field that records do not have': {
    body: "export default defineJob((env) => {\n  env.source(numbers, { uid: 'a' }).keyBy((n) => n.valeu).reduce((a, b) => b).uid('b').sinkTo(printSink())\n})",
    exitCode: 1,
    says: ['MR-J09', /broken\.ts:7/, 'gave undefined', 'misspelt'],
  },
  "whose file has not the schema's field": {
    body: "export default defineJob((env) => {\n  env.source(csvFiles({ path: 'numbers.csv', schema: z.object({ valeu: z.number() }) }), { uid: 'a' }).sinkTo(printSink())\n})",
    exitCode: 1,
    says: ['MR-N15', 'numbers.csv has value, but not valeu'],
  },
}

describe('a job file', () => {
  it('whose types are wrong is refused before anything is begun, and all that is wrong with them is told', async () => {
    await inFolder(async (folder) => {
      const job = `import { defineJob, z } from 'millrace'
import { fromCollection, printSink } from 'millrace/connectors'

export default defineJob((env) => {
  const numbers = fromCollection([{ value: 1 }], { schema: z.object({ value: z.number() }) })
  env.source(numbers, { uid: 'a' }).map((n) => n.valeu).sinkTo(printSink())
  env.source(numbers, { uid: 'b' }).filter((n) => n.value > 'one').sinkTo(printSink())
})`
      await writeFile(join(folder, 'typed.ts'), job)
      const result = await runCommand(['run', 'typed.ts'], { folder, checkTypes: true })
      expect(result).toMatchObject({ exitCode: 2, stdout: '' })
      expect(result.stderr).toMatch(/^MR-L21 .*typed\.ts:6:50 TS2551: .*valeu.*typed\.ts:7:\d+ TS2365/s)
      expect(await readdir(folder)).toEqual(['typed.ts'])
      await writeFile(join(folder, 'typed.ts'), job.replace('valeu', 'value').replace("'one'", '1'))
      const right = await runCommand(['run', 'typed.ts', '--parallelism', '1'], { folder, checkTypes: true })
      expect(right).toMatchObject({ exitCode: 0, stdout: '1\n' })
      expect(right.stderr).not.toContain('types')
    })
  })

  it.each(Object.entries(brokenJobs))(
    '%s gets one error that says where and what to do',
    async (_, { body, exitCode, says }) => {
      await inFolder(async (folder) => {
        const head = [
          "import { defineJob, z } from 'millrace'",
          "import { csvFiles, fromCollection, printSink } from 'millrace/connectors'",
          '',
          'const numbers = fromCollection([{ value: 1 }], { schema: z.object({ value: z.number() }) })',
          'void [defineJob, csvFiles, printSink, numbers]',
        ]
        await writeFile(join(folder, 'broken.ts'), [...head, body].join('\n'))
        await writeFile(join(folder, 'numbers.csv'), 'value\n1\n')
        const result = await runCommand(['run', 'broken.ts', '--parallelism', '1'], { folder })
        expect(result).toMatchObject({ exitCode, stdout: '' })
        for (const part of says)
          expect(result.stderr).toMatch(part instanceof RegExp ? part : new RegExp(RegExp.escape(part)))
        expect(result.stderr.match(/MR-[A-Z]\d\d/g)).toHaveLength(1)
        expect(result.stderr).not.toMatch(/^\s+at /m)
      })
    },
  )
})
