// Real workers' processes against a real NATS server; their coordinator is RemoteSlots alone, in this process.

import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { incarnation, jobId, slotId, start } from '../../runtime/base/ids.ts'
import type { FromSlot, ControlLink, ToSlot } from '../../runtime/control/contract.ts'
import { linkDeadlineMsMin } from '../../runtime/control/link.ts'
import { RemoteSlots } from '../../runtime/coordinator/remote-slots.ts'
import type { NatsLink, ProcessConfig } from '../../runtime/distributed/contract.ts'
import { buildOf } from '../../runtime/distributed/build-identity.ts'
import { listenForWorkers } from '../../runtime/distributed/platform/worker-listener.ts'
import { readSecret } from '../../runtime/distributed/process-config.ts'
import { NodeFiles } from '../../runtime/local/platform/node-files.ts'
import { realEnvironment } from '../../runtime/local/platform/real-environment.ts'
import { connectNats } from '../../runtime/network/nats/connect.ts'
import { controlSubjects } from '../../runtime/network/subjects.ts'
import { RunningCommand } from '../support/command.ts'
import { startNats } from './support/nats-server.ts'
import type { NatsServer } from './support/nats-server.ts'

const job = jobId('uid-1')
const log: string[] = []
const environment = realEnvironment({
  log: (_level, message, fields) => log.push(`${message} ${JSON.stringify(fields)}`),
})
const { version } = (await import('../../package.json', { with: { type: 'json' } })).default
const undo: (() => unknown)[] = []

let nats: NatsServer
let control: NatsLink
let folder: string

beforeAll(async () => {
  nats = await startNats()
  folder = await mkdtemp(join(tmpdir(), 'millrace-worker-'))
  control = await connectNats(
    { servers: [nats.url] },
    {
      job,
      name: 'coordinator',
      environment,
      log: (level, message, fields) => environment.log(level, message, fields),
      readSecret: (file) => readSecret('', file, new NodeFiles()),
    },
  )
})
afterAll(async () => {
  await control.close()
  await nats.stop()
  await rm(folder, { recursive: true, force: true })
})
afterEach(async () => {
  for (const act of undo.splice(0).toReversed()) await act()
})

async function coordinator(port = 0, overrides: Partial<ProcessConfig['job']> = {}) {
  const slots = new RemoteSlots({
    job,
    runtimeVersion: version,
    build: await buildOf({ job: jobWith(overrides) }, new NodeFiles()),
    token: 'worker-token',
    environment,
    linkDeadlineMs: linkDeadlineMsMin,
    openPort: (slot, number) => {
      const subjects = controlSubjects(job, slot, number)
      return control.datagrams({ own: subjects.coordinator, peer: subjects.slot })
    },
  })
  const listener = await listenForWorkers({
    host: '127.0.0.1',
    port,
    certificate: undefined,
    log: (level, message, fields) => environment.log(level, message, fields),
    accept: (connection) => slots.accept(connection),
  })
  const end = (): void => {
    slots.abandon()
    listener.close()
  }
  undo.push(end)
  return { slots, port: listener.port, end }
}

function jobWith(overrides: Partial<ProcessConfig['job']>): ProcessConfig['job'] {
  const file = fileURLToPath(new URL('../whole/jobs/words-job.ts', import.meta.url))
  return { id: job, name: 'words', start: start(1), file, args: { input: folder }, ...overrides }
}

async function configFor(port: number, job: Partial<ProcessConfig['job']> = {}): Promise<string> {
  const config = {
    version: 1,
    job: jobWith(job),
    storage: { checkpoints: `file://${folder}/store` },
    nats: { servers: [nats.url] },
    coordinator: { workersAddress: `127.0.0.1:${port}`, restAddress: '127.0.0.1:1' },
    tokens: { workerFile: `${folder}/token`, ownerFile: `${folder}/token`, readerFile: `${folder}/token` },
    worker: { slots: 2 },
  }
  await writeFile(join(folder, 'token'), 'worker-token\n')
  const file = join(folder, `config-${port}.json`)
  await writeFile(file, JSON.stringify(config))
  return file
}

function worker(config: string, ...words: string[]): RunningCommand {
  const command = new RunningCommand(['worker', '--config', config, '--name', 'w-0', ...words], { folder })
  undo.push(async () => {
    command.kill('SIGKILL')
    await command.ended
  })
  return command
}

function watch(link: ControlLink<ToSlot, FromSlot>) {
  const seen = { messages: [] as FromSlot[], lost: [] as string[] }
  link.onMessage((message) => seen.messages.push(message))
  link.onLost((reason) => seen.lost.push(reason))
  return seen
}

describe('a worker process', () => {
  it('builds the job in each slot, ends slots on the word of its coordinator, and is lost at once when it is killed', async () => {
    const { slots, port } = await coordinator()
    const command = worker(await configFor(port))
    const seen = ['0#1.1', '1#1.1'].map((slot) =>
      watch(slots.start(slotId(slot), { incarnation: incarnation(1), parallelism: 2 })),
    )
    await until(() => seen.every(({ messages }) => messages.length > 0))
    const [first, second] = seen.map(({ messages }) => messages[0]!)
    expect(first).toMatchObject({ type: 'registered', slot: '0#1.1', tasks: [] })
    expect(first).toMatchObject({ graphHash: (second as { graphHash: string }).graphHash })
    await slots.terminate(slotId('0#1.1'))
    expect(slots.workers[0]?.running).toEqual(['1#1.1'])
    // Another parallelism is another graph.
    const rescaled = watch(slots.start(slotId('0#1.2'), { incarnation: incarnation(1), parallelism: 3 }))
    await until(() => rescaled.messages.length > 0)
    expect((rescaled.messages[0] as { graphHash: string }).graphHash).not.toBe(
      (second as { graphHash: string }).graphHash,
    )
    const killedAtMs = performance.now()
    command.kill('SIGKILL')
    await until(() => seen[1]!.lost.length > 0)
    // Long before heartbeats are missed.
    expect(performance.now() - killedAtMs).toBeLessThan(2_000)
    expect(seen[1]!.lost[0]).toMatch(/^worker w-0 is lost: /)
  })

  it('with a thread that nothing interrupts is killed, and its supervisor starts it again', async () => {
    const file = join(folder, 'blocks.ts')
    const mark = join(folder, 'blocks')
    await writeFile(
      file,
      // The mark is the shell's: made by the thread, it would be seen a moment before the call that nothing interrupts.
      `import { execFileSync } from 'node:child_process'
execFileSync('sh', ['-c', ': > ${mark}; while [ -e ${mark} ]; do sleep 0.1; done'])
`,
    )
    undo.push(() => rm(mark, { force: true }))
    const { slots, port } = await coordinator(0, { file })
    const command = worker(await configFor(port, { file }), '--supervised')
    const seen = watch(slots.start(slotId('0#1.1'), { incarnation: incarnation(1), parallelism: 1 }))
    await until(() => existsSync(mark))
    const { sinceMs } = slots.workers[0]!
    await slots.terminate(slotId('0#1.1'))
    expect(slots.workers).toMatchObject([{ name: 'w-0', state: 'lost' }])
    await until(() => slots.workers[0]?.state === 'registered')
    expect(slots.workers[0]!.sinceMs).toBeGreaterThan(sinceMs)
    expect(command.stderr).toMatch(/MR-D23 .*Slot 0#1\.1 was asked to end 30 s ago\./)
    expect(seen).toEqual({ messages: [], lost: [] })
  })

  it('keeps its slots when the coordinator is gone and brings them to the next one', async () => {
    const first = await coordinator()
    worker(await configFor(first.port))
    const seen = watch(first.slots.start(slotId('0#1.1'), { incarnation: incarnation(1), parallelism: undefined }))
    await until(() => seen.messages.length > 0)
    first.end()
    const next = await coordinator(first.port)
    const survivors = await next.slots.survivors({
      incarnation: incarnation(2),
      enough: (slots) => slots.length === 1,
      slotsNeeded: 9,
      deadlineMs: 30_000,
    })
    expect(survivors.map(({ slot }) => slot)).toEqual(['0#1.1'])
    expect(survivors[0]!.registered).toMatchObject({ tasks: [] })
    await next.slots.terminate(slotId('0#1.1'))
  })

  it('says in a slot what is wrong with the job', async () => {
    const file = join(folder, 'no-job.ts')
    await writeFile(file, 'export default 1\n')
    const { slots, port } = await coordinator(0, { file })
    worker(await configFor(port, { file }))
    const seen = watch(slots.start(slotId('0#1.1'), { incarnation: incarnation(1), parallelism: undefined }))
    await until(() => seen.messages.length > 0)
    expect(seen.messages[0]).toMatchObject({ type: 'failed', error: { code: 'MR-J02' } })
  })

  it('ends well when its coordinator has moved its slots, or says that the job has ended', async () => {
    const { slots, port } = await coordinator()
    const config = await configFor(port)
    const leaving = worker(config)
    const asked = Promise.withResolvers<unknown>()
    slots.onLeaving(asked.resolve)
    const seen = watch(slots.start(slotId('0#1.1'), { incarnation: incarnation(1), parallelism: undefined }))
    await until(() => seen.messages.length > 0)
    leaving.kill('SIGTERM')
    expect(await asked.promise).toMatchObject({ worker: 'w-0', slots: ['0#1.1'], graceMs: 25_000 })
    await slots.terminate(slotId('0#1.1'))
    expect(await leaving.ended).toMatchObject({ exitCode: 0 })

    slots.dismiss('the job has finished')
    expect(await worker(config).ended).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('the worker ends: the job has finished'),
    })
  })

  it('under a supervisor is there again at once after a kill, and ends with it', async () => {
    const { slots, port } = await coordinator()
    const supervisor = worker(await configFor(port), '--supervised')
    const pids: number[] = []
    for (let life = 0; life < 2; life++) {
      const seen = watch(
        slots.start(slotId(`0#1.${life + 1}`), { incarnation: incarnation(1), parallelism: undefined }),
      )
      await until(() => seen.messages.length > 0)
      const child = childOf(supervisor)
      pids.push(child)
      process.kill(child, 'SIGKILL')
      await until(() => seen.lost.length > 0)
    }
    expect(new Set(pids).size).toBe(2)
    await until(() => slots.workers.some(({ state }) => state === 'registered'))
    supervisor.kill('SIGTERM')
    expect(await supervisor.ended).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('is started again') })
  })

  it('with a wrong token, config or line says so and ends with code 2', async () => {
    const { port } = await coordinator()
    const config = await configFor(port)
    await writeFile(join(folder, 'token'), 'another-token')
    const refused = await worker(config, '--supervised').ended
    expect(refused.exitCode).toBe(2)
    expect(refused.stderr).toMatch(/MR-D22 .*MR-D04/)
    expect(refused.stderr).not.toContain('another-token')
    await writeFile(join(folder, 'token'), '')
    const empty = await worker(config).ended
    expect(empty).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(/^MR-D32 .*which is empty/) })
    const missing = await worker(join(folder, 'none.json')).ended
    expect(missing).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(/^MR-D30 .*none\.json/) })
  })
})

/** The newest life that has written into the log. */
function childOf(command: RunningCommand): number {
  const pids = [...command.stderr.matchAll(/"process":"worker","worker":"w-0","pid":(\d+)/g)]
  return Number(pids.at(-1)![1])
}

async function until(condition: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 60_000
  while (!condition()) {
    if (performance.now() > deadlineMs)
      throw new Error(`it did not come to that within 60 s:\n${log.slice(-10).join('\n')}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
