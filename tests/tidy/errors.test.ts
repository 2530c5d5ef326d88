import { describe, expect, it } from 'vitest'
import type { ErrorRow } from '../../runtime/base/errors.ts'
import { placesOf, repositoryFiles, typescriptFiles } from './sources.ts'

interface Row extends ErrorRow {
  readonly code: string
  readonly area: string
}

/** Every row of every table: the exports of runtime/<area>/*errors.ts and operator/errors.ts whose keys are codes. */
async function allRows(): Promise<Row[]> {
  const rows: Row[] = []
  for (const path of repositoryFiles()) {
    const area =
      path === 'operator/errors.ts' ? 'operator' : /^runtime\/([^/]+)\/(?:[^/]+-)?errors\.ts$/.exec(path)?.[1]
    if (area === undefined || area === 'base') continue
    const exported = (await import(new URL(`../../${path}`, import.meta.url).href)) as Record<string, unknown>
    for (const table of Object.values(exported)) {
      if (typeof table !== 'object' || table === null) continue
      for (const [code, row] of Object.entries(table as Record<string, ErrorRow>))
        if (code.startsWith('MR-')) rows.push({ code, area, ...row })
    }
  }
  return rows.toSorted((left, right) => (left.code < right.code ? -1 : 1))
}

/** docs/errors.md; written anew by `npx vitest run --project unit tests/tidy/errors --update`. */
function page(rows: readonly Row[]): string {
  const lines = [
    '# Errors',
    '',
    'Each error has a code, says where it arose, who must act and what to do. "Retry" means that the same call may succeed',
    'later without anybody changing anything. This page is made from the tables in runtime/*/errors.ts and operator/errors.ts.',
    '',
    '| code | from | what happened | who acts | retry | what to do |',
    '|---|---|---|---|---|---|',
    ...rows.map(
      ({ code, area, meaning, who, retry, remedy }) =>
        `| ${code} | ${area} | ${cell(meaning)} | ${who} | ${retry ? 'yes' : 'no'} | ${cell(remedy)} |`,
    ),
  ]
  return `${lines.join('\n')}\n`
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

describe('the error table', async () => {
  const rows = await allRows()

  it('has each code once', () => {
    const codes = rows.map(({ code }) => code)
    expect(codes.filter((code, index) => codes.indexOf(code) !== index)).toEqual([])
    expect(codes.filter((code) => !/^MR-[A-Z]\d\d$/.test(code))).toEqual([])
  })

  it('says in whole sentences what happened and what to do', () => {
    const sentence = /^[A-Z`"].*[.)]$/s
    expect(
      rows.filter(({ meaning, remedy }) => !sentence.test(meaning) || remedy.length < 10).map(({ code }) => code),
    ).toEqual([])
  })

  it('has no row that no code uses', () => {
    const users = typescriptFiles().filter(
      ({ path }) => /^(runtime|operator)\//.test(path) && !/errors\.ts$|\.test\.ts$/.test(path),
    )
    const tables = typescriptFiles().filter(({ path }) => path.endsWith('errors.ts'))
    const isUsed = (code: string): boolean =>
      users.some(({ text }) => text.includes(`'${code}'`)) ||
      // Beside its row, in a function of the same file that makes the error.
      tables.some((file) => placesOf(file, new RegExp(`'${code}'`)).some((place) => !place.includes(`'${code}': {`)))
    expect(rows.map(({ code }) => code).filter((code) => !isUsed(code))).toEqual([])
  })

  it('is what docs/errors.md shows', async () => {
    await expect(page(rows)).toMatchFileSnapshot('../../docs/errors.md')
  })
})
