// The operator's accounts and credentials at a real NATS server: one job can neither read nor disturb another.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connect, credsAuthenticator } from '@nats-io/transport-node'
import type { NatsConnection } from '@nats-io/transport-node'
import { jobNatsCredentials, natsServerConfig, newNatsKeys, signerOf } from '../../operator/nats-credentials.ts'
import { startNats } from './support/nats-server.ts'
import type { NatsServer } from './support/nats-server.ts'

const keys = newNatsKeys(Date.now())
const [mine, other] = ['0d6f3a52-91b8-4c38-9d0e-7f1f7a2b6c11', 'b9d51c04-5b0c-4a43-8a86-0c3e0f6d5e22'] as const

let server: NatsServer
beforeAll(async () => {
  server = await startNats({ config: natsServerConfig(keys) })
})
afterAll(() => server.stop())

async function enter(
  uid: string,
  credentials = jobNatsCredentials(signerOf(keys), uid, Date.now()),
): Promise<NatsConnection> {
  return connect({
    servers: server.url,
    authenticator: credsAuthenticator(new TextEncoder().encode(credentials)),
    inboxPrefix: `_INBOX_${uid}`,
    reconnect: false,
  })
}

describe('with the credentials of a job', () => {
  it('its own subjects are open: publish, subscribe, request', async () => {
    const [one, two] = [await enter(mine), await enter(mine)]
    try {
      one.subscribe(`mr.${mine}.data.a`, { callback: (_, message) => void message.respond('answer') })
      await one.flush()
      expect((await two.request(`mr.${mine}.data.a`, 'question', { timeout: 5_000 })).string()).toBe('answer')
    } finally {
      await Promise.all([one.close(), two.close()])
    }
  })

  it("another job's subjects, and those of all, are closed to read and to write", async () => {
    const [victim, thief] = [await enter(mine), await enter(other)]
    const errors: string[] = []
    const heard: string[] = []
    void (async () => {
      for await (const status of thief.status()) if (status.type === 'error') errors.push(status.error.message)
    })()
    try {
      victim.subscribe(`mr.${mine}.>`, { callback: (_, message) => void heard.push(message.string()) })
      await victim.flush()
      const closed = [`mr.${mine}.>`, 'mr.*.data.a', '>', `_INBOX_${mine}.>`, '$SYS.>']
      const refused = closed.map(
        (subject) =>
          new Promise<string>((resolve) =>
            thief.subscribe(subject, { callback: (error) => resolve(error?.message ?? 'heard') }),
          ),
      )
      thief.publish(`mr.${mine}.data.a`, 'disturbance')
      await thief.flush()
      for (const word of await Promise.all(refused)) expect(word).toMatch(/[Pp]ermissions? [Vv]iolation/)
      victim.publish(`mr.${mine}.data.a`, 'own')
      await victim.flush()
      await expect
        .poll(() => errors.some((error) => error.includes(`mr.${mine}.data.a`)), { timeout: 5_000 })
        .toBe(true)
      expect(heard).toEqual(['own'])
    } finally {
      await Promise.all([victim.close(), thief.close()])
    }
  })

  it('of another operator nobody is let in, and without any neither', async () => {
    const stranger = jobNatsCredentials(signerOf(newNatsKeys(Date.now())), mine, Date.now())
    await expect(enter(mine, stranger)).rejects.toThrow(/[Aa]uthori[sz]ation [Vv]iolation/)
    await expect(connect({ servers: server.url, reconnect: false })).rejects.toThrow(/[Aa]uthori[sz]ation [Vv]iolation/)
  })

  it('made before it, another server with the same keys lets it in', async () => {
    const credentials = jobNatsCredentials(signerOf(keys), mine, Date.now())
    const again = await startNats({ config: natsServerConfig({ ...keys }) })
    try {
      const connection = await connect({
        servers: again.url,
        authenticator: credsAuthenticator(new TextEncoder().encode(credentials)),
        reconnect: false,
      })
      await connection.close()
    } finally {
      await again.stop()
    }
  })
})
