import { expect, it } from 'vitest'
import { coordinatorError } from '../coordinator/errors.ts'
import { storageError } from '../storage/errors.ts'
import { isUnanswered } from './unanswered.ts'

it.each<[unknown, boolean]>([
  [storageError('MR-S01', 'It is down.'), true],
  [storageError('MR-S08', 'No access.'), true],
  [storageError('MR-S30', 'Wrong key.'), true],
  [storageError('MR-S32', 'No bucket.'), true],
  [new Error('socket hang up'), true],
  [storageError('MR-S10', 'Damaged.'), false],
  [storageError('MR-S37', 'Another checksum.'), false],
  [coordinatorError('MR-O17', 'Of another job.'), false],
])('%s is no answer: %s', (error, unanswered) => {
  expect(isUnanswered(error)).toBe(unanswered)
})
