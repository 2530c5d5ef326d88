import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { realEnvironment } from '../../local/platform/real-environment.ts'
import { supervise } from './supervise.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-supervise-'))
afterAll(() => rmSync(folder, { recursive: true }))

function supervised(script: string, backOffWords?: (backOffMs: number) => readonly string[]) {
  const restarts: unknown[] = []
  let signal: (name: NodeJS.Signals) => void = () => undefined
  const ended = supervise({
    command: [process.execPath, '-e', script],
    ...(backOffWords && { backOffWords }),
    environment: realEnvironment({ log: (_level, _message, fields) => restarts.push(fields) }),
    onSignal: (callback) => {
      signal = callback
    },
  })
  return { ended, restarts, signal: (name: NodeJS.Signals) => signal(name) }
}

describe('a supervised process', () => {
  it('that ends well, or with what another try would not mend, ends its supervisor with the same code', async () => {
    expect(await supervised('process.exit(0)').ended).toBe(0)
    expect(await supervised('process.exit(2)').ended).toBe(2)
  })

  it('that is killed or fails is started again', async () => {
    const { ended, restarts, signal } = supervised("process.kill(process.pid, 'SIGKILL')")
    await until(() => restarts.length >= 3)
    signal('SIGTERM')
    await ended
    expect(restarts.slice(0, 3)).toEqual([
      { code: null, signal: 'SIGKILL', livedMs: expect.any(Number), restartsInMs: 0 },
      { code: null, signal: 'SIGKILL', livedMs: expect.any(Number), restartsInMs: 0 },
      { code: null, signal: 'SIGKILL', livedMs: expect.any(Number), restartsInMs: 100 },
    ])
  })

  it('gets the signal to end, and says by its code how it went', async () => {
    const ready = join(folder, 'ready')
    const { ended, signal } = supervised(
      `process.on('SIGTERM', () => process.exit(7)); setInterval(() => {}, 1000)
      require('node:fs').writeFileSync(${JSON.stringify(ready)}, '')`,
    )
    await until(() => existsSync(ready))
    signal('SIGTERM')
    expect(await ended).toBe(7)
  })

  it('that was overtaken is followed by ones that are told how long to wait, until one of them owns the job', async () => {
    const lives = join(folder, 'lives')
    const supervise = JSON.stringify(fileURLToPath(new URL('./supervise.ts', import.meta.url)))
    // It ends as fenced, is killed, says that it owns the job and is killed, and ends well.
    const { ended } = supervised(
      `const fs = require('node:fs')
      fs.appendFileSync(${JSON.stringify(lives)}, JSON.stringify(process.argv.slice(1)) + '\\n')
      const life = fs.readFileSync(${JSON.stringify(lives)}, 'utf8').trim().split('\\n').length
      if (life === 1) process.exit(3)
      if (life === 2) process.kill(process.pid, 'SIGKILL')
      if (life === 4) process.exit(0)
      import(${supervise}).then(({ tellOwned }) => { tellOwned(); setTimeout(() => process.exit(1), 500) })`,
      (backOffMs) => ['--', String(backOffMs)],
    )
    expect(await ended).toBe(0)
    const words = readFileSync(lives, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as string[])
    expect(words).toEqual([[], [expect.stringMatching(/^1[0-5]\d{3}$/)], [expect.stringMatching(/^1?\d{4}$/)], []])
  })

  it('that does not exist is an error at once', async () => {
    const { restarts, ended } = (() => {
      const restarts: unknown[] = []
      const environment = realEnvironment({ log: (_level, _message, fields) => restarts.push(fields) })
      return { restarts, ended: supervise({ command: ['./no-such-program'], environment, onSignal: () => undefined }) }
    })()
    expect(await ended).toBe(1)
    expect(restarts).toEqual([{ reason: expect.stringContaining('ENOENT') }])
  })
})

describe('a supervisor that is killed', () => {
  const started: ChildProcess[] = []
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL')
  })

  it('takes its child with it', async () => {
    const module = (path: string) => JSON.stringify(fileURLToPath(new URL(path, import.meta.url)))
    const inner = `import(${module('./supervise.ts')}).then(({ endWithSupervisor }) => {
      endWithSupervisor(() => process.exit(1)); setInterval(() => {}, 1000); console.log('child ' + process.pid) })`
    const outer = `Promise.all([import(${module('./supervise.ts')}), import(${module('../../local/platform/real-environment.ts')})])
      .then(([{ supervise }, { realEnvironment }]) => supervise({ command: [process.execPath, '-e', ${JSON.stringify(inner)}],
        environment: realEnvironment({ log: () => {} }), onSignal: () => {} }))`
    const supervisor = spawn(process.execPath, ['-e', outer], { stdio: ['ignore', 'pipe', 'inherit'] })
    started.push(supervisor)
    let said = ''
    supervisor.stdout.on('data', (bytes: Buffer) => {
      said += bytes.toString()
    })
    await until(() => /child \d+/.test(said))
    const child = Number(/child (\d+)/.exec(said)![1])
    expect(isAlive(child)).toBe(true)
    supervisor.kill('SIGKILL')
    await until(() => !isAlive(child))
  })
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function until(condition: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 15_000
  while (!condition()) {
    if (performance.now() > deadlineMs) throw new Error('it did not come to that within 15 s')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
