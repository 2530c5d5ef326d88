import { describe, expect, it } from 'vitest'
import { manualEnvironment } from '../runtime/testkit/manual-clock.ts'
import { AccessMaker } from './access.ts'
import { MemoryApi } from './harness/memory-api.ts'
import { testConfig } from './harness/operator-world.ts'
import { types } from './kubernetes/types.ts'
import { NatsAccess, natsConfigKey, secretObject } from './nats-access.ts'
import { isSignedBy, newNatsKeys } from './nats-credentials.ts'
import type { OperatorConfig } from './resources/operator-config.ts'
import { accessSecret } from './resources/access-secret.ts'
import { specOf, job } from './resources/harness.ts'

const ownServer: OperatorConfig['natsAccess'] = { kind: 'own server', keysSecret: 'keys', configSecret: 'config' }

function subject(access: OperatorConfig['natsAccess']) {
  const { clock } = manualEnvironment()
  const api = new MemoryApi(() => clock.wallMs())
  const make = () => new NatsAccess({ client: api.client(), namespace: 'n', access, wallMs: () => clock.wallMs() })
  return { api, make, clock }
}

describe('who signs for NATS', () => {
  it("is the operator for the chart's server: keys and config are made once, whoever leads", async () => {
    const { api, make } = subject(ownServer)
    const first = make()
    expect(first.signer).toBeUndefined()
    await first.ensure()
    const before = api.writes.length
    const second = make()
    await second.ensure()
    expect(second.signer).toEqual(first.signer)
    expect(api.writes.length).toBe(before)
    const { data } = api.find(types.secret, 'n', 'config') as unknown as {
      readonly data: Readonly<Record<string, string>>
    }
    const text = Buffer.from(data[natsConfigKey]!, 'base64').toString()
    expect(text).toContain(`${first.signer!.account}:`)
    expect(text).not.toContain(first.signer!.signingSeed)
  })

  it('never makes keys anew over some that it cannot read: every job rests on them', async () => {
    const { api, make } = subject(ownServer)
    await api.client().create(types.secret, secretObject('n', 'keys', { 'operator-seed': 'bm8=' }))
    await expect(make().ensure()).rejects.toThrow(/MR-P07.*n\/keys/s)
    expect(api.find(types.secret, 'n', 'config')).toBeUndefined()
  })

  it("is a signing key of somebody's server, or nobody", async () => {
    const { signingSeed } = newNatsKeys(0)
    const access = { kind: 'signing key', secret: 'key', account: `A${'B'.repeat(55)}` } as const
    const { api, make } = subject(access)
    const early = make()
    await expect(early.ensure()).rejects.toThrow(/MR-P07.*n\/key/s)
    expect(early.problem).toContain('Secret n/key has no account')
    await api
      .client()
      .create(types.secret, secretObject('n', 'key', { seed: Buffer.from(`${signingSeed}\n`).toString('base64') }))
    await early.ensure()
    expect(early.problem).toBeUndefined()
    const nats = make()
    await nats.ensure()
    expect(nats.signer).toEqual({ signingSeed, account: access.account })
    const shared = subject({ kind: 'shared' }).make()
    await shared.ensure()
    expect(shared.signer).toBeUndefined()
  })
})

describe("a job's access", () => {
  const spec = specOf({ nats: undefined })
  async function maker() {
    const { make, clock } = subject(ownServer)
    const nats = make()
    const config = {
      ...testConfig,
      natsAccess: ownServer,
      defaults: { ...testConfig.defaults, nats: { url: spec.nats?.url ?? '', tls: false } },
    }
    const withNats = { ...spec, nats: { url: config.defaults.nats.url, tls: false } }
    let byte = 0
    const access = new AccessMaker({
      config,
      randomBytes: (count) => new Uint8Array(count).fill(++byte),
      wallMs: () => clock.wallMs(),
      signer: () => nats.signer,
      signerProblem: () => nats.problem,
    })
    const elsewhere = { ...spec, nats: { url: 'nats://before:4222', tls: false } }
    return { access, nats, clock, withNats, elsewhere }
  }
  const asSecret = (made: Awaited<ReturnType<AccessMaker['make']>>, version: string) => {
    const secret = accessSecret(job, made)
    return { ...secret, metadata: { ...secret.metadata, uid: 'u', resourceVersion: version } }
  }

  it('waits for the keys, is complete, and is kept as it is until something ends', async () => {
    const { access, nats, clock, withNats } = await maker()
    await expect(access.make(undefined, job, withNats)).rejects.toThrow(/MR-P05.*not read yet/s)
    await nats.ensure()
    const made = await access.make(undefined, job, withNats)
    expect(isSignedBy(made.natsCredentials!, nats.signer!, job.uid)).toBe(true)
    expect(new Set([made.ownerToken, made.readerToken, made.workerToken]).size).toBe(3)
    expect(access.isComplete(asSecret(made, '1'), job, withNats)).toBe(true)
    expect(await access.make(asSecret(made, '1'), job, withNats)).toEqual(made)
    clock.advance(70 * 86_400_000)
    expect(access.isComplete(asSecret(made, '1'), job, withNats)).toBe(false)
    const renewed = await access.make(asSecret(made, '1'), job, withNats)
    expect(renewed).toEqual({ ...made, certificate: renewed.certificate, certificateKey: renewed.certificateKey })
    expect(renewed.certificate).not.toBe(made.certificate)
    expect(access.isComplete(asSecret(renewed, '2'), job, withNats)).toBe(true)
  })

  it("keeps the credentials that a revision mounts when the chart's address is another one since", async () => {
    const { access, nats, withNats, elsewhere } = await maker()
    await nats.ensure()
    const made = await access.make(undefined, job, withNats)
    expect(await access.make(asSecret(made, '1'), job, elsewhere)).toEqual(made)
    expect(await access.make(undefined, job, elsewhere)).toMatchObject({ natsCredentials: undefined })
  })

  it('is not complete without one of its parts, nor with credentials of another signer', async () => {
    const { access, nats, withNats } = await maker()
    await nats.ensure()
    const made = await access.make(undefined, job, withNats)
    const { data } = accessSecret(job, made) as unknown as { readonly data: Readonly<Record<string, string>> }
    for (const key of Object.keys(data)) {
      const { [key]: _, ...rest } = data
      const secret = { ...asSecret(made, `without ${key}`), data: rest }
      expect(access.isComplete(secret, job, withNats), key).toBe(false)
    }
    const other = await maker()
    await other.nats.ensure()
    expect(other.access.isComplete(asSecret(made, '1'), job, other.withNats)).toBe(false)
  })
})
