// A job whose newer version lacks an operator: its state is refused without a word from the user, and with it dropped, once and for good.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { defineJob, valueState, z } from '../../runtime/api.ts'
import type { Stream } from '../../runtime/api.ts'
import { collected, collectionSink, sequence } from '../../runtime/connectors/api.ts'
import type { SequenceRecord } from '../../runtime/connectors/api.ts'
import { decodeManifest } from '../../runtime/checkpoint/manifest.ts'
import { recordedOperators, stateNamesOf } from '../../runtime/checkpoint/recorded-operators.ts'
import { openMiniCluster } from '../../runtime/testkit/api.ts'
import type { MiniCluster, Savepoint } from '../../runtime/testkit/api.ts'
import { RunningCommand, inFolder, runCommand } from '../support/command.ts'
import { hasCommitted } from './support/counting-job.ts'

interface Counted {
  readonly by: string
  readonly key: number
  readonly count: number
}

/** What is edited between two starts. */
const version = { hasExtra: true }
const [splits, perSplit, keys] = [2, 300, 3]
const drops = 'state was dropped, as allowed'

function counting(results: string) {
  const counted = z.object({ by: z.string(), key: z.int(), count: z.int() })
  const counts = (numbers: Stream<SequenceRecord>, by: string) =>
    numbers
      .keyBy(({ n }) => n % keys)
      .process(
        {
          state: { seen: valueState('seen', z.int()) },
          process(_record, { key, state: { seen }, emit }) {
            seen.update((seen.get() ?? 0) + 1)
            emit({ by, key, count: seen.get()! })
          },
        },
        { schema: counted },
      )
      .uid(by)
  return defineJob((env) => {
    env.config.checkpointIntervalMs = undefined
    const numbers = env.source(sequence({ splits, perSplit, ratePerSecond: 300 }), { uid: 'numbers' })
    const results1 = counts(numbers, 'kept')
    const all = version.hasExtra ? results1.union(counts(numbers, 'extra')) : results1
    all.sinkTo(collectionSink<Counted>(results)).uid('results')
  })
}

/** Each time that counting of a key began anew, as what it came to. */
function runsOf(results: string, by: string): number[][] {
  return Array.from({ length: keys }, (_, key) => {
    const counts = collected<Counted>(results).filter((one) => one.by === by && one.key === key)
    const ordered = counts.map(({ count }) => count)
    return ordered.flatMap((count, index) => {
      const next = ordered[index + 1]
      if (next === count + 1) return []
      expect([1, undefined], `${by} ${key}: ${count}, then ${next}`).toContain(next)
      return [count]
    })
  })
}

const uidsWithState = ({ objects }: Savepoint): string[] => {
  const operators = recordedOperators(decodeManifest(objects.get('_metadata')!, '_metadata'))
  return [...operators.values()].filter((operator) => stateNamesOf(operator).length > 0).map(({ uid }) => uid)
}

const timesDropped = ({ logLines }: MiniCluster): number =>
  logLines.filter(({ message, fields }) => message === drops && JSON.stringify(fields) === '{"uids":["extra"]}').length

describe('an operator that a newer version lacks', () => {
  it('is refused with its uid and states; allowed, it is dropped for good, and begins empty when it is put back', async () => {
    const results = 'dropped-state'
    version.hasExtra = true
    const cluster = await openMiniCluster({ job: counting(results), parallelism: 2 })
    await cluster.start()
    await cluster.advance(300)
    expect(uidsWithState(await cluster.stop())).toContain('extra')

    version.hasExtra = false
    await expect(cluster.start()).rejects.toThrow(/^MR-C11 .*uid extra in savepoint \d+ of \S+, with timers, seen\./)
    // Nothing has begun: the version before it would go on.
    await expect(cluster.restart()).rejects.toThrow(/MR-C11/)
    expect(timesDropped(cluster)).toBe(0)

    await cluster.start({ allowNonRestoredState: true })
    expect(timesDropped(cluster)).toBe(1)
    await cluster.advance(100)
    // Before its first checkpoint the start begins again where it began, and so must say again what it drops.
    cluster.killCoordinator()
    await cluster.restart()
    expect(timesDropped(cluster)).toBe(2)
    await cluster.advance(100)
    cluster.killSlot()
    await cluster.until(() => cluster.restarts.length === 1)
    await cluster.checkpoint()
    const said = timesDropped(cluster)

    // Behind it there is nothing left to drop, whether it is allowed or not.
    cluster.killCoordinator()
    await cluster.restart()
    await cluster.advance(100)
    await cluster.suspend()
    await cluster.start()
    expect(timesDropped(cluster)).toBe(said)
    expect(uidsWithState(await cluster.savepoint())).toEqual(['numbers', 'kept'])
    await cluster.advance(100)
    await cluster.stop()

    version.hasExtra = true
    await cluster.start()
    expect(await cluster.untilEnd()).toEqual({ kind: 'finished' })
    const total = (splits * perSplit) / keys
    expect(runsOf(results, 'kept')).toEqual(Array.from({ length: keys }, () => [total]))
    for (const [first, second, ...more] of runsOf(results, 'extra')) {
      expect(more).toEqual([])
      expect(second).toBeGreaterThan(1)
      expect(first! + second!).toBeLessThan(total)
    }
    expect(timesDropped(cluster)).toBe(said)
  })

  it('is refused by the command too, which says what lets it go and what it dropped', async () => {
    await inFolder(async (folder) => {
      await writeFile(join(folder, 'changing.ts'), changingJob)
      const words = ['run', 'changing.ts', '--arg', 'count=4000']
      const first = new RunningCommand([...words, '--arg', 'ratePerSecond=500', '--arg', 'extra=true'], { folder })
      await first.until(hasCommitted(join(folder, 'out')))
      first.kill('SIGINT')
      expect((await first.ended).stderr).toMatch(/changing was stopped with savepoint/)

      const refused = await runCommand(words, { folder })
      expect(refused.exitCode).toBe(1)
      expect(refused.stderr).toMatch(
        /MR-C11 .*uid extra in savepoint \d+ of changing, with timers, reduced.*--allow-non-restored-state/s,
      )
      const allowed = await runCommand([...words, '--allow-non-restored-state'], { folder })
      expect(allowed, allowed.stderr).toMatchObject({ exitCode: 0 })
      expect(allowed.stderr.split('state was dropped').length, allowed.stderr).toBe(2)
      expect(allowed.stderr).toMatch(/state was dropped, as allowed.*extra/)
    })
  })
})

const changingJob = `
import { defineJob, z } from 'millrace'
import { dataGenerator, jsonLineFileSink } from 'millrace/connectors'

const schema = z.object({ n: z.int() })
const args = z.object({ count: z.int(), ratePerSecond: z.number().optional(), extra: z.boolean().default(false) })

export default defineJob({ args }, (env, { count, ratePerSecond, extra }) => {
  env.config.checkpointIntervalMs = 100
  const numbers = env.source(dataGenerator({ create: (n) => ({ n }), schema, count, ratePerSecond }), { uid: 'numbers' })
  const counts = extra ? numbers.keyBy(({ n }) => n % 3).reduce((_, last) => last).uid('extra') : numbers
  counts.sinkTo(jsonLineFileSink({ folder: 'out' })).uid('files')
})
`
