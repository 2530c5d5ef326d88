// Which job a local command means (rule 28): the same command goes on with its job; after an end that is final it begins a new
// one under the next number, so that no name (of an object, of a transaction) is ever used twice.

import type { JobId } from '../base/ids.ts'
import type { ObjectKey } from './contract.ts'
import { storageError } from './errors.ts'
import { drainedStopOf } from './head.ts'
import type { Head } from './head-contract.ts'
import { localJobId } from './paths.ts'
import { decideStart } from './start-decision.ts'

export interface NumberedFolder {
  /** By parseLocalJobFolder. */
  readonly number: number
  /** undefined: the folder positively has no HEAD (its first command died before writing one). Unreadable: throw instead. */
  readonly head: Pick<Head, 'start' | 'end' | 'restoredFrom' | 'unconfirmed'> | undefined
}

export interface LocalIdentity {
  readonly job: JobId
  readonly number: number
  readonly begin: 'fresh' | 'resume' | 'next start'
  /** The end of the job before, when this is a new job after it: to be said on the terminal. */
  readonly after: Head['end']['kind'] | undefined
  /**
   * The job before may have left something undone: permitted commits (rule 2), or its output stays incomplete; the last word of a drain; the
   * checkpoints that go with its cancellation. Its coordinator finishes that first.
   */
  readonly finishFirst: JobId | undefined
}

export interface LocalCommand {
  readonly name: string
  readonly folders: readonly NumberedFolder[]
  /** With --from: the manifest as HEAD of that job would name it. */
  readonly from?: ((job: JobId) => ObjectKey) | undefined
}

/** Throws MR-S15 when --from would begin a start of a job with unconfirmed commits. Also MR-S04 for the name. */
export function decideLocalIdentity({ name, folders, from }: LocalCommand): LocalIdentity {
  const current = folders.toSorted((left, right) => left.number - right.number).at(-1)
  if (current === undefined) return identity({ name, number: 1, begin: 'fresh' })
  const { number, head } = current
  if (head === undefined) return identity({ name, number, begin: 'fresh' })
  const job = localJobId(name, number)
  const decision = decideStart(head, { start: undefined, from: from?.(job) })
  if (decision.kind === 'ended') {
    const after = drainedStopOf(head.end) === undefined ? head.end.kind : 'finished'
    const isLeft = after === 'cancelled' || head.end.kind === 'stopped' || head.unconfirmed !== undefined
    return {
      ...identity({ name, number: number + 1, begin: 'fresh' }),
      after,
      finishFirst: isLeft ? job : undefined,
    }
  }
  if (from !== undefined && decision.kind === 'next' && head.unconfirmed !== undefined)
    throw storageError('MR-S15', `Those of ${head.unconfirmed.path} of ${job}.`)
  return identity({ name, number, begin: decision.kind === 'next' ? 'next start' : 'resume' })
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
  return { job: localJobId(name, number), number, begin, after: undefined, finishFirst: undefined }
}
