import type { Scenario } from '../cluster/scenario.ts'
import { exampleWith } from './support/example.ts'
import { inWorld } from './support/world.ts'

/** The example's code, with the formula of its keys in a file of its own. */
async function twoFiles(): Promise<Readonly<Record<string, string>>> {
  const formula = '`key ${(n * 7_919 + split * 3) % keys}`'
  const job = await exampleWith(formula, 'keyOf(split, n, keys)')
  return {
    'job.ts': `import { keyOf } from './key.ts'\n${job}`,
    'key.ts': `export const keyOf = (split: number, n: number, keys: number): string => ${formula}\n`,
  }
}

/** The files import each other. Editing the ConfigMap is an upgrade; a pod that is replaced before it never meets the edited code. */
export const scenario: Scenario = {
  name: 'code of several files edited',
  core: false,
  run: (cluster, context) =>
    inWorld(cluster, context, 'files', async ({ started }) => {
      const code = await twoFiles()
      const spec = { parallelism: 2, checkpointing: { interval: '1s' } }
      const job = await started({ spec, code })
      const before = await job.status()

      await job.apply({ spec, code: { ...code, 'key.ts': `throw new Error('half an edit')\n` } })
      await job.until('the edited code to be refused', ({ conditions }) =>
        conditions.some(({ type, reason }) => type === 'UpgradeBlocked' && reason === 'PreflightRefused'),
      )
      await job.killPods('worker')
      await job.killPods('coordinator')
      await job.checkpoints(2)
      await job.expectSound()
      if ((await job.status()).revision !== before.revision) throw new Error('replaced pods met the edited code')
      context.say('all pods replaced while the ConfigMap held code that cannot work: the job ran on')

      await job.apply({ spec, code: { ...code, 'key.ts': `${code['key.ts']!}// edited\n` } })
      await job.stable('the edit to be an upgrade', ({ revision }) => revision !== before.revision)
      await job.expectExactToTheEnd()
      await job.remove()
    }),
}
