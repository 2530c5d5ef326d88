import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, it } from 'vitest'

const started: ChildProcess[] = []
afterEach(() => {
  for (const child of started.splice(0)) {
    child.kill('SIGKILL')
    // What blocks its thread reads from there, and outlives it.
    child.stdin!.end()
  }
})

it.each(['SIGINT', 'SIGTERM'] as const)(
  'the last %s ends the process at once, by that signal, though a thread is in a call that nothing interrupts',
  async (signal) => {
    const module = JSON.stringify(fileURLToPath(new URL('./signals.ts', import.meta.url)))
    const blocked = `require('node:child_process').execFileSync('sh', ['-c', 'echo blocked; cat'], { stdio: 'inherit' })`
    const program = `import(${module}).then(({ handleSignals }) => {
      handleSignals(() => false)
      new (require('node:worker_threads').Worker)(${JSON.stringify(blocked)}, { eval: true }) })`
    const child = spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'pipe', 'inherit'] })
    started.push(child)
    const exited = once(child, 'exit')
    expect(String(await once(child.stdout, 'data'))).toBe('blocked\n')
    child.kill(signal)
    expect(await exited).toEqual([null, signal])
  },
)
