// A kind cluster of three nodes: on a Docker engine that is there already, with the published node image where that can be pulled; else on an
// engine and an image of our own. Everything of ours lies in one folder and ends with one process.

import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from '../../tests/servers/support/go-tool.ts'
import { until } from '../../tests/servers/support/server-process.ts'
import { clusterAccess } from './access.ts'
import type { Cluster } from './contract.ts'
import { apiServerPort, runningEngine, startEngine, stopEngine } from './engine.ts'
import type { Engine } from './engine.ts'
import { nodeImage } from './node-image.ts'
import { needPackages } from './packages.ts'
import { handleOf, isAlive } from './process-handle.ts'
import type { ProcessHandle } from './process-handle.ts'
import { clusterProgram } from './programs.ts'
import { run } from './run.ts'
import type { RunOptions, RunResult } from './run.ts'
import { step } from './step.ts'

const createDeadlineMs = 600_000
const loadDeadlineMs = 300_000
const readyDeadlineMs = 180_000
/** kind's default of the version that go.mod names. */
const publishedImage = 'kindest/node:v1.34.0'

/** Settings with which a dead node is noticed, and its pods moved, within seconds. Nothing here outlives the machine: etcd need not sync. */
const kubeadmPatches = [
  {
    kind: 'ClusterConfiguration',
    etcd: { local: { extraArgs: { 'unsafe-no-fsync': 'true' } } },
    apiServer: {
      extraArgs: { 'default-not-ready-toleration-seconds': '10', 'default-unreachable-toleration-seconds': '10' },
    },
    controllerManager: { extraArgs: { 'node-monitor-period': '2s', 'node-monitor-grace-period': '12s' } },
  },
  { kind: 'KubeletConfiguration', nodeStatusUpdateFrequency: '2s', nodeLeaseDurationSeconds: 8 },
]

/** Where Docker is, and how its cluster's API server is reached from this machine. */
interface Host {
  readonly docker: (args: readonly string[], options?: RunOptions) => Promise<RunResult>
  readonly env: Readonly<Record<string, string>>
  /** Of our own engine: the relay's port. */
  readonly relayPort?: number
}

export interface KindOptions {
  /** Of the cluster; two of different names live side by side. Letters, digits, dashes. */
  readonly name?: string
}

export function kindCluster({ name = 'millrace' }: KindOptions = {}): Cluster {
  if (!/^[a-z][a-z0-9-]{0,30}$/.test(name)) throw new Error(`a cluster cannot be called "${name}": use a-z, 0-9 and -`)
  const folder = join(cacheFolder(), 'clusters', name)
  const kubeconfig = join(folder, 'kubeconfig')
  const access = clusterAccess(kubeconfig)
  let host: Host | undefined
  const needHost = (): Host => {
    if (host === undefined) throw new Error(`cluster ${name} is not up`)
    return host
  }
  const kind = async (args: readonly string[], options: RunOptions = {}): Promise<RunResult> =>
    run(await clusterProgram('kind'), args, { ...options, env: needHost().env })
  const docker: Host['docker'] = (args, options) => needHost().docker(args, options)
  /** Our own engine ends with all in it; on another's only our nodes go. */
  const removeCluster = (from: Host | undefined): Promise<void> =>
    step('remove cluster', async () => {
      if (from !== undefined && from.relayPort === undefined) await removeNodes(from, name)
      await stopEngine(folder)
      await removeTraces(folder)
    })
  /** Ready by the word of a kubelet that lives: what the one before said stands for some seconds more. */
  const nodeReady = async (node: string, sinceMs: number): Promise<boolean> => {
    const { spec } = await access.get<LeaseObject>(['--namespace', 'kube-node-lease', 'get', 'lease', node])
    const renewed = Date.parse(spec.renewTime) > sinceMs
    return renewed && (await access.nodes()).some((facts) => facts.name === node && facts.ready)
  }

  return {
    ...access,
    provider: 'kind',
    kubeconfig,
    can: { kill: true },

    up: async ({ reuse } = { reuse: false }) => {
      claim(folder, name)
      await mkdir(folder, { recursive: true })
      await writeOwner(folder)
      const kept = reuse ? await keptHost(folder) : undefined
      if (kept !== undefined && existsSync(kubeconfig)) {
        host = kept
        const answer = await access.kubectl(['get', '--raw', '/readyz'], { anyCode: true, deadlineMs: 10_000 })
        if (answer.code === 0) return
      }
      await step('end what an earlier run left', () => stopEngine(folder))
      host = await step('Docker engine', () => findHost(folder))
      await removeNodes(needHost(), name)
      const image = await step('node image on the engine', () => loadNodeImage(needHost()))
      const config = join(folder, 'kind.json')
      await writeFile(config, JSON.stringify(clusterConfig(needHost())))
      await step('create cluster', async () => {
        // It ends with this process, and takes nothing down when it fails: left over, it would remove the nodes of the next run by their name.
        const create = [
          'create',
          'cluster',
          '--quiet',
          '--retain',
          '--name',
          name,
          '--image',
          image,
          '--config',
          config,
        ]
        const command = [await clusterProgram('kind'), ...create, '--kubeconfig', kubeconfig]
        const options = { env: needHost().env, deadlineMs: createDeadlineMs }
        if (process.platform === 'linux') await run('setpriv', ['--pdeathsig', 'KILL', '--', ...command], options)
        else await run(command[0]!, command.slice(1), options)
      })
      if (needHost().relayPort !== undefined) await pointAt(kubeconfig, needHost().relayPort!)
      await step('nodes Ready', () =>
        access.kubectl(['wait', '--for=condition=Ready', 'nodes', '--all', `--timeout=${readyDeadlineMs / 1000}s`], {
          deadlineMs: readyDeadlineMs + 10_000,
        }),
      )
      await step('DNS ready', () =>
        access.kubectl(
          ['-n', 'kube-system', 'rollout', 'status', 'deploy/coredns', `--timeout=${readyDeadlineMs / 1000}s`],
          {
            deadlineMs: readyDeadlineMs + 10_000,
          },
        ),
      )
    },

    down: async () => {
      if (host === undefined) return
      await removeCluster(host)
      host = undefined
    },

    downKept: async () => {
      claim(folder, name)
      const kept = await keptHost(folder)
      const hasEngine = kept?.relayPort !== undefined
      const hasNodes = kept !== undefined && !hasEngine && (await nodesOf(kept, name)).length > 0
      if (!hasEngine && !hasNodes && !existsSync(kubeconfig)) return false
      await removeCluster(kept)
      return true
    },

    loadImage: async (archive) => {
      await kind(['load', 'image-archive', archive, '--name', name], { deadlineMs: loadDeadlineMs })
    },

    killNode: async (node) => {
      await docker(['kill', node])
    },

    startNode: async (node) => {
      const sinceMs = Date.now()
      await docker(['start', node])
      await until(`node ${node} is Ready`, () => nodeReady(node, sinceMs), readyDeadlineMs)
    },

    killContainer: async ({ namespace, pod, container }) => {
      const { spec, status } = await access.get<PodObject>(['--namespace', namespace, 'get', 'pod', pod])
      const found = status.containerStatuses?.find((one) => container === undefined || one.name === container)
      const id = /^containerd:\/\/(.+)$/.exec(found?.containerID ?? '')?.[1]
      if (id === undefined) throw new Error(`pod ${namespace}/${pod} has no such running container on its node`)
      await docker(['exec', spec.nodeName!, 'ctr', '-n', 'k8s.io', 'tasks', 'kill', '--signal', 'SIGKILL', id])
    },
  }
}

interface LeaseObject {
  readonly spec: { readonly renewTime: string }
}

interface PodObject {
  readonly spec: { readonly nodeName?: string }
  readonly status: {
    readonly containerStatuses?: readonly { readonly name: string; readonly containerID?: string }[]
  }
}

/** JSON is YAML. */
const clusterConfig = ({ relayPort }: Host): unknown => ({
  kind: 'Cluster',
  apiVersion: 'kind.x-k8s.io/v1alpha4',
  // On another's engine any free port; on ours the one that the relay leads to.
  networking: { apiServerAddress: '127.0.0.1', ...(relayPort !== undefined && { apiServerPort }) },
  nodes: [{ role: 'control-plane' }, { role: 'worker' }, { role: 'worker' }],
  kubeadmConfigPatches: kubeadmPatches.map((patch) => JSON.stringify(patch)),
})

/** Rejects while another run uses a cluster of that name. */
function claim(folder: string, name: string): void {
  const file = join(folder, 'owner.json')
  if (!existsSync(file)) return
  const owner = JSON.parse(readFileSync(file, 'utf8')) as ProcessHandle
  if (owner.pid !== process.pid && isAlive(owner))
    throw new Error(
      `process ${owner.pid} uses a cluster ${name} on this machine: wait for it, or choose another --name`,
    )
}

async function writeOwner(folder: string): Promise<void> {
  await writeFile(join(folder, 'owner.json'), JSON.stringify(handleOf(process.pid)))
}

/** They name a cluster and a run that are no more. */
async function removeTraces(folder: string): Promise<void> {
  for (const file of ['kubeconfig', 'owner.json']) await rm(join(folder, file), { force: true })
}

async function keptHost(folder: string): Promise<Host | undefined> {
  const engine = runningEngine(folder)
  return engine === undefined ? foreignHost() : hostOf(engine)
}

/** A Docker engine that is there already, else one of our own. */
async function findHost(folder: string): Promise<Host> {
  const foreign = await foreignHost()
  if (foreign !== undefined) return foreign
  await needPackages()
  await raiseWatchLimits()
  return hostOf(await startEngine(folder))
}

function hostOf(engine: Engine): Host {
  return {
    docker: (...words) => engine.docker(...words),
    env: { DOCKER_HOST: engine.host },
    relayPort: engine.relayPort,
  }
}

async function foreignHost(): Promise<Host | undefined> {
  const docker: Host['docker'] = (args, options) => run('docker', args, options)
  const answer = await docker(['version'], { anyCode: true, deadlineMs: 20_000 }).catch(() => undefined)
  return answer?.code === 0 ? { docker, env: {} } : undefined
}

/** Each kubelet watches some files; three of them and the pods' processes pass what a machine usually allows. */
async function raiseWatchLimits(): Promise<void> {
  for (const [name, least] of [
    ['max_user_instances', 8_192],
    ['max_user_watches', 524_288],
  ] as const) {
    const file = `/proc/sys/fs/inotify/${name}`
    if (Number(await readFile(file, 'utf8')) < least) await writeFile(file, String(least))
  }
}

async function removeNodes(host: Host, name: string): Promise<void> {
  const ids = await nodesOf(host, name)
  if (ids.length > 0) await host.docker(['rm', '--force', '--volumes', ...ids])
}

/** Nodes of a cluster of this name, whoever left them, by kind's own label. */
async function nodesOf({ docker }: Host, name: string): Promise<readonly string[]> {
  const filter = `label=io.x-k8s.kind.cluster=${name}`
  const { stdout } = await docker(['ps', '--all', '--quiet', '--filter', filter])
  return stdout.split('\n').filter((id) => id !== '')
}

async function loadNodeImage({ docker, relayPort }: Host): Promise<string> {
  const has = async (image: string): Promise<boolean> =>
    (await docker(['image', 'inspect', image], { anyCode: true })).code === 0
  if (relayPort === undefined) {
    if (await has(publishedImage)) return publishedImage
    const pulled = await docker(['pull', '--quiet', publishedImage], { anyCode: true, deadlineMs: loadDeadlineMs })
    if (pulled.code === 0) return publishedImage
  }
  await needPackages()
  const own = await nodeImage()
  if (await has(own.name)) return own.name
  const archive = await own.archive()
  // Those of earlier contents: an engine of ours has no other use for images.
  if (relayPort !== undefined) await docker(['image', 'prune', '--all', '--force'])
  await docker(['load', '--quiet', '--input', archive], { deadlineMs: loadDeadlineMs })
  return own.name
}

/** The API server's certificate names 127.0.0.1, at whatever port. */
async function pointAt(kubeconfig: string, port: number): Promise<void> {
  const text = await readFile(kubeconfig, 'utf8')
  const next = text.replace(/(server: https:\/\/127\.0\.0\.1:)\d+/, `$1${port}`)
  if (next === text && !text.includes(`:${port}`)) throw new Error(`${kubeconfig} names no server on 127.0.0.1`)
  await writeFile(kubeconfig, next, { mode: 0o600 })
}
