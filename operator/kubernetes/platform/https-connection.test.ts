import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { connectApi } from './https-connection.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** A server whose watches stay open, and the connection of a pod to it. */
async function apiServer() {
  let watches = 0
  const server = createServer((request, response) => {
    if (request.url!.includes('watch=1')) {
      watches++
      response.write('{}\n')
    } else response.end('{}')
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const folder = await mkdtemp(join(tmpdir(), 'account-'))
  closing.push(
    () => {
      server.closeAllConnections()
      server.close()
    },
    () => rm(folder, { recursive: true }),
  )
  for (const file of ['ca.crt', 'token']) await writeFile(join(folder, file), file)
  const { port } = server.address() as AddressInfo
  const connection = connectApi({ account: { folder, server: `http://127.0.0.1:${port}` } })
  return { connection, watches: () => watches }
}

describe('the connection to the API server', () => {
  it('answers requests however many watches are open', async () => {
    const { connection, watches } = await apiServer()
    const open = Array.from({ length: 50 }, () => {
      const first = Promise.withResolvers<string>()
      const watch = connection.stream({ method: 'GET', path: '/pods?watch=1' }, first.resolve, 60_000)
      closing.push(() => watch.close())
      return first.promise
    })
    expect(await connection.send({ method: 'GET', path: '/lease' })).toMatchObject({ status: 200, body: '{}' })
    expect(await Promise.all(open)).toHaveLength(50)
    expect(watches()).toBe(50)
  })
})
