// What can go wrong between two subtasks.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow } from '../base/errors.ts'

export const networkErrors = {
  'MR-W01': {
    meaning: 'A record is too large for a channel.',
    who: 'user',
    retry: false,
    remedy: 'Emit smaller records: keep large content in an object store and send its name.',
  },
  'MR-W02': {
    meaning: 'A channel made no progress until its deadline.',
    who: 'external system',
    retry: true,
    remedy: 'Look at the network between the two slots; the subtasks restart from the last checkpoint.',
  },
  'MR-W03': {
    meaning: 'A frame contradicts the frames before it.',
    who: 'millrace',
    retry: true,
    remedy: 'The subtasks restart from the last checkpoint; please report it with the log.',
  },
  'MR-W04': {
    meaning: 'A producer sent more than it had credit for.',
    who: 'millrace',
    retry: true,
    remedy: 'The subtasks restart from the last checkpoint; please report it with the log.',
  },
  'MR-W05': {
    meaning: 'A slot has more channels than its credit can serve.',
    who: 'user',
    retry: false,
    remedy: 'Lower the parallelism, or spread the vertices over more slot-sharing groups.',
  },
  'MR-W06': {
    meaning: 'An element of a channel cannot be read.',
    who: 'millrace',
    retry: true,
    remedy: 'The subtasks restart from the last checkpoint; please report it with the log.',
  },
} as const satisfies Readonly<Record<`MR-W${string}`, ErrorRow>>

export type NetworkErrorCode = keyof typeof networkErrors

export const networkError = errorsOf(networkErrors)

/** Why a channel machine gave up; its shell makes the error of it. */
export interface ChannelFailure {
  readonly code: NetworkErrorCode
  readonly detail: string
}
