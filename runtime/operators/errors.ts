// Errors of operators: what a user's function, window or sink may do wrong while records flow.

import { errorsOf } from '../base/errors.ts'

export const operatorErrors = {
  'MR-J50': {
    meaning: 'A function of the job threw.',
    who: 'user',
    retry: true,
    remedy: 'See the cause; the job restarts by its restart strategy.',
  },
  'MR-J51': {
    meaning: 'A function of the job gave a promise where none is allowed.',
    who: 'user',
    retry: false,
    remedy: 'Make it synchronous; an operator for asynchronous functions is not there yet.',
  },
  'MR-J52': {
    meaning: 'A record was changed after it was emitted.',
    who: 'user',
    retry: false,
    remedy:
      'Records are immutable: emit a new object instead, for example { ...record, field: value }. Values of state are changed by mutate, or replaced by update.',
  },
  'MR-J53': {
    meaning: 'A record without event time reached an event-time window.',
    who: 'user',
    retry: false,
    remedy: 'Give the source a watermark strategy, such as monotonic((record) => record.time).',
  },
  'MR-J54': {
    meaning: 'A window cannot have these sizes.',
    who: 'user',
    retry: false,
    remedy: 'Sizes and slides are whole milliseconds above 0, offsets and allowed lateness whole milliseconds.',
  },
  'MR-J55': {
    meaning: 'A function of the job gave something that it must not give.',
    who: 'user',
    retry: false,
    remedy: 'filter gives a boolean, flatMap and the process function of a window give an iterable.',
  },
  'MR-J60': {
    meaning: 'A sink could not commit within its deadline.',
    who: 'external system',
    retry: false,
    remedy:
      'Bring the external system back and give the same command again: what is permitted is committed before anything else runs.',
  },
  'MR-J61': {
    meaning: 'A sink could not make its records durable.',
    who: 'external system',
    retry: true,
    remedy: 'See the cause; the job restarts by its restart strategy and writes them again.',
  },
  'MR-J62': {
    meaning: 'A task ended while its sink was committing.',
    who: 'millrace',
    retry: true,
    remedy: 'Nothing: the next attempt commits what is permitted.',
  },
  'MR-J63': {
    meaning: 'The restore point holds transactions to commit for a sink that cannot commit.',
    who: 'user',
    retry: false,
    remedy:
      'Start the revision of the job that wrote them once more, so that it commits them, or use a two-phase sink under this uid.',
  },
  'MR-J64': {
    meaning: 'A subtask that had reached its end could not close in time.',
    who: 'user',
    retry: true,
    remedy:
      'See what close() of its functions, its source or its sink waits for; the job restarts by its restart strategy.',
  },
  'MR-J65': {
    meaning: 'What a sink may commit was refused.',
    who: 'user',
    retry: false,
    remedy: 'Mend the cause and give the same command again: what is permitted is committed before anything else runs.',
  },
} as const

export const operatorError = errorsOf(operatorErrors)
