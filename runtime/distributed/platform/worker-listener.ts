// Where the coordinator listens for its workers.

import { createServer as createPlainServer } from 'node:net'
import type { Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Server as TlsServer } from 'node:tls'
import type { Environment } from '../../base/environment.ts'
import type { MessageConnection } from '../../control/worker-contract.ts'
import type { Certificate } from '../certificate-renewal.ts'
import { distributedError } from '../errors.ts'
import { connectionOver, wordsOf } from './socket-connection.ts'

/** A client that does not come to the end of its handshake is cut off, ms. */
const handshakeMsMax = 5_000
const minVersion = 'TLSv1.2'

export interface ListenOptions {
  /** undefined: all addresses of this machine. */
  readonly host: string | undefined
  /** 0: any that is free. */
  readonly port: number
  /** undefined: no TLS. */
  readonly certificate: Certificate | undefined
  readonly log: Environment['log']
  readonly accept: (connection: MessageConnection) => void
}

export interface WorkerListener {
  readonly port: number
  /** Of a listener that has one: for connections from now on. */
  renewCertificate(renewed: Certificate): void
  /** Nobody is let in any more; open connections stay. */
  close(): void
}

/** Rejects with MR-D33 or MR-D34. */
export async function listenForWorkers(options: ListenOptions): Promise<WorkerListener> {
  const { host, port, certificate, log, accept } = options
  const onSocket = (socket: Socket): void => accept(connectionOver(socket))
  const secured = certificate === undefined ? undefined : tlsServer({ certificate, log, onSocket })
  const server = secured ?? createPlainServer(onSocket)
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
    renewCertificate: (renewed) => secured?.setSecureContext({ ...renewed, minVersion }),
    close: () => void server.close(),
  }
}

function tlsServer({
  certificate,
  log,
  onSocket,
}: {
  readonly certificate: Certificate
  readonly log: Environment['log']
  readonly onSocket: (socket: Socket) => void
}): TlsServer {
  let server
  try {
    server = createTlsServer({ ...certificate, minVersion, handshakeTimeout: handshakeMsMax }, onSocket)
  } catch (error) {
    throw distributedError('MR-D34', `${(error as Error).message}.`, error)
  }
  server.on('tlsClientError', (error, socket) => {
    log('debug', 'a client did not come through its handshake', { error: error.message })
    socket.destroy()
  })
  return server
}
