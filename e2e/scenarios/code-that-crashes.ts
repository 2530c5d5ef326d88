import type { Scenario } from '../cluster/scenario.ts'
import { inWorld } from './support/world.ts'

const good = { parallelism: 2, checkpointing: { interval: '1s' } }

/** New code that throws at its first record never completes a checkpoint: back to the old one, which has lost nothing. */
const throwing = (code: string): string =>
  code.replace(
    'checkMagic(record)',
    "if (record.n >= 0) throw new Error('crash on every record')\n          checkMagic(record)",
  )

/** New code that takes no checkpoint in time: the same. */
const stalling = (code: string): string =>
  code.replace(
    'checkMagic(record)',
    'if (record.n >= 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600_000)\n          checkMagic(record)',
  )

export const scenario: Scenario = {
  name: 'code that crashes',
  core: false,
  usualMs: 480_000,
  deadlineMs: 900_000,
  run: (cluster, context) =>
    inWorld(cluster, context, 'crash', async ({ started }) => {
      const spec = { ...good, rollback: { enabled: true, progressDeadline: '20s' } }
      const job = await started({ spec })
      const [, map] = (await job.manifest()) as [object, { readonly data: { readonly 'job.ts': string } }]
      const code = map.data['job.ts']
      const { revision } = await job.status()
      for (const [what, spoil] of Object.entries({ throwing, stalling })) {
        const spoiled = spoil(code)
        if (spoiled === code) throw new Error('the example has no such line any more')
        await job.apply({ spec, code: { 'job.ts': spoiled } })
        await job.until(
          `the ${what} code to be rolled back`,
          (status) =>
            status.phase === 'RUNNING' &&
            status.transition === undefined &&
            status.revision === revision &&
            status.conditions.some(({ type, reason }) => type === 'UpgradeBlocked' && reason === 'RolledBack'),
          300_000,
        )
        await job.checkpoints(1)
        await job.expectSound()
        context.say(`${what} code: rolled back`)
        await job.apply({ spec, code: { 'job.ts': code } })
        await job.running()
      }
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
