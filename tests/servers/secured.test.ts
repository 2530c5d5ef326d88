// A whole job over NATS with TLS, credentials and an inbox prefix of its own; and NATS away for longer than channels bear, or a cluster of which
// one server dies.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { testAuthority } from '../support/certificates.ts'
import { distributedWorld } from './support/distributed-world.ts'
import { jobCredentials } from './support/nats-credentials.ts'
import { startNats } from './support/nats-server.ts'
import type { NatsServer } from './support/nats-server.ts'
import { freePorts, until } from './support/server-process.ts'

const world = distributedWorld('secured')

let folder: string
let own: NatsServer[]
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-secured-'))
  own = []
})
afterEach(async () => {
  for (const server of own) await server.stop()
  await rm(folder, { recursive: true, force: true })
})

async function startOwn(config: string): Promise<NatsServer> {
  const server = await startNats({ config })
  own.push(server)
  return server
}

interface Connection {
  readonly name: string
  readonly tls_version?: string
  readonly ip: string
}

async function connectionsOf(server: NatsServer): Promise<readonly Connection[]> {
  return ((await server.monitor('connz')) as { readonly connections: readonly Connection[] }).connections
}

describe('a job over NATS', () => {
  it('with TLS, credentials and an inbox prefix is exact when the server and a worker are killed', async () => {
    const authority = await testAuthority()
    const { cert, key } = await authority.issue(['127.0.0.1'])
    const job = await world.prepared()
    const issued = jobCredentials()
    const files = { ca: authority.ca, cert, key, credentials: issued.credentials(job.id) }
    const pathOf = (name: keyof typeof files): string => join(folder, name)
    for (const [name, content] of Object.entries(files))
      await writeFile(pathOf(name as keyof typeof files), content, { mode: 0o600 })
    const server = await startOwn(
      `${issued.config}\ntls { cert_file: "${pathOf('cert')}", key_file: "${pathOf('key')}" }`,
    )
    const nats = {
      servers: [server.url.replace('nats:', 'tls:')],
      credentialsFile: pathOf('credentials'),
      tls: { caFile: pathOf('ca') },
      inboxPrefix: `_INBOX_${job.id}`,
    }
    await job.writeConfig({ ...job.config, nats })
    await job.startAll()
    await job.checkpoints(1)
    const connections = await connectionsOf(server)
    // Of the coordinator, of each worker and of each slot.
    expect(connections.length).toBeGreaterThanOrEqual(5)
    for (const connection of connections) expect(connection.tls_version, connection.name).toMatch(/^1\.[23]$/)
    await server.process.restart()
    await job.checkpoints(1)
    expect(await job.status()).toMatchObject({ incarnation: 1, restarts: 0 })
    await job.replaceWorker('worker-0')
    await job.until('the restart', async () => (await job.status())?.restarts === 1)
    await job.checkpoints(1)
    await world.expectExactToTheEnd(job)
  })

  it('that is away for longer than its channels bear restarts, and is exact', async () => {
    const settings = { channelDeadlineMs: 4_000 }
    const job = await world.started({ settings, nats: await startOwn('') })
    await job.checkpoints(1)
    const [server] = own as [NatsServer]
    await server.process.kill()
    const given = (): boolean => [...job.workers.values()].some(({ output }) => /subtask failed.*MR-W02/.test(output))
    await job.until('the channels to be given up', given)
    await server.process.start()
    // The coordinator hears of it over NATS.
    await job.until('it to be told', async () => {
      const { body } = (await job.answer('GET', '/v1/exceptions')) ?? {}
      return (body?.exceptions ?? []).some(({ code }: { readonly code: string }) => code === 'MR-W02')
    })
    await job.running()
    await job.checkpoints(1)
    const { incarnation, restarts } = await job.status()
    expect(incarnation).toBe(1)
    expect(restarts).toBeGreaterThan(0)
    await world.expectExactToTheEnd(job)
  })

  it('of three servers goes on without a restart while each of them is killed', async () => {
    const ports = await freePorts(3)
    const routes = ports.map((port) => `nats://127.0.0.1:${port}`).join(', ')
    for (const [index, port] of ports.entries())
      await startOwn(
        `server_name: n${index}\ncluster { name: three, listen: "127.0.0.1:${port}", routes: [${routes}], pool_size: -1 }`,
      )
    for (const server of own)
      await until('the servers to find each other', async () => (await server.monitor('routez'))['num_routes'] === 2)
    const job = await world.prepared()
    await job.writeConfig({ ...job.config, nats: { servers: own.map(({ url }) => url) } })
    await job.startAll()
    await job.checkpoints(1)
    let moved = 0
    for (const server of own) {
      const there = await connectionsOf(server)
      moved += there.length
      await server.process.kill()
      await job.checkpoints(2)
      await server.process.start()
      await until('it to be back', async () => (await server.monitor('routez'))['num_routes'] === 2)
    }
    // Whoever was there went elsewhere.
    expect(moved).toBeGreaterThanOrEqual(5)
    expect(await job.status()).toMatchObject({ incarnation: 1, restarts: 0 })
    await world.expectExactToTheEnd(job)
  })
})

describe('a coordinator', () => {
  it('tells whether the object store and NATS answer, while they go and come back', async () => {
    const job = await world.started()
    await job.checkpoints(1)
    const { nats, s3 } = world.servers
    const health = async (): Promise<Record<string, { readonly state: string }>> =>
      (await job.answer('GET', '/v1/health'))?.body ?? {}
    const told = (wanted: { readonly storage: string; readonly nats: string }): Promise<void> =>
      job.until(`health to be ${JSON.stringify(wanted)}`, async () => {
        const now = await health()
        return now['storage']?.state === wanted.storage && now['nats']?.state === wanted.nats
      })
    await told({ storage: 'ok', nats: 'ok' })
    await nats.process.kill()
    await told({ storage: 'ok', nats: 'failed' })
    await nats.process.start()
    await told({ storage: 'ok', nats: 'ok' })
    await s3.process.kill()
    await told({ storage: 'failed', nats: 'ok' })
    await s3.process.start()
    await told({ storage: 'ok', nats: 'ok' })
    // It answers, and does nothing.
    nats.process.freeze()
    await told({ storage: 'ok', nats: 'unknown' })
    nats.process.thaw()
    await told({ storage: 'ok', nats: 'ok' })
    await job.checkpoints(1)
    expect(await job.status()).toMatchObject({ incarnation: 1, restarts: 0 })
    await world.expectExactToTheEnd(job)
  })

  it('that is told to leave a running job leaves it running: the next one takes it over, and nothing restarts', async () => {
    const job = await world.started()
    await job.checkpoints(1)
    const { present } = await world.ledger.report({ book: job.id })
    job.coordinator.signal('SIGTERM')
    await job.until('it to leave', () => !job.coordinator.running)
    expect(job.coordinator.end, job.coordinator.output).toEqual({ code: 0, signal: null })
    expect(job.coordinator.output).toContain('the coordinator leaves; its slots run on')
    expect([...job.workers.values()].map(({ running }) => running)).toEqual([true, true])
    await job.startCoordinator()
    await job.checkpoints(1)
    expect(await job.status()).toMatchObject({ incarnation: 2, restarts: 0, end: { kind: 'none' } })
    expect((await world.ledger.report({ book: job.id })).present).toBeGreaterThan(present)
    await world.expectExactToTheEnd(job)
  })
})
