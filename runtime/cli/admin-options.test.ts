import { describe, expect, it } from 'vitest'
import { parseCommandLine } from './command-line.ts'

const parse = (text: string) => parseCommandLine(text.split(' '))

describe('the words of millrace admin', () => {
  it('name the job by its config, by its store, or as one of this machine', () => {
    expect(parse('admin close --config job.yaml --start 3 --deleted --yes --output json')).toEqual({
      kind: 'admin',
      action: { verb: 'close', start: 3, deleted: true },
      target: { kind: 'config', file: 'job.yaml' },
      apply: true,
      output: 'json',
    })
    expect(parse('admin sweep --storage s3://b/p --job uid --s3-endpoint http://s3 --s3-path-style')).toMatchObject({
      action: { verb: 'sweep', jobIsDown: false },
      target: { kind: 'storage', url: 's3://b/p', job: 'uid', s3: { endpoint: 'http://s3', forcePathStyle: true } },
      apply: false,
      output: 'text',
    })
    expect(parse('admin commit --job job.ts --folder there --arg n=1 --assume-committed')).toMatchObject({
      action: { verb: 'commit', assumeCommitted: true },
      target: { kind: 'local', job: 'job.ts', folder: 'there', namedArgs: [['n', '1']] },
    })
  })

  it('name what is disposed of: a savepoint, or the checkpoints', () => {
    expect(parse('admin dispose /sp/savepoint-3 --job j --foreign')).toMatchObject({
      action: { verb: 'dispose', what: { kind: 'savepoint', path: '/sp/savepoint-3', foreign: true } },
    })
    expect(parse('admin dispose --checkpoints --job j')).toMatchObject({ action: { what: { kind: 'checkpoints' } } })
  })

  it.each([
    ['admin', 'needs a word'],
    ['admin burn --job j', 'has no burn'],
    ['admin close', 'needs --config, or --job'],
    ['admin close --config c --job j', '--job is what --config says'],
    ['admin close --storage file:///f', 'needs --config, or --job'],
    ['admin close --storage file:///f --job j --folder f', '--folder is for a job of this machine'],
    ['admin close --job j --s3-region r', '--s3-region is for --storage'],
    ['admin close --job j extra', 'does not take extra'],
    ['admin close --job j --deep', '--deep'],
    ['admin close --job j --start first', '--start is first'],
    ['admin close --job j --output yaml', '--output is yaml'],
    ['admin restore-point --job j --yes', '--yes'],
    ['admin dispose --job j', 'either the path of a savepoint or --checkpoints'],
    ['admin dispose /sp --checkpoints --job j', 'either the path of a savepoint or --checkpoints'],
    ['admin dispose --checkpoints --foreign --job j', '--foreign is about a savepoint'],
    ['admin dispose /one /two --job j', 'does not take /two'],
    ['preflight', 'needs --config'],
    ['preflight job.ts --config c', 'does not take job.ts'],
    ['preflight --config=', '--config is empty'],
  ])('refuse %s', (text, message) => {
    expect(() => parse(text)).toThrow(message)
    expect(() => parse(text)).toThrow(/^MR-L1[01] /)
  })
})
