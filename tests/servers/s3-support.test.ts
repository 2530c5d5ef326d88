// What the tests of servers rest on: no server outlives its test run, and the proxy does what it says.

import { spawn } from 'node:child_process'
import { createServer, connect } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { startProxy } from './support/proxy.ts'
import type { TcpProxy } from './support/proxy.ts'
import { startServer, until } from './support/server-process.ts'

const support = fileURLToPath(new URL('support/server-process.ts', import.meta.url))
/** Listens, says so, and stays. */
const listener = 'require("node:net").createServer((s) => s.end("hello")).listen(Number(process.argv[1]), "127.0.0.1")'

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('close', () => socket.destroy())
  })

const start = () =>
  startServer({
    name: 'listener',
    command: process.execPath,
    args: ([port]) => ['-e', listener, String(port)],
    ready: ({ port }) => listens(port),
  })

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('a server', () => {
  it('comes back on its port after kill -9, and goes when it is stopped', async () => {
    const server = await start()
    const { port, pid } = server
    await server.restart()
    expect(server.port).toBe(port)
    expect(server.pid).not.toBe(pid)
    expect(await listens(port)).toBe(true)
    await server.stop()
    expect(server.running).toBe(false)
    expect(await listens(port)).toBe(false)
  })

  it('does not outlive a test run that is killed', async () => {
    const script = `
      const { startServer } = await import(${JSON.stringify(support)})
      const server = await startServer({
        name: 'listener', command: process.execPath,
        args: ([port]) => ['-e', ${JSON.stringify(listener)}, String(port)], ready: async () => true,
      })
      console.log(server.pid)
      setInterval(() => undefined, 1000)`
    const run = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    const pid = await new Promise<number>((resolve) => run.stdout.once('data', (line) => resolve(Number(line))))
    expect(isAlive(pid)).toBe(true)
    run.kill('SIGKILL')
    await until('the server is gone', () => !isAlive(pid))
  })

  it('that cannot be started is an error that names it', async () => {
    const missing = startServer({
      name: 'nothing',
      command: '/no/such/binary',
      args: () => [],
      ready: async () => true,
    })
    await expect(missing).rejects.toThrow(/nothing ended before it was ready.*ENOENT/s)
  })
})

describe('the proxy', () => {
  const ends: (() => unknown)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end()
  })

  /** A client of an echo behind a proxy. */
  async function echoThrough(prepare: (proxy: TcpProxy) => void = () => undefined) {
    const server: Server = createServer((socket) => socket.on('error', () => undefined).pipe(socket))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const proxy = await startProxy({ port: (server.address() as AddressInfo).port })
    ends.push(
      () => new Promise<void>((resolve) => server.close(() => resolve())),
      () => proxy.close(),
    )
    prepare(proxy)
    const client: Socket = connect(proxy.port, '127.0.0.1')
    ends.push(() => client.destroy())
    const heard = { text: '', closed: false, error: '' }
    client.on('data', (bytes) => (heard.text += String(bytes)))
    client.on('error', (error) => (heard.error = String(error)))
    client.on('close', () => (heard.closed = true))
    return { proxy, client, heard }
  }

  it('passes on, late when it is told so, and in order', async () => {
    const { proxy, client, heard } = await echoThrough()
    client.write('a')
    await until('the echo', () => heard.text === 'a')
    proxy.weather({ kind: 'delay', ms: 100 }, 'toServer')
    const sentMs = performance.now()
    client.write('b')
    client.write('c')
    await until('the echo', () => heard.text === 'abc')
    expect(performance.now() - sentMs).toBeGreaterThan(99)
  })

  it('holds back until the weather clears, also for one connection alone', async () => {
    const { proxy, client, heard } = await echoThrough()
    client.write('a')
    await until('the echo', () => heard.text === 'a')
    for (const hold of ['weather', 'weatherOfOpen'] as const) {
      proxy[hold]({ kind: 'hold' }, 'toClient')
      client.write('b')
      await until('something is held', () => proxy.waiting('toClient') === 1)
      proxy.clear()
      await until('the echo', () => proxy.waiting('toClient') === 0)
    }
    await until('the echoes', () => heard.text === 'abb')
  })

  it('drops for good', async () => {
    const { proxy, client, heard } = await echoThrough()
    client.write('a')
    await until('the echo', () => heard.text === 'a')
    proxy.weather({ kind: 'drop' }, 'toServer')
    await new Promise<void>((resolve) => client.write('b', () => resolve()))
    await until('the proxy has taken it', () => proxy.taken('toServer') === 2)
    proxy.clear()
    client.write('c')
    await until('the echo', () => heard.text === 'ac')
  })

  it('resets and ends connections', async () => {
    for (const [how, error] of [
      ['reset', /ECONNRESET/],
      ['end', /^$/],
    ] as const) {
      const { proxy, client, heard } = await echoThrough()
      client.write('a')
      await until('the echo', () => heard.text === 'a')
      proxy.cut(how)
      await until('it is closed', () => heard.closed)
      expect(heard.error).toMatch(error)
      await until('nothing is open', () => proxy.open === 0)
    }
  })

  it('refuses new connections by a reset', async () => {
    const { heard } = await echoThrough((proxy) => (proxy.accepts = 'reset'))
    await until('it is closed', () => heard.closed)
    expect(heard.text).toBe('')
  })
})
