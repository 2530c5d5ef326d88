// The way of a record into a chain.

import { InvariantError } from '../base/errors.ts'
import type { JobVertex, KeySelector } from '../job/contract.ts'
import { operatorError } from '../operators/errors.ts'
import type { KeyedStateBackend } from '../state/contract.ts'
import type { OperatorChain } from './operator-chain.ts'

export interface ChainEntrance {
  readonly chain: OperatorChain
  readonly keyed: KeyedStateBackend | undefined
  readonly keySelectors: JobVertex['keySelectors']
  /** The first operator's uid. */
  readonly headUid: string
}

/** Sets the key, if that input has one, and gives the record to the chain's first operator. */
export function recordsInto(options: ChainEntrance, input: 0 | 1): (value: unknown, timestamp: number) => void {
  const { chain, keySelectors, keyed } = options
  const { head } = chain
  if (head === undefined) {
    return () => {
      throw new InvariantError('a record came in to a chain that begins with a source')
    }
  }
  const keySelector = keySelectors[input]
  if (keySelector === undefined) {
    if (input === 0) return (value, timestamp) => head.process(value, timestamp)
    return (value, timestamp) => head.processSecond!(value, timestamp)
  }
  const setKey = (value: unknown): void => {
    try {
      keyed!.setKey(keySelector(value))
    } catch (error) {
      throw keyError(keySelector, options, error)
    }
  }
  if (input === 0) {
    return (value, timestamp) => {
      setKey(value)
      head.process(value, timestamp)
    }
  }
  return (value, timestamp) => {
    setKey(value)
    head.processSecond!(value, timestamp)
  }
}

/** A record is here because of the key that its producer was told; a key of another subtask's range is a second answer of the job's selector. */
function keyError(keySelector: KeySelector, { headUid }: ChainEntrance, error: unknown): unknown {
  if (!(error instanceof InvariantError)) return error
  const place = keySelector.place === undefined ? '' : ` at ${keySelector.place}`
  return operatorError('MR-J68', `The key selector${place}, before operator '${headUid}'.`, error)
}
