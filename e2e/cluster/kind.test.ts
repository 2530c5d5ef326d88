import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { kindCluster } from './kind.ts'
import { handleOf, isAlive } from './process-handle.ts'
import type { ProcessHandle } from './process-handle.ts'

const name = 'of-a-test'
let cache = ''
let folder = ''
let started: ChildProcess[] = []

beforeEach(async () => {
  cache = await mkdtemp(join(tmpdir(), 'millrace-kind-'))
  vi.stubEnv('MILLRACE_CACHE', cache)
  folder = join(cache, 'clusters', name)
})

afterEach(async () => {
  vi.unstubAllEnvs()
  for (const child of started) child.kill('SIGKILL')
  started = []
  await rm(cache, { recursive: true, force: true })
})

function someProcess(): ProcessHandle {
  const child = spawn('sleep', ['60'])
  started.push(child)
  return handleOf(child.pid!)!
}

/** As a run with --keep leaves them: its engine runs, it has ended itself. */
async function kept(engine: ProcessHandle, owner: ProcessHandle): Promise<void> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'kubeconfig'), 'a')
  await writeFile(join(folder, 'owner.json'), JSON.stringify(owner))
  await writeFile(join(folder, 'engine.json'), JSON.stringify({ handle: engine, relayPort: 1 }))
}

const left = (): string[] =>
  ['kubeconfig', 'owner.json', 'engine.json'].filter((file) => existsSync(join(folder, file)))

describe('a kept cluster', () => {
  it('is taken down by a run that did not bring it up, with its kubeconfig and owner file', async () => {
    const engine = someProcess()
    await kept(engine, { ...engine, startTicks: '1' })
    expect(await kindCluster({ name }).downKept()).toBe(true)
    expect(isAlive(engine)).toBe(false)
    expect(left()).toEqual([])
  })

  it('that another run uses is not', async () => {
    const [engine, owner] = [someProcess(), someProcess()]
    await kept(engine, owner)
    await expect(kindCluster({ name }).downKept()).rejects.toThrow(`process ${owner.pid} uses a cluster ${name}`)
    expect(isAlive(engine)).toBe(true)
    expect(left()).toHaveLength(3)
  })

  it('that is not there is said to be none', async () => {
    expect(await kindCluster({ name }).downKept()).toBe(false)
    expect(existsSync(folder)).toBe(false)
  })
})
