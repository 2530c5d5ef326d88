// The REST of all fake coordinators at one address, as an operator's process meets it: TLS with each job's own certificate, and its tokens.

import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createSecureContext } from 'node:tls'
import type { SecureContext } from 'node:tls'
import type { KubeClient } from '../kubernetes/contract.ts'
import { types } from '../kubernetes/types.ts'
import type { FakeCoordinators } from './fake-coordinators.ts'

export interface CoordinatorServer {
  readonly port: number
  close(): void
}

/** Certificates and tokens are read from the jobs' access Secrets. */
export async function serveCoordinators(
  coordinators: FakeCoordinators,
  client: Pick<KubeClient, 'get'>,
): Promise<CoordinatorServer> {
  const accessOf = async (host: string): Promise<Readonly<Record<string, string>>> => {
    const [name, namespace] = host.split('.')
    const secret = await client.get(types.secret, {
      namespace: namespace!,
      name: name!.replace(/-coordinator$/, '-access'),
    })
    const data = (secret?.['data'] ?? {}) as Readonly<Record<string, string>>
    return Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]))
  }
  const contextOf = async (host: string): Promise<SecureContext> => {
    const access = await accessOf(host)
    return createSecureContext({ cert: access['tls.crt'], key: access['tls.key'] })
  }
  const server = createServer(
    {
      SNICallback: (host, done) =>
        void contextOf(host).then(
          (context) => done(null, context),
          (error: Error) => done(error),
        ),
    },
    (request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => {
        const host = (request.headers.host ?? '').split(':')[0]!
        const answer = async (): Promise<{ readonly status: number; readonly body: unknown }> => {
          const { 'owner-token': token = '' } = await accessOf(host)
          if (request.headers.authorization !== `Bearer ${token}`) return { status: 401, body: { message: 'no token' } }
          const session = coordinators.dial({ host, port: 0, token, authority: '' }, 0)
          const sent = body === '' ? undefined : (JSON.parse(body) as object)
          return session.call(request.method as 'GET' | 'POST', request.url ?? '', sent)
        }
        void answer().then(
          ({ status, body: answered }) => response.writeHead(status).end(JSON.stringify(answered)),
          () => response.destroy(),
        )
      })
    },
  )
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
