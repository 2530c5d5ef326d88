import { describe, expect, it } from 'vitest'
import { buildDifference, buildText } from './build-difference.ts'

const build = { start: '3', code: 'c0', args: 'a0', size: 'p0', settings: 's0' }

describe('what two processes run', () => {
  it.each([
    [{ start: '2' }, 'Different: job.start (2 there, 3 here).'],
    [{ code: 'c1' }, 'Different: the job file.'],
    [
      { args: 'a1', size: 'p1', settings: 's1' },
      'Different: job.args, job.parallelism or job.maxParallelism, job.settings.',
    ],
  ])('differs in what is named: %o', (other, words) => {
    expect(buildDifference(buildText(build), buildText({ ...build, ...other }))).toBe(words)
  })

  it('is told also where the other says nothing that is understood', () => {
    expect(buildDifference(buildText(build), 'nonsense')).toMatch(/^Different: job.start, the job file, /)
    expect(buildDifference(buildText(build), `${buildText(build)} more=1`)).toBe(
      'It names what it runs in another form.',
    )
  })
})
