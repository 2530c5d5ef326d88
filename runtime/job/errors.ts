// Errors in a job file, found while its graph is built: before any record.

import { errorsOf } from '../base/errors.ts'

export const jobErrors = {
  'MR-J01': {
    meaning: "The job's arguments do not fit.",
    who: 'user',
    retry: false,
    remedy: "Give arguments as the job file's schema says.",
  },
  'MR-J02': {
    meaning: 'This module is no job.',
    who: 'user',
    retry: false,
    remedy: 'Write export default defineJob((env) => { … }) in the job file.',
  },
  'MR-J03': {
    meaning: 'An operator with state has no uid.',
    who: 'user',
    retry: false,
    remedy:
      "Add .uid('…') (for a source the option uid), so that its state is found again after a change, or set env.config.autoUid = true.",
  },
  'MR-J04': {
    meaning: 'Two operators have the same uid.',
    who: 'user',
    retry: false,
    remedy: 'Give each its own: state is stored under it.',
  },
  'MR-J05': {
    meaning: 'This cannot be a uid.',
    who: 'user',
    retry: false,
    remedy: 'Use 1 to 100 of the characters A-Z a-z 0-9 . _ -',
  },
  'MR-J06': {
    meaning: 'This parallelism is not possible.',
    who: 'user',
    retry: false,
    remedy: 'Use a whole number from 1 to env.config.maxParallelism (128 unless set before the first start).',
  },
  'MR-J07': {
    meaning: 'Records of the job go nowhere.',
    who: 'user',
    retry: false,
    remedy: 'End every stream with .sinkTo(…), or remove it.',
  },
  'MR-J08': {
    meaning: 'A setting of the job is out of its range.',
    who: 'user',
    retry: false,
    remedy: 'See the docstrings of env.config for units and ranges.',
  },
  'MR-J09': {
    meaning: 'A key selector gave something that is no key.',
    who: 'user',
    retry: false,
    remedy:
      'A key is a string, bigint, boolean, number other than NaN, or an array of such; look for a misspelt or missing field.',
  },
  'MR-J10': {
    meaning: 'The job function threw.',
    who: 'user',
    retry: false,
    remedy: 'See the cause.',
  },
  'MR-J11': {
    meaning: 'The job function gave a promise.',
    who: 'user',
    retry: false,
    remedy:
      'Build the job synchronously; what must be awaited belongs into open() of a process function or into a source.',
  },
  'MR-J12': {
    meaning: 'Streams of two different jobs were joined.',
    who: 'user',
    retry: false,
    remedy: 'Use only streams that come from the env given to this job function.',
  },
  'MR-J13': {
    meaning: 'These two streams cannot be connected or joined.',
    who: 'user',
    retry: false,
    remedy:
      'connect takes a broadcast stream, or a stream that is keyed as its other side is: key both by keyBy, or neither; intervalJoin takes two keyed streams, join and coGroup two that are not and windows.',
  },
  'MR-J14': {
    meaning: 'The job could not be loaded in time.',
    who: 'user',
    retry: true,
    remedy: 'See what the job file waits for while it is loaded, such as a server at the top level of a module.',
  },
} as const

export const jobError = errorsOf(jobErrors)
