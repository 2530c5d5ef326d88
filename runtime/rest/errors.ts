// Errors that REST answers with.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow } from '../base/errors.ts'

export const restErrors = {
  'MR-H01': {
    meaning: 'The request has no valid token.',
    who: 'user',
    retry: false,
    remedy: "Send the header Authorization: Bearer <token>; a local job's token is in rest.json in its folder.",
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
} as const satisfies Record<string, ErrorRow>

export const restError = errorsOf(restErrors)

/** What each means to HTTP. */
const statuses: Readonly<Record<string, number>> = {
  'MR-H01': 401,
  'MR-H02': 404,
  'MR-H03': 400,
  'MR-H04': 409,
  'MR-H05': 409,
} satisfies Partial<Record<keyof typeof restErrors, number>>

export function statusOf(code: string): number {
  return statuses[code] ?? 500
}
