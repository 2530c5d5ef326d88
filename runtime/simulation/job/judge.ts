// What must hold when a job has ended: the ledger is exact, the store has what HEAD names.

import { objectsOf, decodeManifest } from '../../checkpoint/manifest.ts'
import { checkLedger } from '../../connectors/ledger-check.ts'
import type { LedgerEntry } from '../../connectors/ledger.ts'
import { LEDGER_MAGIC } from '../../connectors/sequence.ts'
import type { ObjectStore } from '../../storage/contract.ts'
import { restorePointOf } from '../../storage/head.ts'
import type { Head } from '../../storage/head-contract.ts'
import { keyOf, weightOf } from './flows.ts'
import { keepsOrder, recordsOf } from './shape.ts'
import type { JobShape } from './shape.ts'

/** Sentences about what is wrong; none: exact. */
export function judgeLedger(shape: JobShape, entries: readonly LedgerEntry[]): string[] {
  if (shape.flow === 'windows' || shape.flow === 'idle windows') return judgeWindows(shape, entries)
  const perSplit = shape.ending === 'cut' ? longestPrefix(shape, entries) : (split: number) => recordsOf(shape, split)
  const report = checkLedger(entries, { splits: shape.splits, perSplit, keyOf: (split, n) => keyOf(shape, split, n) })
  const { lost, duplicate, unexpected, wrongMagic, wrongKey, wrongCounts } = report
  const reordered = keepsOrder(shape) ? report.reordered : 0
  const wrong = Object.entries({ lost, duplicate, reordered, unexpected, wrongMagic, wrongKey, wrongCounts }).filter(
    ([, count]) => count > 0,
  )
  if (wrong.length === 0) return []
  const samples = report.samples.filter((sample) => reordered > 0 || !sample.startsWith('reordered')).slice(0, 6)
  return [
    `The ledger is not exact: ${wrong.map(([name, count]) => `${count} ${name}`).join(', ')} of ${report.expected}. ${samples.join('; ')}`,
  ]
}

/** Whether a job that does not end by itself may be suspended now. */
export function mayBeSuspended(shape: JobShape, entries: readonly LedgerEntry[]): boolean {
  if (shape.ending === 'quiet') return entries.length >= resultsExpected(shape)
  if (shape.flow !== 'idle windows') return true
  // The silent split must not have stopped the others' time: windows behind its last record have fired.
  const silentMs = recordsOf(shape, 0) * shape.stepMs
  return entries.some(({ n }) => n * shape.windowMs > silentMs)
}

/** How many there will be once all are there; Infinity where the job is cut. */
export function resultsExpected(shape: JobShape): number {
  let records = 0
  for (let split = 0; split < shape.splits; split++) records += recordsOf(shape, split)
  return records
}

/** A suspended job has committed a cut through its records: of each split, a beginning. */
function longestPrefix(shape: JobShape, entries: readonly LedgerEntry[]): (split: number) => number {
  const lengths = Array.from({ length: shape.splits }, () => 0)
  for (const { split, n } of entries) if (n >= (lengths[split] ?? Infinity)) lengths[split] = n + 1
  return (split) => lengths[split]!
}

interface WindowSum {
  readonly key: string
  readonly window: number
  readonly sum: number
}

/** The same sums by a plain loop, over the windows before `windows`. */
function windowSums(shape: JobShape, windows: number): Map<string, WindowSum> {
  const sums = new Map<string, WindowSum>()
  for (let split = 0; split < shape.splits; split++) {
    const records = recordsOf(shape, split)
    for (let n = 0; n < records && n * shape.stepMs < windows * shape.windowMs; n++) {
      const key = keyOf(shape, split, n)
      const window = Math.floor((n * shape.stepMs) / shape.windowMs)
      const name = `${key} ${window}`
      sums.set(name, { key, window, sum: (sums.get(name)?.sum ?? 0) + weightOf(split, n) })
    }
  }
  return sums
}

/** All windows have fired in a job that finished; in one that was cut, of each key all before its last one. */
function judgeWindows(shape: JobShape, entries: readonly LedgerEntry[]): string[] {
  const cut = shape.ending === 'cut'
  const newestOf = new Map<string, number>()
  for (const { key, n } of entries) newestOf.set(key!, Math.max(n, newestOf.get(key!) ?? 0))
  const sums = windowSums(shape, cut ? 1 + Math.max(0, ...newestOf.values()) : Infinity)
  const expected = [...sums.values()].filter(({ key, window }) => !cut || window <= (newestOf.get(key) ?? -1))
  const wrong: string[] = []
  const seen = new Map<string, number>()
  for (const entry of entries) {
    const name = `${entry.key} ${entry.n}`
    seen.set(name, (seen.get(name) ?? 0) + 1)
    const right = sums.get(name)
    if (entry.magic !== LEDGER_MAGIC || right === undefined) wrong.push(`unexpected ${JSON.stringify(entry)}`)
    else if (right.sum !== entry.count) wrong.push(`window ${name} is ${entry.count}, not ${right.sum}`)
  }
  for (const { key, window } of expected) {
    const times = seen.get(`${key} ${window}`) ?? 0
    if (times === 0) wrong.push(`window ${key} ${window} is missing`)
  }
  for (const [name, times] of seen) if (times > 1) wrong.push(`window ${name} came ${times} times`)
  return wrong.length === 0 ? [] : [`${wrong.length} windows are wrong: ${wrong.slice(0, 6).join('; ')}`]
}

/** Every object that a manifest named by HEAD needs is there (R10, R11, B14). */
export async function judgeStore(head: Head, store: ObjectStore): Promise<string[]> {
  const failures: string[] = []
  const point = restorePointOf(head)
  const named = [
    ...head.retained,
    ...(head.unconfirmed === undefined ? [] : [head.unconfirmed]),
    ...(point.kind === 'manifest' ? [point.manifest] : []),
  ]
  for (const { path } of named) {
    const bytes = await store.read(path)
    if (bytes === undefined) {
      failures.push(`HEAD names ${path}, which is not there.`)
      continue
    }
    for (const object of objectsOf(decodeManifest(bytes, path)))
      if ((await store.read(object)) === undefined) failures.push(`${path} needs ${object}, which is not there.`)
  }
  return failures
}
