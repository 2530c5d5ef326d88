import type { Cluster } from '../cluster/contract.ts'
import type { Scenario } from '../cluster/scenario.ts'
import type { JobObject, ScenarioJob } from './support/job.ts'
import { withStorage } from './support/storage.ts'
import { found, wait } from './support/wait.ts'
import { inWorld, seconds } from './support/world.ts'

interface SavepointObject {
  readonly metadata: { readonly name: string }
  readonly status?: { readonly state: string; readonly path?: string; readonly detail?: string }
}

interface EventObject {
  readonly reason: string
  readonly eventTime: string
  readonly regarding: { readonly uid: string }
}

const ttlSeconds = 15

/**
 * Savepoints in a bucket of their own; a deletion that takes a last one and leaves no checkpoint; a job of the same name that goes on from the
 * latest, and is deleted some time after its end; and savepoints disposed of, whose files go, and no other.
 */
export const scenario: Scenario = {
  name: 'deleted with a last savepoint',
  core: false,
  usualMs: 300_000,
  deadlineMs: 900_000,
  run: (cluster, context) =>
    inWorld(cluster, context, 'last', async ({ started, job: make, namespace }) => {
      const bucket = `${namespace}-savepoints`
      await withStorage(cluster, (storage) => storage.makeBucket(bucket))
      const spec = {
        parallelism: 2,
        checkpointing: { interval: '1s', onCancellation: 'delete' },
        deletion: { savepoint: true, deadline: '60s' },
        storage: { savepoints: `s3://${bucket}/kept` },
      }
      const below = (address: string) => withStorage(cluster, (storage) => storage.below(address))

      // State that does not fit into a manifest.
      const job = await started({ args: { stateBytes: 2_000 }, spec })
      const [, savepointsAddress] = await job.addresses(await job.object())
      await cluster.apply([byHand], { namespace })
      const first = await completed(cluster, namespace, 'by-hand')
      expectBelow(first, `${savepointsAddress}/objects`)
      context.say(`by hand: ${first}`)

      const tookMs = await job.remove(90_000)
      const last = await lastOf(cluster, namespace)
      expectBelow(last.path, `${savepointsAddress}/objects`)
      const kept = await below(savepointsAddress!)
      expectSame(kept, [
        ...kept.filter((key) => key.startsWith(`${first}/`) || key.startsWith(`${last.path}/`)),
        `${savepointsAddress}/objects/owner`,
      ])
      for (const path of [first, last.path])
        if (!kept.includes(`${path}/_metadata`) || kept.filter((key) => key.startsWith(`${path}/`)).length < 2)
          throw new Error(`the savepoint at ${path} is not whole: ${kept.join()}`)
      context.say(`deleted with savepoint ${last.path} in ${seconds(tookMs)}`)

      await job.kubectl(['delete', 'savepoint', 'by-hand', '--wait=true', '--timeout=150s'], { deadlineMs: 160_000 })
      expectSame(
        await below(savepointsAddress!),
        kept.filter((key) => !key.startsWith(`${first}/`)),
      )
      context.say('the files of by-hand are gone, and no other')

      const next = make({ args: { stateBytes: 2_000 } })
      await next.apply({ spec: { ...spec, restoreFrom: 'latest', ttlAfterFinished: `${ttlSeconds}s` } })
      const { begin } = await next.running(240_000)
      if (begin?.from !== last.path) throw new Error(`the latest is ${last.path}; it began as ${JSON.stringify(begin)}`)
      await next.checkpoints(1)
      const [, nextSavepoints] = await next.addresses(await next.object())
      await next.expectExactToTheEnd()
      const ended = await next.object()
      await wait('the finished job to be deleted by itself', () => isGone(next, ended))
      await expectTtl(cluster, namespace, ended)
      await next.expectNoLeftovers(ended)
      await next.expectOnlyRetained(ended)
      context.say(`deleted by itself ${ttlSeconds} s after its end`)

      // It may have been begun from until now. A last one is of a job that runs: this job had ended.
      const disposal = JSON.stringify({ spec: { disposal: 'delete' } })
      await job.kubectl(['patch', 'savepoint', last.name, '--type=merge', '-p', disposal])
      await wait('its files to be a matter of its deletion', async () => {
        const words = ['--namespace', namespace, 'get', 'savepoint', last.name]
        const { metadata } = await cluster.get<{ readonly metadata: { readonly finalizers?: readonly string[] } }>(
          words,
        )
        return (metadata.finalizers ?? []).length > 0
      })
      await job.kubectl(['delete', 'savepoint', last.name, '--wait=true', '--timeout=150s'], { deadlineMs: 160_000 })
      expectSame(await below(`s3://${bucket}/kept`), [
        `${savepointsAddress}/objects/owner`,
        `${nextSavepoints}/objects/owner`,
      ])
      context.say('the last one is disposed of: its bucket holds no savepoint')
    }),
}

const byHand = {
  apiVersion: 'millrace.dev/v1alpha1',
  kind: 'Savepoint',
  metadata: { name: 'by-hand' },
  spec: { job: { name: 'ledger' }, disposal: 'delete' },
}

async function savepointsOf(cluster: Cluster, namespace: string): Promise<readonly SavepointObject[]> {
  const words = ['--namespace', namespace, 'get', 'savepoints']
  return (await cluster.get<{ readonly items: readonly SavepointObject[] }>(words)).items
}

function completed(cluster: Cluster, namespace: string, name: string): Promise<string> {
  return found(`savepoint ${name}`, async () => {
    const status = (await savepointsOf(cluster, namespace)).find(({ metadata }) => metadata.name === name)?.status
    if (status?.state === 'failed') throw new Error(`it failed: ${status.detail}`)
    return status?.state === 'completed' ? status.path : undefined
  })
}

/** The one that the deletion has made. */
async function lastOf(cluster: Cluster, namespace: string): Promise<{ readonly name: string; readonly path: string }> {
  const others = (await savepointsOf(cluster, namespace)).filter(({ metadata }) => metadata.name !== 'by-hand')
  const [one, ...more] = others
  if (one === undefined || more.length > 0)
    throw new Error(`one savepoint was to be made: ${JSON.stringify(others.map(({ metadata }) => metadata.name))}`)
  return { name: one.metadata.name, path: await completed(cluster, namespace, one.metadata.name) }
}

async function isGone(job: ScenarioJob, { metadata: { uid } }: JobObject): Promise<boolean> {
  const { stdout } = await job.kubectl(['get', 'streamjobs', '-o', 'jsonpath={.items[*].metadata.uid}'])
  return !stdout.includes(uid)
}

/** By the operator's clock: it has said when the job ended, and when that was too long ago. */
async function expectTtl(cluster: Cluster, namespace: string, { metadata, status }: JobObject): Promise<void> {
  const words = ['--namespace', namespace, 'get', 'events.events.k8s.io']
  const { items } = await cluster.get<{ readonly items: readonly EventObject[] }>(words)
  const expired = items.find(({ reason, regarding }) => reason === 'Expired' && regarding.uid === metadata.uid)
  const afterMs = Date.parse(expired?.eventTime ?? '') - Date.parse(status?.finishedAt ?? '')
  if (!(afterMs >= ttlSeconds * 1_000 && afterMs < (ttlSeconds + 15) * 1_000))
    throw new Error(`it finished at ${status?.finishedAt}, and was deleted at ${expired?.eventTime}`)
}

function expectBelow(path: string, address: string): void {
  if (!path.startsWith(`${address}/`)) throw new Error(`${path} is not below ${address}`)
}

function expectSame(seen: readonly string[], expected: readonly string[]): void {
  const [left, right] = [seen.toSorted().join('\n'), expected.toSorted().join('\n')]
  if (left !== right) throw new Error(`there are\n${left}\nand not\n${right}`)
}
