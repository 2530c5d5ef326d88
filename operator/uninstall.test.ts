import { describe, expect, it } from 'vitest'
import { manualEnvironment } from '../runtime/testkit/manual-clock.ts'
import { FINALIZER } from './contract.ts'
import { MemoryApi } from './harness/memory-api.ts'
import type { KubeObject } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'
import { uninstall } from './uninstall.ts'

async function subject() {
  const { clock } = manualEnvironment()
  const api = new MemoryApi(() => clock.wallMs())
  const client = api.client()
  const make = (
    kind: 'StreamJob' | 'Savepoint' | 'Deployment' | 'Pod',
    name: string,
    more: object,
    rest: object = {},
  ) => {
    const type = Object.values(types).find((one) => one.kind === kind)!
    const object: KubeObject = {
      apiVersion: type.apiVersion,
      kind,
      metadata: { name, namespace: 'n', ...more },
      ...rest,
    }
    return client.create(type, object)
  }
  await make('StreamJob', 'one', { finalizers: [FINALIZER, 'of.others/stays'] })
  await make('StreamJob', 'two', {})
  await make('Savepoint', 'three', { finalizers: [FINALIZER] })
  await make('Deployment', 'operator', {}, { spec: { replicas: 1, selector: { matchLabels: { app: 'operator' } } } })
  const pod = await make('Pod', 'operator-1', { labels: { app: 'operator' } })
  const run = (): Promise<void> =>
    uninstall({ client, clock, namespace: 'n', deployment: 'operator', namespaces: [], log: () => undefined })
  const finalizers = (): unknown[] =>
    [...api.all(types.streamJob), ...api.all(types.savepoint)].map(({ metadata }) => metadata.finalizers)
  return { api, clock, client, run, pod, finalizers }
}

describe('uninstall', () => {
  it('takes the operator down first, then its finalizers; those of others stay', async () => {
    const { api, clock, client, run, pod, finalizers } = await subject()
    const running = run()
    await clock.advanceSettled(2_000)
    expect(api.find(types.deployment, 'n', 'operator')).toMatchObject({ spec: { replicas: 0 } })
    expect(finalizers()).toEqual([[FINALIZER, 'of.others/stays'], undefined, [FINALIZER]])
    await client.delete(
      types.pod,
      { namespace: 'n', name: 'operator-1' },
      { precondition: { uid: pod.metadata.uid! }, gracePeriodSeconds: 0 },
    )
    await clock.advanceSettled(1_000)
    await running
    expect(finalizers()).toEqual([['of.others/stays'], undefined, []])
  })

  it('takes nothing off while an operator may still run', async () => {
    const { clock, run, finalizers } = await subject()
    const refused = expect(run()).rejects.toThrow(/MR-P08.*operator-1/s)
    await clock.advanceSettled(70_000)
    await refused
    expect(finalizers()[0]).toEqual([FINALIZER, 'of.others/stays'])
  })
})
