import { describe, expect, it } from 'vitest'
import { helpText, parseCommandLine } from './command-line.ts'

const parse = (line: string) => parseCommandLine(line === '' ? [] : line.split(' '))

describe('the command line', () => {
  it('names a job file and leaves the rest to defaults', () => {
    expect(parse('run jobs/orders.ts')).toEqual({
      kind: 'run',
      jobFile: 'jobs/orders.ts',
      args: {},
      namedArgs: [],
      parallelism: undefined,
      checkpointIntervalMs: undefined,
      folder: undefined,
      freeze: true,
      name: 'orders',
    })
  })

  it('takes every option', () => {
    const line =
      'run a.ts --args {"x":[1]} --arg y=2=3 --arg z= --parallelism 4 --checkpoint-interval 500 --folder there --no-freeze --name b'
    expect(parse(line)).toMatchObject({
      args: { x: [1] },
      namedArgs: [
        ['y', '2=3'],
        ['z', ''],
      ],
      parallelism: 4,
      checkpointIntervalMs: 500,
      folder: 'there',
      freeze: false,
      name: 'b',
    })
  })

  it('calls a job by its folder when its file is called as every job file is', () => {
    expect(parse('run examples/flights/job.ts')).toMatchObject({ name: 'flights' })
    expect(parse('run /somewhere/sums/main.js')).toMatchObject({ name: 'sums' })
  })

  it('gives help and version wherever they are asked for', () => {
    expect(parse('--help')).toEqual({ kind: 'help' })
    expect(parse('run a.ts -h')).toEqual({ kind: 'help' })
    expect(parse('--version')).toEqual({ kind: 'version' })
  })

  it('is refused with a sentence about what is wrong', () => {
    const said = (line: string): string => {
      try {
        parse(line)
      } catch (error) {
        return (error as Error).message
      }
      throw new Error(`${line} was taken`)
    }
    expect(said('')).toContain('MR-L10 The command line is not understood. It names no command. See millrace --help.')
    expect(said('runn a.ts')).toContain('There is no command runn.')
    expect(said('run')).toContain('run needs a job file.')
    expect(said('run a.ts b.ts')).toContain('there is also b.ts.')
    expect(said('run a.ts --fast')).toContain("Unknown option '--fast'.")
    expect(said('run a.ts --name')).toContain("Option '--name <value>' argument missing.")
    expect(said('run a.ts --no-freeze=1')).toMatch(/MR-L10.*--no-freeze/)
    for (const value of ['0', '1.5', '-1', 'two', ''])
      expect(said(`run a.ts --parallelism=${value}`)).toContain(
        `MR-L11 An option has a value that it cannot have. --parallelism is ${value}`,
      )
    expect(said('run a.ts --args [1]')).toContain('--args is [1]; it must be an object')
    expect(said('run a.ts --args {x:1}')).toContain('--args is no JSON')
    expect(said('run a.ts --arg input')).toContain('--arg input; it must be name=value.')
    expect(said('run a.ts --arg =1')).toContain('it must be name=value')
  })

  it('has every option in its help', () => {
    for (const option of ['args', 'arg', 'parallelism', 'checkpoint-interval', 'folder', 'name', 'no-freeze'])
      expect(helpText).toContain(`--${option} `)
  })
})
