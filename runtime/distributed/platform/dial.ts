// A worker's way to its coordinator.

import { connect as connectPlain, isIP } from 'node:net'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { MessageConnection } from '../../control/worker-contract.ts'
import type { Address } from '../process-config.ts'
import { connectionOver, wordsOf } from './socket-connection.ts'

export interface DialOptions {
  readonly address: Address
  /** PEM of the authority that must have signed the coordinator's certificate; undefined: no TLS. */
  readonly ca: string | undefined
  readonly onOpen: (connection: MessageConnection) => void
  /** It could not be opened. */
  readonly onFailed: (reason: string) => void
}

/** Opens one connection; `giveUp` before it is open ends the attempt without a word. */
export function dial({ address: { host, port }, ca, onOpen, onFailed }: DialOptions): { giveUp(): void } {
  const socket: Socket =
    ca === undefined
      ? connectPlain({ host, port })
      : connectTls({ host, port, ca, minVersion: 'TLSv1.2', ...(isIP(host) === 0 && { servername: host }) })
  const failed = (error: Error): void => {
    settle()
    socket.destroy()
    onFailed(wordsOf(error))
  }
  const cut = (): void => failed(new Error('the other side closed the connection'))
  const opened = (): void => {
    settle()
    onOpen(connectionOver(socket))
  }
  const settle = (): void => {
    socket.off('error', failed)
    socket.off('close', cut)
    socket.off(ready, opened)
    // A late error of an attempt that is given up is nobody's.
    socket.on('error', () => undefined)
  }
  const ready = ca === undefined ? 'connect' : 'secureConnect'
  socket.once('error', failed)
  socket.once('close', cut)
  socket.once(ready, opened)
  return {
    giveUp: () => {
      settle()
      socket.destroy()
    },
  }
}
