import { request } from 'node:https'
import { afterEach, describe, expect, it } from 'vitest'
import { manualEnvironment } from '../../runtime/testkit/manual-clock.ts'
import { issueCertificate, newAuthority } from '../certificates.ts'
import { FINALIZER } from '../contract.ts'
import type { EffectiveSpec } from '../contract.ts'
import { MemoryApi } from '../harness/memory-api.ts'
import { types } from '../kubernetes/types.ts'
import { serveWebhook } from '../platform/http-servers.ts'
import type { WebhookServer } from '../platform/http-servers.ts'
import { validate } from '../validate.ts'
import { webhookCertificate } from './certificate.ts'
import { review } from './review.ts'

const defaults = {
  image: 'millrace:1',
  storage: { checkpoints: 's3://bucket/jobs', s3: { credentialsSecret: 's3' } },
  nats: { url: 'nats://nats:4222', tls: false },
}
const job = (spec: object): object => ({
  apiVersion: 'millrace.dev/v1alpha1',
  kind: 'StreamJob',
  metadata: { name: 'job', namespace: 'n' },
  spec: { program: { module: { path: '/job.ts' } }, ...spec },
})
const reviewed = (operation: string, object: object, oldObject?: object) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: { uid: 'r1', operation, kind: { group: 'millrace.dev', kind: 'StreamJob' }, object, oldObject },
})
function specOf(spec: object): EffectiveSpec {
  const read = validate({ document: job(spec), defaults, running: undefined })
  if (!read.fits) throw new Error(read.problems.join())
  return read.spec
}
const answered = (body: unknown, running?: EffectiveSpec): unknown =>
  review(body, {
    validate: (document, runs) => validate({ document, defaults, running: runs }),
    runningOf: () => running,
  })

describe('an admission review (O9)', () => {
  it('allows what can be run, with the defaults of the chart beneath', () => {
    expect(answered(reviewed('CREATE', job({})))).toEqual({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: 'r1', allowed: true },
    })
  })

  it('denies what cannot, by field and with what to do', () => {
    expect(answered(reviewed('CREATE', job({ restoreNonce: 1 })))).toMatchObject({
      response: {
        allowed: false,
        status: { code: 422, reason: 'Invalid', message: expect.stringContaining('spec.restoreNonce') as string },
      },
    })
  })

  it('denies a change that the state does not allow, and only of a job that runs', () => {
    const moved = job({ storage: { checkpoints: 's3://other', s3: { credentialsSecret: 's3' } } })
    expect(answered(reviewed('UPDATE', moved, job({})), specOf({}))).toMatchObject({ response: { allowed: false } })
    expect(answered(reviewed('UPDATE', moved, job({})))).toMatchObject({ response: { allowed: true } })
  })

  it('allows whatever leaves the spec as it is: labels and finalizers of a bad one can be changed', () => {
    const bad = job({ restoreNonce: 1 })
    expect(answered(reviewed('UPDATE', { ...bad, metadata: { name: 'job', finalizers: [] } }, bad))).toMatchObject({
      response: { allowed: true },
    })
  })

  describe('of a deletion', () => {
    const deletion = (propagationPolicy: string | undefined, finalizers: readonly string[], username = 'jane') => {
      const oldObject = { ...job({}), metadata: { name: 'job', namespace: 'n', finalizers } }
      const { request } = reviewed('DELETE', job({}))
      return {
        request: { ...request, object: null, oldObject, options: { propagationPolicy }, userInfo: { username } },
      }
    }

    it('denies one in the foreground that would come before HEAD is closed, and says how else', () => {
      const answer = answered(deletion('Foreground', ['foregroundDeletion', FINALIZER]))
      expect(answer).toMatchObject({ response: { allowed: false } })
      const { message } = (answer as { response: { status: { message: string } } }).response.status
      expect(message).toContain('--cascade=background')
      expect(message).toContain('PrunePropagationPolicy=background')
    })

    it.each<[string, object]>([
      ['in the background, as of a namespace that goes', deletion('Background', [FINALIZER])],
      ['that leaves what it owns', deletion('Orphan', [FINALIZER])],
      ['that says nothing', deletion(undefined, [FINALIZER])],
      ['of a job that has nothing to be closed', deletion('Foreground', [])],
      [
        'by the garbage collector, which would ask for ever',
        deletion('Foreground', [FINALIZER], 'system:serviceaccount:kube-system:generic-garbage-collector'),
      ],
      [
        'by a collector without an account of its own',
        deletion('Foreground', [FINALIZER], 'system:kube-controller-manager'),
      ],
    ])('allows one %s', (_, body) => {
      expect(answered(body)).toMatchObject({ response: { uid: 'r1', allowed: true } })
    })
  })

  it('is told from anything else', () => {
    for (const body of [null, {}, { request: {} }, 'text']) expect(answered(body)).toBeUndefined()
  })
})

let server: WebhookServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

describe('the webhook server', () => {
  it('answers over TLS, with a renewed certificate from then on', async () => {
    const host = 'webhook.n.svc'
    const authority = await newAuthority('webhook', Date.now())
    const issue = async () => {
      const { certificate, key } = await issueCertificate(authority, { hosts: [host], nowMs: Date.now() })
      return { cert: certificate, key }
    }
    const failures: unknown[] = []
    const review = (body: unknown): object | undefined => {
      if (body === 'breaks') throw new Error('not foreseen')
      return answered(body) as object | undefined
    }
    server = await serveWebhook(0, await issue(), review, (error) => failures.push(error))
    const { port } = server
    const post = (text: string, path = '/validate'): Promise<{ status: number; body: string; serial: string }> =>
      new Promise((resolve, reject) => {
        const call = request(
          { host: '127.0.0.1', port, servername: host, ca: authority.certificate, method: 'POST', path, agent: false },
          (response) => {
            const { serialNumber } = (response.socket as import('node:tls').TLSSocket).getPeerCertificate()
            let body = ''
            response.on('data', (chunk: Buffer) => (body += chunk.toString()))
            response.on('end', () => resolve({ status: response.statusCode ?? 0, body, serial: serialNumber }))
          },
        )
        call.on('error', reject)
        call.end(text)
      })
    const first = await post(JSON.stringify(reviewed('CREATE', job({}))))
    expect([first.status, JSON.parse(first.body)]).toMatchObject([200, { response: { uid: 'r1', allowed: true } }])
    expect((await post('no json')).status).toBe(400)
    expect(failures).toEqual([])
    expect((await post('"breaks"')).status).toBe(500)
    expect(failures.map(String)).toEqual(['Error: not foreseen'])
    expect((await post('{}', '/other')).status).toBe(404)
    server.use(await issue())
    expect((await post('{}')).serial).not.toBe(first.serial)
  })
})

describe("the webhook's certificate", () => {
  it('is made by the leader once, told to the API server, and read by the others', async () => {
    const { clock } = manualEnvironment()
    const api = new MemoryApi(() => clock.wallMs())
    const client = api.client()
    await client.create(types.validatingWebhook, {
      apiVersion: types.validatingWebhook.apiVersion,
      kind: types.validatingWebhook.kind,
      metadata: { name: 'configuration' },
      webhooks: [{ name: 'jobs.millrace.dev', clientConfig: { service: { name: 'webhook', namespace: 'n' } } }],
    })
    const names = { configuration: 'configuration', service: 'webhook', secret: 'certificate' }
    const look = (leads: boolean) =>
      webhookCertificate({ client, namespace: 'n', names, wallMs: () => clock.wallMs() }, leads)
    expect(await look(false)).toBeUndefined()
    const made = await look(true)
    const before = api.writes.length
    expect(await look(true)).toEqual(made)
    expect(await look(false)).toEqual(made)
    expect(api.writes.length).toBe(before)
    expect(api.all(types.validatingWebhook)[0]!['webhooks']).toEqual([
      {
        name: 'jobs.millrace.dev',
        clientConfig: {
          service: { name: 'webhook', namespace: 'n' },
          caBundle: Buffer.from(made!.authority).toString('base64'),
        },
      },
    ])
    clock.advance(80 * 86_400_000)
    const renewed = await look(true)
    expect(renewed!.certificate).not.toBe(made!.certificate)
    expect(renewed!.authority).toBe(made!.authority)
  })
})
