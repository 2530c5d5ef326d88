// Operators in this process instead of the installation's: each is cut off from the API server right behind one of its writes, as by kill -9
// there, and another one follows.

import { randomBytes } from 'node:crypto'
import { parse } from 'yaml'
import { cuttingClient } from '../../../operator/harness/operator-world.ts'
import { ApiClient } from '../../../operator/kubernetes/client.ts'
import { connectApi } from '../../../operator/kubernetes/platform/https-connection.ts'
import { Operator } from '../../../operator/operator.ts'
import { dialCoordinators } from '../../../operator/platform/coordinator-connection.ts'
import { readOperatorConfig } from '../../../operator/resources/operator-config.ts'
import { realEnvironment } from '../../../runtime/local/platform/real-environment.ts'
import { installation } from '../../cluster/installation.ts'
import type { Cluster } from '../../cluster/contract.ts'
import { scaleSystem } from './system.ts'
import { wait } from './wait.ts'

const deployment = `${installation.release}-operator`

/** The installation's operator sleeps while `work` is done. */
export async function withoutOperator<Result>(cluster: Cluster, work: () => Promise<Result>): Promise<Result> {
  await scaleSystem(cluster, 'operator', 0)
  try {
    return await work()
  } finally {
    await scaleSystem(cluster, 'operator', 1)
  }
}

export interface MortalOptions {
  readonly cluster: Cluster
  /** Of the one job that they look after. */
  readonly namespace: string
  /** Where its coordinator is met from here. */
  readonly coordinatorPort: () => number
  /** Each is cut behind so many writes, or behind its first that changes anything. */
  readonly after: number | 'change'
  readonly isDone: () => Promise<boolean>
  readonly deadlineMs: number
}

/** One operator after the other until it is done. Resolves with how many were cut. */
export async function untilDoneByMortals(options: MortalOptions): Promise<number> {
  const { cluster, namespace, after, deadlineMs } = options
  let lastError: unknown
  /** An error counts as not yet; the last one is told. */
  const isDone = (): Promise<boolean> =>
    options.isDone().catch((error: unknown) => {
      lastError = error
      return false
    })
  const { data } = await cluster.get<{ readonly data: Readonly<Record<string, string>> }>([
    '--namespace',
    installation.namespace,
    'get',
    'configmap',
    deployment,
  ])
  const text = JSON.stringify({
    ...(parse(data['config.yaml']!) as object),
    namespaces: [namespace],
    webhook: undefined,
  })
  const read = readOperatorConfig(text)
  if (read.kind !== 'fits') throw new Error(read.problems.join('; '))
  const endMs = performance.now() + deadlineMs
  let cuts = 0
  while (!(await isDone())) {
    if (performance.now() > endMs)
      throw new Error(`not done within ${deadlineMs} ms, ${cuts} operators were cut; last error: ${String(lastError)}`)
    const lines: string[] = []
    const log = (level: string, message: string, fields?: unknown): void =>
      void lines.push(`${level} ${message} ${JSON.stringify(fields)}`)
    const environment = realEnvironment({ log })
    const connection = connectApi({ kubeconfig: cluster.kubeconfig })
    const cut = cuttingClient(new ApiClient({ connection, fieldManager: 'millrace-operator' }), after)
    const operator = new Operator({
      client: cut.client,
      dial: (target, requestMs) =>
        dialCoordinators({ host: '127.0.0.1', port: options.coordinatorPort() })(target, requestMs),
      clock: environment.clock,
      random: environment.random,
      randomBytes: (count) => randomBytes(count),
      config: read.config,
      namespace: installation.namespace,
      holder: `mortal-${cuts}-${randomBytes(4).toString('hex')}`,
      version: '0.1.0',
      log,
    })
    await operator.start()
    await wait(
      'the operator to be cut, or all to be done',
      async () => cut.isCut() || (await isDone()),
      Math.max(0, endMs - performance.now()),
      () => [...lines.slice(-20), `last error: ${String(lastError)}`].join('\n'),
    )
    if (cut.isCut()) cuts++
    cut.cut()
    await operator.stop()
    // A killed one keeps its lease until that has run out; the next is let in at once, or a transition would take minutes.
    const lease = ['delete', 'lease', read.config.lease, '--ignore-not-found']
    await cluster.kubectl(['--namespace', installation.namespace, ...lease])
  }
  return cuts
}
