// Errors of keyed and operator state.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow, MillraceError } from '../base/errors.ts'

export const stateErrors = {
  'MR-T01': {
    meaning: 'A state is declared in a way that cannot be served.',
    who: 'user',
    retry: false,
    remedy:
      'Give each state of an operator one name, one kind, one schema and one time to live, and use it with a key set.',
  },
  'MR-T02': {
    meaning: 'Stored state does not fit the state that the job declares today.',
    who: 'user',
    retry: false,
    remedy:
      'Keep the kind, and change the schema only by a field with a default, a removed field or a widened number; or use a new state name. Windows of another size or under another trigger: put it back, or give the job another name. Timers of another kind of operator: give the new one a uid of its own.',
  },
  'MR-T03': {
    meaning: 'Stored state is damaged; nothing of it was used.',
    who: 'external system',
    retry: false,
    remedy: 'Restore the object from a copy, and check the store that holds it.',
  },
  'MR-T04': {
    meaning: 'The restore point does not hold each key group of this subtask exactly once.',
    who: 'millrace',
    retry: false,
    remedy: 'Report the job, the checkpoint and this message; nothing was restored and the restore point stays.',
  },
  'MR-T05': {
    meaning: 'Stored state has a format that this version does not read.',
    who: 'user',
    retry: false,
    remedy: 'Run the version of Millrace that wrote it, or a later one.',
  },
  'MR-T06': {
    meaning: 'The snapshot of keyed state was aborted.',
    who: 'millrace',
    retry: true,
    remedy: 'Nothing is to be done: the coordinator has given this checkpoint up and triggers the next one.',
  },
  'MR-T07': {
    meaning: 'A state was given a value that it cannot hold.',
    who: 'user',
    retry: false,
    remedy: 'Use whole milliseconds for timers, and strings or numbers other than NaN for the keys of a map state.',
  },
} as const satisfies Readonly<Record<string, ErrorRow>>

export const stateError = errorsOf(stateErrors)

/** MR-T02; `why` is a sentence without its full stop that says what differs. */
export function unreadableState(state: {
  readonly uid: string
  readonly name: string
  readonly why: string
}): MillraceError {
  return stateError('MR-T02', `Operator '${state.uid}', state '${state.name}': ${state.why.replace(/\.?$/, '.')}`)
}
