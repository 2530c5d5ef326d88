// What jobs and the ledger server agree on. Said a second time here on purpose: the judge shares no code with what it judges.

/** 'MRLG'; a record that carries another number was damaged on its way. */
export const LEDGER_MAGIC = 0x4d52_4c47

/**
 * One entry on the wire and in the log: [split, n, magic], and behind a keyed counter also the key and how many records of it came so
 * far. Whatever else stands there is judged, not refused: a damaged record must be counted.
 */
export type LedgerRow = readonly [split: unknown, n: unknown, magic: unknown, key?: unknown, count?: unknown]

/** Which of 0 ≤ number < keys is the key of a record, in all jobs that write to the ledger with keys. */
export function keyNumber(split: number, n: number, keys: number): number {
  return (n * 7_919 + split * 3) % keys
}

export function keyName(number: number): string {
  return `key ${number}`
}

/** undefined: not a list of rows. */
export function parseRows(text: string): readonly LedgerRow[] | undefined {
  let rows: unknown
  try {
    rows = JSON.parse(text)
  } catch {
    return undefined
  }
  const isRow = (row: unknown): boolean => Array.isArray(row) && row.length >= 3 && row.length <= 5
  return Array.isArray(rows) && rows.every(isRow) ? (rows as LedgerRow[]) : undefined
}
