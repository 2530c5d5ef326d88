import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const relay = fileURLToPath(new URL('./engine-relay.ts', import.meta.url))
let inner: Server
let port: number
let kill: () => void

beforeAll(async () => {
  inner = createServer({ allowHalfOpen: true }, (socket) => {
    let heard = ''
    socket.on('data', (chunk) => (heard += String(chunk)))
    socket.on('end', () => socket.end(`heard ${heard}`))
  })
  await once(inner.listen(0, '127.0.0.1'), 'listening')
  const outer = createServer()
  await once(outer.listen(0, '127.0.0.1'), 'listening')
  port = (outer.address() as AddressInfo).port
  const { fd } = (outer as unknown as Record<'_handle', { readonly fd: number }>)['_handle']
  const child = spawn(process.execPath, [relay, String((inner.address() as AddressInfo).port)], {
    stdio: ['ignore', 'inherit', 'inherit', fd],
  })
  await once(child, 'spawn')
  outer.close()
  kill = () => child.kill('SIGKILL')
})
afterAll(() => {
  kill()
  inner.close()
})

describe('the relay into an engine', () => {
  it('joins a connection of the listener that it was handed to the port inside, each way until its end', async () => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.end('a word')
    let answer = ''
    socket.on('data', (chunk) => (answer += String(chunk)))
    await once(socket, 'close')
    expect(answer).toBe('heard a word')
  })
})
