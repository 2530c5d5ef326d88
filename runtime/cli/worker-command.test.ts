import { describe, expect, it } from 'vitest'
import { parseCommandLine } from './command-line.ts'
import { workerSyntax } from './worker-command.ts'

const parse = (line: string) => parseCommandLine(line.split(' '))

describe('millrace worker', () => {
  it('takes its config, and from the line what is not the same for all workers', () => {
    expect(parse('worker --config job.json')).toEqual({
      kind: 'worker',
      config: 'job.json',
      name: undefined,
      slots: undefined,
      supervised: false,
    })
    expect(parse('worker --config job.yaml --name w-3 --slots 4 --supervised')).toEqual({
      kind: 'worker',
      config: 'job.yaml',
      name: 'w-3',
      slots: 4,
      supervised: true,
    })
  })

  it('has every option in its help', () => {
    for (const option of ['config', 'name', 'slots', 'supervised']) expect(workerSyntax.help).toContain(`--${option} `)
  })

  it.each([
    ['worker', 'MR-L10 The command line is not understood. worker needs --config FILE.'],
    ['worker --config=', 'MR-L11 An option has a value that it cannot have. --config is empty.'],
    ['worker job.json --config a.json', 'worker takes options only; there is also job.json.'],
    ['worker --config a.json --slots 0', '--slots is 0; it must be a whole number from 1.'],
    ['worker --config a.json --name=', '--name is empty.'],
    ['worker --config a.json --fast', "worker: Unknown option '--fast'."],
  ])('%s is one clear error', (line, answer) => {
    expect(() => parse(line)).toThrow(answer)
  })
})
