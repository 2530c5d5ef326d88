import type { Scenario } from '../cluster/scenario.ts'
import { found, wait } from './support/wait.ts'
import { inWorld } from './support/world.ts'

interface SavepointObject {
  readonly metadata: { readonly name: string }
  readonly status?: { readonly state: string; readonly path?: string; readonly detail?: string }
}

/** Taken on demand, by nonce and by schedule; they outlive the job, begin another one, and their files go with them on request. */
export const scenario: Scenario = {
  name: 'savepoint objects',
  core: false,
  run: (cluster, context) =>
    inWorld(cluster, context, 'savepoints', async ({ started, job: make, namespace }) => {
      const at = ['--namespace', namespace]
      const list = async (): Promise<readonly SavepointObject[]> =>
        (await cluster.get<{ readonly items: readonly SavepointObject[] }>([...at, 'get', 'savepoints'])).items
      const completed = (name: string): Promise<string> =>
        found(`savepoint ${name}`, async () => {
          const status = (await list()).find(({ metadata }) => metadata.name === name)?.status
          if (status?.state === 'failed') throw new Error(`it failed: ${status.detail}`)
          return status?.state === 'completed' ? status.path : undefined
        })
      const savepoint = (name: string, spec: object): object => ({
        apiVersion: 'millrace.dev/v1alpha1',
        kind: 'Savepoint',
        metadata: { name },
        spec: { job: { name: 'ledger' }, ...spec },
      })

      const job = await started({
        spec: {
          parallelism: 2,
          checkpointing: { interval: '1s' },
          savepoints: { every: '5s', keep: { count: 2 } },
        },
      })
      await cluster.apply([savepoint('by-hand', { disposal: 'delete' })], { namespace })
      context.say(`by hand: ${await completed('by-hand')}`)

      await job.patch({ savepointNonce: 1 })
      await job.until(
        'the nonce to be answered',
        ({ answered, savepoints }) => answered.savepoint === 1 && savepoints.length > 0,
      )

      await wait('a third periodic savepoint', async () =>
        (await list()).some(({ metadata }) => metadata.name.endsWith('-p3')),
      )
      await wait('the oldest periodic ones to be gone', async () => {
        const names = (await list()).map(({ metadata }) => metadata.name)
        return names.includes('by-hand') && !names.some((name) => name.endsWith('-p1'))
      })
      context.say(`periodic ones: ${(await list()).map(({ metadata }) => metadata.name).join()}`)

      await job.expectSound()
      await job.patch({ state: 'suspended', upgradeMode: 'savepoint' })
      const { restorePoint } = await job.until('suspended by a savepoint', ({ phase }) => phase === 'SUSPENDED')
      const last = restorePoint!.path!
      await job.remove()
      if ((await list()).length < 2) throw new Error('savepoints went with their job')

      // Registered by its address, and begun from by another job, which goes on in the same book: each record once over both.
      await cluster.apply([savepoint('registered', { path: last })], { namespace })
      await completed('registered')
      const next = make({ name: 'next', args: { book: 'ledger' } })
      await next.apply({ spec: { parallelism: 3, restoreFrom: last, checkpointing: { interval: '1s' } } })
      await next.running()
      await next.checkpoints(1)
      context.say('another job went on from the savepoint at parallelism 3')
      await next.expectExactToTheEnd()
      await next.remove()

      await job.kubectl(['delete', 'savepoint', 'by-hand', '--wait=true', '--timeout=150s'], { deadlineMs: 160_000 })
      const { stdout } = await job.kubectl(['get', 'events', '-o', 'jsonpath={.items[*].reason}'])
      if (stdout.includes('FilesLeft')) throw new Error('the files of by-hand were left')
      await job.kubectl(['delete', 'savepoints', '--all', '--wait=true', '--timeout=150s'], { deadlineMs: 160_000 })
    }),
}
