import { describe, expect, it } from 'vitest'
import { configOf, help, parseCommand } from './operator-command.ts'
import type { RunCommand } from './operator-command.ts'

const config = `version: 1
namespaces: []
defaults: { image: 'millrace:1' }
natsAccess: { kind: shared }
networkPolicy: false
lease: millrace
port: 8080
logLevel: info
`

describe('the command line of the operator', () => {
  it('runs by a config, with what it says over it', () => {
    const command = parseCommand([
      '--config',
      'c.yaml',
      '--namespaces',
      'a, b',
      '--port',
      '0',
      '--log-level',
      'debug',
    ]) as RunCommand
    expect(command.kind).toBe('run')
    expect(configOf(config, command)).toMatchObject({
      namespaces: ['a', 'b'],
      port: 0,
      logLevel: 'debug',
      lease: 'millrace',
    })
    expect(configOf(config, parseCommand(['--config', 'c.yaml']) as RunCommand)).toMatchObject({
      namespaces: [],
      port: 8080,
    })
    const all = parseCommand(['uninstall', '--config', 'c.yaml', '--namespaces', '*']) as RunCommand
    expect([all.kind, configOf(config, all).namespaces]).toEqual(['uninstall', []])
    expect(parseCommand(['--config', 'c', '--coordinators', '127.0.0.1:99'])).toMatchObject({
      coordinators: { host: '127.0.0.1', port: 99 },
    })
  })

  it('says what is wrong, and where', () => {
    for (const [words, why] of [
      [[], '--config is missing'],
      [['--bogus'], "Unknown option '--bogus'"],
      [['--config', 'c', '--namespaces', 'A'], '"A" is no name of a namespace'],
      [['--config', 'c', '--port', '70000'], '--port is "70000"'],
      [['--config', 'c', '--log-level', 'loud'], '--log-level is "loud"'],
      [['--config', 'c', '--coordinators', 'host'], 'host:port'],
    ] as const)
      expect(() => parseCommand(words)).toThrow(
        expect.objectContaining({ code: 'MR-P01', message: expect.stringContaining(why) as string }) as Error,
      )
    const command = parseCommand(['--config', 'c.yaml']) as RunCommand
    expect(() => configOf('version: 2', command)).toThrow(/MR-P02.*c\.yaml.*version/s)
    expect(() => configOf(': :', command)).toThrow(/MR-P02/)
  })

  it('has a line of help for each flag', () => {
    for (const flag of [
      'config',
      'namespace',
      'namespaces',
      'kubeconfig',
      'service-account',
      'server',
      'coordinators',
      'port',
      'log-level',
    ])
      expect(help).toContain(`--${flag} `)
  })
})
