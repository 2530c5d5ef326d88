// Errors that REST answers with.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow } from '../base/errors.ts'

export const restErrors = {
  'MR-H01': {
    meaning: 'The request has no valid token.',
    who: 'user',
    retry: false,
    remedy:
      "Send the header Authorization: Bearer <token>; a local job's token is in rest.json in its folder, those of a job on a cluster are in files that the process config names (tokens).",
  },
  'MR-H02': {
    meaning: 'There is nothing under this path.',
    who: 'user',
    retry: false,
    remedy: 'GET /v1/openapi.json has all paths.',
  },
  'MR-H03': {
    meaning: 'The request is not understood.',
    who: 'user',
    retry: false,
    remedy: 'GET /v1/openapi.json has what each path takes.',
  },
  'MR-H04': {
    meaning: 'The job cannot take this request now.',
    who: 'user',
    retry: true,
    remedy: 'Look at GET /v1/job and ask again.',
  },
  'MR-H05': {
    meaning: 'The request id was used for another request.',
    who: 'user',
    retry: false,
    remedy: 'Give each request an id of its own, and repeat it under the same.',
  },
  'MR-H06': {
    meaning: 'The request could not be carried out.',
    who: 'millrace',
    retry: true,
    remedy: 'See what is said about it and ask again; the job itself is not touched by it.',
  },
  'MR-H07': {
    meaning: "This needs the owner's token; the request came with the reader's.",
    who: 'user',
    retry: false,
    remedy: "Send the owner's token (tokens.ownerFile of the process config), unless it is the operator's.",
  },
  'MR-H08': {
    meaning: 'The request is for another start of the job.',
    who: 'user',
    retry: false,
    remedy: 'Look at GET /v1/job, and ask again with its start if the request is still wanted.',
  },
  'MR-H09': {
    meaning: 'The history of the job cannot be read.',
    who: 'external system',
    retry: false,
    remedy: 'Nothing needs to be done: the job runs on, and what REST remembered of its past is begun anew.',
  },
  'MR-H10': {
    meaning: 'REST cannot be served at its address.',
    who: 'user',
    retry: true,
    remedy:
      'See that nothing else, such as another coordinator, uses the port of coordinator.restAddress, and that coordinator.listenHost is an address of this machine.',
  },
  'MR-H11': {
    meaning: 'The coordinator has not begun the job yet.',
    who: 'external system',
    retry: true,
    remedy: 'Ask again; GET /readyz says what it waits for, such as the object store.',
  },
  'MR-H12': {
    meaning: 'HEAD could not be read in time to answer a question.',
    who: 'external system',
    retry: true,
    remedy: 'See whether the object store answers; GET /v1/health says what it said.',
  },
} as const satisfies Record<string, ErrorRow>

export const restError = errorsOf(restErrors)

/** What each means to HTTP. */
const statuses: Readonly<Record<string, number>> = {
  'MR-H01': 401,
  'MR-H02': 404,
  'MR-H03': 400,
  'MR-H04': 409,
  'MR-H05': 409,
  'MR-H07': 403,
  'MR-H08': 409,
  'MR-H11': 503,
  'MR-H12': 503,
} satisfies Partial<Record<keyof typeof restErrors, number>>

export function statusOf(code: string): number {
  return statuses[code] ?? 500
}
