import { describe, expect, it } from 'vitest'
import { placeOf } from './load-place.ts'

function errorWith(...lines: readonly string[]): Error {
  return Object.assign(new Error('no matter'), { stack: lines.join('\n') })
}

describe('the place of what could not be loaded', () => {
  it('of TypeScript that is none is where the carets are', () => {
    const error = errorWith(
      '/jobs/orders.ts:6',
      'function f() {',
      '  const a',
      '        ^',
      '  return a',
      '',
      "SyntaxError [ERR_INVALID_TYPESCRIPT_SYNTAX]: 'const' declarations must be initialized",
      '    at parseTypeScript (node:internal/modules/typescript:72:36)',
    )
    expect(placeOf(error)).toEqual({ path: '/jobs/orders.ts', at: '6:9' })
  })

  it('of an import of what is not exported is the import', () => {
    const error = errorWith(
      'file:///jobs/a%20b/orders.ts:2',
      'import { nope } from "./rates.ts"',
      '         ^^^^',
      "SyntaxError: The requested module './rates.ts' does not provide an export named 'nope'",
      '    at #asyncInstantiate (node:internal/modules/esm/module_job:455:21)',
    )
    expect(placeOf(error)).toEqual({ path: '/jobs/a b/orders.ts', at: '2:10' })
  })

  it("of what the code threw is the first frame that is the user's", () => {
    const own = new URL('../job/define-job.ts', import.meta.url).href
    const error = errorWith(
      'Error: boo',
      `    at defineJob (${own}:12:3)`,
      '    at parse (file:///jobs/node_modules/zod/index.js:1:2)',
      '    at Object.ratesOf (file:///jobs/rates.ts:2:7)',
      '    at file:///jobs/orders.ts:9:1',
      '    at ModuleJob.run (node:internal/modules/esm/module_job:561:25)',
    )
    expect(placeOf(error)).toEqual({ path: '/jobs/rates.ts', at: '2:7' })
    expect(placeOf(errorWith('Error: boo', '    at file:///jobs/orders.ts:9:1'))).toEqual({
      path: '/jobs/orders.ts',
      at: '9:1',
    })
  })

  it('is unknown where Node says none', () => {
    expect(placeOf('boo')).toBeUndefined()
    expect(placeOf(errorWith("SyntaxError: Identifier 'q' has already been declared", '    at x (node:y:1:2)'))).toBe(
      undefined,
    )
  })
})
