import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { handleOf, isAlive, killProcess } from './process-handle.ts'

describe('a handle of a process', () => {
  it('is of a living one, and kills it', async () => {
    const child = spawn('sleep', ['600'])
    await once(child, 'spawn')
    const handle = handleOf(child.pid!)!
    expect(isAlive(handle)).toBe(true)
    const exit = once(child, 'exit')
    await killProcess(handle)
    expect(await exit).toEqual([null, 'SIGKILL'])
    expect(isAlive(handle)).toBe(false)
    expect(handleOf(child.pid!)).toBeUndefined()
  })

  it('of an earlier process with the same id is dead, and its kill spares the present one', async () => {
    const child = spawn('sleep', ['600'])
    await once(child, 'spawn')
    const earlier = { pid: child.pid!, startTicks: '1' }
    expect(isAlive(earlier)).toBe(false)
    await killProcess(earlier)
    expect(isAlive(handleOf(child.pid!)!)).toBe(true)
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
})
