import { describe, expect, it } from 'vitest'
import { downCommand, readOptions } from './options.ts'

describe('the words of npm run e2e', () => {
  it('are none: the core and others for twenty minutes on a kind cluster that goes at the end', () => {
    expect(readOptions([])).toMatchObject({ names: [], all: false, keep: false, minutes: 20, kubeconfig: undefined })
  })

  it('may be scenarios beside options', () => {
    expect(readOptions(['first job', '--keep', 'node-lost', '--minutes', '0'])).toMatchObject({
      names: ['first job', 'node-lost'],
      keep: true,
      minutes: 0,
    })
  })

  it('split the command that loads images', () => {
    const { load } = readOptions(['--kubeconfig', 'x', '--load', 'minikube  image load'])
    expect(load).toEqual(['minikube', 'image', 'load'])
  })

  it('may ask for help, or for the end of what was kept', () => {
    expect(readOptions([])).toMatchObject({ help: false, down: false })
    for (const help of ['--help', '-h']) expect(readOptions([help])).toMatchObject({ help: true })
    expect(readOptions(['--down', '--name', 'mine'])).toMatchObject({ down: true, clusterName: 'mine' })
  })

  it('that end a kept cluster name it', () => {
    expect(downCommand(readOptions(['--keep']))).toBe('npm run e2e -- --down')
    expect(downCommand(readOptions(['--keep', '--name', 'mine']))).toBe('npm run e2e -- --down --name mine')
    expect(downCommand(readOptions(['--keep', '--kubeconfig', '/a b/c']))).toBe(
      "npm run e2e -- --down --kubeconfig '/a b/c'",
    )
  })

  it('that are wrong are named', () => {
    for (const more of ['--keep', '--all', '--list', 'node lost'])
      expect(() => readOptions(['--down', more])).toThrow('--down brings nothing up')
    expect(() => readOptions(['--minutes', 'ten'])).toThrow('--minutes takes a number, not "ten"')
    expect(() => readOptions(['--image', 'x'])).toThrow('--image is for an existing cluster')
    expect(() => readOptions(['--keeep'])).toThrow('--keeep')
  })
})
