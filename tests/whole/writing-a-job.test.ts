// The documentation does what it says: its jobs run and print what they should, its tests pass, its links lead somewhere.

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCommand } from '../support/command.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** What each job of a page prints, in the page's order; lines sorted, since subtasks print in no order between them. */
const prints: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'writing-a-job': [
    ['"ONE"', '"THREE"', '"TWO"'],
    ['cents: Invalid input: expected number, received string'],
    ['3', 'short: be', 'short: be', 'short: or', 'short: to', 'short: to'],
    [
      '{"user":"ada","hour":0,"pages":["/","/docs"],"first":true}',
      '{"user":"ada","hour":1,"pages":["/"],"first":false}',
      '{"user":"bob","hour":1,"pages":["/"],"first":true}',
    ],
    ['"or not"', '"to be"'],
  ],
  windows: [
    [
      '{"host":"a","endMs":120000,"mean":80}',
      '{"host":"a","endMs":150000,"mean":90}',
      '{"host":"a","endMs":30000,"mean":30}',
      '{"host":"a","endMs":60000,"mean":40}',
      '{"host":"a","endMs":90000,"mean":60}',
    ],
    [
      '"ada: / then /docs"',
      '{"user":"ada","startMs":0,"pages":2}',
      '{"user":"bob","startMs":360000,"pages":1}',
      '{"user":"ada","startMs":3600000,"pages":1}',
    ],
    [
      '{"shop":"a","cents":1100,"time":1000}',
      '{"shop":"a","cents":2200,"time":3000}',
      '{"shop":"a","cents":2200,"time":3000}',
    ],
  ],
  state: [['{"id":"a1","cents":100}', '{"id":"b2","cents":250}']],
  'two-streams': [
    ['"a: 500 not paid within an hour"', '"b: 700 paid"'],
    ['"b: 20 is above 15"'],
    ['"ada from 0: 2 pages, 1 purchases"', '"ada saw /b and paid 900"', '"bob from 60000: 1 pages, 0 purchases"'],
  ],
  async: [['{"id":0,"rate":0.2}', '{"id":1,"rate":null}', '{"id":2,"rate":0.081}']],
}

interface Snippet {
  readonly page: string
  readonly kind: 'job' | 'test'
  readonly name: string
  readonly text: string
}

describe('the snippets in docs', async () => {
  const pages = (await readdir(join(root, 'docs'))).filter((file) => file.endsWith('.md'))
  const snippets = (await Promise.all(pages.map(snippetsOf))).flat()
  const jobs = snippets.filter(({ kind }) => kind === 'job')
  const tests = snippets.filter(({ kind }) => kind === 'test')
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-pages-'))
    await writeFile(
      join(folder, 'orders.csv'),
      'customer,cents,time\nada,100,2026-01-01T00:00:00Z\nbob,many,2026-01-01T00:01:00Z\n',
    )
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    for (const { name, text } of snippets) await writeFile(join(folder, name), text)
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('are as many as this test knows, and of no other kind', () => {
    const counts = Object.fromEntries(pages.map((page) => [baseOf(page), 0]))
    for (const { page } of jobs) counts[page]!++
    const found = Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
    expect(found).toEqual(Object.fromEntries(Object.entries(prints).map(([page, { length }]) => [page, length])))
    expect(tests.map(({ page }) => page)).toContain('testing')
  })

  it('have the right types', async () => {
    const source = (path: string): string[] => [join(root, path)]
    const config = {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: {
        paths: {
          millrace: source('runtime/api.ts'),
          'millrace/connectors': source('runtime/connectors/api.ts'),
          'millrace/testkit': source('runtime/testkit/api.ts'),
          zod: source('node_modules/zod'),
          vitest: source('node_modules/vitest/dist/index.d.ts'),
        },
        typeRoots: source('node_modules/@types'),
      },
      include: ['*.ts'],
    }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const checked = promisify(execFile)(process.execPath, [compiler, '--noEmit', '-p', folder])
    await expect(
      checked.catch((error: { readonly stdout: string }) => ({ stdout: error.stdout })),
    ).resolves.toMatchObject({ stdout: '' })
  })

  it.each(jobs)('print what they should: $name', async ({ page, name }) => {
    const lines = prints[page]?.[jobs.filter((job) => job.page === page).findIndex((job) => job.name === name)]
    const result = await runCommand(['run', name], { folder })
    expect(result, result.stderr).toMatchObject({ exitCode: 0 })
    expect(result.stdout.trimEnd().split('\n').toSorted()).toEqual(lines?.toSorted())
  })

  it('that are tests pass', async () => {
    // Below the repository, where a test of a user's project finds vitest and the package.
    const inside = await mkdtemp(join(root, 'node_modules', '.snippets-'))
    try {
      for (const { name, text } of tests) await writeFile(join(inside, name.replace(/\.ts$/, '.test.ts')), text)
      const config = `export default { resolve: { conditions: ['millrace-source'] }, ssr: { resolve: { conditions: ['millrace-source'] } },
  test: { include: ['*.test.ts'], exclude: [] } }`
      await writeFile(join(inside, 'vitest.config.js'), config)
      const runner = join(root, 'node_modules/vitest/vitest.mjs')
      const reportFile = join(inside, 'report.json')
      const where = ['--root', inside, '--config', join(inside, 'vitest.config.js')]
      const how = ['--reporter', 'json', '--outputFile', reportFile]
      const ran = await promisify(execFile)(process.execPath, [runner, 'run', ...where, ...how], { cwd: root }).catch(
        (error: { readonly stdout: string; readonly stderr: string }) => error,
      )
      const report = JSON.parse(await readFile(reportFile, 'utf8')) as Readonly<Record<string, unknown>>
      expect(report, `${ran.stdout}${ran.stderr}`).toMatchObject({ success: true })
      expect(report['numPassedTests']).toBeGreaterThanOrEqual(tests.length)
    } finally {
      await rm(inside, { recursive: true, force: true })
    }
  })
})

describe('links and codes in the docs', async () => {
  const pages = [
    ...(await readdir(join(root, 'docs'))).filter((file) => file.endsWith('.md')).map((file) => join('docs', file)),
    'README.md',
  ]
  const texts = new Map(
    await Promise.all(pages.map(async (page) => [page, await readFile(join(root, page), 'utf8')] as const)),
  )

  it('lead to what is there', () => {
    const broken: string[] = []
    for (const [page, text] of texts)
      for (const [, target] of text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
        const [path, anchor] = target!.split('#') as [string, string?]
        const file = path === '' ? page : join(dirname(page), path)
        const there = existsSync(join(root, file))
        const headed =
          anchor === undefined || (texts.get(file) !== undefined && anchorsOf(texts.get(file)!).has(anchor))
        if (!there || !headed) broken.push(`${page}: ${target}`)
      }
    expect(broken).toEqual([])
  })

  it('are of errors that exist', () => {
    const known = texts.get(join('docs', 'errors.md'))!
    const unknown = [...texts].flatMap(([page, text]) =>
      [...text.matchAll(/\bMR-[A-Z]\d\d\b/g)]
        .filter(([code]) => !known.includes(code))
        .map(([code]) => `${page}: ${code}`),
    )
    expect(unknown).toEqual([])
  })
})

async function snippetsOf(file: string): Promise<Snippet[]> {
  const page = baseOf(file)
  const text = await readFile(join(root, 'docs', file), 'utf8')
  return [...text.matchAll(/```ts (job|test)\n([\s\S]*?)```/g)].map(([, kind, code], index) => ({
    page,
    kind: kind as Snippet['kind'],
    name: `${page}-${index}.ts`,
    text: code!,
  }))
}

function baseOf(file: string): string {
  return file.slice(0, -'.md'.length)
}

/** As readers of the repository make them of headings. */
function anchorsOf(text: string): Set<string> {
  const headings = text.replaceAll(/```[\s\S]*?```/g, '').matchAll(/^#+ (.+)$/gm)
  return new Set(
    [...headings].map(([, heading]) =>
      heading!
        .toLowerCase()
        .replaceAll(/[^a-z0-9 _-]/g, '')
        .replaceAll(' ', '-'),
    ),
  )
}
