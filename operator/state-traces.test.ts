import { expect, it } from 'vitest'
import type { StreamJobStatus } from './contract.ts'
import type { KubeObject } from './kubernetes/contract.ts'
import { childMetadata } from './resources/labels.ts'
import { configName } from './resources/names.ts'
import { stateTraces } from './state-traces.ts'

const job = { namespace: 'n', name: 'flights', uid: 'b2c0e7e4-0000-4000-8000-000000000001' }
const path = `s3://bucket/prefix/n/flights/${job.uid}/checkpoints/chk-7`
const config = (text: string, more: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    ...childMetadata({ job, component: 'config', name: configName(job, '3'), revision: 'r5', start: '3' }),
    ...more,
  },
  data: { 'process.json': text },
})
const told = JSON.stringify({
  job: { maxParallelism: 64 },
  storage: { checkpoints: `file:///data/n/flights/${job.uid}` },
})

it.each<[string, Partial<StreamJobStatus>, KubeObject[], string | undefined, number | undefined]>([
  ['the config of the running start', {}, [config(told)], 'file:///data', 64],
  ['nothing', {}, [], undefined, undefined],
  ['a config that cannot be read', {}, [config('{')], undefined, undefined],
  ["somebody else's config", {}, [config(told, { ownerReferences: [] })], undefined, undefined],
  ['another start’s config', { start: 4 }, [config(told)], undefined, undefined],
  ['the restore point', { restorePoint: pointAt(path) }, [], 's3://bucket/prefix', undefined],
  [
    'a restore point of another job',
    { restorePoint: pointAt(path.replace('flights', 'other')) },
    [],
    undefined,
    undefined,
  ],
  [
    'a savepoint, which may be anywhere',
    { restorePoint: { ...pointAt(path), kind: 'savepoint' } },
    [],
    undefined,
    undefined,
  ],
])('where the state is: by %s', (_, status, objects, checkpoints, maxParallelism) => {
  const found = stateTraces({ job, status: { start: 3, ...status } as StreamJobStatus, objects })
  expect(found).toEqual({ checkpoints, maxParallelism })
})

function pointAt(at: string) {
  return { kind: 'checkpoint', path: at, id: 7, start: 3, madeBy: 3, unconfirmed: false, readAt: '' } as const
}
