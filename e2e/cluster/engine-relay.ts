// Inside an engine's network: takes connections of the listener that it was handed as descriptor 3, which lies outside, and joins each to a
// port inside. Argument: the port.

import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'

const port = Number(process.argv[2])

const server = createServer({ allowHalfOpen: true }, (outer) => {
  const inner = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  join(outer, inner)
  join(inner, outer)
})
server.listen({ fd: 3 })

function join(from: Socket, to: Socket): void {
  from.setNoDelay(true)
  from.pipe(to)
  from.once('error', () => to.destroy())
  from.once('close', () => {
    if (!from.readableEnded) to.destroy()
  })
}
