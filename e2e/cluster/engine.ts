// A Docker engine of our own, for machines without one: in network, mount and process namespaces that end with one process, from which no
// link leads out, so that no packet leaves. A relay inside holds one listener of this machine's loopback: the way to the API server.

import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdir, open, readFile, readdir, rm, rmdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { clusterProgram } from './programs.ts'
import { handleOf, isAlive, killProcess } from './process-handle.ts'
import type { ProcessHandle } from './process-handle.ts'
import { run } from './run.ts'
import type { RunOptions, RunResult } from './run.ts'

const readyDeadlineMs = 60_000
/** Of the API server inside; the relay leads there. */
export const apiServerPort = 6443
/** Answers NXDOMAIN at once to names that Docker does not know; without it such a look-up hangs. An address that is nobody's (RFC 5737). */
const resolverAddress = '198.51.100.53'
/** sun_path holds 108 bytes. */
const socketPathMax = 107

export interface Engine {
  /** The client's DOCKER_HOST. */
  readonly host: string
  /** On this machine's loopback; leads to the API server's port inside. */
  readonly relayPort: number
  docker(args: readonly string[], options?: RunOptions): Promise<RunResult>
}

interface EngineRecord {
  readonly handle: ProcessHandle
  readonly relayPort: number
}

/** The engine that runs with this folder, if one does. */
export function runningEngine(folder: string): Engine | undefined {
  const record = readRecord(folder)
  return record !== undefined && isAlive(record.handle) ? engineOf(folder, record) : undefined
}

/** Starts an engine that keeps everything in the folder; its images stay there for the next one. */
export async function startEngine(folder: string): Promise<Engine> {
  const socket = join(folder, 'docker.sock')
  if (socket.length > socketPathMax)
    throw new Error(`${socket} is too long for a socket; set MILLRACE_CACHE to a shorter folder`)
  const data = join(folder, 'docker')
  await mkdir(data, { recursive: true })
  await dropContainers(data)
  const coredns = await clusterProgram('coredns')
  await writeFile(
    join(folder, 'Corefile'),
    `.:53 {\n  bind ${resolverAddress}\n  template ANY ANY {\n    rcode NXDOMAIN\n  }\n}\n`,
  )
  const source = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
  const runc = join(folder, 'runc')
  await writeFile(runc, `#!/bin/sh\nexec '${process.execPath}' '${source('engine-runc.ts')}' "$@"\n`)
  await chmod(runc, 0o755)
  const init = initScript({ folder, socket, runc, coredns, relay: source('engine-relay.ts') })
  const relay = await listenOnLoopback()
  const relayPort = (relay.address() as AddressInfo).port
  const log = await open(join(folder, 'engine.log'), 'w')
  const namespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'private']
  const child = spawn('unshare', [...namespaces, '/bin/sh', '-euc', init], {
    stdio: ['ignore', log.fd, log.fd, descriptorOf(relay)],
    detached: true,
  })
  await new Promise((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', (error) => reject(new Error('unshare (of util-linux) could not be started', { cause: error })))
  })
  child.unref()
  // The child's copy of the descriptor listens on.
  relay.close()
  await log.close()
  const handle = handleOf(child.pid!)
  if (handle === undefined) throw new Error(`the engine ended at once; it said:\n${lastWords(folder)}`)
  const record: EngineRecord = { handle, relayPort }
  await writeFile(join(folder, 'engine.json'), JSON.stringify(record))
  const engine = engineOf(folder, record)
  const untilMs = performance.now() + readyDeadlineMs
  while ((await engine.docker(['version'], { anyCode: true })).code !== 0) {
    if (isAlive(handle) && performance.now() < untilMs) continue
    await stopEngine(folder)
    throw new Error(`the Docker engine did not start; it said:\n${lastWords(folder)}`)
  }
  return engine
}

/** Ends the engine of this folder and all in it, if there is one, and removes what it left. Its images stay. */
export async function stopEngine(folder: string): Promise<void> {
  const record = readRecord(folder)
  if (record === undefined) return
  await killProcess(record.handle)
  await removeCgroups(cgroupName(folder))
  for (const name of ['engine.json', 'docker.sock']) await rm(join(folder, name), { force: true })
}

/**
 * Of what an engine kept, all but images. It was killed with its containers, as always here, and would start them again while they are being removed.
 * Layout of Docker's overlay2 driver: a container's own layer is named in layerdb/mounts.
 */
async function dropContainers(data: string): Promise<void> {
  const mounts = join(data, 'image/overlay2/layerdb/mounts')
  for (const container of await readdir(mounts).catch(() => [])) {
    for (const file of ['mount-id', 'init-id']) {
      const layer = await readFile(join(mounts, container, file), 'utf8').catch(() => '')
      if (/^[\w-]+$/.test(layer)) await rm(join(data, 'overlay2', layer), { recursive: true, force: true })
    }
    await rm(join(mounts, container), { recursive: true, force: true })
  }
  for (const kept of ['containers', 'containerd', 'network', 'volumes'])
    await rm(join(data, kept), { recursive: true, force: true })
}

function engineOf(folder: string, { relayPort }: EngineRecord): Engine {
  const host = `unix://${join(folder, 'docker.sock')}`
  return {
    host,
    relayPort,
    docker: (args, options = {}) =>
      run('docker', args, {
        needs: 'the Debian package docker.io',
        ...options,
        env: { DOCKER_HOST: host, ...options.env },
      }),
  }
}

function readRecord(folder: string): EngineRecord | undefined {
  const file = join(folder, 'engine.json')
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as EngineRecord) : undefined
}

interface InitOptions {
  readonly folder: string
  readonly socket: string
  readonly runc: string
  readonly coredns: string
  readonly relay: string
}

/** What process 1 of the namespaces does. A shell, since whoever is process 1 must reap what others leave. */
const initScript = ({ folder, socket, runc, coredns, relay }: InitOptions): string => `
  mount --make-rshared /
  mount -t tmpfs tmpfs /run
  mkdir -p /run/lock
  ip link set lo up
  ip addr add ${resolverAddress}/32 dev lo
  echo 1 >/proc/sys/net/ipv4/ip_forward
  while :; do '${process.execPath}' '${relay}' ${apiServerPort} || true; sleep 0.2; done &
  exec 3<&-
  '${coredns}' -conf '${folder}/Corefile' &
  dockerd --dns ${resolverAddress} -H 'unix://${socket}' --data-root '${folder}/docker' --exec-root /run/docker \\
    --pidfile /run/docker.pid --add-runtime 'millrace=${runc}' --default-runtime millrace --oom-score-adjust 0 \\
    --cgroup-parent '/${cgroupName(folder)}' --storage-driver overlay2 &
  wait`

const cgroupName = (folder: string): string => `millrace-${folder.split('/').at(-1)}`

const lastWords = (folder: string): string => readFileSync(join(folder, 'engine.log'), 'utf8').slice(-4000)

function listenOnLoopback(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve(server))
  })
}

/** Node hands a listener on only by its descriptor. */
const descriptorOf = (server: Server): number =>
  (server as unknown as Record<'_handle', { readonly fd: number }>)['_handle'].fd

/** Groups of ended containers stay behind: folders within folders, empty of processes. Versions 1 (one tree a controller) and 2. */
async function removeCgroups(name: string): Promise<void> {
  const root = '/sys/fs/cgroup'
  const trees = (await readdir(root, { withFileTypes: true })).filter((entry) => entry.isDirectory())
  for (const tree of [root, ...trees.map((entry) => join(root, entry.name))]) await removeTree(join(tree, name))
}

async function removeTree(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) if (entry.isDirectory()) await removeTree(join(folder, entry.name))
  // One that is in use still belongs to a process that is just ending; the next start of an engine uses it again.
  await rmdir(folder).catch(() => undefined)
}
