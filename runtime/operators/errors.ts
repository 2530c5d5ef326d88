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
    remedy: 'Make it synchronous, or await within mapAsync or flatMapAsync.',
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
    meaning: 'A window or its trigger cannot have these sizes.',
    who: 'user',
    retry: false,
    remedy:
      "Sizes, slides, gaps and intervals are whole milliseconds above 0, offsets and allowed lateness whole milliseconds, counts whole numbers above 0, and a time is 'event' or 'processing'.",
  },
  'MR-J55': {
    meaning: 'A function of the job gave something that it must not give.',
    who: 'user',
    retry: false,
    remedy:
      "filter gives a boolean, flatMap and the process function of a window give an iterable, a trigger gives 'continue', 'fire', 'purge' or 'fire and purge'.",
  },
  'MR-J56': {
    meaning: 'Session windows become one when a record falls between them, and these cannot.',
    who: 'user',
    retry: false,
    remedy: 'Give the aggregate a merge(left, right), and a trigger of your own an onMerge.',
  },
  'MR-J57': {
    meaning: 'A global window has no end at which it could fire.',
    who: 'user',
    retry: false,
    remedy: 'Say when it fires, for example by .trigger(purging(countTrigger(100))).',
  },
  'MR-J58': {
    meaning: 'These windows have no late records.',
    who: 'user',
    retry: false,
    remedy: 'Leave out allowedLateness and lateTo: they are for event-time windows that end.',
  },
  'MR-J59': {
    meaning: 'A trigger waits for an end that these windows do not have.',
    who: 'user',
    retry: false,
    remedy:
      'Use eventTimeTrigger() with event-time windows and the global window, processingTimeTrigger() with windows of processing time, or leave the trigger out.',
  },
  'MR-J68': {
    meaning: 'A key selector gave two keys for one record.',
    who: 'user',
    retry: false,
    remedy:
      'It must give the same key for the same record whenever and wherever it is asked: no random number, no clock, no field that the schema of the stream leaves out. To salt a key, write the salt into the record by a map before keyBy.',
  },
  'MR-J69': {
    meaning: 'A sink whose writer keeps state has no uid.',
    who: 'user',
    retry: false,
    remedy: "Add .uid('…') to it, so that its state is found again after a restart, or set env.config.autoUid = true.",
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
  'MR-J66': {
    meaning: 'A subtask could not open in time.',
    who: 'external system',
    retry: true,
    remedy: 'See what open() of its functions or its sink waits for; the job restarts by its restart strategy.',
  },
  'MR-J67': {
    meaning: 'A subtask that had reached its end could not write its final state in time.',
    who: 'external system',
    retry: true,
    remedy:
      'See what prepareCommit() or snapshot() of its sink waits for, and the store; the job restarts by its restart strategy. A large state may need a longer checkpointTimeoutMs.',
  },
  'MR-J65': {
    meaning: 'What a sink may commit was refused.',
    who: 'user',
    retry: false,
    remedy:
      'Mend the cause and give the same command again: what is permitted is committed before anything else runs. If you know that transactions which are not known any more were committed, give --assume-committed, or set onUnknownCommit.',
  },
  'MR-J70': {
    meaning: 'An asynchronous function did not answer within its timeout.',
    who: 'external system',
    retry: true,
    remedy:
      'See why what it calls is slow, give a larger timeoutMs, or say with onTimeout what the result is then; the job restarts by its restart strategy.',
  },
  'MR-J71': {
    meaning: 'An asynchronous operator cannot have this option.',
    who: 'user',
    retry: false,
    remedy:
      "timeoutMs is whole milliseconds from 1; capacity and the attempts of retries are whole numbers from 1; delays are whole milliseconds, maxDelayMs not below delayMs; order is 'ordered' or 'unordered'; onTimeout is 'fail' or a function.",
  },
  'MR-J73': {
    meaning: 'An operator has too many metrics.',
    who: 'user',
    retry: false,
    remedy: 'Name metrics by what they count, not by the record that they count: each is in every report.',
  },
  'MR-J72': {
    meaning: 'A metric of the job cannot have this name.',
    who: 'user',
    retry: false,
    remedy:
      'Use a-z, 0-9 and _ with a letter first, at most 100 characters, and one name for one counter, gauge or histogram of an operator.',
  },
  'MR-J74': {
    meaning: 'A sink prepares transactions and has nothing to commit them with.',
    who: 'user',
    retry: false,
    remedy: 'Give the sink a createCommitter, or let the prepareCommit of its writers resolve to [].',
  },
  'MR-J80': {
    meaning: 'A record without event time reached an interval join.',
    who: 'user',
    retry: false,
    remedy: 'Give both sources a watermark strategy, such as monotonic((record) => record.time).',
  },
  'MR-J81': {
    meaning: 'An interval join cannot have these bounds.',
    who: 'user',
    retry: false,
    remedy:
      'Bounds are whole milliseconds, right minus left, the lower one first: between(-5_000, 0) joins what came up to 5 s before. With exclusive bounds there must be a millisecond between them.',
  },
} as const

export const operatorError = errorsOf(operatorErrors)
