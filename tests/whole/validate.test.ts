import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkTypes } from '../../runtime/cli/type-check.ts'
import { runCommand } from '../support/command.ts'

const example = (path: string): string => fileURLToPath(new URL(`../../examples/${path}`, import.meta.url))

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-validate-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function jobFile(name: string, text: string): Promise<string> {
  await writeFile(join(folder, name), text)
  return name
}

const validate = (...words: string[]) => runCommand(['validate', ...words], { folder })

/** Sums by parity: a state, an operator without uid, and a type that depends on the text given. */
const summing = (more: string, config = ''): string => `
import { defineJob, z } from 'millrace'
import { fromCollection, printSink } from 'millrace/connectors'

export default defineJob({ args: z.object({ top: z.int().default(3) }) }, (env, { top }) => {
  ${config}
  env
    .source(fromCollection([1, 2, top], { schema: z.int() }), { uid: 'numbers' })
    .keyBy((n) => n % 2)
    .reduce((left, right) => left + right)
    ${more}
    .sinkTo(printSink())
})
`

describe('millrace validate', () => {
  it('shows the graph of a right job and writes nothing', async () => {
    const before = await readdir(folder)
    const result = await validate(example('flights/job.ts'), '--parallelism', '3')
    expect(result, result.stdout).toMatchObject({ exitCode: 0, stderr: '' })
    expect(result.stdout).toMatch(/types {3}right, by TypeScript \d/)
    expect(result.stdout).toContain('4 vertices, 12 subtasks, 3 slots, max parallelism 128')
    expect(result.stdout).toContain(
      'flights  parallelism 3\n  uid flights  Parquet files\n  → airport-hours  hash\n  → route-days  hash',
    )
    expect(await readdir(folder)).toEqual(before)
  })

  it('gives the same as JSON', async () => {
    const file = await jobFile('sums.js', summing(".uid('sums').map((sum) => sum + 1)"))
    const { exitCode, stdout } = await validate(file, '--json', '--parallelism', '2')
    expect(exitCode).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      job: 'sums',
      jobFile: expect.stringContaining('sums.js'),
      types: { kind: 'none' },
      graph: {
        slots: 2,
        vertices: [
          { id: 'numbers', parallelism: 2, operators: [{ uid: 'numbers', uidGiven: true }] },
          { id: 'sums', operators: [{ uid: 'sums' }, { uidGiven: false }, { uidGiven: false }] },
        ],
        edges: [{ source: 'numbers', target: 'sums', partitioning: 'hash' }],
        generatedUids: [expect.stringMatching(/^map-[0-9a-f]{8}$/), expect.stringMatching(/^sink-[0-9a-f]{8}$/)],
      },
      warnings: [],
      errors: [],
    })
  })

  it('warns of uids that are generated where state may lie under them', async () => {
    const file = await jobFile('generated.js', summing('', 'env.config.autoUid = true'))
    const { exitCode, stdout } = await validate(file)
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/uid reduce-[0-9a-f]{8} \(generated\)/)
    expect(stdout).toMatch(/Warnings:\n {2}Generated uids: reduce-[0-9a-f]{8}.*State under them is lost/)
  })

  it('tells wrong types and a wrong graph, each with its place, in one go', async () => {
    const file = await jobFile('wrong.ts', summing('.map((sum) => sum.length)'))
    const { exitCode, stdout } = await validate(file)
    expect(exitCode).toBe(2)
    expect(stdout).toMatch(/MR-L21 .* wrong\.ts:11:23 TS2339: Property 'length' does not exist on type 'number'/)
    expect(stdout).toMatch(/MR-J03 An operator with state has no uid\. the \w+ at .*wrong\.ts:10/)
  })

  it.each([
    ['a file that is not there', 'gone.ts', [], /MR-L12 .*gone\.ts/],
    ['no job', 'no-job.js', [], /MR-J02 .*no default export/],
    ['syntax that is wrong', 'syntax.ts', [], /MR-L21 .*TS1109: [^]*MR-L01 .*syntax\.ts:1: /],
    ['enums, which Node cannot run', 'enum.ts', [], /TS1294: [^]*MR-L01 /],
    [
      'an argument that the job does not have',
      'sums.js',
      ['--arg', 'bottom=1'],
      /MR-L11 .*no argument bottom; it has top/,
    ],
    ['an argument that does not fit', 'sums.js', ['--arg', 'top=high'], /MR-J01 .*\n?.*top/],
    ['a manifest that is wrong', 'wrong.yaml', [], /MR-L16 .*wrong\.yaml, line 5, column 1: spec is \[\]/],
  ])('tells %s', async (_what, file, words, answer) => {
    await jobFile('no-job.js', 'export const job = 1\n')
    await jobFile('syntax.ts', 'export default (\n')
    await jobFile('enum.ts', 'enum Side { Left }\nexport default Side.Left\n')
    await jobFile('sums.js', summing(".uid('sums')"))
    await jobFile('wrong.yaml', 'apiVersion: millrace.dev/v1alpha1\nkind: StreamJob\nmetadata:\n  name: a\nspec: []\n')
    const { exitCode, stdout } = await validate(file, ...words)
    expect({ exitCode, stdout }).toMatchObject({ exitCode: 2, stdout: expect.stringMatching(answer) })
  })

  it('checks the code that a manifest brings, and says what of it is for a cluster', async () => {
    const text = await readFile(example('sensors/job.yaml'), 'utf8')
    const file = await jobFile(
      'sensors.yaml',
      text.replace('  parallelism: 2\n', '  parallelism: 2\n  upgradeMode: savepoint\n'),
    )
    const { exitCode, stdout } = await validate(file)
    expect({ exitCode, stdout }).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('types   right') })
    expect(stdout).toContain('job     default/sensors\nfile    job.ts\n')
    expect(stdout).toContain('For a cluster alone, not used by millrace run: upgradeMode.')
    expect((await readdir(folder)).includes('.millrace')).toBe(false)
  })
})

describe('millrace validate of a manifest whose code is in an image', () => {
  const manifest = (path: string, more = ''): string =>
    `apiVersion: millrace.dev/v1alpha1\nkind: StreamJob\nmetadata: { name: away }\nspec:\n  program: { image: me/away:1, module: { path: ${path} } }\n${more}`

  it('checks the fields, and says that it looked at nothing else', async () => {
    const file = await jobFile('away.yaml', manifest('/opt/away/job.ts'))
    const { exitCode, stdout } = await validate(file)
    expect(exitCode).toBe(3)
    expect(stdout).toContain('job     default/away\nfile    /opt/away/job.ts\nimage   me/away:1\ntypes   not checked: ')
    expect(stdout).toMatch(/fields were checked and are right; types, arguments, graph and uids were not looked at/)
    expect(stdout).toMatch(/^graph {3}not checked$/m)
    expect(JSON.parse((await validate(file, '--json')).stdout)).toMatchObject({
      image: 'me/away:1',
      types: { kind: 'unknown' },
      errors: [],
    })
    const wrong = await validate(await jobFile('away-wrong.yaml', manifest('/opt/away/job.ts', '  parallelism: 0\n')))
    expect(wrong).toMatchObject({ exitCode: 2, stdout: expect.stringMatching(/MR-L16 .*spec\.parallelism is 0/) })
  })

  it('checks the file of that name where there is one here, and says that the image may hold another', async () => {
    await jobFile('here.js', summing(".uid('sums')"))
    const { exitCode, stdout } = await validate(await jobFile('here.yaml', manifest('here.js')))
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(
      /vertices.*[^]*Warnings:[^]*\n {2}The file that was checked is the one on this machine; me\/away:1/,
    )
  })
})

describe('types of a job file', () => {
  it('are neither right nor wrong without a compiler', async () => {
    const file = join(folder, await jobFile('unchecked.ts', 'export default 1\n'))
    expect(await checkTypes(file, folder)).toMatchObject({
      kind: 'unknown',
      why: expect.stringContaining('no TypeScript compiler'),
    })
  })

  it('are neither right nor wrong when the compiler cannot say', async () => {
    const own = join(folder, 'own')
    await mkdir(join(own, 'node_modules/typescript/bin'), { recursive: true })
    await writeFile(join(own, 'node_modules/typescript/package.json'), '{"version":"0.0.1","type":"commonjs"}')
    await writeFile(
      join(own, 'node_modules/typescript/bin/tsc'),
      'console.log("error TS5023: Unknown compiler option."); process.exit(1)\n',
    )
    await writeFile(join(own, 'job.ts'), 'export default 1\n')
    expect(await checkTypes(join(own, 'job.ts'))).toEqual({
      kind: 'unknown',
      why: 'TypeScript 0.0.1 could not check them: error TS5023: Unknown compiler option.',
    })
  })

  it('of JavaScript are none', async () => {
    expect(await checkTypes(join(folder, 'job.js'))).toEqual({ kind: 'none' })
  })

  it('are as strict as the author’s own configuration, and what Node cannot run is wrong in any case', async () => {
    const lax = join(folder, 'lax')
    await mkdir(lax)
    await writeFile(
      join(lax, 'tsconfig.json'),
      '{"compilerOptions":{"strict":false,"target":"esnext","incremental":true}}',
    )
    await writeFile(join(lax, 'job.ts'), "import { z } from 'zod'\nexport default (a) => z.int().parse(a)\n")
    expect(await checkTypes(join(lax, 'job.ts'))).toMatchObject({ kind: 'right' })
    await writeFile(join(lax, 'side.ts'), 'export type Side = 1\n')
    await writeFile(join(lax, 'job.ts'), "import { Side } from './side.ts'\nexport default (a: Side) => a\n")
    expect(await checkTypes(join(lax, 'job.ts'))).toMatchObject({
      kind: 'wrong',
      errors: [expect.stringMatching(/lax\/job\.ts:1:10 TS1484: /)],
    })
    expect((await readdir(lax)).toSorted()).toEqual(['job.ts', 'side.ts', 'tsconfig.json'])
  })
})
