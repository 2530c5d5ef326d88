import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freePorts } from '../../tests/servers/support/server-process.ts'
import { runCoordinator } from './coordinator-command.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-coordinator-command-'))
})
afterEach(async () => {
  delete held.letJobGoOn
  await rm(folder, { recursive: true, force: true })
})

/** What the job file below is held by. */
const held = globalThis as unknown as { letJobGoOn?: (() => void) | undefined }

describe('millrace coordinator', () => {
  it('leaves at once on a signal while its job file is loaded, which may wait for what never answers', async () => {
    const [workersPort, restPort] = (await freePorts(2)) as [number, number]
    await writeFile(join(folder, 'job.js'), 'await new Promise((resolve) => (globalThis.letJobGoOn = resolve))')
    await writeFile(join(folder, 'token'), 'a-token')
    const token = join(folder, 'token')
    const config = {
      version: 1,
      job: { id: 'uid-1', name: 'held', start: 1, file: join(folder, 'job.js') },
      storage: { checkpoints: `file://${join(folder, 'store')}` },
      nats: { servers: ['nats://127.0.0.1:4222'] },
      coordinator: { workersAddress: `127.0.0.1:${workersPort}`, restAddress: `127.0.0.1:${restPort}` },
      tokens: { workerFile: token, ownerFile: token, readerFile: token },
    }
    await writeFile(join(folder, 'process.json'), JSON.stringify(config))
    let onSignal: () => boolean = () => false
    const ended = runCoordinator(
      { kind: 'coordinator', config: 'process.json', supervised: false, stays: false, backOffMs: undefined },
      {
        folder,
        hostName: 'here',
        pid: 1,
        version: '1.0.0',
        failpoints: [],
        self: ['millrace'],
        writeLog: () => undefined,
        onSignal: (handler) => (onSignal = handler),
        kill: () => undefined,
      },
    )
    while (held.letJobGoOn === undefined) await new Promise((resolve) => setTimeout(resolve, 5))
    expect(onSignal()).toBe(false)

    held.letJobGoOn()
    await expect(ended).rejects.toThrow(/^MR-J02 /)
  })
})
