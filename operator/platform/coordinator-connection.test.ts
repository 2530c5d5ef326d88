import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { issueCertificate, newAuthority } from '../certificates.ts'
import { dialCoordinators } from './coordinator-connection.ts'

const host = 'job-coordinator.n.svc'
const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

async function coordinator(answers: boolean) {
  const authority = await newAuthority('job', Date.now())
  const { certificate, key } = await issueCertificate(authority, { hosts: [host], nowMs: Date.now() })
  const seen: { readonly path: string; readonly token: string; readonly body: string }[] = []
  let connections = 0
  const server = createServer({ cert: certificate, key }, (request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      seen.push({ path: request.url ?? '', token: request.headers.authorization ?? '', body })
      if (answers) response.end(JSON.stringify({ start: 1 }))
    })
  })
  server.on('secureConnection', () => connections++)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { authority: authority.certificate, port, seen, connections: () => connections }
}

describe('a connection to a coordinator', () => {
  it('checks its certificate for the name of the Service, shows the token, and is one for several calls', async () => {
    const { authority, port, seen, connections } = await coordinator(true)
    const session = dialCoordinators({ host: '127.0.0.1', port })(
      { host, port: 8081, token: 'owner', authority },
      2_000,
    )
    expect(await session.call('GET', '/v1/job')).toEqual({ status: 200, body: { start: 1 } })
    await session.call('POST', '/v1/close', { start: 1 })
    session.close()
    expect(seen).toEqual([
      { path: '/v1/job', token: 'Bearer owner', body: '' },
      { path: '/v1/close', token: 'Bearer owner', body: '{"start":1}' },
    ])
    expect(connections()).toBe(1)
  })

  it('is refused by another authority or name; nobody and silence are told apart', async () => {
    const { authority, port } = await coordinator(true)
    const other = (await newAuthority('other', Date.now())).certificate
    const at = dialCoordinators({ host: '127.0.0.1', port })
    const call = (dialled: ReturnType<typeof at>) => dialled.call('GET', '/v1/job').finally(() => dialled.close())
    await expect(call(at({ host, port, token: 't', authority: other }, 2_000))).rejects.toThrow(host)
    await expect(call(at({ host: 'other.n.svc', port, token: 't', authority }, 2_000))).rejects.toThrow('other.n.svc')
    const silent = await coordinator(false)
    const dial = dialCoordinators({ host: '127.0.0.1', port: silent.port })
    await expect(call(dial({ host, port, token: 't', authority: silent.authority }, 200))).rejects.toThrow(
      'no answer in time',
    )
    const nobody = dialCoordinators({ host: '127.0.0.1', port: 1 })
    await expect(call(nobody({ host, port, token: 't', authority }, 2_000))).rejects.toThrow('nobody listens')
  })
})
