// Where the coordinator listens for its workers.

import { createServer as createPlainServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Environment } from '../../base/environment.ts'
import type { MessageConnection } from '../../control/worker-contract.ts'
import { distributedError } from '../errors.ts'
import { connectionOver, wordsOf } from './socket-connection.ts'

/** A client that does not come to the end of its handshake is cut off, ms. */
const handshakeMsMax = 5_000
/** How often the certificate is read anew, ms: it is renewed long before it ends. */
const renewalMs = 10 * 60_000

export interface Certificate {
  /** PEM. */
  readonly cert: string
  readonly key: string
}

export interface ListenOptions {
  /** undefined: all addresses of this machine. */
  readonly host: string | undefined
  /** 0: any that is free. */
  readonly port: number
  /** Read at the start and again from time to time; undefined: no TLS. */
  readonly certificate: (() => Promise<Certificate>) | undefined
  readonly log: Environment['log']
  readonly accept: (connection: MessageConnection) => void
}

export interface WorkerListener {
  readonly port: number
  /** Nobody is let in any more; open connections stay. */
  close(): void
}

/** Rejects with MR-D33 or MR-D34. */
export async function listenForWorkers(options: ListenOptions): Promise<WorkerListener> {
  const { host, port, certificate, log, accept } = options
  const onSocket = (socket: Socket): void => accept(connectionOver(socket))
  const { server, stop } =
    certificate === undefined
      ? { server: createPlainServer(onSocket), stop: () => undefined }
      : await tlsServer({ certificate, log, onSocket })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(distributedError('MR-D33', `${host ?? 'All addresses'}, port ${port}: ${wordsOf(error)}.`, error)),
    )
    server.listen({ port, ...(host !== undefined && { host }) }, resolve)
  })
  server.on('error', (error) => log('error', 'the listener for workers has an error', { error: wordsOf(error) }))
  const bound = server.address()
  return {
    port: typeof bound === 'object' && bound !== null ? bound.port : port,
    close: () => {
      stop()
      server.close()
    },
  }
}

async function tlsServer({
  certificate,
  log,
  onSocket,
}: {
  readonly certificate: () => Promise<Certificate>
  readonly log: Environment['log']
  readonly onSocket: (socket: Socket) => void
}): Promise<{ readonly server: Server; readonly stop: () => void }> {
  const first = await certificate()
  let server
  try {
    server = createTlsServer({ ...first, minVersion: 'TLSv1.2', handshakeTimeout: handshakeMsMax }, onSocket)
  } catch (error) {
    throw distributedError('MR-D34', `${(error as Error).message}.`, error)
  }
  server.on('tlsClientError', (error, socket) => {
    log('debug', 'a client did not come through its handshake', { error: error.message })
    socket.destroy()
  })
  const renewing = setInterval(() => {
    certificate()
      .then((renewed) => server.setSecureContext(renewed))
      .catch((error: unknown) =>
        log('warn', 'the certificate could not be read anew; the former one is used on', { error: String(error) }),
      )
  }, renewalMs)
  renewing.unref()
  return { server, stop: () => clearInterval(renewing) }
}
