import { describe, expect, it } from 'vitest'
import { run } from './run.ts'

describe('a command', () => {
  it('gives what it printed, and takes what it is fed', async () => {
    expect(await run('cat', [], { input: 'words' })).toEqual({ stdout: 'words', stderr: '', code: 0 })
  })

  it('that fails says which, how and why; with anyCode that is an answer', async () => {
    const failing = ['-c', 'echo so; echo why >&2; exit 3']
    await expect(run('sh', failing)).rejects.toThrow(/`sh -c [^`]*` ended with 3; it said:\nso\n\nwhy/)
    expect(await run('sh', failing, { anyCode: true })).toEqual({ stdout: 'so\n', stderr: 'why\n', code: 3 })
  })

  it('that is not installed is named, with what it comes with', async () => {
    await expect(run('no-such-tool', ['x'], { needs: 'the package no-such' })).rejects.toThrow(
      '`no-such-tool x` could not be started: no-such-tool is not installed; needed: the package no-such',
    )
  })

  it('that does not end in time is ended with its children', async () => {
    // The child holds the output open: only when it is gone too does the command close.
    await expect(run('sh', ['-c', 'sleep 600 & wait'], { deadlineMs: 200 })).rejects.toThrow(
      'did not end within 200 ms',
    )
  })
})
