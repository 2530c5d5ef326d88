// What the ledger's job and its judge agree on.

import { existsSync } from 'node:fs'

export const splits = 2
/** Records of one split in one window. */
export const windowRecords = 50
const keys = 16

export function keyOf(split: number, n: number): string {
  return `key ${(n * 7 + split * 3) % keys}`
}

/**
 * A slow source outlasts all faults of a test, on any machine; the test then puts this file beside the output, and the next life of the
 * source goes on at full speed.
 */
export function fullSpeedFile(output: string): string {
  return `${output}.full-speed`
}

export function rateOf(output: string, ratePerSecond: number): { readonly ratePerSecond?: number } {
  return existsSync(fullSpeedFile(output)) ? {} : { ratePerSecond }
}
