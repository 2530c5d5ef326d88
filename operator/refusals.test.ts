import { describe, expect, it } from 'vitest'
import { KubeError } from './kubernetes/contract.ts'
import { failureOf, refusalOf, sameWord } from './refusals.ts'

const failed = (error: unknown): string | undefined => failureOf({ actions: [], error })

describe('what fails again and again', () => {
  it.each<[string, unknown]>([
    ['its own fault', new KubeError(500, 'InternalError', 'failed calling webhook')],
    ['a broken connection', Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })],
    ['a wrong certificate', Object.assign(new Error('altnames'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })],
    ['no answer in time', new DOMException('The operation was aborted due to timeout', 'TimeoutError')],
  ])("is the API server's: %s", (_, error) => {
    expect(failed(error)).toMatch(/ It has failed again and again: look at the API server/)
  })

  it.each<[string, unknown]>([
    ['a broken invariant', new Error('revision r2 is not there')],
    ['a mistake', new TypeError("Cannot read properties of undefined (reading 'name')")],
    ['misuse of node', Object.assign(new TypeError('The "path" argument'), { code: 'ERR_INVALID_ARG_TYPE' })],
    ['no error at all', 'thrown'],
  ])("is the operator's, and says where to look: %s", (_, error) => {
    expect(failed(error)).toMatch(/ It has failed again and again, by a fault of the operator: its log says more\./)
    expect(failed(error)).not.toContain('API server')
  })

  it('is nothing where it passes by itself, and is refused where the API server says so', () => {
    for (const status of [404, 409, 429]) {
      const error = new KubeError(status, 'Conflict', 'later')
      expect([failed(error), refusalOf(error)]).toEqual([undefined, undefined])
    }
    expect(refusalOf(new KubeError(403, 'Forbidden', 'exceeded quota'))).toContain('Mend what it names.')
  })

  it('keeps its word where only numbers differ', () => {
    expect(sameWord('a:1', 'a:2')).toBe('a:1')
    expect(sameWord('a:1', 'b:1')).toBe('b:1')
    expect(sameWord(undefined, 'b:1')).toBe('b:1')
  })
})
