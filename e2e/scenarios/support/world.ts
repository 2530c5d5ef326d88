// What most scenarios begin with: Millrace installed, a namespace of their own with its S3 Secret, and a ledger in it.

import { ensureInstalled, installation } from '../../cluster/installation.ts'
import type { Cluster } from '../../cluster/contract.ts'
import type { LedgerClient } from '../../harness/ledger-client.ts'
import type { ScenarioContext } from '../../cluster/scenario.ts'
import { startLedger } from './ledger.ts'
import { ScenarioJob } from './job.ts'
import type { JobOptions } from './job.ts'

const usualSpec = { parallelism: 2, checkpointing: { interval: '1s' } }

export interface World {
  readonly namespace: string
  readonly ledger: LedgerClient
  /** Not applied yet. */
  readonly job: (options?: JobOptions) => ScenarioJob
  /** Applied, with a checkpoint each second if nothing else is said; resolves once it runs and has completed one. */
  readonly started: (options?: JobOptions) => Promise<ScenarioJob>
}

/** The namespace goes when the scenario has passed; of one that failed it stays until it is collected. */
export async function inWorld(
  cluster: Cluster,
  context: ScenarioContext,
  prefix: string,
  scenario: (world: World) => Promise<void>,
): Promise<void> {
  await ensureInstalled(cluster, context.image)
  const namespace = await cluster.makeNamespace(prefix)
  await copyS3Secret(cluster, namespace)
  const { client: ledger, close } = await startLedger(cluster, namespace, context.image)
  context.say(`installed, with a ledger in ${namespace}`)
  const jobs: ScenarioJob[] = []
  const job = (options: JobOptions = {}): ScenarioJob => {
    const one = new ScenarioJob({ cluster, namespace, ledger }, options, context.say)
    jobs.push(one)
    return one
  }
  try {
    await scenario({
      namespace,
      ledger,
      job,
      started: async (options = {}) => {
        const one = job(options)
        await one.apply({ ...options, spec: { ...usualSpec, ...options.spec } })
        await one.running()
        await one.checkpoints(1)
        context.say(`${one.name} runs`)
        return one
      },
    })
    await cluster.removeNamespace(namespace)
  } finally {
    for (const one of jobs) await one.close()
    await close()
  }
}

/** As the chart's README says for a job in another namespace than the chart's own S3 server. */
async function copyS3Secret(cluster: Cluster, namespace: string): Promise<void> {
  const name = `${installation.release}-s3`
  const { data, type } = await cluster.get<{ readonly data: object; readonly type: string }>([
    '--namespace',
    installation.namespace,
    'get',
    'secret',
    name,
  ])
  await cluster.apply([{ apiVersion: 'v1', kind: 'Secret', metadata: { name }, type, data }], { namespace })
}

/** For people. */
export const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
