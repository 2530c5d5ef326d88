// Which job a local command means (rule 28): the same command goes on with its job; after an end that is final it begins a new
// one under the next number, so that no name (of an object, of a transaction) is ever used twice.

import type { JobId } from '../base/ids.ts'
import { storageError } from './errors.ts'
import type { Head } from './head-contract.ts'
import { localJobId } from './paths.ts'
import { decideStart } from './start-decision.ts'

export interface NumberedFolder {
  /** By parseLocalJobFolder. */
  readonly number: number
  /** undefined: the folder positively has no HEAD (its first command died before writing one). Unreadable: throw instead. */
  readonly head: Pick<Head, 'start' | 'end' | 'unconfirmed'> | undefined
}

export interface LocalIdentity {
  readonly job: JobId
  readonly number: number
  readonly begin: 'fresh' | 'resume' | 'next start'
  /** The end of the job before, when this is a new job after it: to be said on the terminal. */
  readonly after: Head['end']['kind'] | undefined
  /** The job before has permitted commits that nobody confirmed: they are finished first (rule 2), or its output stays incomplete. */
  readonly commitFirst: JobId | undefined
}

/** `from`: the command has --from, so a new start is made; throws MR-S15 while commits are unconfirmed. Also MR-S04 for the name. */
export function decideLocalIdentity({
  name,
  folders,
  from,
}: {
  readonly name: string
  readonly folders: readonly NumberedFolder[]
  readonly from: boolean
}): LocalIdentity {
  const current = folders.toSorted((left, right) => left.number - right.number).at(-1)
  if (current === undefined) return identity({ name, number: 1, begin: 'fresh' })
  if (current.head === undefined) return identity({ name, number: current.number, begin: 'fresh' })
  if (from && current.head.unconfirmed !== undefined) {
    throw storageError('MR-S15', `Those of ${current.head.unconfirmed.path} of ${localJobId(name, current.number)}.`)
  }
  const decision = decideStart(current.head, { start: undefined })
  if (decision.kind === 'ended') {
    const commitFirst = current.head.unconfirmed === undefined ? undefined : localJobId(name, current.number)
    return {
      ...identity({ name, number: current.number + 1, begin: 'fresh' }),
      after: current.head.end.kind,
      commitFirst,
    }
  }
  return identity({ name, number: current.number, begin: from || decision.kind === 'next' ? 'next start' : 'resume' })
}

function identity({
  name,
  number,
  begin,
}: {
  readonly name: string
  readonly number: number
  readonly begin: LocalIdentity['begin']
}): LocalIdentity {
  return { job: localJobId(name, number), number, begin, after: undefined, commitFirst: undefined }
}
