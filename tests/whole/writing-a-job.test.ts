import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCommand } from '../support/command.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** What each job of the page prints, in the page's order; lines sorted, since subtasks print in no order between them. */
const prints: readonly (readonly string[])[] = [
  ['"ONE"', '"THREE"', '"TWO"'],
  ['cents: Invalid input: expected number, received string'],
  ['3', 'short: be', 'short: be', 'short: or', 'short: to', 'short: to'],
  [
    '{"user":"ada","hour":0,"pages":["/","/docs"],"first":true}',
    '{"user":"ada","hour":1,"pages":["/"],"first":false}',
    '{"user":"bob","hour":1,"pages":["/"],"first":true}',
  ],
  [
    '{"host":"a","endMs":120000,"mean":80}',
    '{"host":"a","endMs":150000,"mean":90}',
    '{"host":"a","endMs":30000,"mean":30}',
    '{"host":"a","endMs":60000,"mean":40}',
    '{"host":"a","endMs":90000,"mean":60}',
  ],
]

describe('the jobs in docs/writing-a-job.md', async () => {
  const page = await readFile(join(root, 'docs/writing-a-job.md'), 'utf8')
  const jobs = [...page.matchAll(/```ts job\n([\s\S]*?)```/g)].map(([, text]) => text as string)
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-page-'))
    await writeFile(
      join(folder, 'orders.csv'),
      'customer,cents,time\nada,100,2026-01-01T00:00:00Z\nbob,many,2026-01-01T00:01:00Z\n',
    )
    for (const [index, text] of jobs.entries()) await writeFile(join(folder, `job-${index}.ts`), text)
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('are as many as this test knows', () => {
    expect(jobs).toHaveLength(prints.length)
  })

  it('have the right types', async () => {
    const source = (path: string): string[] => [join(root, path)]
    const config = {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: {
        paths: {
          millrace: source('runtime/api.ts'),
          'millrace/connectors': source('runtime/connectors/api.ts'),
          zod: source('node_modules/zod'),
        },
        typeRoots: source('node_modules/@types'),
      },
      include: ['*.ts'],
    }
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const checked = promisify(execFile)(process.execPath, [compiler, '--noEmit', '-p', folder])
    await expect(
      checked.catch((error: { readonly stdout: string }) => ({ stdout: error.stdout })),
    ).resolves.toMatchObject({ stdout: '' })
  })

  it.each(prints.map((lines, index) => ({ index, lines })))(
    'print what they should: job $index',
    async ({ index, lines }) => {
      const result = await runCommand(['run', `job-${index}.ts`], { folder })
      expect(result, result.stderr).toMatchObject({ exitCode: 0 })
      expect(result.stdout.trimEnd().split('\n').toSorted()).toEqual(lines.toSorted())
    },
  )
})
