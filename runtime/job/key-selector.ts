// keyBy's function, with what it gives checked where it is cheap: a wrong key must not reach the hash.

import { MillraceError } from '../base/errors.ts'
import type { Key } from '../record/contract.ts'
import { operatorError } from '../operators/errors.ts'
import { isPromise } from '../operators/user-code.ts'
import type { KeySelector } from './contract.ts'
import { jobError } from './errors.ts'
import { callerLocation } from './location.ts'
import type { StreamInput } from './stream-node.ts'

/** Dealt out by what the user's function makes of a record; errors name the place where it was given. */
export function keyedInputs(inputs: readonly StreamInput[], selector: (value: never) => unknown): StreamInput[] {
  const keySelector = checkedKeySelector(selector as (value: unknown) => unknown, callerLocation())
  return inputs.map((input) => ({ ...input, partitioning: 'hash', keySelector }))
}

/** Throws MR-J09 for undefined, NaN, null or an object, naming its place; called by partitioners and by the keyed task. */
function checkedKeySelector(selector: (value: unknown) => unknown, place: string): KeySelector {
  const checked = (value: unknown): Key => {
    let key: unknown
    try {
      key = selector(value)
    } catch (error) {
      if (error instanceof MillraceError) throw error
      throw operatorError('MR-J50', `The key selector at ${place}: ${String(error)}.`, error)
    }
    if (typeof key === 'string' || isKey(key)) return key
    if (isPromise(key)) throw operatorError('MR-J51', `The key selector at ${place}.`)
    throw jobError('MR-J09', `The key selector at ${place} gave ${show(key)}.`)
  }
  return Object.assign(checked, { place })
}

function isKey(key: unknown): key is Key {
  switch (typeof key) {
    case 'string':
    case 'bigint':
    case 'boolean':
      return true
    case 'number':
      return !Number.isNaN(key)
    default:
      if (!Array.isArray(key)) return false
      for (let index = 0; index < key.length; index++) if (!isKey(key[index])) return false
      return true
  }
}

function show(key: unknown): string {
  if (Array.isArray(key)) return `[${key.map(show).join(', ')}]`
  return typeof key === 'object' && key !== null ? 'an object' : String(key)
}
