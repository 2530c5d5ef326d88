import { describe, expect, it } from 'vitest'
import { earlyThreadCount } from './early-threads.ts'
import { sparesMax } from './spare-threads.ts'

describe('threads started before the command line is read', () => {
  it.each([
    [['run', 'job.ts'], 8, 2],
    [['run', 'job.ts'], 1, 1],
    [['run', 'job.ts', '--parallelism=3'], 8, 3],
    [['run', '--parallelism', '1', 'job.ts'], 8, 1],
    [['run', 'job.ts', '--parallelism=3'], 2, 2],
    [['run', 'job.ts', '--parallelism', '100'], 64, sparesMax],
  ])('%j on %i processors: %i', (words, processors, count) => {
    expect(earlyThreadCount(words, processors)).toBe(count)
  })

  it('are as usual where the parallelism is none: the reader of the words refuses it', () => {
    for (const words of [['--parallelism'], ['--parallelism=x'], ['--parallelism', '-1'], ['--parallelism=0']])
      expect(earlyThreadCount(['run', 'job.ts', ...words], 8)).toBe(2)
  })

  it('are none for a command that runs no job', () => {
    for (const words of [[], ['status'], ['validate', 'job.ts'], ['run', '--help'], ['run', '-h']])
      expect(earlyThreadCount(words, 8)).toBe(0)
  })
})
