import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadCheckedJob } from './checked-job.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-checked-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function load(body: string, options: { readonly skipTypes?: boolean; readonly beside?: string } = {}) {
  const file = join(folder, `job-${String(body.length)}.ts`)
  await writeFile(file, `import { defineJob } from 'millrace'\n${body}\n`)
  const said: string[] = []
  const loaded = await loadCheckedJob(file, { skipTypes: false, say: (text) => said.push(text), ...options }).catch(
    String,
  )
  return { said, loaded }
}

const right = 'export default defineJob(() => undefined)'
const wrong = "const count: number = 'one'\nvoid count\nexport default defineJob(() => undefined)"

describe('the job that is run', () => {
  it('is loaded when its types are right, and nothing is said', async () => {
    expect(await load(right)).toEqual({ said: [], loaded: expect.any(Object) })
  })

  it('is refused when they are wrong, with each place, unless they are not to be looked at', async () => {
    const { loaded } = await load(wrong)
    expect(loaded).toMatch(/MR-L21 .*job-\d+\.ts:2:7 TS2322: .*--skip-types/s)
    expect(await load(wrong, { skipTypes: true })).toEqual({ said: [], loaded: expect.any(Object) })
  })

  it('is loaded where nobody can check them, which is said once', async () => {
    const { said, loaded } = await load(wrong, { beside: folder })
    expect(loaded).toBeTypeOf('object')
    expect(said).toEqual([
      expect.stringMatching(/^The types of the job are not checked: no TypeScript compiler was found/),
    ])
  })

  it('that cannot be loaded is told as that, and once', async () => {
    expect((await load('export const left = (')).loaded).toMatch(/^MillraceError: MR-L01 /)
  })
})
