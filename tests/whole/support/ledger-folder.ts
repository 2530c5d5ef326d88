// A test's side of the folder of the ledger's job: when its sources are to come to their end, and what it left there. Only committed files count.

import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkLedger } from '../../../runtime/connectors/ledger-check.ts'
import type { LedgerReport } from '../../../runtime/connectors/ledger-check.ts'
import type { LedgerEntry } from '../../../runtime/connectors/ledger.ts'
import { fullSpeedFile, keyOf, splits, windowRecords } from '../jobs/ledger-shape.ts'

interface WindowTotal {
  readonly split: number
  readonly startMs: number
  readonly records: number
  readonly sum: number
}

/** From now on the sources of the folder's job give all they have. */
export function hurry(folder: string): void {
  writeFileSync(fullSpeedFile(join(folder, 'out')), '')
}

/** In the order in which each subtask wrote them: names sort by subtask, then by checkpoint. */
export function linesOf<T>(folder: string): T[] {
  const names = readdirSync(folder)
    .filter((name) => name.startsWith('part-'))
    .toSorted()
  const lines = names.flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'))
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as T)
}

export function ledgerOf(output: string, perSplit: number): LedgerReport {
  return checkLedger(linesOf<LedgerEntry>(join(output, 'entries')), { splits, perSplit, keyOf })
}

/** Windows that are missing, there twice, or have other contents; [] when all is exact. */
export function wrongWindows(output: string, perSplit: number): string[] {
  const expected: string[] = []
  for (let split = 0; split < splits; split++) {
    for (let first = 0; first < perSplit; first += windowRecords) {
      const records = Math.min(windowRecords, perSplit - first)
      const sum = records * first + (records * (records - 1)) / 2
      expected.push(JSON.stringify({ split, startMs: first * 1_000, records, sum } satisfies WindowTotal))
    }
  }
  const found = linesOf<WindowTotal>(join(output, 'windows')).map((total) => JSON.stringify(total))
  const missing = expected.filter((total) => !found.includes(total)).map((total) => `missing ${total}`)
  const seen = new Set<string>()
  const surplus = found.filter((total) => !expected.includes(total) || seen.size === seen.add(total).size)
  return [...missing, ...surplus.map((total) => `surplus ${total}`)]
}
