// As it stands in docs/testing.md.

import { it } from 'vitest'
import type { Sink } from 'millrace/connectors'
import { MemoryFiles, manualEnvironment, plainSinkClaims } from 'millrace/testkit'

/** Puts numbers into a table; a barrier waits until they are there. */
function tableSink(insert: (rows: readonly number[]) => Promise<void>): Sink<number> {
  return {
    name: 'table',
    createWriter() {
      let rows: number[] = []
      return {
        open: () => Promise.resolve(),
        write: (row) => void rows.push(row),
        // The call itself cuts: rows that come while it waits belong to the next one.
        async prepareCommit() {
          const taken = rows
          rows = []
          await insert(taken)
          return []
        },
        close: () => undefined,
      }
    },
  }
}

const claims = plainSinkClaims('table', () => {
  // One table a claim: it outlives the writers, as the real one would.
  const table: number[] = []
  let broken = false
  const insert = async (rows: readonly number[]): Promise<void> => {
    if (broken) throw new Error('the table takes no rows')
    table.push(...rows)
  }
  return {
    name: 'table',
    createSink: () => tableSink(insert),
    environment: manualEnvironment(),
    files: new MemoryFiles(),
    record: (n) => n,
    keyOf: String,
    visible: async () => table,
    refuse: () => {
      broken = true
    },
  }
})
for (const { name, run } of claims) it(name, run)
