import { expect, it } from 'vitest'
import { manualEnvironment } from '../runtime/testkit/manual-clock.ts'
import { Caches } from './caches.ts'
import { MemoryApi } from './harness/memory-api.ts'
import { types } from './kubernetes/types.ts'
import { componentLabel, jobLabel } from './resources/labels.ts'

it('a worker pod that is gone is lost under its own uid, until another one has its name', async () => {
  const { clock, random } = manualEnvironment()
  const api = new MemoryApi(() => clock.wallMs())
  const client = api.client()
  const caches = new Caches({ client, namespaces: [], clock, random, log: () => undefined, wanted: () => undefined })
  caches.start()
  await caches.ready()
  const namespace = 'n'
  const job = await client.create(types.streamJob, {
    apiVersion: types.streamJob.apiVersion,
    kind: 'StreamJob',
    metadata: { name: 'job', namespace },
  })
  const jobUid = job.metadata.uid!
  const labels = { 'app.kubernetes.io/managed-by': 'millrace', [jobLabel]: jobUid, [componentLabel]: 'worker' }
  const make = async (): Promise<string> => {
    const metadata = { name: 'worker-0', namespace, labels }
    const made = await client.create(types.pod, { apiVersion: 'v1', kind: 'Pod', metadata })
    await clock.advanceSettled(100)
    return made.metadata.uid!
  }
  const uids: string[] = []
  for (let pod = 0; pod < 2; pod++) {
    const uid = await make()
    uids.push(uid)
    expect(caches.lostWorkers(jobUid)).toEqual([])
    const at = { name: 'worker-0', namespace }
    await client.delete(types.pod, at, { precondition: { uid }, gracePeriodSeconds: 0 })
    await clock.advanceSettled(100)
    expect(caches.lostWorkers(jobUid)).toEqual([{ name: 'worker-0', uid, reason: 'its pod is gone' }])
  }
  expect(uids[0]).not.toBe(uids[1])
  caches.close()
})
