import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { storedJobs } from '../local/local-jobs.ts'
import { localWorld, namedJob } from './named-job.ts'
import type { ControlEdge } from './named-job.ts'
import { Terminal } from './terminal.ts'

let folder = ''
let edge: ControlEdge

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-named-'))
  const silent = { write: () => true }
  edge = { terminal: new Terminal({ output: silent, errors: silent }), folder, debug: false }
})

afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

async function haveJobs(...ids: readonly string[]): Promise<void> {
  for (const id of ids) await mkdir(join(folder, '.millrace', id, 'head'), { recursive: true })
}

async function named(given: string): Promise<string> {
  return (await namedJob(given, edge, await localWorld(edge, undefined))).id
}

describe('the jobs in a folder', () => {
  it('are those with a HEAD, in namespaces too, whatever else lies there', async () => {
    await haveJobs('orders', 'orders.2', 'shop/orders', 'shop', '.hidden')
    await mkdir(join(folder, '.millrace/orders/objects/savepoint-1'), { recursive: true })
    await mkdir(join(folder, '.millrace/empty'))
    await writeFile(join(folder, '.millrace/shop/rest.json'), '{}')
    const jobs = await storedJobs(await localWorld(edge, undefined))
    expect(jobs.map(({ id }) => String(id))).toEqual(['orders', 'orders.2', 'shop', 'shop/orders'])
    expect(jobs.at(-1)?.storeFolder).toBe(join(folder, '.millrace/shop/orders'))
  })

  it('are none where there is no store', async () => {
    expect(await storedJobs(await localWorld(edge, undefined))).toEqual([])
    await expect(localWorld(edge, 'nowhere')).rejects.toThrow(/^MR-L13 .*nowhere/)
  })
})

describe('a job', () => {
  it('is the current one of its name, or the one of its number', async () => {
    await haveJobs('orders', 'orders.2', 'orders.10', 'orders-old')
    expect(await named('orders')).toBe('orders.10')
    expect(await named('orders.2')).toBe('orders.2')
    expect(await named('orders.1')).toBe('orders')
    await expect(named('orders.3')).rejects.toThrow(
      /^MR-L30 .* orders\.3\. There are: orders, orders-old, orders\.10, orders\.2\./,
    )
  })

  it('is named by its job file, which need not be there any more, as run names it', async () => {
    await haveJobs('orders', 'orders.2', 'flights')
    expect(await named('orders.ts')).toBe('orders.2')
    expect(await named('jobs/flights/job.ts')).toBe('flights')
    await expect(named('other.mjs')).rejects.toThrow(/^MR-L30/)
  })

  it('is named by its manifest, with its namespace', async () => {
    await haveJobs('orders', 'shop/orders', 'shop/orders.2', 'default/orders')
    const manifest = (namespace: string): string => `
apiVersion: millrace.dev/v1alpha1
kind: StreamJob
metadata: { name: orders${namespace} }
spec: { program: { module: { path: orders.ts } }, parallelism: 1 }
`
    await writeFile(join(folder, 'one.yaml'), manifest(', namespace: shop'))
    await writeFile(join(folder, 'two.yaml'), manifest(''))
    expect(await named('one.yaml')).toBe('shop/orders.2')
    expect(await named('two.yaml')).toBe('default/orders')
    expect(await named('shop/orders.1')).toBe('shop/orders')
    await expect(named('three.yaml')).rejects.toThrow(/^MR-L12 .*three\.yaml/)
  })
})
