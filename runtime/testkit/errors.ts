// Errors that the test kit gives.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow } from '../base/errors.ts'

export const testkitErrors = {
  'MR-K01': {
    meaning: 'What a test waited for did not come.',
    who: 'user',
    retry: false,
    remedy: 'See what the job waited for, mend the job or the condition, or give it more time by withinMs.',
  },
  'MR-K02': {
    meaning: 'A mini cluster was asked for what it cannot do now.',
    who: 'user',
    retry: false,
    remedy: 'Call its verbs one after another, each awaited, and in an order that a job can follow.',
  },
  'MR-K03': {
    meaning: 'A snapshot that a test asked for did not complete.',
    who: 'user',
    retry: false,
    remedy: 'Mend what its reason names; the job itself may still run.',
  },
  'MR-K04': {
    meaning: 'An operator for a harness must be exactly one.',
    who: 'user',
    retry: false,
    remedy: 'Give it the operator under test alone; test several together as a job in a mini cluster.',
  },
} as const satisfies Readonly<Record<string, ErrorRow>>

export const testkitError = errorsOf(testkitErrors)
