// The operator's process, from its command line to its end.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testConfig } from '../../operator/harness/operator-world.ts'
import type { OperatorWorld } from '../../operator/harness/operator-world.ts'
import { types } from '../../operator/kubernetes/types.ts'
import { jobsNamespace as namespace, ownNamespace, startOperatorProcess } from '../servers/support/operator-process.ts'
import type { OperatorProcess } from '../servers/support/operator-process.ts'

let operator: OperatorProcess
let world: OperatorWorld
beforeAll(async () => {
  operator = await startOperatorProcess()
  world = operator.world
}, 1_500_000)
afterAll(() => operator?.stop())

describe("the operator's process with the chart's rights", () => {
  it(
    'runs, upgrades and deletes a job over TLS; refused nothing, and telling no secret',
    { timeout: 240_000 },
    async () => {
      const uid = await world.createJob('job', { parallelism: 2 })
      await world.until('it runs', () => world.isSettled('job'))
      const secrets = (await world.options.client.list(types.secret, { namespace, labelSelector: 'millrace.dev/job' }))
        .items
      const { data } = secrets[0] as unknown as { readonly data: Readonly<Record<string, string>> }
      expect(Object.keys(data).toSorted()).toEqual([
        'ca.crt',
        'ca.key',
        'nats.creds',
        'owner-token',
        'reader-token',
        'tls.crt',
        'tls.key',
        'worker-token',
      ])
      await world.edit('job', { program: { args: { rows: 7 } }, upgradeMode: 'savepoint' })
      await world.until(
        'it is upgraded',
        async () => (await world.isSettled('job')) && (await world.status('job'))!.start === 2,
      )
      const metrics = await (await fetch(`${operator.url}/metrics`)).text()
      expect(metrics).toContain('millrace_job_phase{namespace="jobs",name="job",phase="RUNNING"} 1')
      await world.delete('job')
      await world.until('it is gone', async () => (await world.job('job')) === undefined)
      await world.until('nothing is left', async () => (await world.owned(uid)).length === 0)
      expect(world.coordinators.heads.get(uid)!.end).toBe('cancelled')
      expect(
        operator
          .log()
          .split('\n')
          .filter((line) => /\b403\b|orbidden/.test(line)),
      ).toEqual([])
      expect(metrics).not.toMatch(/api_requests_total\{[^}]*code="403"/)
      for (const [key, value] of Object.entries(data)) {
        const secret = Buffer.from(value, 'base64').toString().trim()
        expect(operator.log().includes(secret) || operator.log().includes(value), key).toBe(false)
      }
    },
  )

  it('goes on behind an API server that was killed and started again (O3)', { timeout: 240_000 }, async () => {
    await world.createJob('second')
    await world.until('it runs', () => world.isSettled('second'))
    await operator.server.kill()
    await operator.server.restart()
    await world.edit('second', { program: { args: { rows: 8 } } })
    await world.until(
      'it is upgraded',
      async () => (await world.isSettled('second')) && (await world.status('second'))!.start === 2,
    )
    expect(world.coordinators.starts.filter(({ start }) => start === 2)).toHaveLength(2)
  })

  it('gives the lease back on SIGTERM, and ends', { timeout: 60_000 }, async () => {
    const ended = new Promise<number | null>((resolve) => operator.process.once('exit', resolve))
    operator.process.kill('SIGTERM')
    expect(await ended).toBe(0)
    const lease = await world.options.client.get(types.lease, { namespace: ownNamespace, name: testConfig.lease })
    expect(lease).toMatchObject({ spec: { leaseDurationSeconds: 1 } })
    expect((lease!['spec'] as { readonly holderIdentity?: string }).holderIdentity ?? '').toBe('')
  })
})
