import { expect, it } from 'vitest'
import { isSupported } from './decide-supported.ts'

it('an operator drives runtimes of its own minor version and the one before', () => {
  const drives = (operator: string, runtime: string) => isSupported(operator, runtime)
  expect([drives('1.4.0', '1.4.9'), drives('1.4.0', '1.3.0')]).toEqual([true, true])
  expect([
    drives('1.4.0', '1.2.9'),
    drives('1.4.0', '1.5.0'),
    drives('2.0.0', '1.9.0'),
    drives('1.0.0', '2.0.0'),
  ]).toEqual([false, false, false, false])
  expect([drives('dev', 'dev'), drives('dev', '1.0.0'), drives('1.0.0', '')]).toEqual([true, false, false])
})
