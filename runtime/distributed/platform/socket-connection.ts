// A direct connection between worker and coordinator over a socket, TCP or TLS.

import type { Socket } from 'node:net'
import { MillraceError } from '../../base/errors.ts'
import type { MessageConnection } from '../../control/worker-contract.ts'
import { encodeMessage, MessageReader } from '../../control/worker-wire.ts'

/** A peer that does not read is cut off at so many bytes that wait for it: hundreds of messages, each of a few hundred bytes. */
const waitingBytesMax = 1024 * 1024
/** What was sent before a close has so long to go out, ms. */
const lastWordsMs = 2_000

/** The socket is connected, and nothing was read from it yet. */
export function connectionOver(socket: Socket): MessageConnection {
  const reader = new MessageReader()
  let onClosed: ((reason: string) => void) | undefined
  let ended: string | undefined
  let closed = false
  // Each message is one that somebody waits for.
  socket.setNoDelay(true)

  const end = (reason: string): void => {
    if (ended !== undefined) return
    ended = reason
    socket.destroy()
    if (!closed) onClosed?.(reason)
  }
  socket.on('error', (error) => end(wordsOf(error)))
  socket.on('end', () => end('the other side closed the connection'))
  socket.on('close', () => end('the connection was closed'))

  return {
    address: `${socket.remoteAddress ?? 'unknown'}:${socket.remotePort ?? 0}`,
    send: (message) => {
      if (ended !== undefined || closed) return
      socket.write(encodeMessage(message))
      if (socket.writableLength > waitingBytesMax) end('the other side reads nothing')
    },
    onMessage: (callback) => {
      socket.on('data', (bytes) => {
        try {
          for (const message of reader.push(bytes)) if (!closed && ended === undefined) callback(message)
        } catch (error) {
          if (!(error instanceof MillraceError)) throw error
          end(error.message)
        }
      })
    },
    onClosed: (callback) => {
      onClosed = callback
      if (ended !== undefined && !closed) callback(ended)
    },
    close: () => {
      closed = true
      socket.end()
      setTimeout(() => socket.destroy(), lastWordsMs).unref()
    },
  }
}

/** The kernel's names of what is usual, in words. */
export function wordsOf(error: Error & { readonly code?: string }): string {
  const usual: Readonly<Record<string, string>> = {
    ECONNRESET: 'the connection was reset',
    EPIPE: 'the connection was reset',
    ECONNREFUSED: 'nobody listens there',
    ETIMEDOUT: 'no answer',
    EHOSTUNREACH: 'no way to that host',
    ENOTFOUND: 'no host of that name',
    EAI_AGAIN: 'no answer about that name',
  }
  return usual[error.code ?? ''] ?? error.message
}
