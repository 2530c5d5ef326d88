import { describe, expect, it } from 'vitest'
import { placeInUserCode } from './user-place.ts'

const runtime = new URL('../job/stream.ts', import.meta.url)

describe("the place in the user's code", () => {
  it('is the innermost frame outside the runtime, Node and packages', () => {
    const stack = [
      'Error: no',
      '    at Stream.map (node:internal/process:1:2)',
      `    at Stream.map (${runtime.href}:10:3)`,
      `    at Stream.map (${runtime.pathname}:11:3)`,
      '    at parse (file:///jobs/node_modules/zod/index.js:3:4)',
      '    at new Function (<anonymous>)',
      '    at define (file:///jobs/orders/job.ts?1:42:7)',
      '    at file:///jobs/orders/other.ts:1:1',
    ]
    expect(placeInUserCode(stack.join('\n'))).toBe('/jobs/orders/job.ts:42')
    expect(placeInUserCode('Error\n    at /jobs/one.ts:7:1')).toBe('/jobs/one.ts:7')
  })

  it('is not known when no frame is', () => {
    expect(placeInUserCode('Error: at all')).toBeUndefined()
    expect(placeInUserCode(undefined)).toBeUndefined()
  })
})
