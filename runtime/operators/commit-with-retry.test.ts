import { describe, expect, it } from 'vitest'
import { checkpointId } from '../base/ids.ts'
import { Metrics } from '../base/metrics.ts'
import type { Committable } from '../checkpoint/contract.ts'
import { connectorError } from '../connectors/errors.ts'
import type { OnUnknownCommit } from '../job/contract.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { commitWithRetry } from './commit-with-retry.ts'

const committable = (transaction: string): Committable => ({
  checkpoint: checkpointId(1),
  transaction,
  payload: undefined,
})

/** An external system that knows some transactions, and refuses a list with any other as a whole. */
function commit(known: readonly string[], asked: readonly string[], onUnknown: OnUnknownCommit) {
  const committed = new Set<string>()
  const environment = manualEnvironment()
  const done = commitWithRetry({
    committer: {
      commit: async (list) => {
        const unknown = list.find(({ transaction }) => !known.includes(transaction))
        if (unknown !== undefined) throw connectorError('MR-N12', `${unknown.transaction}.`)
        for (const { transaction } of list) committed.add(transaction)
      },
      list: async () => [],
      abort: async () => undefined,
    },
    committables: asked.map(committable),
    environment,
    metrics: new Metrics(),
    deadlineMs: 1_000,
    onUnknown,
    sink: 'sink',
    stop: new AbortController().signal,
  })
  return { done, committed, environment }
}

describe('a transaction that the external system does not know (rule 23)', () => {
  it('stops the job: nobody but the user may say that it was committed', async () => {
    await expect(commit(['a'], ['a', 'gone'], 'stop').done).rejects.toMatchObject({ code: 'MR-J65' })
  })

  it('counts as committed when the user says so; the others are committed, and each one that is not known is named', async () => {
    const { done, committed, environment } = commit(['a', 'b'], ['a', 'gone', 'b', 'lost'], 'assume committed')
    await done
    expect([...committed]).toEqual(['a', 'b'])
    expect(environment.lines.map(({ level, fields }) => [level, fields?.['transaction']])).toEqual([
      ['warn', 'gone'],
      ['warn', 'lost'],
    ])
  })
})
