import { describe, expect, it } from 'vitest'
import { parseCommandLine } from './command-line.ts'
import { runSyntax } from './run-options.ts'
import { validateSyntax } from './validate-options.ts'

const parse = (line: string) => parseCommandLine(line === '' ? [] : line.split(' '))

/** What the command says of words that it does not take. */
function said(line: string): string {
  try {
    parse(line)
  } catch (error) {
    return (error as Error).message
  }
  throw new Error(`${line} was taken`)
}

describe('the command line', () => {
  it('names a job file and leaves the rest to manifest, job and defaults', () => {
    expect(parse('run jobs/orders.ts')).toEqual({
      kind: 'run',
      jobFile: 'jobs/orders.ts',
      args: {},
      namedArgs: [],
      parallelism: undefined,
      slots: undefined,
      checkpointIntervalMs: undefined,
      from: undefined,
      allowNonRestoredState: false,
      allowDrained: false,
      assumeCommitted: false,
      configMaps: [],
      folder: undefined,
      freeze: true,
      skipTypes: false,
      name: undefined,
    })
    expect(parse('validate jobs/orders.ts')).toEqual({
      kind: 'validate',
      jobFile: 'jobs/orders.ts',
      args: {},
      namedArgs: [],
      parallelism: undefined,
      configMaps: [],
      json: false,
    })
  })

  it('takes every option', () => {
    const line =
      'run a.ts --args {"x":[1]} --arg y=2=3 --arg z= --parallelism 4 --slots 5 --checkpoint-interval 500 --from there/savepoint-3 ' +
      '--allow-non-restored-state --allow-drained --assume-committed --folder there --no-freeze --skip-types --name b'
    expect(parse(line)).toEqual({
      kind: 'run',
      jobFile: 'a.ts',
      args: { x: [1] },
      namedArgs: [
        ['y', '2=3'],
        ['z', ''],
      ],
      parallelism: 4,
      slots: 5,
      checkpointIntervalMs: 500,
      from: 'there/savepoint-3',
      allowNonRestoredState: true,
      allowDrained: true,
      assumeCommitted: true,
      configMaps: [],
      folder: 'there',
      freeze: false,
      skipTypes: true,
      name: 'b',
    })
    expect(parse('validate job.yaml --arg a=1 --args {} --parallelism 3 --json --config-map code=src')).toMatchObject({
      namedArgs: [['a', '1']],
      parallelism: 3,
      configMaps: [['code', 'src']],
      json: true,
    })
  })

  it('gives help wherever it is asked for, of each command, and the version', () => {
    expect(parse('--help')).toMatchObject({
      kind: 'help',
      text: expect.stringMatching(/millrace run .*millrace validate /s),
    })
    expect(parse('run a.ts -h')).toEqual({ kind: 'help', text: runSyntax.help })
    expect(parse('run --help --nonsense')).toEqual({ kind: 'help', text: runSyntax.help })
    expect(parse('validate --help')).toEqual({ kind: 'help', text: validateSyntax.help })
    expect(parse('--version')).toEqual({ kind: 'version' })
  })

  it('has every option in its help', () => {
    const run =
      'args arg parallelism slots checkpoint-interval from allow-non-restored-state allow-drained config-map folder name no-freeze'
    for (const option of run.split(' ')) expect(runSyntax.help).toContain(`--${option} `)
    for (const option of ['args', 'arg', 'parallelism', 'config-map', 'json'])
      expect(validateSyntax.help).toContain(`--${option} `)
  })
})

describe('one clear error is the answer to', () => {
  it.each([
    ['', 'MR-L10 The command line is not understood. It names no command. millrace --help has the commands,'],
    ['runn a.ts', 'MR-L10 The command line is not understood. There is no command runn.'],
    ['--parallelism 2 run a.ts', 'It begins with --parallelism; the command comes first.'],
    ['run', 'run needs a job file.'],
    ['run --parallelism 2', 'run needs a job file.'],
    ['run a.ts b.ts', 'run takes one job file; there is also b.ts.'],
    ['run a.ts --fast', "run: Unknown option '--fast'."],
    ['run a.ts --paralelism 2', "run: Unknown option '--paralelism'. Is --parallelism meant?"],
    ['run a.ts --slot 2', "run: Unknown option '--slot'. Is --slots meant?"],
    ['run a.ts --json', "run: Unknown option '--json'."],
    ['run a.ts -p 3', "run: Unknown option '-p'."],
    ['run a.ts --no-freeze=1', "run: Option '--no-freeze' does not take an argument."],
    ['run a.ts --allow-drained=yes', "run: Option '--allow-drained' does not take an argument."],
    [
      'run a.ts --checkpoint-interval 5s',
      '--checkpoint-interval is 5s; it must be a whole number of milliseconds from 1. millrace <command> --help has each option with its values and their units.',
    ],
    ['run a.ts --parallelism two', '--parallelism is two; it must be a whole number from 1.'],
    ['run a.ts --args [1]', '--args is [1]; it must be an object'],
    ['run a.ts --args 1', '--args is 1; it must be an object'],
    ['run a.ts --args null', '--args is null; it must be an object'],
    ['run a.ts --args {x:1}', '--args is no JSON'],
    ['run a.ts --args=', '--args is no JSON'],
    ['run a.ts --arg input', '--arg input; it must be name=value.'],
    ['run a.ts --arg =1', '--arg =1; it must be name=value.'],
    ['run a.ts --from=', '--from is empty.'],
    ['run a.ts --from s3://bucket/sp', '--from is s3://bucket/sp; it must be a folder on this machine.'],
    ['run a.ts --folder=', '--folder is empty.'],
    ['run a.ts --name=', '--name is "", which must be letters'],
    ['run a.ts --name a:b', '--name is "a:b", which must be letters'],
    ['run a.ts --name ../up', '--name is "../up", which must be letters'],
    ['run a.ts --name a.2', '--name is "a.2", which must be letters'],
    ['run a.ts --name space/head', '--name is "space/head", which must be letters'],
    ['run a.ts --config-map code=src', '--config-map is for manifests; a.ts is none.'],
    ['run a.yaml --config-map code', '--config-map code; it must be name=value.'],
    ['run a.yaml --config-map code=', '--config-map code= is empty.'],
    ['run a.yaml --name b', '--name is b; a manifest names its job itself, by metadata.name.'],
    ['validate', 'validate needs a job file.'],
    ['validate a.ts --slots 2', "validate: Unknown option '--slots'."],
    ['validate a.ts --parallelism 0', '--parallelism is 0; it must be a whole number from 1.'],
    ['validate a.ts --json=1', "validate: Option '--json' does not take an argument."],
  ])('%s', (line, answer) => {
    expect(said(line)).toContain(answer)
    expect(said(line)).toMatch(/^MR-L1[01] /)
  })

  it.each(['args', 'arg', 'parallelism', 'slots', 'checkpoint-interval', 'from', 'config-map', 'folder', 'name'])(
    '--%s without a value',
    (option) => {
      expect(said(`run a.ts --${option}`)).toContain(
        `MR-L10 The command line is not understood. run: Option '--${option}`,
      )
      expect(said(`run a.ts --${option} --no-freeze`)).toMatch(/^MR-L10 .*argument is ambiguous/)
    },
  )

  for (const [option, number] of [
    ['parallelism', 'number'],
    ['slots', 'number'],
    ['checkpoint-interval', 'number of milliseconds'],
  ] as const)
    it.each(['0', '1.5', '-1', 'two', '', '1e3', '99999999999999999999'])(`--${option} %s`, (value) => {
      expect(said(`run a.ts --${option}=${value}`)).toContain(
        `MR-L11 An option has a value that it cannot have. --${option} is ${value}; it must be a whole ${number} from 1.`,
      )
    })
})
