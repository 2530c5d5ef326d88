import { describe, expect, it } from 'vitest'
import { readOptions } from './options.ts'

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

  it('that are wrong are named', () => {
    expect(() => readOptions(['--minutes', 'ten'])).toThrow('--minutes takes a number, not "ten"')
    expect(() => readOptions(['--image', 'x'])).toThrow('--image is for an existing cluster')
    expect(() => readOptions(['--keeep'])).toThrow('--keeep')
  })
})
