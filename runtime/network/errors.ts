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
  'MR-W30': {
    meaning: 'No NATS server can be reached.',
    who: 'external system',
    retry: true,
    remedy: 'See whether the server runs, and look at nats.servers and at the network in between.',
  },
  'MR-W31': {
    meaning: 'The NATS server refuses the credentials.',
    who: 'user',
    retry: false,
    remedy: 'Put credentials that the server knows into the files of nats; they are read again at each attempt.',
  },
  'MR-W32': {
    meaning: 'No TLS connection to the NATS server can be made.',
    who: 'user',
    retry: false,
    remedy: "Compare the server's certificate with nats.tls.caFile, and whether both sides want TLS.",
  },
  'MR-W33': {
    meaning: 'The NATS server takes only messages that are too small.',
    who: 'user',
    retry: false,
    remedy: 'Raise max_payload in the configuration of the server; its default of 1 MB is enough.',
  },
  'MR-W34': {
    meaning: 'The NATS server does not allow a subject of the job.',
    who: 'user',
    retry: false,
    remedy: 'Allow the credentials of the job to publish and subscribe to them.',
  },
  'MR-W35': {
    meaning: 'The NATS server refuses something.',
    who: 'external system',
    retry: true,
    remedy: 'Look at the log and the limits of the server.',
  },
  'MR-W36': {
    meaning: 'A control message is too large.',
    who: 'millrace',
    retry: false,
    remedy: 'Please report it with the log; meanwhile lower the parallelism or the state that is kept inline.',
  },
  'MR-W37': {
    meaning: 'The configuration of the connection to NATS contradicts itself.',
    who: 'user',
    retry: false,
    remedy: 'Mend the part `nats` of the configuration.',
  },
  'MR-W38': {
    meaning: 'A file of the connection to NATS cannot be used.',
    who: 'user',
    retry: false,
    remedy: 'See whether the file is mounted, readable and whole.',
  },
} as const satisfies Readonly<Record<`MR-W${string}`, ErrorRow>>

export type NetworkErrorCode = keyof typeof networkErrors

export const networkError = errorsOf(networkErrors)

/** Why a channel machine gave up; its shell makes the error of it. */
export interface ChannelFailure {
  readonly code: NetworkErrorCode
  readonly detail: string
}
