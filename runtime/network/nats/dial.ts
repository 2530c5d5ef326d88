// One attempt to connect, which leaves nothing behind when it fails: the client forgets the socket of an attempt that timed out,
// and a server that is frozen keeps it open for as long as it likes.

import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'
import { connect } from '@nats-io/transport-node'
import type { NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node'

interface Socket {
  destroy(): void
}

/** The sockets of the attempt that runs. */
const attempts = new AsyncLocalStorage<Set<Socket>>()
let listening = false

/** Tries each address of the one server in `options` once. Rejects with the last error. */
export async function dial(options: NodeConnectionOptions): Promise<NatsConnection> {
  listen()
  const sockets = new Set<Socket>()
  try {
    const client = await attempts.run(sockets, () => connect(options))
    for (const socket of [...sockets].slice(0, -1)) socket.destroy()
    return client
  } catch (error) {
    for (const socket of sockets) socket.destroy()
    throw error
  } finally {
    sockets.clear()
  }
}

/** Node tells of each new client socket, in the context of whoever made it. */
function listen(): void {
  if (listening) return
  listening = true
  subscribe('net.client.socket', (message) => {
    attempts.getStore()?.add((message as { readonly socket: Socket }).socket)
  })
}
