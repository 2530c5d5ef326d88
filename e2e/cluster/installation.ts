// Millrace on a cluster, as a user installs it: by Helm from charts/millrace, with the NATS and S3 servers that the chart brings along.

import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import type { Cluster } from './contract.ts'
import { imageName } from './image.ts'
import { natsImage, s3Image } from './server-images.ts'
import { step } from './step.ts'

const chart = fileURLToPath(new URL('../../charts/millrace', import.meta.url))
const release = 'millrace'
const namespace = 'millrace-system'
const installDeadlineS = 240

export interface Installation {
  /** Of the operator, NATS and S3. */
  readonly namespace: string
  readonly release: string
  readonly chart: string
}

export const installation: Installation = { namespace, release, chart }

/** The images that the chart's own servers ask for, on every node. A cluster that is there already has them or pulls them. */
export async function loadServerImages(cluster: Cluster): Promise<void> {
  if (cluster.provider === 'existing') return
  const values = parse(await readFile(`${chart}/values.yaml`, 'utf8')) as {
    readonly natsServer: { readonly image: string }
    readonly s3Server: { readonly image: string }
  }
  // As the kubelet completes a short name.
  const archives = [
    await natsImage(`docker.io/library/${values.natsServer.image}`),
    await s3Image(`docker.io/${values.s3Server.image}`),
  ]
  await step('images of NATS and S3 onto the nodes', async () => {
    for (const archive of archives) await cluster.loadImage(archive)
  })
}

export async function isInstalled(cluster: Cluster): Promise<boolean> {
  const status = await cluster.helm(['status', release, '--namespace', namespace], { anyCode: true })
  return status.code === 0
}

/** `helm install`; resolves when all its pods are ready. `image`: of runtime and operator. */
export async function helmInstall(cluster: Cluster, image: string): Promise<void> {
  // The one that is packed here has the names that the chart asks for.
  const words = image === imageName ? [] : ['--set', `defaults.image=${image}`, '--set', `operator.image=${image}`]
  const place = ['--namespace', namespace, '--create-namespace']
  const wait = ['--wait', '--timeout', `${installDeadlineS}s`]
  await withServersBeside(cluster, () =>
    cluster.helm(['install', release, chart, ...place, ...wait, ...words], {
      deadlineMs: (installDeadlineS + 30) * 1000,
    }),
  )
}

export async function helmUninstall(cluster: Cluster): Promise<void> {
  const words = ['uninstall', release, '--namespace', namespace, '--wait', '--timeout', `${installDeadlineS}s`]
  await cluster.helm(words, { deadlineMs: (installDeadlineS + 30) * 1000 })
}

/** `helm upgrade` to other values, over those of now; resolves when all its pods are ready. */
export async function helmUpgrade(cluster: Cluster, values: Readonly<Record<string, string>>): Promise<void> {
  const sets = Object.entries(values).flatMap(([name, value]) => ['--set', `${name}=${value}`])
  const place = ['upgrade', release, chart, '--namespace', namespace, '--reuse-values']
  await cluster.helm([...place, '--wait', '--timeout', `${installDeadlineS}s`, ...sets], {
    deadlineMs: (installDeadlineS + 30) * 1000,
  })
}

/** For scenarios that only need it to be there. */
export async function ensureInstalled(cluster: Cluster, image: string): Promise<void> {
  if (!(await isInstalled(cluster))) await helmInstall(cluster, image)
}

/**
 * Where nodes can be killed, the chart's single servers go to the control plane's node, which no scenario kills: a job's node that is lost is to be
 * that alone, not an outage of NATS and S3 too.
 */
async function withServersBeside(cluster: Cluster, work: () => Promise<unknown>): Promise<void> {
  const nodes = cluster.can.kill ? await cluster.nodes() : []
  const workers = nodes.filter(({ controlPlane }) => !controlPlane).map(({ name }) => name)
  if (workers.length === 0) {
    await work()
    return
  }
  const taint = 'node-role.kubernetes.io/control-plane:NoSchedule-'
  await cluster.kubectl(['taint', 'nodes', '--selector', 'node-role.kubernetes.io/control-plane', taint], {
    anyCode: true,
  })
  await cluster.kubectl(['cordon', ...workers])
  try {
    await work()
  } finally {
    await cluster.kubectl(['uncordon', ...workers])
  }
}
