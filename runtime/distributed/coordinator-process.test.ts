import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freePorts } from '../../tests/servers/support/server-process.ts'
import { testAuthority } from '../../tests/support/certificates.ts'
import type { TestCertificate } from '../../tests/support/certificates.ts'
import { loadDeadlineMs } from '../job/loaded-in-time.ts'
import { NodeFiles } from '../local/platform/node-files.ts'
import { realEnvironment } from '../local/platform/real-environment.ts'
import { ManualClock } from '../testkit/manual-clock.ts'
import { renewalMs } from './certificate-renewal.ts'
import { startCoordinator } from './coordinator-process.ts'
import type { RunningCoordinator } from './coordinator-process.ts'
import type { ProcessConfig } from './contract.ts'
import { parseProcessConfig } from './process-config.ts'

const log: string[] = []
const files = new NodeFiles()
const exampleJob = fileURLToPath(new URL('../../examples/sensors/job.ts', import.meta.url))
let folder = ''
let clock: ManualClock
let running: RunningCoordinator[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-coordinator-'))
  clock = new ManualClock()
  log.length = 0
  for (const name of ['worker', 'owner', 'reader']) await writeFile(join(folder, name), `the-token-of-the-${name}`)
})

afterEach(async () => {
  for (const coordinator of running) await coordinator.leave()
  running = []
  // The store is still being opened.
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
})

/** Of a coordinator that finds no NATS; `module`: its job's. */
async function started({
  module,
  tls = false,
  more,
}: {
  readonly module?: string
  readonly tls?: boolean
  readonly more?: Partial<ProcessConfig>
} = {}) {
  const [workersPort, restPort, nobody] = (await freePorts(3)) as [number, number, number]
  const file = (name: string): string => join(folder, name)
  if (module !== undefined) await writeFile(file('job.js'), module)
  const config = {
    version: 1,
    job: { id: 'uid-1', name: 'numbers', start: 1, file: module === undefined ? exampleJob : file('job.js') },
    storage: { checkpoints: `file://${file('store')}` },
    nats: { servers: [`nats://127.0.0.1:${nobody}`] },
    coordinator: {
      workersAddress: `127.0.0.1:${workersPort}`,
      restAddress: `127.0.0.1:${restPort}`,
      ...(tls && { tls: { certFile: file('tls.crt'), keyFile: file('tls.key'), caFile: file('ca.crt') } }),
    },
    tokens: { workerFile: file('worker'), ownerFile: file('owner'), readerFile: file('reader') },
    ...more,
  }
  const coordinator = await startCoordinator({
    config: parseProcessConfig(JSON.stringify(config), 'process.json'),
    runtimeVersion: '1.0.0',
    environment: {
      ...realEnvironment({ log: (_level, message, fields) => log.push(`${message} ${JSON.stringify(fields)}`) }),
      clock,
    },
    files,
  })
  running.push(coordinator)
  return { workersPort, restPort }
}

describe('a job file that waits for what never answers', () => {
  it('is one clear error in time, and the next process may try again', async () => {
    const failed = started({ module: 'await new Promise(() => undefined)' }).catch((error: unknown) => error)
    while (clock.waiting === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    clock.advance(loadDeadlineMs)
    expect(await failed).toMatchObject({ code: 'MR-J14', retry: true })
  })
})

it('tells who may not change a job of the operator the kubectl command that does', async () => {
  const { restPort } = await started({ more: { kubernetes: { namespace: 'shop', name: 'orders' } } })
  const headers = { authorization: 'Bearer the-token-of-the-reader' }
  const answer = await fetch(`http://127.0.0.1:${restPort}/v1/cancel`, { method: 'POST', headers })
  expect(answer.status).toBe(403)
  expect(await answer.json()).toMatchObject({
    message: expect.stringContaining('kubectl delete streamjob/orders -n shop') as string,
  })
})

describe('a certificate that is renewed', () => {
  const authority = testAuthority()
  /** What a server shows to whoever connects now. */
  const shown = async (port: number): Promise<string> => {
    const { ca } = await authority
    const socket = connect({ port, host: '127.0.0.1', ca })
    await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
    const { subject } = socket.getPeerCertificate()
    socket.destroy()
    return String(subject.CN)
  }
  const write = async ({ cert, key }: TestCertificate): Promise<void> => {
    await writeFile(join(folder, 'tls.crt'), cert)
    await writeFile(join(folder, 'tls.key'), key)
  }
  const until = async (condition: () => Promise<boolean> | boolean): Promise<void> => {
    while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5))
  }

  it('is shown to workers and by REST, without the process being started again', async () => {
    const known = await authority
    await write(await known.issue(['first.example', '127.0.0.1']))
    const { workersPort, restPort } = await started({ tls: true })
    expect([await shown(workersPort), await shown(restPort)]).toEqual(['first.example', 'first.example'])

    await write(await known.issue(['second.example', '127.0.0.1']))
    clock.advance(renewalMs)
    await until(async () => (await shown(workersPort)) === 'second.example')
    await until(async () => (await shown(restPort)) === 'second.example')
  })

  it('is taken the next time when it was half written', async () => {
    const known = await authority
    const second = await known.issue(['second.example', '127.0.0.1'])
    await write(await known.issue(['first.example', '127.0.0.1']))
    const { workersPort, restPort } = await started({ tls: true })
    await writeFile(join(folder, 'tls.crt'), second.cert)
    clock.advance(renewalMs)
    await until(() => log.some((line) => line.startsWith('the certificate could not be read anew')))
    expect([await shown(workersPort), await shown(restPort)]).toEqual(['first.example', 'first.example'])

    await write(second)
    clock.advance(renewalMs)
    await until(async () => (await shown(restPort)) === 'second.example')
    expect(await shown(workersPort)).toBe('second.example')
  })
})
