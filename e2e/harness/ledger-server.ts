// The ledger: a process of its own that judges jobs from outside, with nothing of Millrace, NATS or S3 in it.
//
//   node e2e/harness/ledger-server.ts --folder DIR [--port N] [--host H]
//
// Says one line on standard output once it answers: {"type":"listening","url":…,"port":…}. Started again on the same folder it goes on
// where it was, however it ended. Holds and marks are not kept.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { LedgerHttp } from './ledger-http.ts'
import { LedgerStore } from './ledger-store.ts'

const { values } = parseArgs({
  options: {
    folder: { type: 'string' },
    port: { type: 'string', default: '0' },
    host: { type: 'string', default: '127.0.0.1' },
  },
})
const { folder, host } = values
const port = Number(values.port)
if (folder === undefined || folder === '') refuse('--folder is missing: the folder of its log')
if (!Number.isInteger(port) || port < 0 || port > 65_535) refuse(`--port is ${values.port}; it must be 0 to 65535`)

/** The wall clock at the start, and from there the monotonic one: a clock that is set meanwhile makes no gap. */
const startMs = Date.now() - performance.now()

const store = await LedgerStore.open({
  folder,
  nowMs: () => Math.floor(startMs + performance.now()),
  // What the disk has not taken must not be answered for, and what it has is unknown: the log is read again at the next start.
  fail: (error) => end(`the disk refuses: ${String(error)}`),
}).catch((error: unknown) => end(`it cannot begin: ${String(error)}`))

const http = new LedgerHttp(store)
const server = createServer((request, response) => void http.handle(request, response))
// Longer than any pause between two calls of a sink, so that a call seldom meets a connection that is just being closed.
server.keepAliveTimeout = 120_000
// A held call may wait as long as its test does.
server.requestTimeout = 0
server.on('error', (error) => end(String(error)))
server.listen(port, host, () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`${JSON.stringify({ type: 'listening', url: `http://${host}:${port}`, port })}\n`)
})

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    server.close()
    server.closeAllConnections()
    void store.close().then(() => process.exit(0))
  })
}

function refuse(why: string): never {
  process.stderr.write(`ledger server: ${why}\n`)
  process.exit(2)
}

function end(why: string): never {
  process.stderr.write(`ledger server: ${why}\n`)
  process.exit(1)
}
