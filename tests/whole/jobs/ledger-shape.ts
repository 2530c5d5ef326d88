// What the ledger's job and its judge agree on.

export const splits = 2
/** Records of one split in one window. */
export const windowRecords = 50
const keys = 16

export function keyOf(split: number, n: number): string {
  return `key ${(n * 7 + split * 3) % keys}`
}

/** A source that outlasts a test's faults (outlasting-source.ts) goes to its end, at full speed, once the test has put this file there. */
export function fullSpeedFile(output: string): string {
  return `${output}.full-speed`
}
